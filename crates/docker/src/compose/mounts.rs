//! The mounts of a service: volumes and tmpfs, and nothing of this machine.

use launchway_domain::yaml::{Content, Node, shortened};
use serde_json::{Value, json};

use super::{
    fields::{self, Fields},
    quantities,
};

/// A mount of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mount {
    /// A volume by its name in the file; an anonymous one if `None`.
    Volume { name: Option<String>, target: String, is_read_only: bool },
    /// A tmpfs, with its size in bytes if given.
    Memory { target: String, size: Option<u64> },
}

impl Mount {
    /// Reads an entry of `volumes`.
    pub(super) fn read(node: &Node, place: &str) -> Result<Self, String> {
        match &node.content {
            Content::Map(_) => Self::read_long(node, place),
            _ => Self::read_short(&fields::text(node, place)?, place),
        }
    }

    /// Reads `[name:]/path[:ro|rw]`.
    fn read_short(text: &str, place: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let (name, target, mode) = match parts.as_slice() {
            [target] => (None, *target, "rw"),
            [name, target] if target.starts_with('/') => (Some(*name), *target, "rw"),
            [target, mode] => (None, *target, *mode),
            [name, target, mode] => (Some(*name), *target, *mode),
            _ => return Err(misread(text, place)),
        };
        let is_read_only = match mode {
            "ro" => true,
            "rw" => false,
            _ => return Err(misread(text, place)),
        };
        let name = name.map(|name| named(name, place)).transpose()?;
        Ok(Self::Volume { name, target: path(target, place)?, is_read_only })
    }

    fn read_long(node: &Node, place: &str) -> Result<Self, String> {
        let mut fields = Fields::of(node, place)?;
        let kind = fields.take_as("type", fields::text)?.unwrap_or_default();
        let target = fields.take_as("target", fields::text)?;
        let target = path(&target.ok_or_else(|| format!("{place} needs `target`"))?, place)?;
        let mount = match kind.as_str() {
            "volume" => {
                let name = fields.take_as("source", fields::text)?;
                let name = name.map(|name| named(&name, place)).transpose()?;
                let is_read_only = fields.take_as("read_only", fields::truth)?.unwrap_or_default();
                Self::Volume { name, target, is_read_only }
            }
            "tmpfs" => {
                let size = fields.take_as("tmpfs", |node, place| {
                    let mut fields = Fields::of(node, place)?;
                    let size = fields.take_as("size", sized)?;
                    fields.finish()?;
                    Ok(size)
                })?;
                Self::Memory { target, size: size.flatten() }
            }
            "bind" => return Err(of_this_machine(place)),
            other => return Err(format!("{place} may not be of the type `{other}`")),
        };
        fields.finish()?;
        Ok(mount)
    }

    /// Reads an entry of `tmpfs`: `/path[:size=…]`.
    pub(super) fn read_memory(text: &str, place: &str) -> Result<Self, String> {
        let (target, options) = text.split_once(':').unwrap_or((text, ""));
        let mut size = None;
        for option in options.split(',').filter(|option| !option.is_empty()) {
            let bytes = option.strip_prefix("size=").and_then(quantities::size);
            let refused = || format!("{place} may not have the option `{option}`");
            size = Some(bytes.ok_or_else(refused)?);
        }
        Ok(Self::Memory { target: path(target, place)?, size })
    }

    /// Renders the mount for the generated file. Volumes have the same name there.
    pub(super) fn render(&self, most_memory: u64) -> Value {
        match self {
            Self::Volume { name: Some(name), target, is_read_only } => {
                json!({ "type": "volume", "source": name, "target": target, "read_only": is_read_only })
            }
            Self::Volume { name: None, target, is_read_only } => {
                json!({ "type": "volume", "target": target, "read_only": is_read_only })
            }
            Self::Memory { target, size } => {
                let size = size.map_or(most_memory, |size| size.min(most_memory));
                json!({ "type": "tmpfs", "target": target, "tmpfs": { "size": size } })
            }
        }
    }
}

fn sized(node: &Node, place: &str) -> Result<u64, String> {
    let text = fields::text(node, place)?;
    quantities::size(&text).ok_or_else(|| format!("{place} has to be a size, such as `64m`"))
}

/// Returns the name of a volume. A text that looks like a path would be a folder of this machine.
fn named(name: &str, place: &str) -> Result<String, String> {
    if name.starts_with(['/', '.', '~', '\\']) || name.contains(['/', '\\']) {
        return Err(of_this_machine(place));
    }
    if is_name(name) {
        Ok(name.to_owned())
    } else {
        let shown: String = name.chars().filter(|c| !c.is_control()).take(60).collect();
        Err(format!("{place}: `{shown}` is no name of a volume"))
    }
}

/// Returns whether the name is valid for a volume.
pub(super) fn is_name(name: &str) -> bool {
    let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.len() <= 63 && name.bytes().all(is_of_names)
}

fn path(target: &str, place: &str) -> Result<String, String> {
    let is_plain = target.starts_with('/')
        && target.len() <= 1024
        && !target.contains(|c: char| c.is_control() || matches!(c, ':' | ',' | '\\'))
        && target.split('/').all(|part| part != "..")
        && !target.trim_matches('/').is_empty();
    if is_plain {
        Ok(target.to_owned())
    } else {
        Err(format!("{place} has to name a folder in the container, such as `/data`"))
    }
}

fn of_this_machine(place: &str) -> String {
    format!(
        "{place} may not mount a folder or file of this machine: name a volume, or copy it into the image"
    )
}

fn misread(text: &str, place: &str) -> String {
    format!("{place}: `{}` is not `name:/path`, `name:/path:ro` or `/path`", shortened(text))
}

#[cfg(test)]
mod tests {
    use launchway_domain::yaml::Aliases;

    use super::*;

    fn read(text: &str) -> Result<Mount, String> {
        Mount::read(&Node::read(text.as_bytes(), Aliases::Allowed).unwrap(), "it")
    }

    #[test]
    fn volumes_and_memory_are_mounted() {
        let volume = |name: Option<&str>, is_read_only| Mount::Volume {
            name: name.map(str::to_owned),
            target: "/data".to_owned(),
            is_read_only,
        };
        assert_eq!(read("data:/data"), Ok(volume(Some("data"), false)));
        assert_eq!(read("data:/data:ro"), Ok(volume(Some("data"), true)));
        assert_eq!(read("/data"), Ok(volume(None, false)));
        let long = "{type: volume, source: data, target: /data, read_only: true}";
        assert_eq!(read(long), Ok(volume(Some("data"), true)));
        let memory = |size| Mount::Memory { target: "/tmp".to_owned(), size };
        assert_eq!(read("{type: tmpfs, target: /tmp, tmpfs: {size: 1m}}"), Ok(memory(Some(1 << 20))));
        assert_eq!(Mount::read_memory("/tmp", "it"), Ok(memory(None)));
        assert_eq!(Mount::read_memory("/tmp:size=5", "it"), Ok(memory(Some(5))));
        assert_eq!(memory(None).render(7)["tmpfs"]["size"], 7);
        assert_eq!(memory(Some(9)).render(7)["tmpfs"]["size"], 7);
    }

    #[test]
    fn nothing_of_this_machine_is_mounted() {
        for text in [
            "/:/host",
            "./data:/data",
            "../x:/x",
            "~/x:/x",
            ".:/x",
            "a/b:/x",
            "'C:\\\\x:/x'",
            "/var/run/docker.sock:/var/run/docker.sock",
            "{type: bind, source: /, target: /host}",
            "{type: volume, source: /etc, target: /host}",
        ] {
            let told = read(text).unwrap_err();
            assert!(told.contains("of this machine") || text.contains("C:"), "{text}: {told}");
        }
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for text in [
            "data:/data:z",
            "data:/data:ro,rshared",
            "a:b:c:d",
            "data:data",
            "$x:/x",
            "/a/../b",
            "/",
            "{type: npipe, target: /x}",
            "{type: volume, source: a, target: /x, bind: {propagation: shared}}",
            "{type: volume, source: a, target: /x, volume: {subpath: x}}",
            "{source: a}",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
        assert!(Mount::read_memory("/tmp:exec", "it").is_err());
    }
}
