//! Idempotency keys: a request that is sent again is carried out once.

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    clock::Timestamp,
    ids::UserId,
    organizations::Scope,
    secret::Sealed,
    store_error::StoreError,
    value::{InvalidValue, text_value},
};

text_value!(
    /// The idempotency key that a client sends with a request and its repetitions.
    IdempotencyName,
    |raw| {
        let name = raw.trim();
        if (1..=255).contains(&name.len()) && name.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            Ok(name.to_owned())
        } else {
            Err(InvalidValue::text("1 to 255 ASCII characters that can be printed", name))
        }
    }
);

/// The identity of a request that is to be carried out once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// The organization.
    pub scope: Scope,
    /// The user.
    pub user_id: UserId,
    /// The method and path.
    pub operation: String,
    /// The key that the client sent.
    pub name: IdempotencyName,
    /// The hash of the body.
    pub body: BodyHash,
}

impl IdempotencyKey {
    /// The time for which a request is stored.
    pub const KEPT: chrono::TimeDelta = chrono::TimeDelta::hours(24);

    /// Returns the associated data (AEAD) of the stored response: with any other, it cannot be decrypted.
    #[must_use]
    pub fn associated_data(&self) -> String {
        format!(
            "idempotency_keys.answer:{}:{}:{}:{}",
            self.scope.id(),
            self.user_id,
            self.operation,
            self.name
        )
    }
}

/// The hash of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyHash(pub [u8; 32]);

#[cfg(feature = "hashes")]
impl BodyHash {
    /// Returns the hash of `body`.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        use sha2::{Digest as _, Sha256};
        Self(Sha256::digest(body).into())
    }
}

/// The stored record of a request that was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// The hash of its body.
    pub body: BodyHash,
    /// The id of the resource that it created.
    pub resource: Uuid,
    /// The response; `None` if the server crashed before it was stored.
    pub answer: Option<Sealed>,
}

/// Stores requests and responses. It writes nothing but its own table; that a request is carried out is
/// recorded by a [`Write`].
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait IdempotencyStore: Send + Sync {
    /// Returns the request of that scope, user, operation and name, if it was carried out after `since`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn find(
        &self,
        key: &IdempotencyKey,
        since: Timestamp,
    ) -> Result<Option<StoredResponse>, StoreError>;

    /// Stores the response.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn keep_answer(&self, key: &IdempotencyKey, answer: &Sealed) -> Result<(), StoreError>;

    /// Deletes the records of requests before `until`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn forget(&self, until: Timestamp) -> Result<(), StoreError>;
}

/// Records that a request is carried out, in the same unit as its effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Claims the key. `Taken(IdempotencyKey)` if it was carried out already, after `since`; an older one
    /// is replaced.
    Claim {
        /// The request.
        key: IdempotencyKey,
        /// The id of the resource that it creates.
        resource: Uuid,
        /// The time after which stored requests count.
        since: Timestamp,
        /// The time of the change.
        at: Timestamp,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_1_to_255_printable_characters() {
        assert!("x".repeat(255).parse::<IdempotencyName>().is_ok());
        for name in ["", " ", "ä", "a\nb", &"x".repeat(256)] {
            assert!(name.parse::<IdempotencyName>().is_err(), "{name:?}");
        }
    }
}
