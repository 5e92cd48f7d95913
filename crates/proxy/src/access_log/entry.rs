//! One line of the access log.

use std::{
    borrow::Cow,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, SecondsFormat, Utc};
use http::{Method, Uri};
use serde::Serialize;

/// The longest text that is logged, in bytes.
const MOST_TEXT: usize = 2048;

/// A request that was answered.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The time at which it arrived.
    pub time: SystemTime,
    /// The id of the application in the control plane. `None` if no application has the host.
    pub application: Option<Arc<str>>,
    /// The requested host.
    pub host: String,
    /// The method of the request.
    pub method: Method,
    /// The requested URI. Only its path is logged, because queries contain secrets.
    pub uri: Uri,
    /// The status of the response; 0 if there was none.
    pub status: u16,
    /// The number of bytes of the request's body.
    pub bytes_in: u64,
    /// The number of bytes of the response's body.
    pub bytes_out: u64,
    /// The time to the last byte.
    pub duration: Duration,
    /// The address of the client.
    pub peer: IpAddr,
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    application: Option<&'a str>,
    host: Cow<'a, str>,
    method: Cow<'a, str>,
    path: Cow<'a, str>,
    status: u16,
    bytes_in: u64,
    bytes_out: u64,
    duration_ms: f64,
    peer: IpAddr,
}

#[derive(Serialize)]
struct Loss {
    time: String,
    lost: u64,
}

impl Entry {
    pub(super) fn write_line(&self, lines: &mut Vec<u8>) {
        let line = Line {
            time: formatted(self.time),
            application: self.application.as_deref(),
            host: cleaned(&self.host),
            method: cleaned(self.method.as_str()),
            path: cleaned(self.uri.path()),
            status: self.status,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            duration_ms: (self.duration.as_secs_f64() * 1_000_000.0).round() / 1000.0,
            peer: self.peer.to_canonical(),
        };
        write_json(&line, lines);
    }
}

/// Writes a line that says how many lines were lost.
pub(super) fn write_loss(lost: u64, time: SystemTime, lines: &mut Vec<u8>) {
    write_json(&Loss { time: formatted(time), lost }, lines);
}

fn write_json(line: &impl Serialize, lines: &mut Vec<u8>) {
    let start = lines.len();
    match serde_json::to_writer(&mut *lines, line) {
        Ok(()) => lines.push(b'\n'),
        // Serialization cannot fail here; half a line would corrupt the next.
        Err(_) => lines.truncate(start),
    }
}

fn formatted(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Truncates the text and removes the characters that control a terminal. JSON escapes only the first 32 of
/// them.
fn cleaned(text: &str) -> Cow<'_, str> {
    let short = &text[..text.floor_char_boundary(MOST_TEXT)];
    let is_bare = |character: char| character.is_control() && character >= ' ';
    if short.contains(is_bare) {
        Cow::Owned(short.replace(is_bare, "\u{fffd}"))
    } else {
        Cow::Borrowed(short)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entry() -> Entry {
        Entry {
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
            application: Some("shop".into()),
            host: "shop.example".to_owned(),
            method: Method::GET,
            uri: Uri::from_static("/a?token=secret"),
            status: 200,
            bytes_in: 1,
            bytes_out: 2,
            duration: Duration::from_micros(1500),
            peer: "::ffff:192.0.2.1".parse().unwrap(),
        }
    }

    fn line(entry: &Entry) -> String {
        let mut lines = Vec::new();
        entry.write_line(&mut lines);
        String::from_utf8(lines).unwrap()
    }

    #[test]
    fn a_line_names_the_request_without_its_query() {
        let line: Value = serde_json::from_str(&line(&entry())).unwrap();
        let expected = json!({
            "time": "2023-11-14T22:13:20.123Z",
            "application": "shop",
            "host": "shop.example",
            "method": "GET",
            "path": "/a",
            "status": 200,
            "bytes_in": 1,
            "bytes_out": 2,
            "duration_ms": 1.5,
            "peer": "192.0.2.1",
        });
        assert_eq!(line, expected);
    }

    #[test]
    fn nobody_breaks_out_of_a_line() {
        for host in ["a\"b", "a\nb", "a\r\n{}", "a\0", "a\u{1b}[31m", "a\u{7f}", "a\u{9b}31m", "\\", "\u{85}"]
        {
            let line = line(&Entry { host: host.to_owned(), ..entry() });
            assert_eq!(line.matches('\n').count(), 1, "{host:?}");
            assert!(!line.trim_end().contains(char::is_control), "{host:?}");
            assert!(serde_json::from_str::<Value>(&line).is_ok(), "{host:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let line = line(&Entry { host: "é".repeat(5000) + "x", application: None, ..entry() });
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["host"].as_str().unwrap().len(), MOST_TEXT);
        assert_eq!(line["application"], Value::Null);
    }
}
