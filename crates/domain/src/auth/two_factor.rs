//! Two-factor login by time-based one-time passwords (RFC 6238).

use data_encoding::BASE32_NOPAD;
use hmac::{Hmac, Mac};
use sha1::Sha1;
use subtle::ConstantTimeEq;

use super::TokenHash;
use crate::{clock::Timestamp, ids::UserId, secret::Sealed, users::EmailAddress};

/// The second factor of a user, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TwoFactor {
    /// The shared secret.
    pub secret: Sealed,
    /// When it was enabled; `None` while it is being set up.
    pub enabled_at: Option<Timestamp>,
}

/// The shared secret of a user's authenticator.
#[derive(Clone, PartialEq, Eq)]
pub struct TotpSecret([u8; 20]);

impl TotpSecret {
    /// The validity of a code in seconds.
    const STEP: i64 = 30;
    const DIGITS: usize = 6;

    /// Creates a new secret of 160 bits, as RFC 4226 recommends.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        let mut secret = [0; 20];
        secret.copy_from_slice(&random[..20]);
        Self(secret)
    }

    /// Restores a secret from stored bytes; `None` if they are damaged.
    #[must_use]
    pub fn from_bytes(stored: &[u8]) -> Option<Self> {
        stored.try_into().ok().map(Self)
    }

    /// Returns the bytes to seal and store.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the associated data (AEAD) of [`Sealed`] secrets of this kind.
    #[must_use]
    pub fn associated_data(user_id: UserId) -> String {
        format!("two_factor.secret:{user_id}")
    }

    /// Returns the secret in the form that users type into authenticators.
    #[must_use]
    pub fn to_base32(&self) -> String {
        BASE32_NOPAD.encode(&self.0)
    }

    /// Returns the secret as a URL that authenticators scan.
    #[must_use]
    pub fn otpauth_url(&self, email: &EmailAddress) -> String {
        let account = percent_encoded(email.as_str());
        format!("otpauth://totp/Launchway:{account}?secret={}&issuer=Launchway", self.to_base32())
    }

    /// Returns the time step that `code` belongs to, if it is the current, the previous or the next one.
    #[must_use]
    pub fn matching_step(&self, code: &str, now: Timestamp) -> Option<i64> {
        let present = now.timestamp().div_euclid(Self::STEP);
        (present - 1..=present + 1)
            .rev()
            .find(|step| self.code_at(*step).as_bytes().ct_eq(code.as_bytes()).into())
    }

    /// Returns the code of a time step.
    #[must_use]
    pub fn code_at(&self, step: i64) -> String {
        // A key of any length is valid for HMAC; `new_from_slice` cannot refuse these 20 bytes.
        let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(&self.0) else { return String::new() };
        mac.update(&step.to_be_bytes());
        let digest = mac.finalize().into_bytes();
        let offset = usize::from(digest[19] & 0xf);
        let word = u32::from_be_bytes([
            digest[offset] & 0x7f,
            digest[offset + 1],
            digest[offset + 2],
            digest[offset + 3],
        ]);
        format!("{:0width$}", word % 10_u32.pow(Self::DIGITS as u32), width = Self::DIGITS)
    }
}

impl std::fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        encoded
    })
}

/// A one-time code that replaces a lost authenticator.
#[derive(Clone, PartialEq, Eq)]
pub struct RecoveryCode(String);

impl RecoveryCode {
    /// The number of codes of a user.
    pub const COUNT: usize = 10;

    /// Creates a new code of 80 bits, in groups that are easy to copy.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        let letters = BASE32_NOPAD.encode(&random[..10]).to_lowercase();
        Self(format!("{}-{}-{}-{}", &letters[..4], &letters[4..8], &letters[8..12], &letters[12..]))
    }

    /// Returns the text to show once.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the hash of the code as it was typed: case, hyphens and spaces do not matter.
    #[must_use]
    pub fn hash_of(typed: &str) -> TokenHash {
        let letters: String =
            typed.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        TokenHash::of(&letters)
    }
}

impl std::fmt::Debug for RecoveryCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn rfc_secret() -> TotpSecret {
        TotpSecret::from_bytes(b"12345678901234567890").unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    #[test]
    fn codes_are_those_of_rfc_6238() {
        // Appendix B of the RFC, SHA-1, the last six of its eight digits.
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(rfc_secret().code_at(seconds / 30), code);
        }
    }

    #[test]
    fn a_code_is_taken_one_step_early_or_late_and_no_more() {
        let secret = rfc_secret();
        let now = at(1_000_000_000);
        let present = 1_000_000_000 / 30;
        for step in present - 1..=present + 1 {
            assert_eq!(secret.matching_step(&secret.code_at(step), now), Some(step));
        }
        for step in [present - 2, present + 2] {
            assert_eq!(secret.matching_step(&secret.code_at(step), now), None);
        }
    }

    #[test]
    fn what_is_no_code_matches_no_step() {
        for text in ["", "12345", "1234567", "abcdef"] {
            assert_eq!(rfc_secret().matching_step(text, at(59)), None);
        }
    }

    #[test]
    fn the_url_for_authenticators_names_the_account() {
        let url = rfc_secret().otpauth_url(&"ada+ci@example.com".parse().unwrap());
        assert_eq!(
            url,
            "otpauth://totp/Launchway:ada%2Bci%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Launchway"
        );
    }

    #[test]
    fn a_recovery_code_is_recognised_however_it_is_typed() {
        let code = RecoveryCode::new([0x5a; 32]);
        let typed = code.expose().to_uppercase().replace('-', " ");
        assert_eq!(RecoveryCode::hash_of(&typed), RecoveryCode::hash_of(code.expose()));
        assert_ne!(RecoveryCode::hash_of(""), RecoveryCode::hash_of(code.expose()));
    }
}
