//! Sealed values without encryption.

use data_encoding::BASE64_NOPAD;
use launchway_domain::secret::{Sealed, Secret, SecretBox, SecretBoxError};

/// Seals values so that they can be read only with the same associated data, and by everyone.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenBox;

impl SecretBox for OpenBox {
    fn seal(&self, place: &str, plain: &[u8]) -> Result<Sealed, SecretBoxError> {
        Ok(Sealed(format!("{place}|{}", BASE64_NOPAD.encode(plain))))
    }

    fn open(&self, place: &str, sealed: &Sealed) -> Result<Secret<Vec<u8>>, SecretBoxError> {
        let encoded = sealed.0.strip_prefix(place).and_then(|rest| rest.strip_prefix('|'));
        let plain = encoded.and_then(|encoded| BASE64_NOPAD.decode(encoded.as_bytes()).ok());
        plain.map(Secret::new).ok_or(SecretBoxError::CannotOpen)
    }
}
