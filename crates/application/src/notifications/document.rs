//! The document of an event, from which the messages of every channel are composed.

use std::fmt;

use chrono::SecondsFormat;
use launchway_domain::notifications::{Event, EventKind, Fact};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The document as a generic webhook channel receives it. It is stored with the event, so that every
/// attempt sends the same bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Document {
    /// The bytes that are sent and signed. They may come from another version of Launchway, with fields
    /// that this one does not know.
    text: String,
    content: Content,
}

/// The fields of the document that this version knows.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Content {
    /// The type of the event.
    #[serde(rename = "type")]
    kind: String,
    timestamp: String,
    data: Map<String, Value>,
}

/// Data that is read when the first message is composed, and not when the event happened.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) organization: Option<String>,
    /// The tail of the log of a failure, oldest first.
    pub(super) last_lines: Vec<String>,
    /// The URL of the resource of the event.
    pub(super) url: Option<String>,
}

/// The largest length of a value, in characters.
const LONGEST_VALUE: usize = 500;

impl Document {
    pub(super) fn of(event: &Event, findings: Findings) -> Self {
        let mut data = Map::new();
        for (fact, value) in &event.facts {
            data.insert(fact.as_str().to_owned(), value_of(*fact, value));
        }
        if let Some(organization) = findings.organization {
            data.insert(Fact::Organization.as_str().to_owned(), organization.into());
        }
        if !findings.last_lines.is_empty() {
            let lines: Vec<String> =
                findings.last_lines.iter().map(|line| shortened(line, LONGEST_VALUE)).collect();
            data.insert(LAST_LINES.to_owned(), lines.into());
        }
        if let Some(url) = findings.url {
            data.insert(URL.to_owned(), url.into());
        }
        let timestamp = event.at.to_rfc3339_opts(SecondsFormat::Millis, true);
        let content = Content { kind: event.kind.as_str().to_owned(), timestamp, data };
        Self { text: content.to_string(), content }
    }

    /// Parses a stored document, which may come from another version. It is sent as it is. Unknown parts
    /// are left out of the texts.
    pub(super) fn kept(text: String) -> Self {
        let content = serde_json::from_str(&text).unwrap_or_default();
        Self { text, content }
    }

    /// Returns the bytes that are sent and signed.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the type of the event; `None` for one of an older or newer version.
    pub(super) fn kind(&self) -> Option<EventKind> {
        self.content.kind.clone().try_into().ok()
    }

    pub(super) fn timestamp(&self) -> &str {
        &self.content.timestamp
    }

    /// Returns a fact of the event.
    pub(super) fn get(&self, fact: Fact) -> Option<String> {
        match self.content.data.get(fact.as_str())? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// Returns the tail of the log of a failure, oldest first.
    pub(super) fn last_lines(&self) -> Vec<&str> {
        let lines = self.content.data.get(LAST_LINES).and_then(Value::as_array);
        lines.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// Returns the URL of the resource of the event.
    pub(super) fn url(&self) -> Option<&str> {
        self.content.data.get(URL).and_then(Value::as_str)
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, timestamp, data } = self;
        let (kind, timestamp) = (Value::from(kind.as_str()), Value::from(timestamp.as_str()));
        let data = Value::Object(data.clone());
        write!(f, r#"{{"type":{kind},"timestamp":{timestamp},"data":{data}}}"#)
    }
}

const LAST_LINES: &str = "last_lines";
const URL: &str = "url";

/// Converts a fact to JSON: numbers as numbers, texts truncated.
fn value_of(fact: Fact, value: &str) -> Value {
    let number = match fact {
        Fact::Seconds => value.parse::<f64>().ok().map(Value::from),
        Fact::ExitCode => value.parse::<i64>().ok().map(Value::from),
        _ => None,
    };
    number.unwrap_or_else(|| shortened(value, LONGEST_VALUE).into())
}

/// Truncates a text, with a mark where it was cut.
pub(super) fn shortened(text: &str, longest: usize) -> String {
    if text.chars().count() <= longest {
        return text.to_owned();
    }
    text.chars().take(longest.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use launchway_domain::clock::Timestamp;
    use uuid::Uuid;

    use super::*;

    fn event() -> Event {
        let at = Timestamp::from_timestamp_millis(1_700_000_000_123).unwrap();
        Event::new(Uuid::from_u128(1).into(), Uuid::from_u128(2).into(), EventKind::DeploymentFailed, at)
            .with(Fact::Application, "shop")
            .with(Fact::Seconds, "12.5")
            .with(Fact::Reason, "x".repeat(501))
    }

    #[test]
    fn a_document_is_read_as_it_was_written() {
        let findings = Findings {
            organization: Some("Engines".to_owned()),
            last_lines: vec!["one".to_owned(), "two".to_owned()],
            url: Some("https://example.com/x".to_owned()),
        };
        let document = Document::of(&event(), findings);
        let text = document.as_str();
        assert!(
            text.starts_with(
                r#"{"type":"deployment.failed","timestamp":"2023-11-14T22:13:20.123Z","data":{"#
            ),
            "{text}"
        );
        assert!(text.contains(r#""duration_seconds":12.5"#), "{text}");
        let read = Document::kept(text.to_owned());
        assert_eq!(read, document);
        assert_eq!(read.kind(), Some(EventKind::DeploymentFailed));
        assert_eq!(read.get(Fact::Organization).as_deref(), Some("Engines"));
        assert_eq!(read.get(Fact::Seconds).as_deref(), Some("12.5"));
        assert_eq!((read.last_lines(), read.url()), (vec!["one", "two"], Some("https://example.com/x")));
    }

    #[test]
    fn document_of_another_version_is_kept_and_parsed_partly() {
        for (text, kind, application) in [
            (
                r#"{ "data": {"application": "shop", "mood": [1]}, "more": true, "type": "deployment.failed" }"#,
                Some(EventKind::DeploymentFailed),
                Some("shop"),
            ),
            (
                r#"{"type": "planet.moved", "timestamp": "x", "data": {"application": "shop"}}"#,
                None,
                Some("shop"),
            ),
            ("no JSON at all", None, None),
        ] {
            let document = Document::kept(text.to_owned());
            assert_eq!(document.as_str(), text);
            assert_eq!((document.kind(), document.get(Fact::Application).as_deref()), (kind, application));
        }
    }

    #[test]
    fn what_is_long_is_cut() {
        let reason = Document::of(&event(), Findings::default()).get(Fact::Reason).unwrap();
        assert_eq!(reason.chars().count(), 500);
        assert!(reason.ends_with("x…"), "{reason}");
        assert_eq!(shortened(&"x".repeat(500), 500).len(), 500);
    }
}
