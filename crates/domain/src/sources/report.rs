//! The answer of git to a push.

use super::{PktLine, PushRequest, packet, pkt_lines, sideband};

/// The answer to a push: the result of each change, and the text that a client prints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The text beside the answer.
    pub text: Vec<u8>,
    /// The result of each change, in the format of the protocol; empty if the client reads none.
    pub results: Vec<u8>,
}

impl Report {
    /// Reads the output of `git receive-pack` for a push.
    #[must_use]
    pub fn read(output: &[u8], push: &PushRequest) -> Self {
        if !push.has_sideband {
            return Self { text: Vec::new(), results: output.to_vec() };
        }
        let mut report = Self::default();
        for (line, _) in pkt_lines(output) {
            let PktLine::Data(line) = line else { break };
            match line.split_first() {
                Some((1, data)) => report.results.extend_from_slice(data),
                Some((2 | 3, text)) => report.text.extend_from_slice(text),
                _ => {}
            }
        }
        report
    }

    /// Returns the answer that refuses every change of a push because of `reason`, which is one line.
    #[must_use]
    pub fn refusal(push: &PushRequest, reason: &str) -> Self {
        let reason: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let mut results = Vec::new();
        if push.has_report {
            results = packet(b"unpack ok\n");
            for update in &push.updates {
                results.extend(packet(format!("ng {} {reason}\n", update.name).as_bytes()));
            }
            results.extend(b"0000");
        }
        Self { text: Vec::new(), results }
    }

    /// Returns whether git accepted the change of a reference. Without results it is not known.
    #[must_use]
    pub fn accepts(&self, name: &str) -> bool {
        let expected = format!("ok {name}");
        pkt_lines(&self.results).any(|(line, _)| match line {
            PktLine::Data(line) => line.trim_ascii_end() == expected.as_bytes(),
            PktLine::Flush => false,
        })
    }

    /// Returns the beginning of the body of the response; the rest is more text, and an [end](Report::end).
    #[must_use]
    pub fn encode(&self, push: &PushRequest) -> Vec<u8> {
        if !push.has_sideband {
            return self.results.clone();
        }
        let mut bytes = sideband(2, &self.text);
        bytes.extend(sideband(1, &self.results));
        bytes
    }

    /// Returns the end of the body of the response.
    #[must_use]
    pub fn end(push: &PushRequest) -> &'static [u8] {
        if push.has_sideband { b"0000" } else { b"" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::{RefUpdate, progress};

    fn push(has_sideband: bool) -> PushRequest {
        let name = "refs/heads/main".to_owned();
        PushRequest {
            updates: vec![RefUpdate { name, old: None, new: None }],
            has_sideband,
            has_report: true,
        }
    }

    #[test]
    fn results_and_text_are_separated_and_joined_again() {
        let mut results = packet(b"unpack ok\n");
        results.extend(packet(b"ok refs/heads/main\n"));
        results.extend(b"0000");
        let mut output = progress("Resolving deltas");
        output.extend(sideband(1, &results));
        output.extend(b"0000");
        let report = Report::read(&output, &push(true));
        assert_eq!(report.text, b"Resolving deltas\n");
        assert!(report.accepts("refs/heads/main") && !report.accepts("refs/heads/mai"));
        let mut again = report.encode(&push(true));
        again.extend(Report::end(&push(true)));
        assert_eq!(Report::read(&again, &push(true)), report);
        // A client without side bands gets the results alone.
        assert_eq!(Report::read(&results, &push(false)).encode(&push(false)), results);
        assert!(Report::read(&results, &push(false)).accepts("refs/heads/main"));
    }

    #[test]
    fn a_refusal_names_the_reason_on_one_line() {
        let report = Report::refusal(&push(true), "too\nlarge");
        assert!(!report.accepts("refs/heads/main"));
        let text = String::from_utf8(report.results).unwrap();
        assert!(text.contains("ng refs/heads/main too large\n"), "{text}");
        let silent = PushRequest { has_report: false, ..push(true) };
        assert_eq!(Report::refusal(&silent, "x").results, b"");
    }
}
