//! The key by which an organization's private repositories let Launchway in.

use async_trait::async_trait;

use super::Scope;
use crate::{
    clock::Timestamp,
    ids::OrganizationId,
    secret::{Sealed, Secret},
    store::StoreError,
};

/// An organization's ssh key, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployKey {
    /// Whose.
    pub organization_id: OrganizationId,
    /// What code hosts are told: one line in OpenSSH's format.
    pub public_key: String,
    /// The rest of it, in OpenSSH's format; see [`DeployKey::place`].
    pub private_key: Sealed,
    /// Since when.
    pub created_at: Timestamp,
}

impl DeployKey {
    /// What the private key of an organization is sealed for: it opens nowhere else.
    #[must_use]
    pub fn place(organization: OrganizationId) -> String {
        format!("deploy_keys.private_key:{organization}")
    }
}

/// A fresh key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPair {
    /// One line in OpenSSH's format.
    pub public_key: String,
    /// The private key in OpenSSH's format.
    pub private_key: Secret<String>,
}

/// Makes ssh keys.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait KeyMaker: Send + Sync {
    /// A fresh Ed25519 key with `comment` behind its public part.
    ///
    /// # Errors
    /// A sentence for the log when it cannot be made.
    fn make(&self, comment: &str) -> Result<KeyPair, String>;
}

/// Reads deploy keys.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DeployKeyRepository: Send + Sync {
    /// The organization's key, if it has one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn deploy_key(&self, scope: Scope) -> Result<Option<DeployKey>, StoreError>;
}
