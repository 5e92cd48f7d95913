//! The error of a step of a deployment.

use std::{error::Error, sync::Arc};

/// The reason why a step failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StepError {
    /// The engine does not answer. Nothing is wrong with the request: it can be retried once the engine is
    /// back.
    #[error("{0}")]
    Unavailable(String),
    /// An error of this machine: a retry may help.
    #[error("{0}")]
    Retryable(String),
    /// As [`Retryable`](StepError::Retryable), with the cause for the log.
    #[error("{context}: {source}")]
    Failed {
        /// The operation that failed, as the beginning of a sentence.
        context: String,
        /// The cause.
        source: Arc<dyn Error + Send + Sync>,
    },
    /// The request cannot succeed. The sentence is for users, and contains no secret.
    #[error("{0}")]
    Rejected(String),
}

impl StepError {
    /// Returns an error of this machine with its cause.
    #[must_use]
    pub fn failed(context: impl Into<String>, source: impl Error + Send + Sync + 'static) -> Self {
        Self::Failed { context: context.into(), source: Arc::new(source) }
    }
}

/// Errors are equal if they have the same kind and the same text: causes cannot be compared.
impl PartialEq for StepError {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.to_string() == other.to_string()
    }
}

impl Eq for StepError {}
