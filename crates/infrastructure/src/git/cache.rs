//! Caches of repositories, so that the next fetch transfers only new objects.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use data_encoding::HEXLOWER;
use launchway_domain::{
    applications::GitUrl,
    deployments::{CommitHash, StepError},
    ids::OrganizationId,
};
use launchway_system::{files, process::Finished};
use sha2::{Digest as _, Sha256};
use tokio::sync::OwnedMutexGuard;

use super::{
    FetchRequest,
    command::{Git, git_dir, succeeded},
    errors::GitError,
};

/// The most fetches of a cache before it is recreated: it is never garbage-collected.
const MOST_PACKS: usize = 50;
/// The file that marks a cache with an unfinished fetch.
const UNFINISHED: &str = "unfinished";

type Turns = HashMap<PathBuf, Arc<tokio::sync::Mutex<()>>>;

/// The folder of all caches, and the lock of each.
#[derive(Debug)]
pub(super) struct Caches {
    root: PathBuf,
    turns: Mutex<Turns>,
}

impl Caches {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root, turns: Mutex::default() }
    }

    /// Waits until the cache of a repository is free, and locks it.
    pub(super) async fn claim(&self, organization: OrganizationId, url: &GitUrl) -> Claim {
        let folder = self.root.join(hash(&format!("{organization}\n{}", url.as_str())));
        let turn = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            turns.entry(folder.clone()).or_default().clone()
        };
        Claim { folder, _turn: Arc::new(turn.lock_owned().await) }
    }

    /// Removes the caches with an unfinished fetch.
    pub(super) async fn remove_unfinished(&self) -> Result<(), StepError> {
        let root = self.root.clone();
        files::off_thread("remove unfinished fetches", move || {
            let all = files::entries(&root)?;
            let mut unfinished = all.iter().filter(|cache| cache.join(UNFINISHED).exists());
            unfinished.try_for_each(|cache| files::remove(cache))
        })
        .await
    }
}

/// The lock on a cache, held as long as there is a copy of it. Work on files continues when its caller has
/// gone, and holds a copy.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    folder: PathBuf,
    _turn: Arc<OwnedMutexGuard<()>>,
}

impl Claim {
    /// Removes the cache.
    pub(super) async fn remove(&self) -> Result<(), StepError> {
        let claim = self.clone();
        files::off_thread("remove a cached repository", move || files::remove(&claim.folder)).await
    }
}

/// The cache of one repository of one organization.
#[derive(Debug)]
pub(super) struct Cache {
    claim: Claim,
    /// True if an earlier fetch created it.
    pub(super) was_there: bool,
}

impl Cache {
    /// Opens the existing cache if it is usable, or creates a new one.
    pub(super) async fn open(git: &Git<'_>, claim: &Claim, commit: &CommitHash) -> Result<Self, StepError> {
        let looked_at = claim.clone();
        let is_good =
            files::off_thread("look at a cached repository", move || Ok(is_good(&looked_at.folder)));
        if is_good.await? {
            Ok(Self { claim: claim.clone(), was_there: true })
        } else {
            Self::make(git, claim, commit).await
        }
    }

    /// Creates a new cache, replacing an existing one.
    pub(super) async fn make(git: &Git<'_>, claim: &Claim, commit: &CommitHash) -> Result<Self, StepError> {
        let fresh = claim.clone();
        files::off_thread("make a cache for a repository", move || {
            files::remove(&fresh.folder)?;
            files::make_private_folder(&fresh.folder)?;
            // Until the first fetch has ended there is nothing to use.
            fs::write(fresh.folder.join(UNFINISHED), "")
        })
        .await?;
        let format = if commit.as_str().len() == 64 { "sha256" } else { "sha1" };
        let made = git
            .local(&claim.folder, git.limits.answer)
            .args(["init", "--quiet", "--bare", "--template=", &format!("--object-format={format}")])
            .run()
            .await;
        match made {
            Ok(finished) if finished.succeeded() => Ok(Self { claim: claim.clone(), was_there: false }),
            Ok(finished) => Err(StepError::Retryable(format!(
                "git cannot make a cache: {}",
                finished.last_error_lines(2)
            ))),
            Err(error) => Err(StepError::failed("git cannot make a cache", error)),
        }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.claim.folder
    }

    /// Fetches the commit, unless it is in the cache.
    pub(super) async fn fetch(&self, git: &Git<'_>, request: &FetchRequest<'_>) -> Result<(), GitError> {
        let place = format!("refs/deploy/{}", hash(request.source.branch.as_str()));
        if self.was_there && self.has_fetched(&place, request.commit).await? {
            return Ok(());
        }
        // By its hash: the branch may have moved since it was listed. Old servers serve only the heads of
        // branches.
        let by_hash = self.fetch_into(git, request, &format!("+{}:{place}", request.commit)).await;
        match by_hash {
            Err(failure) if failure.is_unknown_commit => {}
            fetched => return fetched,
        }
        let by_name = format!("+{}:{place}", request.source.branch.reference());
        match self.fetch_into(git, request, &by_name).await {
            Ok(()) if self.commit_at(git, &place).await.as_ref() == Some(request.commit) => Ok(()),
            Ok(()) | Err(GitError { is_unknown_commit: true, .. }) => {
                let (commit, branch) = (request.commit.short(), &request.source.branch);
                Err(GitError::refused(format!(
                    "{} no longer gives commit {commit}, because the branch `{branch}` has moved: \
                     deploy again to get what it is at now.",
                    request.source.url.as_str()
                )))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Fetches a commit by its hash, beside the newest one of its branch.
    pub(super) async fn fetch_earlier(
        &self,
        git: &Git<'_>,
        request: &FetchRequest<'_>,
    ) -> Result<(), GitError> {
        let place = format!("refs/compared/{}", hash(request.source.branch.as_str()));
        self.fetch_into(git, request, &format!("+{}:{place}", request.commit)).await
    }

    async fn fetch_into(
        &self,
        git: &Git<'_>,
        request: &FetchRequest<'_>,
        what: &str,
    ) -> Result<(), GitError> {
        let claim = self.claim.clone();
        let begin = move || fs::write(claim.folder.join(UNFINISHED), "");
        files::off_thread("write to a cached repository", begin).await?;
        let finished = git
            .remote(git.limits.fetch)
            .arg(git_dir(self.folder()))
            .args(["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--force"])
            .args(["--no-write-fetch-head", "--no-auto-maintenance", "--no-show-forced-updates", "--"])
            .arg(&git.route.url)
            .arg(what)
            .run()
            .await;
        let (claim, has_ended) = (self.claim.clone(), finished.is_ok());
        files::off_thread("tidy a cached repository", move || {
            if has_ended {
                remove_half_packs(&claim.folder)?;
                files::remove(&claim.folder.join(UNFINISHED))
            } else {
                // Git was killed, and locks and large files may be left.
                files::remove(&claim.folder)
            }
        })
        .await?;
        succeeded(finished, request.source).map(drop)
    }

    /// Returns whether the last fetch of a branch fetched `commit`, as far as is known without git: running
    /// it takes as long as an empty fetch.
    async fn has_fetched(&self, place: &str, commit: &CommitHash) -> Result<bool, StepError> {
        let (file, commit) = (self.folder().join(place), commit.clone());
        files::off_thread("look at a cached repository", move || {
            Ok(fs::read_to_string(file).is_ok_and(|text| text.trim() == commit.as_str()))
        })
        .await
    }

    async fn commit_at(&self, git: &Git<'_>, place: &str) -> Option<CommitHash> {
        let asked = git
            .local(self.folder(), git.limits.answer)
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
            .arg(format!("{place}^{{commit}}"));
        let finished = asked.run().await.ok().filter(Finished::succeeded)?;
        String::from_utf8(finished.answer).ok()?.trim().parse().ok()
    }
}

fn is_good(folder: &Path) -> bool {
    if !folder.join("HEAD").exists() || folder.join(UNFINISHED).exists() {
        return false;
    }
    let packs = files::entries(&folder.join("objects/pack")).unwrap_or_default();
    let is_pack = |path: &&PathBuf| path.extension().is_some_and(|extension| extension == "pack");
    packs.iter().filter(is_pack).count() < MOST_PACKS
}

/// Removes the incomplete packs of a failed fetch, which are never read.
fn remove_half_packs(folder: &Path) -> io::Result<()> {
    let is_half =
        |path: &&PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("tmp_"));
    let packs = files::entries(&folder.join("objects/pack")).unwrap_or_default();
    packs.iter().filter(is_half).try_for_each(|path| files::remove(path))
}

fn hash(text: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(text))
}
