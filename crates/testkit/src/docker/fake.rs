//! A program in place of docker's, which does what a test wants and takes note of how it was called.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf};

use tempfile::TempDir;

/// A script in place of docker's command line.
#[derive(Debug)]
pub struct FakeDocker {
    folder: TempDir,
}

/// One call of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeCall {
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment, as `NAME=value`.
    pub environment: Vec<String>,
}

impl FakeDocker {
    /// Runs the lines of a shell script for each call; `$1` is docker's command.
    ///
    /// # Panics
    ///
    /// When there is no room for files.
    #[must_use]
    pub fn running(script: &str) -> Self {
        let fake = Self { folder: tempfile::tempdir().unwrap() };
        // Zero bytes end each argument, and the file is written in one piece.
        let text = format!(
            "#!/bin/sh\ncall=$(mktemp {}/call.XXXXXX)\n\
             {{ printf '%s\\0' \"$@\"; printf '\\0\\0'; cat /proc/$$/environ; }} > \"$call\"\n{script}\n",
            fake.folder.path().display()
        );
        fs::write(fake.program(), text).unwrap();
        fs::set_permissions(fake.program(), fs::Permissions::from_mode(0o755)).unwrap();
        fake
    }

    /// Complains by `text` whatever it is asked, and fails.
    #[must_use]
    pub fn complaining(text: &str) -> Self {
        Self::running(&format!("cat >/dev/null\ncat >&2 <<'END'\n{text}\nEND\nexit 1"))
    }

    /// The script.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.folder.path().join("docker")
    }

    /// How it was called, in no particular order.
    ///
    /// # Panics
    ///
    /// When its notes cannot be read.
    #[must_use]
    pub fn calls(&self) -> Vec<FakeCall> {
        let entries = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let notes = entries.filter(|path| *path != self.program());
        notes.map(|note| read(&String::from_utf8(fs::read(note).unwrap()).unwrap())).collect()
    }
}

fn read(note: &str) -> FakeCall {
    let (arguments, environment) = note.split_once("\0\0\0").unwrap_or((note, ""));
    let list = |text: &str| text.split('\0').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    FakeCall { arguments: list(arguments), environment: list(environment) }
}
