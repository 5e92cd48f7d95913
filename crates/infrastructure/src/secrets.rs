//! Secrets at rest, sealed with XChaCha20-Poly1305.

use std::sync::Arc;

use chacha20poly1305::{
    Key, KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use data_encoding::{BASE64_NOPAD, HEXLOWER_PERMISSIVE};
use launchway_domain::secret::{Entropy, Sealed, Secret, SecretBox, SecretBoxError};

/// The installation's key, as 64 hexadecimal digits in its file.
#[derive(Clone)]
pub struct SecretKey([u8; 32]);

/// A text that is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must hold 64 hexadecimal digits, not all the same: `openssl rand -hex 32` makes them")]
pub struct InvalidKey;

impl SecretKey {
    /// A new key in the form that [`FromStr`](std::str::FromStr) reads.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> String {
        format!("{}\n", data_encoding::HEXLOWER.encode(&entropy.bits_256()))
    }
}

impl std::str::FromStr for SecretKey {
    type Err = InvalidKey;

    fn from_str(raw: &str) -> Result<Self, InvalidKey> {
        let bytes = HEXLOWER_PERMISSIVE.decode(raw.trim().as_bytes()).map_err(|_not_hex| InvalidKey)?;
        let key: [u8; 32] = bytes.try_into().map_err(|_wrong_length| InvalidKey)?;
        // A key of one repeated byte is a placeholder that someone forgot.
        if key.iter().all(|byte| *byte == key[0]) { Err(InvalidKey) } else { Ok(Self(key)) }
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Seals secrets with the installation's key, each bound to the place that it belongs to.
pub struct XChaChaBox {
    cipher: XChaCha20Poly1305,
    entropy: Arc<dyn Entropy>,
}

const VERSION: &str = "v1:";
const NONCE_BYTES: usize = 24;

impl XChaChaBox {
    /// Seals with `key`.
    #[must_use]
    pub fn new(key: &SecretKey, entropy: Arc<dyn Entropy>) -> Self {
        Self { cipher: XChaCha20Poly1305::new(Key::from_slice(&key.0)), entropy }
    }
}

impl SecretBox for XChaChaBox {
    fn seal(&self, place: &str, plain: &[u8]) -> Result<Sealed, SecretBoxError> {
        let random = self.entropy.bits_256();
        let nonce = &random[..NONCE_BYTES];
        let payload = Payload { msg: plain, aad: place.as_bytes() };
        let sealed = self
            .cipher
            .encrypt(XNonce::from_slice(nonce), payload)
            .map_err(|_too_long| SecretBoxError::CannotSeal)?;
        Ok(Sealed(format!("{VERSION}{}", BASE64_NOPAD.encode(&[nonce, &sealed].concat()))))
    }

    fn open(&self, place: &str, sealed: &Sealed) -> Result<Secret<Vec<u8>>, SecretBoxError> {
        let bytes = sealed
            .0
            .strip_prefix(VERSION)
            .and_then(|text| BASE64_NOPAD.decode(text.as_bytes()).ok())
            .ok_or(SecretBoxError::CannotOpen)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES).ok_or(SecretBoxError::CannotOpen)?;
        let payload = Payload { msg: sealed, aad: place.as_bytes() };
        self.cipher
            .decrypt(XNonce::from_slice(nonce), payload)
            .map(Secret::new)
            .map_err(|_not_ours| SecretBoxError::CannotOpen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemEntropy;

    fn secret_box() -> XChaChaBox {
        let key = SecretKey::generate(&SystemEntropy).parse().unwrap();
        XChaChaBox::new(&key, Arc::new(SystemEntropy))
    }

    #[test]
    fn a_secret_opens_in_its_own_place_only() {
        let secrets = secret_box();
        let sealed = secrets.seal("table.column:1", b"hunter2").unwrap();
        assert_eq!(secrets.open("table.column:1", &sealed).unwrap().expose(), b"hunter2");
        assert!(secrets.open("table.column:2", &sealed).is_err());
    }

    #[test]
    fn a_secret_does_not_open_with_another_key() {
        let sealed = secret_box().seal("here", b"hunter2").unwrap();
        assert!(secret_box().open("here", &sealed).is_err());
    }

    #[test]
    fn a_damaged_secret_does_not_open() {
        let secrets = secret_box();
        let Sealed(text) = secrets.seal("here", b"hunter2").unwrap();
        for at in 0..text.len() {
            let mut damaged = text.clone().into_bytes();
            damaged[at] = if damaged[at] == b'A' { b'B' } else { b'A' };
            let damaged = Sealed(String::from_utf8(damaged).unwrap());
            assert!(secrets.open("here", &damaged).is_err(), "byte {at}");
        }
        for text in ["", "v1:", "v1:AAAA", "v2:AAAA", "hunter2"] {
            assert!(secrets.open("here", &Sealed(text.to_owned())).is_err(), "{text}");
        }
    }

    #[test]
    fn sealing_twice_gives_two_texts() {
        let secrets = secret_box();
        assert_ne!(secrets.seal("here", b"hunter2").unwrap(), secrets.seal("here", b"hunter2").unwrap());
    }

    #[test]
    fn short_and_placeholder_keys_are_refused() {
        for text in ["", "abcd", &"0".repeat(64), &"ab".repeat(32), &"xy".repeat(32), &"0f".repeat(33)] {
            assert_eq!(text.parse::<SecretKey>().unwrap_err(), InvalidKey, "{text}");
        }
    }
}
