//! Sessions: what a login opens.

use chrono::TimeDelta;

use super::{Client, TokenHash};
use crate::{
    clock::Timestamp,
    ids::{SessionId, UserId},
};

/// A login that lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Which.
    pub id: SessionId,
    /// Whose.
    pub user_id: UserId,
    /// What recognises its token.
    pub token_hash: TokenHash,
    /// Where the login came from.
    pub client: Client,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was last extended.
    pub extended_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Timestamp,
}

impl Session {
    /// How long an unused session lasts.
    pub const LIFETIME: TimeDelta = TimeDelta::days(7);
    /// A session in use is extended at most this often.
    pub const EXTENDED_AT_MOST_EVERY: TimeDelta = TimeDelta::hours(1);

    /// A session that begins now.
    #[must_use]
    pub fn open(
        id: SessionId,
        user_id: UserId,
        token_hash: TokenHash,
        client: Client,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            user_id,
            token_hash,
            client,
            created_at: now,
            extended_at: now,
            expires_at: now + Self::LIFETIME,
        }
    }

    /// The session's new end if it is due to be extended.
    #[must_use]
    pub fn extension(&self, now: Timestamp) -> Option<Timestamp> {
        (now - self.extended_at >= Self::EXTENDED_AT_MOST_EVERY).then(|| now + Self::LIFETIME)
    }
}
