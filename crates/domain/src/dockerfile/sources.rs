//! The rules for the inputs of an instruction: other images, files, mounts.

use super::{
    DockerfileBuilder, Flag, Transfer, excerpt,
    parse::unknown_option,
    policy::{Checker, image_name},
};

/// The fields of a mount that a build may use.
const MOUNT_FIELDS: [&str; 17] = [
    "type",
    "target",
    "dst",
    "destination",
    "source",
    "src",
    "from",
    "id",
    "sharing",
    "readonly",
    "ro",
    "readwrite",
    "rw",
    "mode",
    "uid",
    "gid",
    "size",
];

impl Checker<'_> {
    pub(super) fn copy_flags(&mut self, flags: &mut [Flag]) -> Result<(), String> {
        self.transfer_flags("COPY", flags, &["chmod", "link", "parents", "exclude"])?;
        if let Some(flag) = flags.iter_mut().find(|flag| flag.name == "from") {
            flag.value = Some(self.source(flag.value.as_deref().unwrap_or_default())?);
        }
        Ok(())
    }

    /// Checks `ADD`, whose sources are files of the build context.
    pub(super) fn add(&mut self, transfer: &mut Transfer) -> Result<(), String> {
        if let Some(flag) = transfer.flags.iter().find(|flag| flag.name == "from") {
            return Err(unknown_option("ADD", flag));
        }
        self.transfer_flags("ADD", &transfer.flags, &["chmod", "link", "exclude"])?;
        let Some((_, sources)) = transfer.paths.as_mut_slice().split_last_mut() else { return Ok(()) };
        for source in sources {
            *source = self.local_source(source)?;
        }
        Ok(())
    }

    /// Returns a source that stays a path of the build context, whatever its variables are.
    fn local_source(&self, source: &str) -> Result<String, String> {
        let without_quotes = source.replace(['"', '\'', '\\', '`'], "");
        if without_quotes.contains("://") || without_quotes.starts_with("git@") {
            return Err(format!(
                "`ADD` takes files of the repository only, not `{}`: fetch it by `RUN`, with the network of your \
                 organization",
                excerpt(source)
            ));
        }
        if source == "." || ["/", "./", "../"].iter().any(|start| source.starts_with(start)) {
            return Ok(source.to_owned());
        }
        if self.is_trigger {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/*?-".contains(&byte);
            let is_local =
                source.bytes().all(is_plain) && !source.to_ascii_lowercase().starts_with("github.com");
            let sentence =
                || format!("`ADD` of `{}` could become a URL: begin the source with `./`", excerpt(source));
            return if is_local { Ok(source.to_owned()) } else { Err(sentence()) };
        }
        Ok(format!("./{source}"))
    }

    fn transfer_flags(&self, name: &str, flags: &[Flag], of_buildkit: &[&str]) -> Result<(), String> {
        for (index, flag) in flags.iter().enumerate() {
            let is_repeated = flags.iter().take(index).any(|earlier| earlier.name == flag.name);
            match flag.name.as_str() {
                "from" | "chown"
                    if !is_repeated && flag.value.as_ref().is_some_and(|value| !value.is_empty()) => {}
                "from" | "chown" => {
                    return Err(format!("`--{}` has to be there once, with a value", flag.name));
                }
                option if !of_buildkit.contains(&option) => return Err(unknown_option(name, flag)),
                option if self.policy.builder == DockerfileBuilder::Legacy => {
                    return Err(needs_buildkit(name, option));
                }
                "exclude" => {}
                _ if is_repeated => return Err(format!("`--{}` is there twice", flag.name)),
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn run_flags(&mut self, flags: &mut [Flag]) -> Result<(), String> {
        for flag in flags {
            let is_known = matches!(flag.name.as_str(), "mount" | "network" | "security");
            if !is_known {
                return Err(unknown_option("RUN", flag));
            }
            if self.policy.builder == DockerfileBuilder::Legacy {
                return Err(needs_buildkit("RUN", &flag.name));
            }
            match (flag.name.as_str(), flag.value.as_deref().unwrap_or_default()) {
                ("mount", value) => flag.value = Some(self.mount(value)?),
                ("network", "default" | "none") | ("security", "sandbox") => {}
                (name, value) => return Err(format!("`RUN --{name}={}` is not accepted", excerpt(value))),
            }
        }
        Ok(())
    }

    /// Checks a mount, and gives cache mounts the prefix of their scope.
    fn mount(&mut self, written: &str) -> Result<String, String> {
        let mut fields: Vec<(String, Option<String>)> = Vec::new();
        for field in written.split(',') {
            let (key, value) =
                field.split_once('=').map_or((field, None), |(key, value)| (key, Some(value.to_owned())));
            let key = key.to_ascii_lowercase();
            if !MOUNT_FIELDS.contains(&key.as_str()) {
                return Err(format!("the mount field `{}` is not accepted", excerpt(&key)));
            }
            if fields.iter().any(|(earlier, _)| *earlier == key) {
                return Err(format!("the mount field `{key}` is there twice"));
            }
            fields.push((key, value));
        }
        let value_of = |keys: &[&str]| {
            let found = fields.iter().find(|(key, _)| keys.contains(&key.as_str()));
            found.and_then(|(_, value)| value.clone())
        };
        let kind = value_of(&["type"]).unwrap_or_else(|| "bind".to_owned());
        if !matches!(kind.as_str(), "bind" | "cache" | "tmpfs") {
            return Err(format!(
                "the mount type `{}` is not accepted: `bind`, `cache` and `tmpfs` are",
                excerpt(&kind)
            ));
        }
        if kind == "cache" {
            if self.is_trigger {
                return Err("a base image may not mount a cache".to_owned());
            }
            let id = value_of(&["id"]).or_else(|| value_of(&["target", "dst", "destination"]));
            let id = format!("{}-{}", self.policy.cache_scope, id.unwrap_or_default());
            fields.retain(|(key, _)| key != "id");
            fields.push(("id".to_owned(), Some(id)));
        }
        for (key, value) in &mut fields {
            if key == "from" {
                *value = Some(self.source(value.as_deref().unwrap_or_default())?);
            }
        }
        let fields = fields.into_iter().map(|(key, value)| match value {
            Some(value) => format!("{key}={value}"),
            None => key,
        });
        Ok(fields.collect::<Vec<_>>().join(","))
    }

    /// Checks `--from`: an earlier stage, by name or index, or an image.
    fn source(&mut self, written: &str) -> Result<String, String> {
        if written.contains(['$', '"', '\'', '\\', '`']) {
            return Err(uncertain(written));
        }
        let is_index = written.len() <= 4
            && written
                .parse::<usize>()
                .is_ok_and(|index| index.to_string() == written && index < self.complete.len());
        if is_index || written == "scratch" {
            return Ok(written.to_owned());
        }
        if self.is_complete(written) {
            return Ok(written.to_ascii_lowercase());
        }
        let image = image_name(written)?;
        let reference = image.as_str().to_owned();
        self.uses(image, None, None)?;
        Ok(reference)
    }
}

pub(super) fn uncertain(written: &str) -> String {
    format!(
        "it is not certain which image `{}` is: write its name, or declare its variables by `ARG` before the \
         first `FROM`",
        excerpt(written)
    )
}

fn needs_buildkit(name: &str, option: &str) -> String {
    format!(
        "the option `--{option}` of `{name}` needs BuildKit, which the operator chooses by \
         `LAUNCHWAY_BUILDER=buildkit`"
    )
}
