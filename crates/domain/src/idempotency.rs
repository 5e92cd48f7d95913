//! Asking twice and being served once.

use async_trait::async_trait;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::{
    clock::Timestamp,
    ids::UserId,
    organizations::Scope,
    secret::Sealed,
    store::{self, StoreError},
    value::{InvalidValue, text_value},
};

text_value!(
    /// The name that a client gives to one request, however often it is sent.
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

/// A request that is to be carried out once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// Where.
    pub scope: Scope,
    /// By whom.
    pub user_id: UserId,
    /// What, by method and path.
    pub operation: String,
    /// The name that the client gave it.
    pub name: IdempotencyName,
    /// What recognises the body.
    pub body: BodyHash,
}

impl IdempotencyKey {
    /// How long a request is remembered.
    pub const KEPT: chrono::TimeDelta = chrono::TimeDelta::hours(24);

    /// What the answer is sealed for: it opens nowhere else.
    #[must_use]
    pub fn place(&self) -> String {
        format!(
            "idempotency_keys.answer:{}:{}:{}:{}",
            self.scope.id(),
            self.user_id,
            self.operation,
            self.name
        )
    }
}

/// Recognises a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyHash(pub [u8; 32]);

impl BodyHash {
    /// The hash of `body`.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        Self(Sha256::digest(body).into())
    }
}

/// A request that was carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// What recognises its body.
    pub body: BodyHash,
    /// What it made.
    pub resource: Uuid,
    /// What was answered; `None` when the server was lost before it could be kept.
    pub answer: Option<Sealed>,
}

/// Remembers requests. It writes nothing but its own table; that a request was carried out is a
/// [`Write`].
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait IdempotencyStore: Send + Sync {
    /// The request of that scope, user, operation and name, if it was carried out after `since`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn find(&self, key: &IdempotencyKey, since: Timestamp) -> Result<Option<Remembered>, StoreError>;

    /// Keeps what was answered.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn keep_answer(&self, key: &IdempotencyKey, answer: &Sealed) -> Result<(), StoreError>;

    /// Forgets what was carried out before `until`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn forget(&self, until: Timestamp) -> Result<(), StoreError>;
}

/// That a request is carried out, together with what it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// This one. `Taken(IdempotencyKey)` when it was carried out already, after `since`; one that
    /// is older is replaced.
    Claim {
        /// Which.
        key: IdempotencyKey,
        /// What it makes.
        resource: Uuid,
        /// Since when requests are remembered.
        since: Timestamp,
        /// When.
        at: Timestamp,
    },
}

impl From<Write> for store::Write {
    fn from(write: Write) -> Self {
        Self::Idempotency(write)
    }
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
