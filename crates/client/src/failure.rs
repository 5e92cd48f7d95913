//! Why a verb failed: a sentence, a hint, and an exit code that scripts can rely on.

use std::{fmt, process::ExitCode};

/// What went wrong, for the exit code. `docs/cli.md` has the same table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It was tried and failed: a deployment, a run, a file that cannot be written.
    Failed = 1,
    /// The request makes no sense: a wrong argument, a value that the server refused.
    Usage = 2,
    /// Nobody is logged in, or they may not do this.
    Denied = 3,
    /// There is no such thing.
    Missing = 4,
    /// The present state forbids it.
    Conflict = 5,
    /// The server cannot be reached, or has no time: the same may work later.
    Unavailable = 6,
}

/// Why a verb failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    sentence: String,
    hint: Option<String>,
    /// The code of the API's error table, when the API refused.
    code: Option<String>,
}

/// What a verb comes to.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(kind: Kind, sentence: impl Into<String>) -> Self {
        Self { kind, sentence: sentence.into(), hint: None, code: None }
    }

    /// The same with what to do about it.
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same with the code of the API's error table.
    pub(crate) fn coded(self, code: &str) -> Self {
        Self { code: Some(code.to_owned()), ..self }
    }

    /// Whether the API refused with this code.
    pub(crate) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// What to do about it.
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

/// A failure of the machine that the client runs on.
pub(crate) fn failed(doing: impl fmt::Display) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| Failure::new(Kind::Failed, format!("{doing}: {error}"))
}
