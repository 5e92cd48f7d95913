//! One line of the access log.

use std::{
    borrow::Cow,
    cell::RefCell,
    net::IpAddr,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, SecondsFormat, Utc};
use http::{Method, Uri};
use serde::Serialize;

/// The longest text that is logged, in bytes.
const MOST_TEXT: usize = 2048;

/// A request that was answered.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// The time at which it arrived.
    pub time: SystemTime,
    /// The id of the application in the control plane. `None` if no application has the host.
    pub application: Option<&'a str>,
    /// The requested host.
    pub host: &'a [u8],
    /// The method of the request.
    pub method: &'a Method,
    /// The requested URI. Only its path is logged, because queries contain secrets.
    pub uri: &'a Uri,
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
    time: &'a str,
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

/// The memory in which a thread writes its lines.
#[derive(Default)]
struct Scratch {
    line: Vec<u8>,
    /// The last time, which mostly differs from the next only in its milliseconds.
    time: String,
    second: u64,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Entry<'_> {
    /// Calls `take` with the line.
    pub(super) fn with_line(&self, take: impl FnOnce(&[u8])) {
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.set_time(self.time);
            scratch.line.clear();
            self.write_line(&scratch.time, &mut scratch.line);
            take(&scratch.line);
        });
    }

    fn write_line(&self, time: &str, line: &mut Vec<u8>) {
        let host = String::from_utf8_lossy(self.host);
        let fields = Line {
            time,
            application: self.application,
            host: cleaned(&host),
            method: cleaned(self.method.as_str()),
            path: cleaned(self.uri.path()),
            status: self.status,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            duration_ms: (self.duration.as_secs_f64() * 1_000_000.0).round() / 1000.0,
            peer: self.peer.to_canonical(),
        };
        write_json(&fields, line);
    }
}

impl Scratch {
    fn set_time(&mut self, time: SystemTime) {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if self.time.is_empty() || self.second != since.as_secs() {
            self.second = since.as_secs();
            self.time = formatted(time);
            return;
        }
        // `….123Z`
        self.time.truncate(self.time.len() - 4);
        for unit in [100, 10, 1] {
            let digit = since.subsec_millis() / unit % 10;
            self.time.push(char::from_digit(digit, 10).unwrap_or('0'));
        }
        self.time.push('Z');
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
    if short.bytes().all(|byte| (b' '..0x7F).contains(&byte)) {
        return Cow::Borrowed(short);
    }
    let is_bare = |character: char| character.is_control() && character >= ' ';
    if short.contains(is_bare) {
        Cow::Owned(short.replace(is_bare, "\u{fffd}"))
    } else {
        Cow::Borrowed(short)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use serde_json::{Value, json};

    use super::*;

    fn entry() -> Entry<'static> {
        static URI: LazyLock<Uri> = LazyLock::new(|| Uri::from_static("/a?token=secret"));
        Entry {
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_700_000_000_123),
            application: Some("shop"),
            host: b"shop.example",
            method: &Method::GET,
            uri: &URI,
            status: 200,
            bytes_in: 1,
            bytes_out: 2,
            duration: Duration::from_micros(1500),
            peer: "::ffff:192.0.2.1".parse().unwrap(),
        }
    }

    fn line(entry: &Entry<'_>) -> String {
        let mut line = Vec::new();
        entry.with_line(|bytes| line.extend_from_slice(bytes));
        String::from_utf8(line).unwrap()
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
    fn times_of_one_second_and_of_others_are_exact() {
        for milliseconds in [0, 1, 999, 1_000, 1_009, 1_010, 1_700_000_000_123, 1_700_000_000_999, 5] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_millis(milliseconds);
            let line: Value = serde_json::from_str(&line(&Entry { time, ..entry() })).unwrap();
            assert_eq!(line["time"], formatted(time), "{milliseconds}");
        }
    }

    #[test]
    fn nobody_breaks_out_of_a_line() {
        for host in ["a\"b", "a\nb", "a\r\n{}", "a\0", "a\u{1b}[31m", "a\u{7f}", "a\u{9b}31m", "\\", "\u{85}"]
        {
            let line = line(&Entry { host: host.as_bytes(), ..entry() });
            assert_eq!(line.matches('\n').count(), 1, "{host:?}");
            assert!(!line.trim_end().contains(char::is_control), "{host:?}");
            assert!(serde_json::from_str::<Value>(&line).is_ok(), "{host:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let host = "é".repeat(5000) + "x";
        let line = line(&Entry { host: host.as_bytes(), application: None, ..entry() });
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(line["host"].as_str().unwrap().len(), MOST_TEXT);
        assert_eq!(line["application"], Value::Null);
    }
}
