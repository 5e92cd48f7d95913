//! Sanitizes text of remote hosts, and parses `Retry-After`.

use std::time::{Duration, SystemTime};

use launchway_domain::value::is_invisible;

/// Returns the text on one line of at most `longest` characters, without control and invisible characters,
/// and without those that change the direction of text.
pub(super) fn one_line(text: &str, longest: usize) -> String {
    let mut line = String::new();
    let mut length = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        let space = if length == 0 { "" } else { " " };
        for c in space.chars().chain(word.chars()).filter(|c| !is_invisible(*c)) {
            if length == longest {
                return line.trim_end().to_owned();
            }
            line.push(c);
            length += 1;
        }
    }
    line
}

/// Returns the delay of `Retry-After`, which is in seconds or a date.
pub(super) fn retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that overflows means for ever.
        return Some(value.parse().map_or(Duration::MAX, Duration::from_secs));
    }
    let moment = httpdate::parse_http_date(value).ok()?;
    Some(moment.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn text_becomes_one_clean_line() {
        for (text, line) in [
            ("", ""),
            ("no_text", "no_text"),
            ("  a\r\n\tb \u{85}c\u{2028}d ", "a b c d"),
            ("\u{1b}[31mred\u{7}", "[31mred"),
            ("a\u{0}b", "a b"),
            ("a\u{202e}b\u{feff}c", "abc"),
            ("grüße 🚀", "grüße 🚀"),
        ] {
            assert_eq!(one_line(text, 200), line, "{text:?}");
        }
        assert_eq!(one_line("abc def", 3), "abc");
        assert_eq!(one_line("abc def", 4), "abc");
        assert_eq!(one_line("abc def", 5), "abc d");
        assert_eq!(one_line(&"ü".repeat(201), 200), "ü".repeat(200));
    }

    #[test]
    fn retry_after_is_a_number_of_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (value, seconds) in [
            ("0", Some(0)),
            ("120", Some(120)),
            (" 7 ", Some(7)),
            ("Sun, 06 Nov 1994 08:50:37 GMT", Some(60)),
            ("Sunday, 06-Nov-94 08:50:37 GMT", Some(60)),
            ("Sun Nov  6 08:50:37 1994", Some(60)),
            ("Sun, 06 Nov 1994 08:49:36 GMT", Some(0)),
            ("", None),
            ("-1", None),
            ("+1", None),
            ("1.5", None),
            ("soon", None),
            ("Sun, 99 Nov 1994 08:50:37 GMT", None),
        ] {
            assert_eq!(retry_after(value, now), seconds.map(Duration::from_secs), "{value:?}");
        }
        assert_eq!(retry_after("99999999999999999999999", now), Some(Duration::MAX));
    }

    proptest! {
        #[test]
        fn lines_are_short_and_have_no_control_characters(text in any::<String>(), longest in 0..50_usize) {
            let line = one_line(&text, longest);
            prop_assert!(line.chars().count() <= longest);
            prop_assert!(!line.contains(char::is_control) && line.trim() == line, "{line:?}");
        }
    }
}
