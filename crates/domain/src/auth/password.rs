//! Passwords.

use async_trait::async_trait;
use chrono::TimeDelta;

use super::TokenHash;
use crate::{clock::Timestamp, ids::UserId, secret::Secret, value::InvalidValue};

/// A password that a user chooses: 8 to 256 characters, not one of the common ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Password(Secret<String>);

impl Password {
    /// Returns the password, for the code that hashes it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

impl TryFrom<String> for Password {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        let length = raw.chars().count();
        if !(8..=256).contains(&length) || raw.contains('\0') {
            return Err(InvalidValue::secret("8 to 256 characters"));
        }
        if is_common(&raw) {
            return Err(InvalidValue::secret("harder to guess: this one is among the most common passwords"));
        }
        Ok(Self(Secret::new(raw)))
    }
}

/// Common passwords, in lower case, one on a line, each of at least 8 characters.
const COMMON: &str = include_str!("common_passwords.txt");

fn is_common(password: &str) -> bool {
    let password = password.to_lowercase();
    let first = password.chars().next();
    let repeats_one_character = password.chars().all(|c| Some(c) == first);
    repeats_one_character || COMMON.lines().any(|common| common == password)
}

/// A password as it is stored, in the PHC string format.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(pub String);

impl std::fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// A one-time token for setting one's first password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswordSetup {
    /// The id of the user.
    pub user_id: UserId,
    /// The hash of the token.
    pub token: TokenHash,
    /// When it expires.
    pub expires_at: Timestamp,
}

impl PasswordSetup {
    /// The validity of the token.
    pub const LIFETIME: TimeDelta = TimeDelta::hours(24);
}

/// The reason why a password could not be hashed or verified.
#[derive(Debug, thiserror::Error)]
pub enum HasherError {
    /// Too many passwords are being hashed; retrying helps.
    #[error("too many passwords are being checked at once")]
    Busy,
    /// A stored hash is not readable, or the machine provided no randomness.
    #[error("a password could not be hashed or verified")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// Hashes and verifies passwords.
///
/// Promises: hashing the same password twice gives different hashes; verifying takes the same
/// time whether there is a hash to compare with or not.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait PasswordHasher: Send + Sync {
    /// Returns the hash to store.
    ///
    /// # Errors
    /// [`HasherError::Busy`] under overload.
    async fn hash(&self, password: &Password) -> Result<PasswordHash, HasherError>;

    /// Returns whether `candidate` is the password behind `hash`; always false without a hash.
    ///
    /// # Errors
    /// [`HasherError::Busy`] under overload.
    async fn verify(
        &self,
        candidate: &Secret<String>,
        hash: Option<PasswordHash>,
    ) -> Result<bool, HasherError>;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accepts(password: &str) -> bool {
        Password::try_from(password.to_owned()).is_ok()
    }

    #[test]
    fn a_password_has_8_to_256_characters() {
        assert!(!accepts("kQ7!zzp"));
        assert!(accepts("kQ7!zzpä"));
        assert!(accepts(&"aé".repeat(128)));
        assert!(!accepts(&format!("{}x", "aé".repeat(128))));
    }

    #[test]
    fn common_passwords_are_refused_in_any_case() {
        for password in ["password", "Password1", "12345678", "QWERTYUIOP", "aaaaaaaaaa", "iloveyou"] {
            assert!(!accepts(password), "{password}");
        }
    }

    #[test]
    fn common_passwords_have_the_form_that_the_search_needs() {
        for common in COMMON.lines() {
            assert!(common.chars().count() >= 8 && common == common.to_lowercase(), "{common}");
        }
    }

    #[test]
    fn a_refused_password_is_not_repeated() {
        let refusal = Password::try_from("hunter2".to_owned()).unwrap_err();
        assert!(!refusal.to_string().contains("hunter2"));
    }

    #[test]
    fn white_space_belongs_to_a_password() {
        let password = Password::try_from("  spaced out  ".to_owned()).unwrap();
        assert_eq!(password.expose(), "  spaced out  ");
    }

    proptest! {
        #[test]
        fn a_password_is_kept_as_it_came(text in "\\PC{8,256}") {
            if let Ok(password) = Password::try_from(text.clone()) {
                prop_assert_eq!(password.expose(), text);
            }
        }
    }
}
