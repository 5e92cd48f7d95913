//! Deploy keys: Ed25519, in OpenSSH's format.

use std::sync::Arc;

use launchway_domain::{
    organizations::{KeyMaker, KeyPair},
    secret::{Entropy, Secret},
};
use ssh_key::{LineEnding, PrivateKey, private::Ed25519Keypair};

/// Generates Ed25519 keys from the given randomness.
pub struct Ed25519Keys {
    entropy: Arc<dyn Entropy>,
}

impl Ed25519Keys {
    /// Returns a generator that uses `entropy`.
    #[must_use]
    pub fn new(entropy: Arc<dyn Entropy>) -> Self {
        Self { entropy }
    }
}

impl KeyMaker for Ed25519Keys {
    fn make(&self, comment: &str) -> Result<KeyPair, String> {
        // The public key is one line, and the comment is the end of it.
        if comment.contains(char::is_control) {
            return Err("the comment of an ssh key must be one line".to_owned());
        }
        let pair = Ed25519Keypair::from_seed(&self.entropy.bits_256());
        let mut key = PrivateKey::from(pair);
        key.set_comment(comment);
        let unwritten = |error: ssh_key::Error| format!("cannot write an ssh key: {error}");
        let public_key = key.public_key().to_openssh().map_err(unwritten)?;
        let private_key = key.to_openssh(LineEnding::LF).map_err(unwritten)?.to_string();
        Ok(KeyPair { public_key, private_key: Secret::new(private_key) })
    }
}

#[cfg(test)]
mod tests {
    use launchway_system::clock::SystemEntropy;
    use launchway_testkit::CountingEntropy;

    use super::*;

    #[test]
    fn the_public_part_is_one_line_with_the_comment_behind_it() {
        let pair = Ed25519Keys::new(Arc::new(SystemEntropy)).make("launchway of acme").unwrap();
        assert!(pair.public_key.starts_with("ssh-ed25519 AAAA"), "{}", pair.public_key);
        assert!(pair.public_key.ends_with(" launchway of acme") && pair.public_key.lines().count() == 1);
        assert!(pair.private_key.expose().starts_with("-----BEGIN OPENSSH PRIVATE KEY-----\n"));
        assert!(pair.private_key.expose().ends_with("-----END OPENSSH PRIVATE KEY-----\n"));
    }

    #[test]
    fn the_private_part_leads_to_the_public_one() {
        let pair = Ed25519Keys::new(Arc::new(SystemEntropy)).make("x").unwrap();
        let key = PrivateKey::from_openssh(pair.private_key.expose()).unwrap();
        assert_eq!(key.public_key().to_openssh().unwrap(), pair.public_key);
    }

    #[test]
    fn every_key_is_another_one() {
        let keys = Ed25519Keys::new(Arc::new(CountingEntropy::default()));
        assert_ne!(keys.make("x").unwrap().public_key, keys.make("x").unwrap().public_key);
    }

    #[test]
    fn a_comment_of_two_lines_is_refused() {
        let keys = Ed25519Keys::new(Arc::new(SystemEntropy));
        assert!(keys.make("a\nssh-ed25519 AAAA b").is_err());
    }
}
