//! Removes terminal control sequences from output.

use std::fmt::Write as _;

/// Returns the text of one line without terminal control sequences such as colours. Every other character
/// that is invisible, or that changes the display of others, is spelled out. Tabs are kept.
#[must_use]
pub fn clean(raw: &[u8]) -> String {
    let text = String::from_utf8_lossy(raw);
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => rest = behind_escape(rest),
            '\u{9b}' => rest = behind_control_sequence(rest),
            '\t' => cleaned.push(c),
            _ if is_unseen(c) => {
                // Writing to a string cannot fail.
                let _infallible = write!(cleaned, "\\u{{{:x}}}", u32::from(c));
            }
            _ => cleaned.push(c),
        }
    }
    cleaned
}

fn is_unseen(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the text after an escape sequence whose escape character was read.
fn behind_escape(mut rest: std::str::Chars<'_>) -> std::str::Chars<'_> {
    let start = rest.clone();
    match rest.next() {
        Some('[') => behind_control_sequence(rest),
        // A string for the terminal, such as its title, up to BEL or the string terminator.
        Some(']' | 'P' | 'X' | '^' | '_') => loop {
            match rest.next() {
                Some('\u{7}' | '\u{9c}') | None => return rest,
                Some('\u{1b}') if rest.as_str().starts_with('\\') => {
                    rest.next();
                    return rest;
                }
                Some(_) => {}
            }
        },
        Some(' '..='~') => rest,
        _ => start,
    }
}

/// Returns the text after a control sequence: parameters, then one final character.
fn behind_control_sequence(mut rest: std::str::Chars<'_>) -> std::str::Chars<'_> {
    loop {
        let before = rest.clone();
        match rest.next() {
            Some(' '..='?') => {}
            Some('@'..='~') => return rest,
            _ => return before,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_text_stays_as_it_is() {
        for text in ["", "Step 1/3 : FROM base:bb", "a\tb", "ä 李 👩\u{200d}🚀"] {
            assert_eq!(clean(text.as_bytes()), text);
        }
    }

    #[test]
    fn commands_to_a_terminal_are_gone() {
        for (raw, cleaned) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[2J\u{1b}[1;1Hx", "x"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://x\u{1b}\\link", "link"),
            ("\u{1b}Px\u{9c}y", "y"),
            ("\u{9b}31mred", "red"),
            ("\u{1b}cx", "x"),
            ("x\u{1b}", "x"),
            ("\u{1b}[31", ""),
        ] {
            assert_eq!(clean(raw.as_bytes()), cleaned, "{raw:?}");
        }
    }

    #[test]
    fn what_is_not_seen_is_spelled_out() {
        assert_eq!(clean(b"a\x08b\x00"), "a\\u{8}b\\u{0}");
        assert_eq!(clean("a\u{202e}b\u{2028}".as_bytes()), "a\\u{202e}b\\u{2028}");
        assert_eq!(clean(b"a\xffb"), "a\u{fffd}b");
    }

    proptest! {
        #[test]
        fn whatever_is_printed_nothing_unseen_is_left(raw: Vec<u8>) {
            let cleaned = clean(&raw);
            prop_assert!(cleaned.chars().all(|c| c == '\t' || !is_unseen(c)));
        }
    }
}
