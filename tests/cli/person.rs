//! A user with a terminal, or a script: runs the binary and reads its output.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsStr,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use launchway_testkit::server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer, binary};
use serde_json::Value;
use tempfile::TempDir;

/// A user with a home folder of their own, who runs `launchway`.
pub(crate) struct Person {
    home: TempDir,
    place: Option<PathBuf>,
    environment: BTreeMap<String, String>,
}

impl Person {
    /// A user without any configuration.
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap(), place: None, environment: BTreeMap::new() }
    }

    /// The administrator that [`TestServer::admin`] registered, logged in by a password.
    pub(crate) fn ada(server: &TestServer) -> Self {
        let ada = Self::new();
        let login = ["login", server.url(), "--email", ADMIN_EMAIL];
        ada.runs_with(&login, &format!("{ADMIN_PASSWORD}\n")).succeeded();
        ada
    }

    /// Sets an environment variable.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Changes the working directory.
    pub(crate) fn standing_in(self, place: &Path) -> Self {
        Self { place: Some(place.to_owned()), ..self }
    }

    /// Returns their home folder.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Returns the file of remembered servers and tokens.
    pub(crate) fn contexts_file(&self) -> PathBuf {
        self.home.path().join("contexts.toml")
    }

    /// Runs the binary with empty input.
    #[track_caller]
    pub(crate) fn runs(&self, arguments: &[&str]) -> CommandOutput {
        self.runs_with(arguments, "")
    }

    /// Runs the binary with `input` in a pipe.
    #[track_caller]
    pub(crate) fn runs_with(&self, arguments: &[&str], input: &str) -> CommandOutput {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        // A process that does not read its input may exit before all of it is written.
        let _ = process.stdin.take().unwrap().write_all(input.as_bytes());
        CommandOutput::new(arguments, process.wait_with_output().unwrap())
    }

    /// Returns the command, with an environment of only the `PATH`.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(binary());
        command.args(arguments);
        command
    }

    /// Returns another program in the same folder and environment.
    pub(crate) fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear();
        command.env("PATH", env::var_os("PATH").unwrap()).env("HOME", self.home.path());
        command.env("LAUNCHWAY_CONTEXTS_FILE", self.contexts_file());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        command.envs(&self.environment);
        command.current_dir(self.place.as_deref().unwrap_or(self.home.path()));
        command
    }
}

/// The output and the exit code of the binary.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    what: String,
    /// The exit code; `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandOutput {
    pub(crate) fn new(arguments: &[&str], output: Output) -> Self {
        Self {
            what: format!("launchway {}", arguments.join(" ")),
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Asserts success, and returns the standard output.
    #[track_caller]
    pub(crate) fn succeeded(&self) -> &str {
        assert_eq!(self.code, Some(0), "{self}");
        &self.stdout
    }

    /// Asserts success, and returns the JSON on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        let text = self.succeeded();
        serde_json::from_str(text).unwrap_or_else(|error| panic!("no JSON: {error}\n{self}"))
    }

    /// Asserts that the command line was rejected, and returns the standard error.
    #[track_caller]
    pub(crate) fn failed_to_parse(&self) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (Some(2), ""), "{self}");
        &self.stderr
    }

    /// Asserts the exit code of a failure and an empty standard output; returns the standard error.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32) -> &str {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{self}");
        assert!(self.stderr.contains("error: "), "{self}");
        &self.stderr
    }
}

impl std::fmt::Display for CommandOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, code, stdout, stderr } = self;
        write!(f, "{what}\nexit code {code:?}\n--- standard output\n{stdout}\n--- standard error\n{stderr}")
    }
}
