//! The secret that a code host shares with Launchway.

use chrono::TimeDelta;
use data_encoding::HEXLOWER;

use super::RepositoryKey;
use crate::{
    clock::Timestamp,
    ids::{OrganizationId, WebhookSecretId},
    secret::{Sealed, Secret},
    value::InvalidValue,
};

/// The secret of a repository's webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookSecret(Secret<String>);

impl WebhookSecret {
    /// The minimum length. Above all the empty secret is refused, with which anyone could sign.
    const SHORTEST: usize = 16;

    /// Creates a secret of 256 random bits.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(Secret::new(HEXLOWER.encode(&random)))
    }

    /// Returns the text to give to the code host.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

impl TryFrom<String> for WebhookSecret {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        if raw.len() >= Self::SHORTEST {
            Ok(Self(Secret::new(raw)))
        } else {
            Err(InvalidValue::secret("a secret of at least 16 characters"))
        }
    }
}

/// A webhook secret as it is stored: one for each repository of an organization, shared by all its
/// applications, because a code host accepts an address only once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSecret {
    /// The id of the webhook secret.
    pub id: WebhookSecretId,
    /// The organization that it belongs to.
    pub organization_id: OrganizationId,
    /// The repository.
    pub repository: RepositoryKey,
    /// The [`WebhookSecret`]; see [`KeptSecret::associated_data`].
    pub secret: Sealed,
    /// The time of creation.
    pub created_at: Timestamp,
    /// When a push of the repository was first verified.
    pub confirmed_at: Option<Timestamp>,
}

impl KeptSecret {
    /// The time for which a replaced secret stays valid, so that a user can update the code host.
    pub const GRACE: TimeDelta = TimeDelta::hours(24);
    /// The maximum number of secrets that are valid beside the newest. Each is tried with every delivery.
    pub const MOST_REPLACED: i64 = 5;

    /// Returns the associated data (AEAD) of a secret: with any other, it cannot be decrypted.
    #[must_use]
    pub fn associated_data(id: WebhookSecretId) -> String {
        format!("webhook_secrets.secret:{id}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_256_bits_in_hex_and_hidden_in_debug() {
        let secret = WebhookSecret::new([0xab; 32]);
        assert_eq!(secret.expose(), "ab".repeat(32));
        assert_eq!(format!("{secret:?}"), "WebhookSecret(***)");
        assert_eq!(WebhookSecret::try_from(secret.expose().to_owned()), Ok(secret));
    }

    #[test]
    fn an_empty_or_short_text_is_no_secret() {
        for text in ["", " ", &"a".repeat(15)] {
            assert!(WebhookSecret::try_from(text.to_owned()).is_err(), "{text:?}");
        }
    }
}
