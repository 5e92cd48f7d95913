//! Remembered servers and tokens, in a file that only its owner can read.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{ErrorKind, Write as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, Kind, Outcome, failed};

/// The permission bits of a file for everyone but its owner.
const OTHERS: u32 = 0o077;

/// The remembered servers, and the default one.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    pub(crate) current: Option<String>,
    #[serde(default)]
    pub(crate) contexts: BTreeMap<String, Context>,
}

/// One server.
#[derive(Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    /// The organization to act in, by its name or id; without it, that of the oldest membership.
    pub(crate) organization: Option<String>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Contexts {
    /// Loads the file; empty if there is none.
    pub(crate) fn load() -> Outcome<Self> {
        Self::read(&path()?)
    }

    /// Writes the file.
    pub(crate) fn save(&self) -> Outcome {
        self.write(&path()?)
    }

    fn read(path: &Path) -> Outcome<Self> {
        let shown = path.display();
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(failed(format!("{shown} cannot be read"))(error)),
        };
        let mode =
            fs::metadata(path).map_err(failed(format!("{shown} cannot be read")))?.permissions().mode();
        if mode & OTHERS != 0 {
            let sentence =
                format!("{shown} contains tokens, but other users can access it (mode {:03o})", mode & 0o777);
            return Err(Failure::new(Kind::Failed, sentence).hint(format!("chmod 600 {shown}")));
        }
        toml::from_str(&text).map_err(|error| {
            let sentence = format!("{shown} is invalid: {}", error.message());
            Failure::new(Kind::Failed, sentence).hint("fix the file, or delete it and log in again")
        })
    }

    /// Writes a temporary file and renames it, so that a full disk loses no token.
    fn write(&self, path: &Path) -> Outcome {
        let shown = path.display();
        let cannot = || failed(format!("{shown} cannot be written"));
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(cannot())?;
        let text = toml::to_string(self)
            .map_err(|error| Failure::new(Kind::Failed, format!("{shown} cannot be written: {error}")))?;
        // Made with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(cannot())?;
        file.write_all(text.as_bytes()).map_err(cannot())?;
        file.as_file().sync_all().map_err(cannot())?;
        file.persist(path).map_err(|error| cannot()(error.error))?;
        Ok(())
    }
}

fn path() -> Outcome<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("LAUNCHWAY_CONTEXTS_FILE")
        .or_else(|| Some(set("XDG_CONFIG_HOME")?.join("launchway/contexts.toml")))
        .or_else(|| Some(set("HOME")?.join(".config/launchway/contexts.toml")))
        .ok_or_else(|| {
            Failure::new(Kind::Failed, "there is no path for the contexts file")
                .hint("set HOME or LAUNCHWAY_CONTEXTS_FILE")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> Contexts {
        let context =
            Context { url: "http://127.0.0.1:8080".into(), token: Some("lws_x".into()), organization: None };
        Contexts { current: Some("home".into()), contexts: BTreeMap::from([("home".into(), context)]) }
    }

    #[test]
    fn what_is_remembered_is_read_again_and_nobody_else_can_open_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/contexts.toml");
        one().write(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        let read = Contexts::read(&path).unwrap();
        assert_eq!(read.contexts["home"].token.as_deref(), Some("lws_x"));
        assert_eq!(read.current.as_deref(), Some("home"));
    }

    #[test]
    fn a_file_that_others_can_open_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contexts.toml");
        one().write(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let failure = Contexts::read(&path).unwrap_err();
        assert!(failure.to_string().contains("mode 640"), "{failure}");
        assert!(failure.advice().is_some_and(|hint| hint.starts_with("chmod 600")));
    }

    #[test]
    fn without_a_file_nothing_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Contexts::read(&folder.path().join("none")).unwrap().contexts.is_empty());
    }

    #[test]
    fn an_invalid_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("contexts.toml");
        one().write(&path).unwrap();
        fs::write(&path, "[contexts.home]\ntokn = 1").unwrap();
        assert!(Contexts::read(&path).unwrap_err().to_string().contains("is invalid"));
    }

    #[test]
    fn a_token_is_not_printed_by_accident() {
        assert!(!format!("{:?}", one()).contains("lws_x"));
    }
}
