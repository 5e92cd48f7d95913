//! Secrets: values that are never logged, and their encryption at rest.

use std::fmt;

/// A value that is never shown: its `Debug` prints `***`.
///
/// ```
/// use launchway_domain::secret::Secret;
///
/// let password = Secret::new("hunter2");
/// assert_eq!(format!("{password:?}"), "***");
/// assert_eq!(*password.expose(), "hunter2");
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret<T>(T);

impl<T> Secret<T> {
    /// Wraps `value`.
    pub fn new(value: T) -> Self {
        Self(value)
    }

    /// Returns the value, for the code that has to use it.
    pub fn expose(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A secret as it is stored: encrypted, authenticated, bound to its associated data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed(pub String);

/// The reason why a secret could not be encrypted or decrypted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretBoxError {
    /// The encrypted text is damaged, has other associated data, or was encrypted with another key.
    #[error("a stored secret cannot be decrypted with this installation's key")]
    CannotOpen,
    /// The system provided no randomness.
    #[error("no randomness is available to encrypt a secret")]
    CannotSeal,
}

/// Encrypts secrets that have to be read again later.
///
/// Promises: encrypting the same secret twice gives different texts; a text can be decrypted only with the
/// same associated data (`place`), so that it cannot be moved to another row.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait SecretBox: Send + Sync {
    /// Encrypts `plain` with the associated data `place`, which names table, column and row.
    ///
    /// # Errors
    /// [`SecretBoxError::CannotSeal`] without randomness.
    fn seal(&self, place: &str, plain: &[u8]) -> Result<Sealed, SecretBoxError>;

    /// Decrypts a text of [`seal`](SecretBox::seal) with the same associated data `place`.
    ///
    /// # Errors
    /// [`SecretBoxError::CannotOpen`] for anything else.
    fn open(&self, place: &str, sealed: &Sealed) -> Result<Secret<Vec<u8>>, SecretBoxError>;
}

/// A source of cryptographically secure random bytes.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait Entropy: Send + Sync {
    /// Returns 256 fresh random bits.
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
