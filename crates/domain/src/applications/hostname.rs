//! The host names of applications.

use std::net::IpAddr;

use crate::value::{InvalidValue, text_value};

const ALLOWED: &str =
    "a host name such as `app.example.com`: no address, no port, no path, no name under `localhost`";

text_value!(
    /// A host name, in lower case and in its ASCII form.
    Hostname,
    |raw| {
        let name = raw.trim().trim_end_matches('.');
        let refused = || InvalidValue::text(ALLOWED, &raw);
        let ascii = idna::domain_to_ascii_strict(name).map_err(|_invalid| refused())?;
        if is_hostname(&ascii) { Ok(ascii) } else { Err(refused()) }
    }
);

/// Returns whether this is a valid label of a host name.
pub(super) fn is_label(label: &str) -> bool {
    (1..=63).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_hostname(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    (1..=253).contains(&name.len())
        && name.split('.').all(is_label)
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

    proptest! {
        #[test]
        fn an_accepted_name_survives_being_parsed_again(text in "\\PC{0,40}") {
            if let Ok(name) = text.parse::<Hostname>() {
                prop_assert_eq!(name.as_str().parse::<Hostname>(), Ok(name.clone()));
            }
        }
    }
}
