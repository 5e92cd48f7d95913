//! Masks secrets in log lines.

use std::{collections::BTreeSet, ops::Range};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use data_encoding::{BASE64_NOPAD, BASE64URL_NOPAD};

use super::clean;

/// The replacement of a secret.
pub const MASK: &str = "[secret]";

/// The minimum length of a secret. Masking shorter ones would make lines unreadable.
const SHORTEST: usize = 6;
/// The limit for the encoded forms of secrets, in bytes: a bound on memory.
const MOST_ENCODED: usize = 1024 * 1024;

/// Masks secrets in text: as they are, line by line, and in base64 and URL-encoded form.
///
/// ```
/// use launchway_domain::logs::Masker;
///
/// let masker = Masker::new(["correct horse"]);
/// assert_eq!(masker.mask("password=correct horse"), "password=[secret]");
/// assert_eq!(masker.mask("password=correct%20horse"), "password=[secret]");
/// ```
pub struct Masker {
    searcher: Option<AhoCorasick>,
    /// The texts to mask, in every form.
    hidden: Vec<String>,
}

impl Masker {
    /// Creates a masker of `secrets`. Those of fewer than six bytes are not masked.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let (mut plain, mut encoded, mut budget) = (BTreeSet::new(), BTreeSet::new(), MOST_ENCODED);
        for secret in secrets {
            // A log line never contains a line feed, so that a secret of several lines is masked
            // line by line.
            for line in secret.split(['\n', '\r']) {
                let is_long_enough = |text: &String| text.len() >= SHORTEST;
                plain.extend(
                    [line.to_owned(), line.trim().to_owned(), clean(line.as_bytes())]
                        .into_iter()
                        .filter(is_long_enough),
                );
            }
            if secret.len() < SHORTEST {
                continue;
            }
            for form in encoded_forms(secret.as_bytes()) {
                if form.len() <= budget && form.len() >= SHORTEST {
                    budget -= form.len();
                    encoded.insert(form);
                }
            }
        }
        plain.append(&mut encoded);
        let searcher = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::Standard)
            .build(&plain);
        // Building fails only for more patterns than fit into a request body.
        Self { searcher: searcher.ok().filter(|_| !plain.is_empty()), hidden: plain.into_iter().collect() }
    }

    /// Returns the text with every secret masked.
    #[must_use]
    pub fn mask(&self, text: &str) -> String {
        replaced(text, &self.places(text))
    }

    /// Masks the beginning of a longer text, including a possible beginning of a secret at its end.
    pub(super) fn mask_beginning(&self, text: &str) -> String {
        let mut places = self.places(text);
        let begun = self.hidden.iter().map(|secret| begun_at_end(text, secret)).max().unwrap_or_default();
        if begun > 0 {
            cover(&mut places, text.len() - begun..text.len());
        }
        replaced(text, &places)
    }

    /// Returns the ranges of secrets, in order and disjoint.
    fn places(&self, text: &str) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        for found in self.searcher.iter().flat_map(|searcher| searcher.find_overlapping_iter(text)) {
            cover(&mut places, found.range());
        }
        places
    }
}

/// Adds a range that ends after all of `places`. Overlapping ones are merged with it, so that their number
/// is bounded by the length of the text, however many secrets overlap.
fn cover(places: &mut Vec<Range<usize>>, mut place: Range<usize>) {
    while let Some(last) = places.pop_if(|last| last.end > place.start) {
        place.start = place.start.min(last.start);
    }
    places.push(place);
}

fn replaced(text: &str, places: &[Range<usize>]) -> String {
    let (mut masked, mut shown) = (String::with_capacity(text.len()), 0);
    for place in places {
        masked.push_str(text.get(shown..place.start).unwrap_or_default());
        masked.push_str(MASK);
        shown = place.end;
    }
    masked.push_str(text.get(shown..).unwrap_or_default());
    masked
}

/// Returns the length of the longest proper prefix of `secret` at the end of `text`. Looks at each byte
/// once (Knuth, Morris and Pratt), whatever the secret is.
fn begun_at_end(text: &str, secret: &str) -> usize {
    let secret = secret.as_bytes();
    let longest = secret.len().saturating_sub(1).min(text.len());
    // The failure function: the length of the longest border of each prefix.
    let mut shorter = vec![0; longest + 1];
    let step = |shorter: &[usize], mut begun: usize, byte: u8| {
        while begun > 0 && secret[begun] != byte {
            begun = shorter[begun];
        }
        begun + usize::from(secret[begun] == byte)
    };
    for length in 1..longest {
        shorter[length + 1] = step(&shorter, shorter[length], secret[length]);
    }
    let end = &text.as_bytes()[text.len() - longest..];
    end.iter().fold(0, |begun, byte| step(&shorter, begun, *byte))
}

/// Returns the forms of a secret inside base64 text, at any offset, and in a URL.
fn encoded_forms(secret: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for offset in 0..3 {
        let mut padded = vec![0; offset];
        padded.extend_from_slice(secret);
        // Characters that depend on the text before or after are left out.
        let (first, last) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
        for text in [BASE64_NOPAD.encode(&padded), BASE64URL_NOPAD.encode(&padded)] {
            forms.extend(text.get(first..last).map(str::to_owned));
        }
    }
    forms.extend([
        url_encoded(secret, false),
        url_encoded(secret, false).replace("%20", "+"),
        url_encoded(secret, true),
    ]);
    forms
}

fn url_encoded(secret: &[u8], in_lower_case: bool) -> String {
    let encoded = |byte: &u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(*byte).to_string(),
        _ if in_lower_case => format!("%{byte:02x}"),
        _ => format!("%{byte:02X}"),
    };
    secret.iter().map(encoded).collect()
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64;
    use proptest::prelude::*;

    use super::*;

    fn mask(secrets: &[&str], text: &str) -> String {
        Masker::new(secrets.iter().copied()).mask(text)
    }

    #[test]
    fn a_secret_is_hidden_wherever_it_stands() {
        assert_eq!(mask(&["hunter2"], "a hunter2, hunter2hunter2."), "a [secret], [secret][secret].");
        assert_eq!(mask(&["hunter2"], "nothing"), "nothing");
        assert_eq!(mask(&[], "hunter2"), "hunter2");
    }

    #[test]
    fn secrets_that_overlap_are_hidden_together() {
        assert_eq!(mask(&["abcdef", "defghi"], "xabcdefghiy"), "x[secret]y");
        assert_eq!(mask(&["abcdef", "abcdefghi"], "abcdefghi"), "[secret]");
    }

    #[test]
    fn hundreds_of_secrets_in_each_other_are_one_place() {
        let secrets: Vec<String> = (6..518).map(|length| "a".repeat(length)).collect();
        let masker = Masker::new(secrets.iter().map(String::as_str));
        let text = format!("x{}y", "a".repeat(1000));
        assert_eq!(masker.places(&text), vec![Range { start: 1, end: 1001 }]);
        assert_eq!(masker.mask(&text), "x[secret]y");
    }

    #[test]
    fn a_text_of_fewer_than_6_bytes_is_no_secret() {
        assert_eq!(mask(&["12345"], "12345"), "12345");
        assert_eq!(mask(&["123456"], "123456"), "[secret]");
    }

    #[test]
    fn a_secret_of_several_lines_is_hidden_line_by_line() {
        let key = "-----BEGIN KEY-----\n  c2VjcmV0\r\nx\n-----END KEY-----";
        assert_eq!(mask(&[key], "key: c2VjcmV0 x"), "key: [secret] x");
    }

    #[test]
    fn a_secret_is_hidden_as_it_is_shown() {
        let secret = "pass\u{8}word";
        assert_eq!(mask(&[secret], &clean(secret.as_bytes())), "[secret]");
    }

    #[test]
    fn a_secret_in_a_url_is_hidden() {
        let secret = "p@ss word/ä";
        for text in ["p%40ss%20word%2F%C3%A4", "p%40ss%20word%2f%c3%a4", "p%40ss+word%2F%C3%A4"] {
            assert_eq!(mask(&[secret], &format!("https://x/?q={text}&z")), "https://x/?q=[secret]&z");
        }
    }

    proptest! {
        #[test]
        fn a_secret_inside_base64_is_hidden(
            before in prop::collection::vec(any::<u8>(), 0..9), after in prop::collection::vec(any::<u8>(), 0..9),
        ) {
            let secret = "hunter2-hunter2";
            let whole = [before, secret.as_bytes().to_vec(), after].concat();
            for encoded in [BASE64.encode(&whole), BASE64URL_NOPAD.encode(&whole)] {
                prop_assert!(mask(&[secret], &encoded).contains(MASK), "{}", encoded);
            }
        }

        #[test]
        fn what_begins_at_the_end_is_found(secret in "[ab]{6,12}", text in "[ab]{0,20}") {
            let expected = (0..secret.len()).rev().find(|length| text.ends_with(&secret[..*length]));
            prop_assert_eq!(Some(begun_at_end(&text, &secret)), expected);
        }

        #[test]
        fn no_secret_is_left(secret in "[a-c]{6,8}", text in "[a-c]{0,60}") {
            prop_assert!(!mask(&[&secret], &text).contains(&secret));
        }
    }
}
