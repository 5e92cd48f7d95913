//! Why a command stopped: one sentence for the person who ran it.

use std::fmt::{self, Display, Formatter};

/// What every step returns.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// A sentence that says what failed and, where there is one, the cure.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }

    /// What was attempted, followed by the reason it did not work.
    pub(crate) fn because(attempt: impl Display, reason: impl Display) -> Self {
        Self(format!("{attempt}: {reason}"))
    }
}

impl Display for Failure {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
