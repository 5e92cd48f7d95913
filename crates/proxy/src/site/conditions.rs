//! Conditional requests (RFC 9110, section 13).

use std::time::SystemTime;

use http::{
    HeaderMap, HeaderValue,
    header::{HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE},
};

use super::tags::Tag;

/// The conditional headers of a request.
#[derive(Debug, Default)]
pub(super) struct Conditions {
    match_any: Vec<HeaderValue>,
    match_none: Vec<HeaderValue>,
    unmodified_since: Option<SystemTime>,
    modified_since: Option<SystemTime>,
    range: Option<HeaderValue>,
}

/// The result of evaluating the conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Send,
    NotModified,
    Failed,
}

impl Conditions {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let all = |name| headers.get_all(name).iter().cloned().collect();
        Self {
            match_any: all(IF_MATCH),
            match_none: all(IF_NONE_MATCH),
            unmodified_since: date(headers, IF_UNMODIFIED_SINCE),
            modified_since: date(headers, IF_MODIFIED_SINCE),
            range: headers.get(IF_RANGE).cloned(),
        }
    }

    /// Evaluates the conditions in the order of the standard: an entity tag takes precedence over a date.
    pub(super) fn verdict(&self, tag: &Tag, modified: Option<SystemTime>) -> Verdict {
        if !self.match_any.is_empty() {
            if !self.match_any.iter().any(|list| names(list, tag, Comparison::Strong)) {
                return Verdict::Failed;
            }
        } else if modified.zip(self.unmodified_since).is_some_and(|(modified, since)| modified > since) {
            return Verdict::Failed;
        }
        let is_known = if self.match_none.is_empty() {
            // Exactly this date and no later one: a rollback to an earlier release makes a file older.
            modified.is_some() && modified == self.modified_since
        } else {
            self.match_none.iter().any(|list| names(list, tag, Comparison::Weak))
        };
        if is_known { Verdict::NotModified } else { Verdict::Send }
    }

    /// Returns whether the client may get a range: without a condition, or if it has the rest of the same
    /// content. A date cannot prove that, so a client that sends one gets the whole file.
    pub(super) fn allow_part(&self, tag: &Tag) -> bool {
        self.range.as_ref().is_none_or(|range| range.as_bytes() == tag.as_str().as_bytes())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// A weak tag never matches.
    Strong,
    /// A weak tag matches as well.
    Weak,
}

fn date(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

/// Returns whether a list of tags contains this one. Everything after the first syntax error is ignored.
fn names(list: &HeaderValue, tag: &Tag, comparison: Comparison) -> bool {
    let Ok(list) = list.to_str() else { return false };
    if list.trim() == "*" {
        return true;
    }
    let mut rest = list;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (strong, is_weak) = match rest.strip_prefix("W/") {
            Some(strong) => (strong, true),
            None => (rest, false),
        };
        // A tag may contain a comma, so the list cannot be split there.
        let Some(end) = strong.strip_prefix('"').and_then(|inner| inner.find('"')) else { return false };
        let (named, after) = strong.split_at(end + 2);
        if named == tag.as_str() && !(is_weak && comparison == Comparison::Strong) {
            return true;
        }
        rest = after;
    }
}
