//! Stores uploads as commits.

use std::fs::File;

use launchway_domain::{
    deployments::{CommitHash, StepError},
    ids::{ApplicationId, OrganizationId},
    sources::{BlockId, Received, SourceRepositories as _, StoredPart, Upload, UploadCommit},
};
use launchway_system::{files, process::Invocation};

use super::{
    HostedRepositories, archive,
    blocks::{BlockStore, StoreLimits},
    commit_stream::{Limits, Refusal},
    file_list, spool, succeed,
};

/// The most parts with blocks of one organization.
const MOST_PARTS: usize = 2000;

impl HostedRepositories {
    fn limits(&self) -> Limits {
        Limits { bytes: self.limits.tree_bytes, entries: self.limits.tree_entries }
    }

    fn blocks(&self) -> BlockStore {
        let limits = StoreLimits {
            bytes: self.limits.tree_bytes.saturating_mul(2),
            blocks: self.limits.tree_entries.saturating_mul(4),
            parts: MOST_PARTS,
        };
        // Backups leave out names that begin with a dot.
        BlockStore { folder: self.root.join(".blocks"), limits }
    }

    pub(super) async fn import_upload(
        &self,
        id: ApplicationId,
        upload: Upload,
        commit: &UploadCommit,
    ) -> Result<CommitHash, StepError> {
        let path = self.make(id).await?;
        self.refuse_growth(&path).await?;
        let reference = format!("refs/launchway/import/{}", upload.sha256());
        let stream = self.stream(upload, &reference, commit).await?;
        let asked = |git: Invocation| {
            git.args(["fast-import", "--quiet", "--force", "--date-format=raw"]).input_file(stream)
        };
        let finished =
            succeed(self.run(&path, self.limits.fetch, asked).await, "git cannot store the files")?;
        let hash = String::from_utf8_lossy(&finished.answer).trim().parse::<CommitHash>();
        let hash = hash.map_err(|_odd| StepError::Retryable("git did not name the commit".to_owned()))?;
        self.move_reference(id, &reference, Some(hash.clone()), None).await?;
        self.tidy(&path).await;
        Ok(hash)
    }

    /// Returns the input of `git fast-import`.
    async fn stream(
        &self,
        upload: Upload,
        reference: &str,
        commit: &UploadCommit,
    ) -> Result<File, StepError> {
        let (store, limits, sent) = (self.blocks(), self.limits(), self.limits.source_bytes);
        let (work, reference, commit) = (self.work.clone(), reference.to_owned(), commit.clone());
        let stream = files::off_thread("read an upload", move || {
            let mut stream = spool::nameless_file(&work)?;
            let names = (reference.as_str(), &commit);
            let converted = match upload {
                Upload::Archive(archive) => archive::convert(archive.file, &mut stream, names, limits),
                Upload::Files { organization, list } => {
                    let mut blocks = store.open(organization)?;
                    file_list::convert((list.file, &mut blocks), &mut stream, names, (limits, sent))
                }
            };
            Ok(converted.map(|()| stream))
        });
        stream.await?.map_err(refused)
    }

    pub(super) async fn missing_from(
        &self,
        organization: OrganizationId,
        ids: Vec<BlockId>,
    ) -> Result<Vec<BlockId>, StepError> {
        let store = self.blocks();
        files::off_thread("list blocks", move || {
            let blocks = store.open(organization)?;
            Ok(ids.into_iter().filter(|id| !blocks.has(id)).collect())
        })
        .await
    }

    pub(super) async fn store_part(
        &self,
        organization: OrganizationId,
        part: Received,
    ) -> Result<StoredPart, StepError> {
        let store = self.blocks();
        let stored =
            files::off_thread("store blocks", move || Ok(store.store(organization, (part.file, part.bytes))));
        stored.await?.map_err(refused)
    }

    pub(super) async fn collect_list(
        &self,
        organization: OrganizationId,
        digest: BlockId,
    ) -> Result<Option<Upload>, StepError> {
        let (store, limits, work) = (self.blocks(), self.limits(), self.work.clone());
        let collected = files::off_thread("read a list of files", move || {
            let (mut file, mut blocks) = (spool::nameless_file(&work)?, store.open(organization)?);
            let collected = file_list::collect(&mut blocks, digest, &mut file, limits);
            Ok(collected.map(|bytes| bytes.map(|bytes| (file, bytes))))
        });
        let collected = collected.await?.map_err(refused)?;
        Ok(collected.map(|(file, bytes)| Upload::Files {
            organization,
            list: Received { file, bytes, sha256: digest.to_string() },
        }))
    }

    pub(super) async fn remove_unused(&self) -> Result<(), StepError> {
        let store = self.blocks();
        files::off_thread("remove unused blocks", move || store.remove_unused()).await
    }
}

fn refused(refusal: Refusal) -> StepError {
    match refusal {
        Refusal::Sentence(sentence) => StepError::Rejected(sentence),
        Refusal::Io(error) => files::fault("read an upload", &error),
    }
}
