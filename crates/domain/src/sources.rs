//! Source that users send to this server: pushes and uploads.
//!
//! **Invariant:** a push or an upload that is deployed is [announced](SourceRepositories::begin) before a reference
//! moves, and [ended](SourceRepositories::end) after its deployment is committed. So a server that was killed in between
//! knows at its next start what is missing.

mod blocks;
mod changes;
mod detection;
mod file_list;
mod pkt_line;
mod push;
mod report;

use std::{fs::File, sync::Arc};

use async_trait::async_trait;

#[cfg(feature = "mock")]
pub use self::changes::MockChangeDetector;
#[cfg(feature = "hashes")]
pub use self::file_list::{FileList, MadeBlock};
pub use self::{
    blocks::{BlockId, BlockIds, BlockLimits, StoredPart},
    changes::{ChangeDetector, Comparison},
    detection::{Detected, MANIFEST, SourceFile, detect, is_read},
    file_list::{FileMode, InvalidFileList, ListBlock, ListedFile},
    pkt_line::{PktLine, packet, pkt_lines, progress, sideband},
    push::{InvalidPush, PushRequest, RefUpdate},
    report::Report,
};
use crate::{
    applications::Branch,
    clock::Timestamp,
    deployments::{CommitHash, Output, SourceDigest, StepError},
    idempotency::IdempotencyKey,
    ids::{ApplicationId, DeploymentId, OrganizationId},
};

/// The service that a git client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitService {
    /// Fetch and clone.
    UploadPack,
    /// Push.
    ReceivePack,
}

impl GitService {
    /// Returns the name in the protocol.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UploadPack => "git-upload-pack",
            Self::ReceivePack => "git-receive-pack",
        }
    }
}

/// A body that arrived completely, in a file without a name, which is gone when it is dropped.
#[derive(Debug)]
pub struct Received {
    /// The file, at its beginning.
    pub file: File,
    /// Its size.
    pub bytes: u64,
    /// The hexadecimal SHA-256 of its bytes.
    pub sha256: String,
}

/// Collects a body, chunk by chunk.
#[async_trait]
pub trait Spool: Send {
    /// Appends a chunk.
    ///
    /// # Errors
    /// [`StepError::Rejected`] if the body is larger than allowed, [`StepError::Retryable`] on a file system error.
    async fn write(&mut self, piece: &[u8]) -> Result<(), StepError>;

    /// Returns the complete body.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn finish(self: Box<Self>) -> Result<Received, StepError>;
}

/// A move of a reference, and the deployment of its new commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingSource {
    /// The organization of the application.
    pub organization: OrganizationId,
    /// The application.
    pub application: ApplicationId,
    /// The deployment that is committed after the reference has moved.
    pub deployment: DeploymentId,
    /// The reference, by its full name.
    pub reference: String,
    /// Its commit before; `None` if there was none.
    pub old: Option<CommitHash>,
    /// Its commit after.
    pub new: CommitHash,
    /// The name of the user, for display.
    pub by: String,
    /// The digest of an upload; `None` for a push.
    pub digest: Option<SourceDigest>,
    /// The key of the request, which is claimed with the deployment.
    pub key: Option<IdempotencyKey>,
}

/// The files of an upload.
#[derive(Debug)]
pub enum Upload {
    /// A gzipped tar archive.
    Archive(Received),
    /// A list of files, whose blocks an organization has sent.
    Files {
        /// The organization.
        organization: OrganizationId,
        /// The lines of the list. Its digest is that of the root block.
        list: Received,
    },
}

impl Upload {
    /// Returns the hexadecimal SHA-256 of the archive, or the digest of the list.
    #[must_use]
    pub fn sha256(&self) -> &str {
        match self {
            Self::Archive(sent) | Self::Files { list: sent, .. } => &sent.sha256,
        }
    }
}

/// The author and the message of the commit of an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadCommit {
    /// The name of the user.
    pub name: String,
    /// The e-mail address of the user.
    pub email: String,
    /// The time of the upload.
    pub at: Timestamp,
    /// The message.
    pub message: String,
}

/// The reference of the newest upload for a branch. It is beside the branch, so that a later push of it does not
/// conflict with uploads.
#[must_use]
pub fn upload_reference(branch: &Branch) -> String {
    format!("refs/launchway/upload/{branch}")
}

/// The reference of a branch.
#[must_use]
pub fn branch_reference(branch: &Branch) -> String {
    format!("refs/heads/{branch}")
}

/// The repositories on this server, one for each application that was pushed or uploaded.
///
/// Promises: nothing that a client sends is run, and nothing of it is written outside of its repository; received objects
/// are checked, and are visible only after all of them arrived; what is too large or takes too long is refused with a
/// sentence. A repository is created by the first call that writes to it.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait SourceRepositories: Send + Sync {
    /// Starts to collect a body.
    ///
    /// # Errors
    /// [`StepError::Rejected`] if the disk is nearly full, [`StepError::Retryable`] on a file system error.
    async fn spool(&self) -> Result<Box<dyn Spool>, StepError>;

    /// Returns the references of a repository for clients, without the header of the smart protocol; those of an empty one
    /// if there is none. `is_v2` if the client speaks version 2 of the protocol.
    ///
    /// # Errors
    /// [`StepError::Retryable`] for an error of this machine.
    async fn advertise(
        &self,
        id: ApplicationId,
        service: GitService,
        is_v2: bool,
    ) -> Result<Vec<u8>, StepError>;

    /// Answers the request of a client that fetches.
    ///
    /// # Errors
    /// [`StepError::Rejected`] for a request that git refuses, [`StepError::Retryable`] for an error of this machine.
    async fn fetch(
        &self,
        id: ApplicationId,
        request: Vec<u8>,
        is_v2: bool,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError>;

    /// Receives a push, and returns the answer of git to it.
    ///
    /// # Errors
    /// [`StepError::Rejected`] if the repository is larger than allowed, [`StepError::Retryable`] for an error of this
    /// machine.
    async fn receive(&self, id: ApplicationId, push: Received) -> Result<Vec<u8>, StepError>;

    /// Stores the files of an upload as a commit, without a reference to it.
    ///
    /// # Errors
    /// [`StepError::Rejected`] for an upload that is damaged or unsafe, or whose content is larger than allowed;
    /// [`StepError::Retryable`] for an error of this machine.
    async fn import(
        &self,
        id: ApplicationId,
        upload: Upload,
        commit: &UploadCommit,
    ) -> Result<CommitHash, StepError>;

    /// Returns those of `ids` that are not among the blocks of an organization.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn missing_blocks(
        &self,
        organization: OrganizationId,
        ids: Vec<BlockId>,
    ) -> Result<Vec<BlockId>, StepError>;

    /// Stores the blocks of a part durably, for an organization alone. A part is gzipped, and each block in it follows its
    /// length, a big-endian number of four bytes. Blocks that were not used for long make room for it.
    ///
    /// # Errors
    /// [`StepError::Rejected`] for a part that is damaged or larger than allowed, [`StepError::Retryable`] on a file system
    /// error.
    async fn store_blocks(
        &self,
        organization: OrganizationId,
        part: Received,
    ) -> Result<StoredPart, StepError>;

    /// Returns the list of files with this digest; `None` if a block of the list or of its files is missing.
    ///
    /// # Errors
    /// [`StepError::Rejected`] for a list that is damaged or larger than allowed, [`StepError::Retryable`] on a file system
    /// error.
    async fn file_list(
        &self,
        organization: OrganizationId,
        digest: BlockId,
    ) -> Result<Option<Upload>, StepError>;

    /// Removes blocks that were not used for two weeks.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn remove_unused_blocks(&self) -> Result<(), StepError>;

    /// Returns the commit of a reference; `None` if there is no such reference, or no repository.
    ///
    /// # Errors
    /// [`StepError::Retryable`] for an error of this machine.
    async fn resolve(&self, id: ApplicationId, reference: &str) -> Result<Option<CommitHash>, StepError>;

    /// Moves a reference from `old` to `new`; `None` stands for no reference. Returns false if it is elsewhere.
    ///
    /// # Errors
    /// [`StepError::Retryable`] for an error of this machine.
    async fn move_reference(
        &self,
        id: ApplicationId,
        reference: &str,
        old: Option<CommitHash>,
        new: Option<CommitHash>,
    ) -> Result<bool, StepError>;

    /// Returns the files in the top folder of a commit, with the text of those that say how it is built.
    ///
    /// # Errors
    /// [`StepError::Retryable`] for an error of this machine.
    async fn top_files(&self, id: ApplicationId, commit: &CommitHash) -> Result<Vec<SourceFile>, StepError>;

    /// Announces a move of a reference, durably.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn begin(&self, pending: &PendingSource) -> Result<(), StepError>;

    /// Ends an announcement.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn end(&self, pending: &PendingSource) -> Result<(), StepError>;

    /// Returns the announcements that were not ended. Call it at the start: what a killed git left locked in their
    /// repositories is unlocked first.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn pending(&self) -> Result<Vec<PendingSource>, StepError>;

    /// Removes the repository of an application.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn remove(&self, id: ApplicationId) -> Result<(), StepError>;

    /// Returns the applications with a repository that nobody has written to for an hour.
    ///
    /// # Errors
    /// [`StepError::Retryable`] on a file system error.
    async fn idle(&self) -> Result<Vec<ApplicationId>, StepError>;
}
