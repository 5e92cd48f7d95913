//! Login sessions.

use chrono::TimeDelta;

use super::{Client, TokenHash};
use crate::{
    clock::Timestamp,
    ids::{SessionId, UserId},
};

/// A login session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The id of the session.
    pub id: SessionId,
    /// The id of the user.
    pub user_id: UserId,
    /// The hash of its token.
    pub token_hash: TokenHash,
    /// The client that logged in.
    pub client: Client,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was last extended.
    pub extended_at: Timestamp,
    /// When it expires.
    pub expires_at: Timestamp,
}

impl Session {
    /// The lifetime of an unused session.
    pub const LIFETIME: TimeDelta = TimeDelta::days(7);
    /// A session in use is extended at most this often.
    pub const EXTENDED_AT_MOST_EVERY: TimeDelta = TimeDelta::hours(1);

    /// Opens a session that begins now.
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

    /// Returns the session's new expiry if it is due to be extended.
    #[must_use]
    pub fn extension(&self, now: Timestamp) -> Option<Timestamp> {
        (now - self.extended_at >= Self::EXTENDED_AT_MOST_EVERY).then(|| now + Self::LIFETIME)
    }
}
