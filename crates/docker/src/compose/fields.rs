//! Parses a map of a compose file key by key; keys that were not taken are rejected.

use launchway_domain::yaml::{Content, Node, shortened};

/// Explanations for some keys that are not allowed.
const REASONS: &[(&str, &str)] = &[
    ("cap_add", "a container gets no more rights than every other"),
    ("configs", "put the file into the image"),
    ("devices", "a container gets no device of this machine"),
    ("dns", "the names of services are looked up in the network of the composition"),
    ("extends", "write the whole service down, or use a YAML anchor"),
    ("include", "write everything into one file"),
    ("ipc", "a container shares nothing with this machine or with another"),
    ("links", "services reach each other by their names"),
    ("logging", "Launchway collects what every service prints"),
    ("network_mode", "every composition has a network of its own"),
    ("pid", "a container shares nothing with this machine or with another"),
    ("privileged", "a container gets no more rights than every other"),
    ("secrets", "use the variables of the application"),
    ("security_opt", "a container gets no more rights than every other"),
    ("sysctls", "a container gets no more rights than every other"),
    ("userns_mode", "a container shares nothing with this machine or with another"),
    ("uts", "a container shares nothing with this machine or with another"),
    ("volumes_from", "name a volume in both services"),
];

/// The entries of a map that were not taken yet.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    /// The description of the map, such as "the service `db`".
    place: String,
    left: Vec<(&'a str, &'a Node)>,
}

impl<'a> Fields<'a> {
    /// Returns the entries of `node`; none if it is empty.
    pub(super) fn of(node: &'a Node, place: &str) -> Result<Self, String> {
        let left = match &node.content {
            Content::Map(entries) => entries.iter().map(|(key, value)| (key.as_str(), value)).collect(),
            _ if node.is_nothing() => Vec::new(),
            _ => return Err(format!("{place} has to be a map")),
        };
        Ok(Self { place: place.to_owned(), left })
    }

    /// Returns the description of the map.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Returns whether there is an entry that is not empty.
    pub(super) fn has(&self, key: &str) -> bool {
        self.left.iter().any(|(known, node)| *known == key && !node.is_nothing())
    }

    /// Takes an entry. An empty one counts as absent.
    pub(super) fn take(&mut self, key: &str) -> Option<&'a Node> {
        let place = self.left.iter().position(|(known, _)| *known == key)?;
        let (_, node) = self.left.remove(place);
        (!node.is_nothing()).then_some(node)
    }

    /// Takes an entry and parses it with `read`, which gets its description for errors.
    pub(super) fn take_as<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&'a Node, &str) -> Result<T, String>,
    ) -> Result<Option<T>, String> {
        let place = format!("`{key}` of {}", self.place);
        self.take(key).map(|node| read(node, &place)).transpose()
    }

    /// Rejects the remaining entries, except those that begin with `x-`.
    pub(super) fn finish(self) -> Result<(), String> {
        let place = &self.place;
        match self.left.iter().find(|(key, _)| !key.starts_with("x-")) {
            None => Ok(()),
            Some((key, _)) => {
                let key = shortened(key);
                let reason = REASONS.iter().find(|(known, _)| *known == key);
                let reason = reason.map(|(_, reason)| format!(": {reason}")).unwrap_or_default();
                Err(format!("{place} may not have `{key}`{reason}"))
            }
        }
    }
}

/// Reads a text.
pub(super) fn text(node: &Node, place: &str) -> Result<String, String> {
    match &node.content {
        Content::Scalar { text, .. } if text.contains('\0') => {
            Err(format!("{place} must not have zero bytes"))
        }
        Content::Scalar { text, .. } => Ok(text.clone()),
        _ => Err(format!("{place} has to be a text")),
    }
}

/// Reads a boolean.
pub(super) fn truth(node: &Node, place: &str) -> Result<bool, String> {
    match text(node, place)?.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Ok(true),
        "false" | "no" | "off" => Ok(false),
        _ => Err(format!("{place} has to be `true` or `false`")),
    }
}

/// Reads a list of texts, or a single text.
pub(super) fn texts(node: &Node, place: &str) -> Result<Vec<String>, String> {
    match &node.content {
        Content::List(items) => items.iter().map(|item| text(item, place)).collect(),
        Content::Scalar { .. } => Ok(vec![text(node, place)?]),
        Content::Map(_) => Err(format!("{place} has to be a list")),
    }
}

/// Reads `NAME: value`, or a list of `NAME=value`. A missing value is `None`.
pub(super) fn pairs(node: &Node, place: &str) -> Result<Vec<(String, Option<String>)>, String> {
    match &node.content {
        Content::Map(entries) => {
            let pairs = entries.iter().map(|(key, value)| {
                let value = if value.is_nothing() { None } else { Some(text(value, place)?) };
                Ok((key.clone(), value))
            });
            pairs.collect()
        }
        _ => {
            let pairs = texts(node, place)?.into_iter().map(|pair| match pair.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (pair, None),
            });
            Ok(pairs.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use launchway_domain::yaml::Aliases;

    use super::*;

    fn node(text: &str) -> Node {
        Node::read(text.as_bytes(), Aliases::Allowed).unwrap()
    }

    #[test]
    fn what_nobody_takes_is_not_allowed() {
        let map = node("a: 1\nx-note: [b]\nprivileged: true\nc: 2");
        let mut fields = Fields::of(&map, "the service `db`").unwrap();
        assert_eq!(fields.take_as("a", text), Ok(Some("1".to_owned())));
        assert_eq!(fields.take_as("a", text), Ok(None));
        let told = fields.finish().unwrap_err();
        let expected =
            "the service `db` may not have `privileged`: a container gets no more rights than every other";
        assert_eq!(told, expected);
        let mut fields = Fields::of(&map, "the service `db`").unwrap();
        for key in ["a", "privileged"] {
            assert!(fields.take(key).is_some());
        }
        assert_eq!(fields.finish().unwrap_err(), "the service `db` may not have `c`");
        assert_eq!(Fields::of(&node("[]"), "it").unwrap_err(), "it has to be a map");
    }

    #[test]
    fn pairs_are_maps_or_lists() {
        let expected = [("A", Some("1")), ("B", None), ("C", Some("x=y"))];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
        for text in ["{A: 1, B: , C: x=y}", "[A=1, B, C=x=y]"] {
            assert_eq!(pairs(&node(text), "it").unwrap(), expected, "{text}");
        }
        assert_eq!(pairs(&node("{A: [1]}"), "it").unwrap_err(), "it has to be a text");
    }

    #[test]
    fn truths_and_lists_are_read_as_people_write_them() {
        assert_eq!(truth(&node("[Yes]"), "it").unwrap_err(), "it has to be a text");
        assert_eq!((truth(&node("on"), "it"), truth(&node("False"), "it")), (Ok(true), Ok(false)));
        assert_eq!(truth(&node("1"), "it").unwrap_err(), "it has to be `true` or `false`");
        assert_eq!(texts(&node("a b"), "it").unwrap(), ["a b"]);
        assert_eq!(texts(&node("{a: b}"), "it").unwrap_err(), "it has to be a list");
        assert!(text(&node("\"a\\0\""), "it").unwrap_err().contains("zero"));
    }
}
