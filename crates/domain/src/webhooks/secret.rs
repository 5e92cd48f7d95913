//! What a code host and Launchway know, and nobody else.

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
    /// Shorter ones are none: above all the empty one, with which anybody could sign.
    const SHORTEST: usize = 16;

    /// A secret of 256 random bits.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(Secret::new(HEXLOWER.encode(&random)))
    }

    /// The text to give to the code host.
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

/// A secret as it is kept: one for each repository of an organization, whatever applications come
/// from there, because a code host takes an address only once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSecret {
    /// Which.
    pub id: WebhookSecretId,
    /// Whose.
    pub organization_id: OrganizationId,
    /// Of which repository.
    pub repository: RepositoryKey,
    /// The [`WebhookSecret`]; see [`KeptSecret::place`].
    pub secret: Sealed,
    /// Since when.
    pub created_at: Timestamp,
    /// When a push of the repository was first verified.
    pub confirmed_at: Option<Timestamp>,
}

impl KeptSecret {
    /// How long a secret stays valid that another one takes the place of: so long does a person have
    /// to tell the code host.
    pub const GRACE: TimeDelta = TimeDelta::hours(24);
    /// How many secrets are valid beside the newest. Each is tried with every delivery.
    pub const MOST_REPLACED: i64 = 5;

    /// What a secret is sealed for: it opens nowhere else.
    #[must_use]
    pub fn place(id: WebhookSecretId) -> String {
        format!("webhook_secrets.secret:{id}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_256_bits_in_hexadecimal_digits_and_is_not_shown_by_accident() {
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
