//! Secrets: values that no log may show, and the box that keeps them at rest.

use std::fmt;

/// A value that is never shown: its `Debug` prints `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Hides `value`.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Shows the value, for the one place that has to use it.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A secret as it is stored: encrypted, authenticated, bound to its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed(pub String);

/// Why a secret could not be sealed or opened.
#[derive(Debug, thiserror::Error)]
pub enum SecretBoxError {
    /// The sealed text is damaged, belongs to another place, or was made with another key.
    #[error("a stored secret cannot be opened with this installation's key")]
    CannotOpen,
    /// The system gave no randomness.
    #[error("no randomness to seal a secret with")]
    CannotSeal,
}

/// Encrypts what has to be read again later.
///
/// Promises: sealing the same secret twice gives different texts; a text opens only with the
/// same `place` that it was sealed for, so that it cannot be moved to another row.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait SecretBox: Send + Sync {
    /// Seals `plain` for `place`, which names table, column and row.
    ///
    /// # Errors
    /// [`SecretBoxError::CannotSeal`] without randomness.
    fn seal(&self, place: &str, plain: &[u8]) -> Result<Sealed, SecretBoxError>;

    /// Opens what [`seal`](SecretBox::seal) made for the same `place`.
    ///
    /// # Errors
    /// [`SecretBoxError::CannotOpen`] for anything else.
    fn open(&self, place: &str, sealed: &Sealed) -> Result<Secret<Vec<u8>>, SecretBoxError>;
}

/// Gives random bytes that nobody can guess.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Entropy: Send + Sync {
    /// 256 fresh random bits.
    fn bits_256(&self) -> [u8; 32];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_a_secret() {
        assert_eq!(format!("{:?}", Some(Secret::new("hunter2"))), "Some(***)");
    }
}
