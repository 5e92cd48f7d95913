//! References to container images.

use crate::value::{InvalidValue, text_value};

const ALLOWED: &str =
    "an image reference in lower case, such as `nginx:1.27` or `registry.example.com/team/web@sha256:…`";

text_value!(
    /// A reference to the prebuilt image that an application runs.
    ///
    /// ```
    /// use launchway_domain::applications::ImageRef;
    ///
    /// let image: ImageRef = "registry.example.com/team/web:1.27".parse().unwrap();
    /// assert_eq!(image.to_string(), "registry.example.com/team/web:1.27");
    /// assert!("Web:1".parse::<ImageRef>().is_err());
    /// ```
    ImageRef,
    |raw| {
        let reference = raw.trim();
        if is_reference(reference) {
            Ok(reference.to_owned())
        } else {
            Err(InvalidValue::text(ALLOWED, reference))
        }
    }
);

/// Returns whether this is `[host[:port]/]name[/name…][:tag][@digest]`, by Docker's grammar.
fn is_reference(reference: &str) -> bool {
    if reference.len() > 255 {
        return false;
    }
    let (name, digest) = match reference.split_once('@') {
        Some((name, digest)) => (name, Some(digest)),
        None => (reference, None),
    };
    let (path, tag) = match name.rsplit_once(':') {
        // A colon before a slash belongs to the registry's port.
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
        _ => (name, None),
    };
    let mut parts: Vec<&str> = path.split('/').collect();
    if let [first, _, ..] = parts.as_slice()
        && (first.contains(['.', ':']) || *first == "localhost")
    {
        if !is_registry(first) {
            return false;
        }
        parts.remove(0);
    }
    parts.into_iter().all(is_component) && tag.is_none_or(is_tag) && digest.is_none_or(is_digest)
}

fn is_registry(registry: &str) -> bool {
    let (host, port) = registry.split_once(':').unwrap_or((registry, "443"));
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    // Rust parses `+80` as a number, too.
    let is_port =
        port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok_and(|port| port > 0);
    host.split('.').all(is_label) && is_port
}

/// Returns whether this is lower-case ASCII letters and digits, with `.`, `_`, `__` or dashes between them.
fn is_component(component: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let mut separators =
        component.split(|c: char| c.is_ascii() && is_plain(c as u8)).filter(|text| !text.is_empty());
    let ends_plain = |byte: Option<&u8>| byte.copied().is_some_and(is_plain);
    ends_plain(component.as_bytes().first())
        && ends_plain(component.as_bytes().last())
        && separators.all(|text| matches!(text, "." | "_" | "__") || text.bytes().all(|byte| byte == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&tag.len())
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    digest.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn references_by_dockers_grammar_are_accepted() {
        let digest = format!("web@sha256:{}", "a".repeat(64));
        for reference in [
            "nginx",
            "nginx:1.27",
            "library/nginx",
            "localhost:5000/a/b:c",
            "registry.example.com/team/web_a:v1.2-x",
            "a__b",
            "a---b",
            "base:bb",
            &digest,
        ] {
            assert_eq!(reference.parse::<ImageRef>().unwrap().as_str(), reference);
        }
    }

    #[test]
    fn what_could_be_an_option_or_a_trick_is_refused() {
        let long = "a".repeat(256);
        for reference in [
            "",
            "--privileged",
            "-v",
            "Nginx",
            "a b",
            "a\nb",
            "a;b",
            "$(id)",
            "a:",
            "a:-x",
            "a//b",
            "/a",
            "a/",
            "a@sha256:12",
            "a@md5:00",
            "_a",
            "a_",
            "a___b",
            "a..b",
            "-h.example.com/a",
            "h.example.com:0/a",
            "h.example.com:99999/a",
            "h.example.com:+80/a",
            &long,
        ] {
            assert!(reference.parse::<ImageRef>().is_err(), "{reference:?}");
        }
        assert!("a".repeat(255).parse::<ImageRef>().is_ok());
    }

    proptest! {
        #[test]
        fn an_accepted_reference_is_no_option(text in "[-a-z0-9._:/@A-Z ]{0,30}") {
            if let Ok(reference) = text.parse::<ImageRef>() {
                prop_assert!(!reference.as_str().starts_with('-'));
                prop_assert!(!reference.as_str().contains(char::is_whitespace));
            }
        }
    }
}
