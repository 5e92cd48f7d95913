//! The request of a push: the references that it changes.

use super::{PktLine, pkt_lines};
use crate::{applications::Branch, deployments::CommitHash};

/// The most references that one push changes.
const MOST_UPDATES: usize = 1000;
/// The longest name of a reference, in bytes.
const LONGEST_NAME: usize = 300;

/// A change of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefUpdate {
    /// The full name of the reference.
    pub name: String,
    /// The commit or tag that the client believes it to be at; `None` if it believes that there is none.
    pub old: Option<CommitHash>,
    /// The new commit or tag; `None` to delete the reference.
    pub new: Option<CommitHash>,
}

impl RefUpdate {
    /// Returns the branch; `None` for a tag.
    #[must_use]
    pub fn branch(&self) -> Option<Branch> {
        self.name.strip_prefix("refs/heads/")?.parse().ok()
    }

    /// Returns whether it is a branch or a tag by a valid name.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        let rest = self.name.strip_prefix("refs/heads/").or_else(|| self.name.strip_prefix("refs/tags/"));
        rest.is_some_and(|name| name.parse::<Branch>().is_ok_and(|parsed| parsed.as_str() == name))
    }
}

/// The beginning of a push, before the objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PushRequest {
    /// The changes.
    pub updates: Vec<RefUpdate>,
    /// True if the client prints text that is sent beside the answer.
    pub has_sideband: bool,
    /// True if the client reads the result of each change.
    pub has_report: bool,
}

/// The reason why a push is refused before git sees it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidPush(pub &'static str);

impl PushRequest {
    /// The most bytes that it takes.
    pub const LONGEST: usize = MOST_UPDATES * (LONGEST_NAME + 100);

    /// Parses the beginning of the body of a push. A body without any change is valid: clients ask with it whether
    /// they may push.
    ///
    /// # Errors
    /// [`InvalidPush`] if it is not a push that can be received.
    pub fn parse(head: &[u8]) -> Result<Self, InvalidPush> {
        let mut request = Self::default();
        for (line, _) in pkt_lines(head) {
            let PktLine::Data(line) = line else { return Ok(request) };
            let (line, capabilities) = match line.iter().position(|byte| *byte == 0) {
                Some(end) => (line.get(..end), line.get(end + 1..)),
                None => (Some(line), None),
            };
            if let Some(capabilities) = capabilities {
                let text = String::from_utf8_lossy(capabilities);
                let has = |name: &str| text.split_ascii_whitespace().any(|one| one == name);
                request.has_sideband = has("side-band-64k");
                request.has_report = has("report-status") || has("report-status-v2");
            }
            let line = line.and_then(|line| std::str::from_utf8(line).ok());
            let line = line.ok_or(InvalidPush("a name of a reference is not UTF-8"))?.trim_end_matches('\n');
            // A shallow clone says where its history ends.
            if line.starts_with("shallow ") {
                continue;
            }
            request.updates.push(update(line)?);
            if request.updates.len() > MOST_UPDATES {
                return Err(InvalidPush("a push may change at most 1000 references"));
            }
        }
        Err(InvalidPush("the request is not a push of git"))
    }
}

fn update(line: &str) -> Result<RefUpdate, InvalidPush> {
    const WRONG: InvalidPush = InvalidPush("the request is not a push of git");
    let mut parts = line.splitn(3, ' ');
    let (Some(old), Some(new), Some(name)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(WRONG);
    };
    if name.len() > LONGEST_NAME {
        return Err(InvalidPush("the name of a reference may have at most 300 bytes"));
    }
    Ok(RefUpdate { name: name.to_owned(), old: object(old)?, new: object(new)? })
}

/// Parses a hash; all zeros stand for none.
fn object(text: &str) -> Result<Option<CommitHash>, InvalidPush> {
    if !text.is_empty() && text.bytes().all(|byte| byte == b'0') {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_invalid| InvalidPush("the request is not a push of git"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sources::packet;

    const OLD: &str = "1111111111111111111111111111111111111111";
    const NEW: &str = "2222222222222222222222222222222222222222";
    const NONE: &str = "0000000000000000000000000000000000000000";

    fn body(lines: &[&str]) -> Vec<u8> {
        let mut body: Vec<u8> = lines.iter().flat_map(|line| packet(line.as_bytes())).collect();
        body.extend(b"0000PACK");
        body
    }

    #[test]
    fn changes_and_capabilities_are_read() {
        let lines = [
            format!("shallow {OLD}"),
            format!("{OLD} {NEW} refs/heads/main\0 report-status side-band-64k agent=git/2"),
            format!("{OLD} {NONE} refs/heads/a b"),
            format!("{NONE} {NEW} refs/tags/v1"),
        ];
        let request = PushRequest::parse(&body(&lines.each_ref().map(String::as_str))).unwrap();
        assert!(request.has_sideband && request.has_report);
        let names: Vec<_> = request.updates.iter().map(|update| update.name.as_str()).collect();
        assert_eq!(names, ["refs/heads/main", "refs/heads/a b", "refs/tags/v1"]);
        assert_eq!(request.updates[0].old.as_ref().unwrap().as_str(), OLD);
        assert_eq!((&request.updates[1].new, &request.updates[2].old), (&None, &None));
        assert_eq!(request.updates[0].branch().unwrap().as_str(), "main");
        assert_eq!(
            request.updates.iter().map(RefUpdate::is_allowed).collect::<Vec<_>>(),
            [true, false, true]
        );
    }

    #[test]
    fn only_branches_and_tags_are_allowed() {
        for (name, allowed) in [
            ("refs/heads/a/b", true),
            ("refs/tags/v1", true),
            ("refs/launchway/upload/main", false),
            ("refs/heads/../../config", false),
            ("refs/heads/", false),
            ("refs/heads/-x", false),
            ("refs/heads/ a", false),
            ("HEAD", false),
            ("refs/notes/x", false),
        ] {
            let update = RefUpdate { name: name.to_owned(), old: None, new: None };
            assert_eq!(update.is_allowed(), allowed, "{name}");
        }
    }

    #[test]
    fn a_question_changes_nothing() {
        assert_eq!(PushRequest::parse(b"0000"), Ok(PushRequest::default()));
    }

    #[test]
    fn what_is_no_push_is_refused() {
        let long = format!("{OLD} {NEW} refs/heads/{}", "x".repeat(300));
        for wrong in [
            b"".to_vec(),
            b"hello".to_vec(),
            packet(b"x"),
            body(&["a b c"]),
            body(&[&format!("{OLD} {NEW}")]),
            body(&["push-cert\0 x"]),
            body(&[&long]),
            // The end is missing.
            packet(format!("{OLD} {NEW} refs/heads/main").as_bytes()),
        ] {
            assert!(PushRequest::parse(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_push_changes_at_most_1000_references() {
        let lines = |count: usize| -> Vec<String> {
            (0..count).map(|number| format!("{OLD} {NEW} refs/heads/b{number}")).collect()
        };
        let parse = |count: usize| {
            let lines = lines(count);
            PushRequest::parse(&body(&lines.iter().map(String::as_str).collect::<Vec<_>>()))
        };
        assert_eq!(parse(1000).unwrap().updates.len(), 1000);
        assert!(parse(1001).is_err());
    }

    proptest! {
        #[test]
        fn any_body_is_read_without_a_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = PushRequest::parse(&body);
        }
    }
}
