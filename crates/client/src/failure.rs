//! Failures of commands: a message, a hint, and an exit code that scripts can rely on.

use std::{fmt, process::ExitCode};

/// The kind of a failure, which is the exit code. `docs/cli.md` has the same table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The operation failed: a deployment, a run, a file that cannot be written.
    Failed = 1,
    /// Invalid usage: a wrong argument, or a value that the server rejected.
    Usage = 2,
    /// Not logged in, or not allowed.
    Denied = 3,
    /// Not found.
    Missing = 4,
    /// The current state does not allow it.
    Conflict = 5,
    /// The server cannot be reached or is overloaded: a retry may succeed.
    Unavailable = 6,
}

/// The failure of a command.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    sentence: String,
    hint: Option<String>,
    /// The code of the API's error table, if the API returned an error.
    code: Option<String>,
}

/// The result of a command.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(kind: Kind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into(), hint: None, code: None }
    }

    /// Adds a hint.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Adds the code of the API's error table.
    pub(crate) fn coded(self, code: &str) -> Self {
        Self { code: Some(code.to_owned()), ..self }
    }

    /// Returns whether the API returned this code.
    pub(crate) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// Returns the hint.
    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.kind as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for Failure {}

/// Maps an I/O error on the client's machine.
pub(crate) fn failed(doing: impl fmt::Display) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| Failure::new(Kind::Failed, format!("{doing}: {error}"))
}
