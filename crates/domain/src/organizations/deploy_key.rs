//! The SSH key of an organization for its private repositories.

use async_trait::async_trait;

use super::Scope;
use crate::{
    clock::Timestamp,
    ids::OrganizationId,
    secret::{Sealed, Secret},
    store_error::StoreError,
};

/// An organization's SSH key, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployKey {
    /// The organization that it belongs to.
    pub organization_id: OrganizationId,
    /// The public key for code hosts: one line in OpenSSH's format.
    pub public_key: String,
    /// The private key, in OpenSSH's format; see [`DeployKey::associated_data`].
    pub private_key: Sealed,
    /// The time of creation.
    pub created_at: Timestamp,
}

impl DeployKey {
    /// Returns the associated data (AEAD) of the private key of an organization: with any other, it cannot
    /// be decrypted.
    #[must_use]
    pub fn associated_data(organization: OrganizationId) -> String {
        format!("deploy_keys.private_key:{organization}")
    }
}

/// A new key pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyPair {
    /// The public key: one line in OpenSSH's format.
    pub public_key: String,
    /// The private key in OpenSSH's format.
    pub private_key: Secret<String>,
}

/// Generates SSH keys.
#[cfg_attr(feature = "mock", mockall::automock)]
pub trait KeyMaker: Send + Sync {
    /// Generates an Ed25519 key with `comment` behind its public part.
    ///
    /// # Errors
    /// A sentence for the log if that fails.
    fn make(&self, comment: &str) -> Result<KeyPair, String>;
}

/// Reads deploy keys.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait DeployKeyRepository: Send + Sync {
    /// Returns the organization's key, if it has one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn deploy_key(&self, scope: Scope) -> Result<Option<DeployKey>, StoreError>;
}
