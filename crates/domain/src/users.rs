//! Users and their settings.

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
    store_error::StoreError,
};

/// A user with the data that API responses embed.
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
    /// Returns the user with settings and memberships (oldest first, ties by id); `None` for an unknown id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn profile(&self, id: UserId) -> Result<Option<Profile>, StoreError>;
}

/// Changes to users and their settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Inserts a user. `Taken(UserEmail)` if the address is in use, ignoring case.
    Insert(User),
    /// Changes the name of a user. `Stale` if the user does not exist.
    Rename {
        /// The id of the user.
        id: UserId,
        /// The new name.
        username: Username,
        /// The time of the change.
        at: Timestamp,
    },
    /// Changes only the settings in `changes`, so that concurrent calls keep each other's changes. Creates
    /// the row with defaults, and with the id `new_id`, if there is none yet.
    ChangeSettings {
        /// The id of the user.
        user_id: UserId,
        /// The id of the row if it is created.
        new_id: SettingsId,
        /// The changes; empty to create the row only.
        changes: Vec<SettingsChange>,
        /// The time of the change.
        at: Timestamp,
    },
}

impl Write {
    /// Returns whether the change requires an entry in the audit log. Creating settings with defaults
    /// changes nothing.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        !matches!(self, Self::ChangeSettings { changes, .. } if changes.is_empty())
    }
}
