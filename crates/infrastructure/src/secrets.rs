//! Encryption of secrets at rest with XChaCha20-Poly1305.

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

/// The error for a text that is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must hold 64 hexadecimal digits, not all the same: `openssl rand -hex 32` makes them")]
pub struct InvalidKey;

impl SecretKey {
    /// Returns a new key in the form that [`FromStr`](std::str::FromStr) reads.
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
        // A key of one repeated byte is a forgotten placeholder.
        if key.iter().all(|byte| *byte == key[0]) { Err(InvalidKey) } else { Ok(Self(key)) }
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// The keys of a key file, one per line. The first one seals; all of them open. There is more than one only
/// during a key rotation.
#[derive(Debug, Clone)]
pub struct SecretKeys {
    current: SecretKey,
    older: Vec<SecretKey>,
}

/// The most keys of a file.
const MOST_KEYS: usize = 8;

impl SecretKeys {
    /// Returns the same keys after a new one, which seals from now on.
    #[must_use]
    pub fn with_new_key(&self, entropy: &dyn Entropy) -> Self {
        let older = std::iter::once(self.current.clone()).chain(self.older.iter().cloned()).collect();
        Self { current: SecretKey(entropy.bits_256()), older }
    }

    /// Returns only the key that seals.
    #[must_use]
    pub fn only_current(&self) -> Self {
        Self { current: self.current.clone(), older: Vec::new() }
    }

    /// Returns whether a key rotation is in progress.
    #[must_use]
    pub fn has_older(&self) -> bool {
        !self.older.is_empty()
    }

    /// Returns the text of the key file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let keys = std::iter::once(&self.current).chain(&self.older);
        keys.map(|key| format!("{}\n", data_encoding::HEXLOWER.encode(&key.0))).collect()
    }
}

impl std::str::FromStr for SecretKeys {
    type Err = InvalidKey;

    fn from_str(raw: &str) -> Result<Self, InvalidKey> {
        let lines = raw.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut keys: Vec<SecretKey> = lines.map(str::parse).collect::<Result<_, _>>()?;
        if keys.is_empty() || keys.len() > MOST_KEYS {
            return Err(InvalidKey);
        }
        let current = keys.remove(0);
        Ok(Self { current, older: keys })
    }
}

/// Seals secrets with the installation's key, each bound to its associated data.
pub struct XChaChaBox {
    cipher: XChaCha20Poly1305,
    older: Vec<XChaCha20Poly1305>,
    entropy: Arc<dyn Entropy>,
}

const VERSION: &str = "v1:";
const NONCE_BYTES: usize = 24;

impl XChaChaBox {
    /// Returns a box that seals with the first of `keys`, and opens with any of them.
    #[must_use]
    pub fn new(keys: &SecretKeys, entropy: Arc<dyn Entropy>) -> Self {
        let cipher = |key: &SecretKey| XChaCha20Poly1305::new(Key::from_slice(&key.0));
        Self { cipher: cipher(&keys.current), older: keys.older.iter().map(cipher).collect(), entropy }
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
        let payload = || Payload { msg: sealed, aad: place.as_bytes() };
        let opened = std::iter::once(&self.cipher)
            .chain(&self.older)
            .find_map(|cipher| cipher.decrypt(XNonce::from_slice(nonce), payload()).ok());
        opened.map(Secret::new).ok_or(SecretBoxError::CannotOpen)
    }
}

#[cfg(test)]
mod tests {
    use launchway_system::clock::SystemEntropy;

    use super::*;

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
    fn while_keys_are_changed_both_open_and_the_new_one_seals() {
        let old: SecretKeys = SecretKey::generate(&SystemEntropy).parse().unwrap();
        let both: SecretKeys = old.with_new_key(&SystemEntropy).to_text().parse().unwrap();
        let new = both.only_current();
        assert!(both.has_older() && !new.has_older() && !old.has_older());
        let [old, both, new] = [old, both, new].map(|keys| XChaChaBox::new(&keys, Arc::new(SystemEntropy)));
        let (before, after) = (old.seal("here", b"one").unwrap(), both.seal("here", b"two").unwrap());
        assert_eq!(both.open("here", &before).unwrap().expose(), b"one");
        assert_eq!(both.open("here", &after).unwrap().expose(), b"two");
        assert!(new.open("here", &before).is_err() && old.open("here", &after).is_err());
        assert_eq!(new.open("here", &after).unwrap().expose(), b"two");
        assert!(both.open("there", &before).is_err());
    }

    #[test]
    fn a_file_has_one_to_eight_keys() {
        let keys =
            |count: usize| -> String { (0..count).map(|_| SecretKey::generate(&SystemEntropy)).collect() };
        for count in [1, 8] {
            assert!(keys(count).parse::<SecretKeys>().is_ok(), "{count}");
        }
        for text in [String::new(), "\n\n".to_owned(), keys(9), format!("{}abcd", keys(1))] {
            assert_eq!(text.parse::<SecretKeys>().unwrap_err(), InvalidKey, "{text}");
        }
    }

    #[test]
    fn short_and_placeholder_keys_are_refused() {
        for text in ["", "abcd", &"0".repeat(64), &"ab".repeat(32), &"xy".repeat(32), &"0f".repeat(33)] {
            assert_eq!(text.parse::<SecretKey>().unwrap_err(), InvalidKey, "{text}");
        }
    }
}
