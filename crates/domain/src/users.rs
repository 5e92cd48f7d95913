//! People: who they are, how they like their screen.

mod email;
mod settings;
mod user;

use async_trait::async_trait;

pub use self::{
    email::EmailAddress,
    settings::{FontFamily, FontSize, Language, Settings, SettingsChange, Theme},
    user::{User, UserKind, Username},
};
use crate::{
    clock::Timestamp,
    ids::{SettingsId, UserId},
    organizations::MembershipDetail,
    store::{self, StoreError},
};

/// A user with everything that an answer about a user embeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The user.
    pub user: User,
    /// The user's settings; absent until first used.
    pub settings: Option<Settings>,
    /// The user's memberships with their organizations, oldest first.
    pub memberships: Vec<MembershipDetail>,
}

/// Reads users. Every method sees what `commit` last made durable and no soft-deleted record.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait UserRepository: Send + Sync {
    /// The user with settings and memberships (oldest first, ties by id); `None` for an unknown id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn profile(&self, id: UserId) -> Result<Option<Profile>, StoreError>;
}

/// Changes to users and their settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A new user. `Taken(UserEmail)` when the address is in use, ignoring case.
    Insert(User),
    /// Another name. `Stale` when the user does not exist.
    Rename {
        /// Whose name.
        id: UserId,
        /// The new name.
        username: Username,
        /// When.
        at: Timestamp,
    },
    /// Changes what `changes` names and nothing else, so that two calls at once lose neither's
    /// change. Makes the row with defaults, and with the id `new_id`, when there is none yet.
    ChangeSettings {
        /// Whose settings.
        user_id: UserId,
        /// The id of the row if it has to be made.
        new_id: SettingsId,
        /// What changes; nothing only makes the row.
        changes: Vec<SettingsChange>,
        /// When.
        at: Timestamp,
    },
}

impl Write {
    /// Whether the trail has to tell of it. Settings that are made with defaults change nothing.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        !matches!(self, Self::ChangeSettings { changes, .. } if changes.is_empty())
    }
}

impl From<Write> for store::Write {
    fn from(write: Write) -> Self {
        Self::User(write)
    }
}
