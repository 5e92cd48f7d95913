//! A script in place of a program, which behaves as a test defines and records its calls.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// A script in place of a program.
#[derive(Debug)]
pub struct FakeProgram {
    folder: TempDir,
    name: &'static str,
}

/// A script in place of docker's command line.
#[derive(Debug)]
pub struct FakeDocker(FakeProgram);

/// One call of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeCall {
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its environment, as `NAME=value`.
    pub environment: Vec<String>,
}

impl FakeProgram {
    /// Creates a program that runs the lines of a shell script for each call.
    ///
    /// # Panics
    ///
    /// If its files cannot be written.
    #[must_use]
    pub fn running(name: &'static str, script: &str) -> Self {
        let fake = Self { folder: tempfile::tempdir().unwrap(), name };
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

    /// Returns the path of the script.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.folder.path().join(self.name)
    }

    /// Returns the folder of the script, for a `PATH`.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the calls, in no particular order.
    ///
    /// # Panics
    ///
    /// If the records cannot be read.
    #[must_use]
    pub fn calls(&self) -> Vec<FakeCall> {
        let entries = fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        let notes = entries.filter(|path| *path != self.program());
        notes.map(|note| read(&String::from_utf8(fs::read(note).unwrap()).unwrap())).collect()
    }
}

impl FakeDocker {
    /// Creates a docker that runs the lines of a shell script for each call; `$1` is docker's command.
    #[must_use]
    pub fn running(script: &str) -> Self {
        Self(FakeProgram::running("docker", script))
    }

    /// Creates a docker that fails every call with the message `text`.
    #[must_use]
    pub fn failing_with(text: &str) -> Self {
        Self::running(&format!("cat >/dev/null\ncat >&2 <<'END'\n{text}\nEND\nexit 1"))
    }

    /// Returns the path of the script.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.0.program()
    }

    /// Returns the calls, in no particular order.
    #[must_use]
    pub fn calls(&self) -> Vec<FakeCall> {
        self.0.calls()
    }
}

fn read(note: &str) -> FakeCall {
    let (arguments, environment) = note.split_once("\0\0\0").unwrap_or((note, ""));
    let list = |text: &str| text.split('\0').filter(|part| !part.is_empty()).map(str::to_owned).collect();
    FakeCall { arguments: list(arguments), environment: list(environment) }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn calls_are_noted_with_arguments_and_environment() {
        let fake = FakeDocker::failing_with("no");
        let mut call = Command::new(fake.program());
        let output = call.args(["ps", "a b\nc"]).env_clear().env("NAME", "of\nit").output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(1), b"no\n".as_slice()));
        let calls = fake.calls();
        assert_eq!(calls.len(), 1);
        assert_eq!(calls[0].arguments, ["ps", "a b\nc"]);
        assert!(calls[0].environment.contains(&"NAME=of\nit".to_owned()));
    }
}
