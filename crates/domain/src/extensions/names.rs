//! The names of extensions and of their objects.

use crate::value::{InvalidValue, text_value};

text_value!(
    /// The public name of an extension, as it is used in URLs.
    ExtensionKey,
    |raw| {
        let key = raw.trim();
        let is_key = (1..=ExtensionKey::LONGEST).contains(&key.len()) && key.split('-').all(is_word);
        if is_key {
            Ok(key.to_owned())
        } else {
            Err(InvalidValue::text(
                "1 to 50 lower-case letters and digits, with single dashes between them, such as `my-extension`",
                key,
            ))
        }
    }
);

impl ExtensionKey {
    /// The length limit.
    const LONGEST: usize = 50;

    /// Returns the key of a fork, made unique by eight characters of `randomness`. A source that is too
    /// long is truncated.
    #[must_use]
    pub fn fork(&self, randomness: [u8; 32]) -> Self {
        const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
        // 252 is seven times 36: larger bytes would make some characters more likely.
        let mut fair = randomness.into_iter().filter(|byte| *byte < 252);
        let suffix: String = std::iter::repeat_with(|| fair.next().unwrap_or_default())
            .take(8)
            .filter_map(|byte| ALPHABET.get(usize::from(byte) % 36).copied())
            .map(char::from)
            .collect();
        let room = Self::LONGEST - "-fork-".len() - suffix.len();
        let source = self.0.get(..room).unwrap_or(&self.0).trim_end_matches('-');
        Self(format!("{source}-fork-{suffix}"))
    }
}

fn is_word(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

text_value!(
    /// The name of a container, a volume or a composition of an extension. It is the container's host name
    /// within a network.
    ObjectName,
    |raw| {
        let name = raw.trim();
        let is_name = (1..=40).contains(&name.len())
            && !name.starts_with('-')
            && !name.ends_with('-')
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if is_name {
            Ok(name.to_owned())
        } else {
            Err(InvalidValue::text(
                "1 to 40 lower-case letters, digits and dashes, with no dash at its ends, such as `my-database`",
                name,
            ))
        }
    }
);

text_value!(
    /// The name of a systemd unit of this machine.
    UnitName,
    |raw| {
        let name = raw.trim();
        let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || b"@._:-".contains(&byte);
        if (1..=200).contains(&name.len())
            && name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.bytes().all(is_of_names)
        {
            Ok(name.to_owned())
        } else {
            Err(InvalidValue::text("the name of a service, such as `nginx` or `my-app@1.service`", name))
        }
    }
);

text_value!(
    /// The name of a user or a group of this machine.
    AccountName,
    |raw| {
        let name = raw.trim();
        let is_of_names = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        if (1..=32).contains(&name.len())
            && name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
            && name.bytes().all(is_of_names)
        {
            Ok(name.to_owned())
        } else {
            Err(InvalidValue::text(
                "1 to 32 lower-case letters, digits, `_` and `-`, the first a letter or `_`",
                name,
            ))
        }
    }
);

text_value!(
    /// A file or folder in the workspace of a run, relative to it; never the workspace itself.
    WorkspacePath,
    |raw| {
        let refused = || {
            InvalidValue::text("a path in the workspace, such as `notes/hi.txt`, without `..`", &raw)
        };
        if raw.len() > 1024 || raw.contains(|c: char| c.is_control()) || raw.starts_with('/') {
            return Err(refused());
        }
        let parts: Vec<&str> = raw.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        if parts.is_empty() || parts.contains(&"..") { Err(refused()) } else { Ok(parts.join("/")) }
    }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_an_extension_is_a_slug() {
        for key in ["hello-note", "a", "9", &"a".repeat(50), "a-b-c"] {
            assert_eq!(key.parse::<ExtensionKey>().unwrap().as_str(), key);
        }
        for key in ["", "-a", "a-", "a--b", "A", "a b", "a/b", "ä", &"a".repeat(51)] {
            assert!(key.parse::<ExtensionKey>().is_err(), "{key}");
        }
    }

    #[test]
    fn a_fork_is_called_after_its_source_and_fits() {
        let fork = |key: &str| key.parse::<ExtensionKey>().unwrap().fork([1; 32]);
        assert_eq!(fork("hello-note").as_str(), "hello-note-fork-bbbbbbbb");
        for key in ["a".repeat(50), format!("{}-{}", "a".repeat(35), "b".repeat(14))] {
            let fork = fork(&key);
            assert!(fork.as_str().len() <= 50, "{fork}");
            assert_eq!(fork.as_str().parse::<ExtensionKey>().unwrap(), fork);
        }
    }

    #[test]
    fn forks_differ_by_their_randomness_alone() {
        let key: ExtensionKey = "x".parse().unwrap();
        assert_ne!(key.fork([1; 32]), key.fork([2; 32]));
        assert_eq!(key.fork([255; 32]).as_str().len(), "x-fork-".len() + 8);
    }

    #[test]
    fn objects_are_called_as_hosts_are() {
        for name in ["db", "my-database-2", &"a".repeat(40)] {
            assert!(name.parse::<ObjectName>().is_ok(), "{name}");
        }
        for name in ["", "-db", "db-", "Db", "d_b", "d.b", "--rm", &"a".repeat(41)] {
            assert!(name.parse::<ObjectName>().is_err(), "{name}");
        }
    }

    #[test]
    fn no_name_is_an_option() {
        for name in ["-x", "--now", "", "a b", "a;b", "$(id)"] {
            assert!(name.parse::<UnitName>().is_err(), "{name}");
            assert!(name.parse::<AccountName>().is_err(), "{name}");
        }
        assert!("my-app@1.service".parse::<UnitName>().is_ok() && "_www-data".parse::<AccountName>().is_ok());
        assert!(
            "a".repeat(33).parse::<AccountName>().is_err() && "a".repeat(201).parse::<UnitName>().is_err()
        );
    }

    #[test]
    fn paths_stay_in_the_workspace() {
        for (raw, kept) in
            [("notes/hi.txt", "notes/hi.txt"), ("./a//b/", "a/b"), ("a b/ü", "a b/ü"), ("...", "...")]
        {
            assert_eq!(raw.parse::<WorkspacePath>().unwrap().as_str(), kept);
        }
        for raw in ["", ".", "/", "..", "a/../b", "/etc/passwd", "a\0b", "a\nb", &"a".repeat(1025)] {
            assert!(raw.parse::<WorkspacePath>().is_err(), "{raw:?}");
        }
    }
}
