//! Blocks of uploads, which clients send before they deploy them.

use launchway_domain::{
    auth::Actor,
    deployments::StepError,
    sources::{BlockId, Received, StoredPart, Upload},
};

use super::{CREATE, Sources, refused};
use crate::Error;

impl Sources {
    /// Returns those of `ids` that the actor's organization has not sent, or not used for long.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `deploy:create`, [`Error::Conflict`] if the servers of this installation
    /// do not share their repositories.
    pub async fn missing_blocks(&self, actor: &Actor, ids: Vec<BlockId>) -> Result<Vec<BlockId>, Error> {
        let scope = actor.require(CREATE)?;
        self.require_one_place()?;
        self.ports.repositories.missing_blocks(scope.id(), ids).await.map_err(refused)
    }

    /// Stores the blocks of a part for the actor's organization.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a part that is damaged or too large, [`Error::Forbidden`] without the permission
    /// `deploy:create`, [`Error::Conflict`] if the servers of this installation do not share their repositories.
    pub async fn store_blocks(&self, actor: &Actor, part: Received) -> Result<StoredPart, Error> {
        let scope = actor.require(CREATE)?;
        self.require_one_place()?;
        let stored = self.ports.repositories.store_blocks(scope.id(), part).await;
        stored.map_err(invalid)
    }

    /// Returns the files of the list with this digest, to [upload](Sources::upload) them.
    ///
    /// # Errors
    /// [`Error::Conflict`] if blocks are missing, or the servers of this installation do not share their repositories;
    /// [`Error::Invalid`] for a list that is damaged or too large; [`Error::Forbidden`] without the permission
    /// `deploy:create`.
    pub async fn listed_files(&self, actor: &Actor, digest: BlockId) -> Result<Upload, Error> {
        let scope = actor.require(CREATE)?;
        self.require_one_place()?;
        let found = self.ports.repositories.file_list(scope.id(), digest).await.map_err(invalid)?;
        found.ok_or_else(|| {
            let message = "blocks of this upload are missing: ask which, send them, and repeat the request";
            Error::Conflict(message.to_owned())
        })
    }
}

/// Returns the error of a use case for that of a repository, which refuses what was sent.
pub(super) fn invalid(error: StepError) -> Error {
    match refused(error) {
        Error::Conflict(sentence) => Error::Invalid(sentence),
        error => error,
    }
}
