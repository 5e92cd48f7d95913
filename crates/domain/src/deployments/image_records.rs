//! Image records: the bytes that the images of deployments take on the engine.

use async_trait::async_trait;

use crate::{
    clock::Timestamp,
    ids::DeploymentId,
    organizations::Scope,
    quotas::Quota,
    store_error::StoreError,
    value::{InvalidValue, text_value},
};

text_value!(
    /// An image, by the engine's id: `sha256:` and 64 hexadecimal digits.
    EngineImageId,
    |raw| {
        let is_id = raw
            .strip_prefix("sha256:")
            .is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if is_id { Ok(raw) } else { Err(InvalidValue::text("the id of an image", &raw)) }
    }
);

/// An image and its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSize {
    /// The image.
    pub id: EngineImageId,
    /// All its layers by the engine, those that it shares with other images included.
    pub bytes: u64,
}

/// An image that a deployment has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageRecord {
    /// The deployment.
    pub deployment: DeploymentId,
    /// The image.
    pub image: ImageSize,
}

/// The records of the images of deployments. It writes only its own table.
///
/// An image that several deployments of an organization share counts once. Concurrent calls do not exceed a quota.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ImageRecords: Send + Sync {
    /// Returns the bytes of all images of an organization.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn used(&self, scope: Scope) -> Result<u64, StoreError>;

    /// Records the images of a deployment, and replaces its earlier records.
    ///
    /// # Errors
    /// [`StoreError::QuotaExceeded`] when `quota` has no room for those that the organization does not have
    /// yet; then nothing was recorded. [`StoreError::Stale`] when the organization has no such deployment.
    async fn record(
        &self,
        scope: Scope,
        deployment: DeploymentId,
        images: Vec<ImageSize>,
        quota: Quota,
        at: Timestamp,
    ) -> Result<(), StoreError>;

    /// Replaces the records by the images that the engine had after `at`. Records that are newer than `at` stay, and
    /// images of unknown deployments are ignored.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn synchronize(&self, found: Vec<ImageRecord>, at: Timestamp) -> Result<(), StoreError>;

    /// Deletes the records of deployments.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn forget(&self, deployments: Vec<DeploymentId>) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_image_id_is_a_whole_hash() {
        let id = format!("sha256:{}", "a".repeat(64));
        assert_eq!(id.parse::<EngineImageId>().unwrap().as_str(), id);
        for text in
            ["", "sha256:12", &"a".repeat(64), &format!("sha256:{}", "g".repeat(64)), &format!("{id}\n")]
        {
            assert!(text.parse::<EngineImageId>().is_err(), "{text}");
        }
    }
}
