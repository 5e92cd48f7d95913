//! The failure of a command: one sentence for the user.

use std::fmt::{self, Display, Formatter};

/// The result of every step.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// A sentence that says what failed and, where there is one, the remedy.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }

    /// Joins an attempt and the reason of its failure.
    pub(crate) fn because(attempt: impl Display, reason: impl Display) -> Self {
        Self(format!("{attempt}: {reason}"))
    }
}

impl Display for Failure {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
