//! The repositories that users push to, one bare repository for each application.
//!
//! **Invariant:** the settings of a repository are written by this module alone. It has no hook, and clients change
//! only its objects, branches and tags.

mod announcements;
mod archive;
mod blocks;
mod commit_stream;
mod file_list;
mod import;
mod locks;
mod names;
mod spool;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime},
};

use async_trait::async_trait;
use launchway_domain::{
    applications::Branch,
    deployments::{CommitHash, Output, StepError},
    ids::{ApplicationId, OrganizationId},
    sources::{
        BlockId, GitService, PendingSource, Received, SourceFile, SourceRepositories, Spool, StoredPart,
        Upload, UploadCommit, branch_reference, is_read, upload_reference,
    },
};
use launchway_system::{
    files,
    process::{Finished, Invocation, ProcessError},
};

use self::announcements::AnnouncementFiles;
use super::{
    GitLimits, GitOptions,
    command::{self, Git},
    route::Route,
    scratch::Scratch,
    tree::size,
};

/// The number of packs at which a repository is packed anew.
const MOST_PACKS: usize = 50;
/// A repository may grow to this many times the largest push.
const GROWTH: u64 = 8;
/// The largest file whose text is read to detect how source is built.
const LARGEST_TEXT: u64 = 256 * 1024;
/// The time after the last write to a repository at which it is idle.
const IDLE: Duration = Duration::from_secs(3600);
/// The settings of a repository.
const CONFIG: &str = "\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tfsync = all
[transfer]
\tfsckObjects = true
\thideRefs = refs/launchway
[receive]
\tfsckObjects = true
\tunpackLimit = 1
\tautogc = false
\tdenyDeleteCurrent = ignore
\tadvertisePushOptions = false
[receive \"fsck\"]
\tzeroPaddedFilemode = ignore
\tmissingSpaceBeforeDate = ignore
\tbadTimezone = ignore
[fastimport]
\tunpackLimit = 1
[gc]
\tauto = 0
";

/// The files that git reads from its temporary folder.
pub(super) fn files() -> Vec<(&'static str, String)> {
    vec![("gitconfig", String::new())]
}

/// The repositories in one folder.
#[derive(Debug, Clone)]
pub struct HostedRepositories {
    root: PathBuf,
    work: PathBuf,
    limits: GitLimits,
}

impl HostedRepositories {
    /// Uses the folders that `options` names, and creates them if necessary.
    ///
    /// # Errors
    /// [`io::Error`] when that fails.
    pub fn open(options: &GitOptions) -> io::Result<Self> {
        let mut opened = Self::at(options);
        for folder in [&mut opened.root, &mut opened.work] {
            files::make_private_folders(folder)?;
            *folder = folder.canonicalize()?;
        }
        Ok(opened)
    }

    /// Returns those in existing folders.
    pub(super) fn at(options: &GitOptions) -> Self {
        Self { root: options.hosted.clone(), work: options.work.clone(), limits: options.limits.clone() }
    }

    /// Returns the commit that is deployed when nobody names one: the newest upload for a branch, or else its head.
    pub(super) async fn head(&self, id: ApplicationId, branch: &Branch) -> Result<CommitHash, StepError> {
        for reference in [upload_reference(branch), branch_reference(branch)] {
            if let Some(commit) = self.resolve(id, &reference).await? {
                return Ok(commit);
            }
        }
        self.existing(id)?;
        Err(StepError::Rejected(format!("Nothing was pushed to the branch `{branch}` yet.")))
    }

    /// Returns the folder of a repository that exists.
    pub(super) fn existing(&self, id: ApplicationId) -> Result<PathBuf, StepError> {
        let path = self.path(id);
        if is_repository(&path) {
            return Ok(path);
        }
        Err(StepError::Rejected(
            "Nothing was pushed or uploaded to this application yet, or another server has its repository: servers \
             of one installation share LAUNCHWAY_REPOSITORIES_DIR."
                .to_owned(),
        ))
    }

    fn path(&self, id: ApplicationId) -> PathBuf {
        self.root.join(format!("{id}.git"))
    }

    fn announcement_files(&self) -> AnnouncementFiles {
        AnnouncementFiles(self.root.join("pending"))
    }

    /// Returns the folder of a repository, which is created if there is none.
    async fn make(&self, id: ApplicationId) -> Result<PathBuf, StepError> {
        let path = self.make_at(self.path(id)).await?;
        let (repository, age) = (path.clone(), self.limits.fetch);
        files::off_thread("remove old locks", move || locks::remove_older(&repository, age)).await?;
        Ok(path)
    }

    async fn make_at(&self, path: PathBuf) -> Result<PathBuf, StepError> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        if is_repository(&path) {
            return Ok(path);
        }
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let draft = self.root.join(format!(".draft-{}-{number}", std::process::id()));
        let folder = draft.clone();
        files::off_thread("make a repository", move || {
            files::remove(&folder)?;
            files::make_private_folder(&folder)
        })
        .await?;
        let init = ["init", "--quiet", "--bare", "--template=", "--initial-branch=main"];
        let made = self.run(&draft, self.limits.answer, |git| git.args(init)).await;
        succeed(made, "git cannot make a repository")?;
        files::off_thread("make a repository", move || {
            fs::write(draft.join("config"), CONFIG)?;
            match fs::rename(&draft, &path) {
                // Another push was faster.
                Err(_) if is_repository(&path) => files::remove(&draft)?,
                renamed => renamed?,
            }
            Ok(path)
        })
        .await
    }

    /// Runs git on the repository at `path`.
    async fn run(
        &self,
        path: &Path,
        limit: Duration,
        arguments: impl FnOnce(Invocation) -> Invocation,
    ) -> Result<Finished, ProcessError> {
        let scratch = self.scratch().await.map_err(unusable)?;
        let finished = arguments(self.git(&scratch, path, limit)).run().await;
        scratch.remove().await.map_err(unusable)?;
        finished
    }

    async fn scratch(&self) -> Result<Scratch, StepError> {
        Scratch::make(&self.work, files()).await
    }

    fn git(&self, scratch: &Scratch, path: &Path, limit: Duration) -> Invocation {
        // A pack may be larger than what was sent, because omitted bases are added to it.
        let pack_bytes = self.limits.source_bytes.saturating_mul(GROWTH);
        let limits = GitLimits { pack_bytes, ..self.limits.clone() };
        Git { limits: &limits, scratch, route: &Route::default() }.local(path, limit)
    }

    /// Refuses to add to a repository that is too large, even after it is packed anew.
    async fn refuse_growth(&self, path: &Path) -> Result<(), StepError> {
        let limit = self.limits.source_bytes.saturating_mul(GROWTH);
        if self.bytes_of(path).await? <= limit {
            return Ok(());
        }
        self.pack(path).await;
        match self.bytes_of(path).await? <= limit {
            true => Ok(()),
            false => Err(StepError::Rejected(format!(
                "The repository of this application is larger than {}: delete branches, or the application.",
                size(limit)
            ))),
        }
    }

    async fn bytes_of(&self, path: &Path) -> Result<u64, StepError> {
        let packs = path.join("objects/pack");
        files::off_thread("measure a repository", move || {
            let sizes = files::entries(&packs)?.into_iter().map(|file| {
                // A concurrent call may have removed it.
                fs::metadata(file).map_or(0, |metadata| metadata.len())
            });
            Ok(sizes.sum())
        })
        .await
    }

    /// Packs a repository with many packs anew. A failure costs space only.
    async fn tidy(&self, path: &Path) {
        let packs = files::entries(&path.join("objects/pack")).unwrap_or_default();
        let is_pack = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "pack");
        if packs.iter().filter(is_pack).count() >= MOST_PACKS {
            self.pack(path).await;
        }
    }

    async fn pack(&self, path: &Path) {
        // Objects of a commit that waits to be built may have no reference.
        let arguments = ["gc", "--quiet", "--prune=1.day.ago"];
        let packed = self.run(path, self.limits.fetch, |git| git.args(arguments)).await;
        if let Err(error) = succeed(packed, "git cannot pack a repository") {
            tracing::warn!(%error, repository = %path.display(), "repository could not be packed");
        }
    }
}

#[async_trait]
impl SourceRepositories for HostedRepositories {
    async fn spool(&self) -> Result<Box<dyn Spool>, StepError> {
        Ok(Box::new(spool::FileSpool::open(&self.work, &self.limits).await?))
    }

    async fn advertise(
        &self,
        id: ApplicationId,
        service: GitService,
        is_v2: bool,
    ) -> Result<Vec<u8>, StepError> {
        command::check_version().await?;
        let path = match is_repository(&self.path(id)) {
            true => self.path(id),
            false => self.make_at(self.root.join(".empty.git")).await?,
        };
        let name = service.as_str().trim_start_matches("git-");
        let arguments = [name, "--stateless-rpc", "--http-backend-info-refs"];
        let asked = |git: Invocation| spoken(git, is_v2).args(arguments).arg(&path);
        let finished = succeed(self.run(&path, self.limits.answer, asked).await, "git cannot list branches")?;
        Ok(finished.answer)
    }

    async fn fetch(
        &self,
        id: ApplicationId,
        request: Vec<u8>,
        is_v2: bool,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let path = self.existing(id)?;
        let scratch = self.scratch().await?;
        let asked = spoken(self.git(&scratch, &path, self.limits.fetch), is_v2);
        let asked = asked.args(["upload-pack", "--stateless-rpc", "--strict"]).arg(&path).input(request);
        let finished = asked.run_streaming(output).await;
        scratch.remove().await?;
        succeed(finished, "git cannot answer").map(drop)
    }

    async fn receive(&self, id: ApplicationId, push: Received) -> Result<Vec<u8>, StepError> {
        let path = self.make(id).await?;
        self.refuse_growth(&path).await?;
        let limit = format!("receive.maxInputSize={}", self.limits.source_bytes);
        let receive = ["-c", limit.as_str(), "receive-pack", "--stateless-rpc"];
        let asked = |git: Invocation| git.args(receive).arg(&path).input_file(push.file);
        let finished =
            succeed(self.run(&path, self.limits.fetch, asked).await, "git cannot receive the push")?;
        self.tidy(&path).await;
        Ok(finished.answer)
    }

    async fn import(
        &self,
        id: ApplicationId,
        upload: Upload,
        commit: &UploadCommit,
    ) -> Result<CommitHash, StepError> {
        self.import_upload(id, upload, commit).await
    }

    async fn missing_blocks(
        &self,
        organization: OrganizationId,
        ids: Vec<BlockId>,
    ) -> Result<Vec<BlockId>, StepError> {
        self.missing_from(organization, ids).await
    }

    async fn store_blocks(
        &self,
        organization: OrganizationId,
        part: Received,
    ) -> Result<StoredPart, StepError> {
        self.store_part(organization, part).await
    }

    async fn file_list(
        &self,
        organization: OrganizationId,
        digest: BlockId,
    ) -> Result<Option<Upload>, StepError> {
        self.collect_list(organization, digest).await
    }

    async fn remove_unused_blocks(&self) -> Result<(), StepError> {
        self.remove_unused().await
    }

    async fn resolve(&self, id: ApplicationId, reference: &str) -> Result<Option<CommitHash>, StepError> {
        let path = self.path(id);
        if !is_repository(&path) {
            return Ok(None);
        }
        let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options"];
        let commit = format!("{reference}^{{commit}}");
        let asked = |git: Invocation| git.args(arguments).arg(commit);
        let finished = self.run(&path, self.limits.answer, asked).await;
        let finished = finished.map_err(|error| StepError::failed("git cannot read a reference", error))?;
        Ok(String::from_utf8_lossy(&finished.answer).trim().parse().ok())
    }

    async fn move_reference(
        &self,
        id: ApplicationId,
        reference: &str,
        old: Option<CommitHash>,
        new: Option<CommitHash>,
    ) -> Result<bool, StepError> {
        let path = self.make(id).await?;
        let width = old.as_ref().or(new.as_ref()).map_or(40, |hash| hash.as_str().len());
        let text = |hash: &Option<CommitHash>| match hash {
            Some(hash) => hash.to_string(),
            None => "0".repeat(width),
        };
        let (before, after) = (text(&old), text(&new));
        let arguments: Vec<&str> = match (&old, &new) {
            (None, None) => return Ok(true),
            (_, None) => vec!["update-ref", "--no-deref", "-d", reference, &before],
            (_, Some(_)) => vec!["update-ref", "--no-deref", reference, &after, &before],
        };
        let finished = self.run(&path, self.limits.answer, |git| git.args(arguments)).await;
        match finished.map_err(|error| StepError::failed("git cannot move a reference", error))? {
            finished if finished.succeeded() => Ok(true),
            _ if self.resolve(id, reference).await? != old => Ok(false),
            finished => {
                let reason = finished.last_error_lines(2);
                Err(StepError::Retryable(format!("git cannot move a reference: {reason}")))
            }
        }
    }

    async fn top_files(&self, id: ApplicationId, commit: &CommitHash) -> Result<Vec<SourceFile>, StepError> {
        let path = self.existing(id)?;
        let arguments = ["ls-tree", "-l", "-z", "--full-tree", "--end-of-options", commit.as_str()];
        let listed = self.run(&path, self.limits.answer, |git| git.args(arguments)).await;
        let listed = succeed(listed, "git cannot list the files")?;
        let mut found = Vec::new();
        for entry in names::entries(&listed.answer).filter(names::Entry::is_file) {
            let mut text = None;
            if is_read(entry.name) && entry.size <= LARGEST_TEXT {
                let asked = ["cat-file", "blob", entry.object];
                let read = self.run(&path, self.limits.answer, |git| git.args(asked)).await;
                text = String::from_utf8(succeed(read, "git cannot read a file")?.answer).ok();
            }
            found.push(SourceFile { name: entry.name.to_owned(), text });
        }
        Ok(found)
    }

    async fn begin(&self, pending: &PendingSource) -> Result<(), StepError> {
        self.announcement_files().write(pending).await
    }

    async fn end(&self, pending: &PendingSource) -> Result<(), StepError> {
        self.announcement_files().remove(pending.deployment).await
    }

    async fn pending(&self) -> Result<Vec<PendingSource>, StepError> {
        let pending = self.announcement_files().list().await?;
        for repository in pending.iter().map(|one| self.path(one.application)) {
            files::off_thread("remove the locks of an earlier run", move || locks::remove_left(&repository))
                .await?;
        }
        Ok(pending)
    }

    async fn remove(&self, id: ApplicationId) -> Result<(), StepError> {
        let path = self.path(id);
        files::off_thread("remove a repository", move || files::remove(&path)).await
    }

    async fn idle(&self) -> Result<Vec<ApplicationId>, StepError> {
        let root = self.root.clone();
        files::off_thread("list repositories", move || {
            let ids = files::entries(&root)?.into_iter().filter_map(|path| {
                let name = path.file_name()?.to_str()?;
                let id = name.strip_suffix(".git")?.parse().ok()?;
                is_idle(&path).then_some(id)
            });
            Ok(ids.collect())
        })
        .await
    }
}

/// Returns the call with the version of the protocol that the client speaks.
fn spoken(git: Invocation, is_v2: bool) -> Invocation {
    if is_v2 { git.env("GIT_PROTOCOL", "version=2") } else { git }
}

fn is_repository(path: &Path) -> bool {
    path.join("HEAD").exists() && path.join("config").exists()
}

fn is_idle(path: &Path) -> bool {
    let folders = [path.to_owned(), path.join("objects/pack"), path.join("refs/heads")];
    let changes = folders.iter().filter_map(|folder| fs::metadata(folder).ok()?.modified().ok());
    let age = changes.max().and_then(|last| SystemTime::now().duration_since(last).ok());
    age.is_some_and(|age| age > IDLE)
}

fn unusable(error: StepError) -> ProcessError {
    ProcessError::Io("git".to_owned(), io::Error::other(error))
}

/// Returns the output of a call, or an error that says what failed.
fn succeed(finished: Result<Finished, ProcessError>, what: &'static str) -> Result<Finished, StepError> {
    match finished {
        Ok(finished) if finished.succeeded() => Ok(finished),
        Ok(finished) => {
            let reason = finished.last_error_lines(3).replace(char::is_control, " ");
            Err(StepError::Rejected(format!("{what}: {reason}")))
        }
        Err(ProcessError::TookTooLong(_, limit)) => {
            Err(StepError::Rejected(format!("{what}: it took longer than {} seconds", limit.as_secs())))
        }
        Err(error) => Err(StepError::failed(what, error)),
    }
}
