//! The host names of applications.

use std::net::IpAddr;

use crate::value::{InvalidValue, text_value};

const ALLOWED: &str =
    "a host name such as `app.example.com`: no address, no port, no path, no name under `localhost`";

text_value!(
    /// A host name, in lower case and in its ASCII form.
    ///
    /// ```
    /// use launchway_domain::applications::Hostname;
    ///
    /// let name: Hostname = "App.Example.com.".parse().unwrap();
    /// assert_eq!(name.as_str(), "app.example.com");
    /// assert!("192.0.2.7".parse::<Hostname>().is_err());
    /// ```
    Hostname,
    |raw| {
        let name = raw.trim().trim_end_matches('.');
        let refused = || InvalidValue::text(ALLOWED, &raw);
        let ascii = if is_plain(name) { name.to_ascii_lowercase() } else { to_ascii(name, refused)? };
        if is_hostname(&ascii) { Ok(ascii) } else { Err(refused()) }
    }
);

/// The prefix of a label that stands for one with other characters than ASCII.
const ENCODED: &str = "xn--";

/// Returns whether no label is, or stands for, one with other characters than ASCII.
fn is_plain(name: &str) -> bool {
    let is_encoded =
        |label: &str| label.get(..ENCODED.len()).is_some_and(|start| start.eq_ignore_ascii_case(ENCODED));
    name.is_ascii() && !name.split('.').any(is_encoded)
}

#[cfg(feature = "idn")]
fn to_ascii(name: &str, refused: impl Fn() -> InvalidValue) -> Result<String, InvalidValue> {
    idna::domain_to_ascii_strict(name).map_err(|_invalid| refused())
}

#[cfg(not(feature = "idn"))]
fn to_ascii(name: &str, _: impl Fn() -> InvalidValue) -> Result<String, InvalidValue> {
    Err(InvalidValue::text("an ASCII host name: this program is built without internationalized ones", name))
}

/// Returns whether this is a valid label of a host name.
pub(super) fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Returns whether the third and fourth characters are hyphens, which only [`ENCODED`] may have (RFC 5891).
fn has_reserved_hyphens(label: &str) -> bool {
    label.get(2..4) == Some("--")
}

fn is_hostname(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    (1..=253).contains(&name.len())
        && name.split('.').all(|label| is_label(label) && (!has_reserved_hyphens(label) || label.starts_with(ENCODED)))
        && last != "localhost"
        // Many resolvers take `1.2` and `0x7f.1` for addresses.
        && !last.starts_with(|c: char| c.is_ascii_digit())
        && name.parse::<IpAddr>().is_err()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_host_name_is_kept_in_lower_case_and_as_ascii() {
        for (raw, kept) in [
            ("App.Example.com", "app.example.com"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("example.com.", "example.com"),
            ("intranet", "intranet"),
        ] {
            assert_eq!(raw.parse::<Hostname>().unwrap().as_str(), kept);
        }
    }

    #[test]
    fn what_is_no_name_of_ones_own_is_refused() {
        let long_label = format!("{}.example", "a".repeat(64));
        for raw in [
            "",
            ".",
            "a..b",
            "-a.example",
            "a-.example",
            "a_b.example",
            "1.2.3.4",
            "127.1",
            "::1",
            "[::1]",
            "localhost",
            "web.localhost",
            "a.example:80",
            "a.example/x",
            "a b.example",
            "a\n.example",
            "*.example",
            "{host}",
            &long_label,
        ] {
            assert!(raw.parse::<Hostname>().is_err(), "{raw:?}");
        }
    }

    #[test]
    fn a_host_name_has_at_most_253_characters() {
        let name = |last: usize| format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(last));
        assert!(name(61).parse::<Hostname>().is_ok());
        assert!(name(62).parse::<Hostname>().is_err());
    }

    #[test]
    fn two_hyphens_are_reserved_for_encoded_labels() {
        assert!("ab--c.example".parse::<Hostname>().is_err());
        assert!("abc--d.example".parse::<Hostname>().is_ok());
        assert!("xn--bcher-kva.example".parse::<Hostname>().is_ok());
        assert!("XN--a.example".parse::<Hostname>().is_err());
    }

    proptest! {
        #[test]
        fn an_ascii_name_is_accepted_as_the_standard_does(text in "[a-cA-C0.-]{1,12}|[ -~]{0,20}") {
            let name = text.trim().trim_end_matches('.');
            prop_assume!(is_plain(name));
            let standard = idna::domain_to_ascii_strict(name).ok().filter(|ascii| is_hostname(ascii));
            prop_assert_eq!(text.parse::<Hostname>().ok().map(String::from), standard);
        }

        #[test]
        fn an_accepted_name_survives_being_parsed_again(text in "\\PC{0,40}") {
            if let Ok(name) = text.parse::<Hostname>() {
                prop_assert_eq!(name.as_str().parse::<Hostname>(), Ok(name.clone()));
            }
        }
    }
}
