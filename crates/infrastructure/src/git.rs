//! Source code from git repositories, through the program `git`.
//!
//! **Invariant:** git knows nothing of this machine's or its user's settings, asks nobody, runs
//! nothing that a repository brings along, and speaks one protocol to one address that the
//! operator's policy allows. `command` is the one place that says so.
//!
//! **Invariant:** a cache belongs to one repository of one organization, because others may have
//! other credentials; one fetch at a time uses it.

mod cache;
mod command;
mod complaint;
mod route;
mod scratch;
mod ssh;
mod tree;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use launchway_domain::{
    applications::{GitUrl, SourcePolicy},
    deployments::{Checkout, CommitHash, GitSource, Output, Owner, SourceFetcher, StepError},
    ids::{DeploymentId, OrganizationId},
};

use tokio::sync::OnceCell;

use self::{
    cache::{Cache, Caches, Claim},
    command::Git,
    complaint::Trouble,
    route::Route,
    scratch::Scratch,
};
use crate::files;

/// Where repositories are kept, and which may be fetched.
#[derive(Debug, Clone)]
pub struct GitOptions {
    /// The folder of the caches.
    pub cache: PathBuf,
    /// The folder of the checkouts.
    pub work: PathBuf,
    /// Which repositories may be used.
    pub policy: SourcePolicy,
    /// The ssh host keys that are trusted, in OpenSSH's format; without, those of the large code
    /// hosts.
    pub known_hosts: Option<PathBuf>,
    /// How much is fetched.
    pub limits: GitLimits,
}

/// How much of this machine a repository may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitLimits {
    /// The largest file that git may write, which is what a server sends in one go.
    pub pack_bytes: u64,
    /// The most bytes that the files of a commit have together.
    pub tree_bytes: u64,
    /// The most files and folders that a commit has.
    pub tree_entries: usize,
    /// How many bytes have to be free in the file system of the checkouts before something is fetched.
    pub free_bytes: u64,
    /// How long a server may take to name its branches.
    pub answer: Duration,
    /// How long a fetch may take.
    pub fetch: Duration,
    /// How long a web server may send next to nothing.
    pub stall: Duration,
}

impl Default for GitLimits {
    fn default() -> Self {
        Self {
            pack_bytes: 1024 * 1024 * 1024,
            tree_bytes: 500 * 1024 * 1024,
            tree_entries: 100_000,
            free_bytes: 0,
            answer: Duration::from_secs(60),
            fetch: Duration::from_secs(600),
            stall: Duration::from_secs(20),
        }
    }
}

/// Fetches by the program `git`.
#[derive(Debug)]
pub struct GitFetcher {
    options: GitOptions,
    caches: Caches,
    is_checked: OnceCell<()>,
}

impl GitFetcher {
    /// Uses the folders that `options` names, and makes them if need be.
    ///
    /// # Errors
    /// [`io::Error`] when that cannot be done.
    pub fn open(mut options: GitOptions) -> io::Result<Self> {
        for folder in [&mut options.cache, &mut options.work] {
            files::make_private_folders(folder)?;
            // Git runs in folders of its own, where relative paths would mean something else.
            *folder = folder.canonicalize()?;
        }
        Ok(Self { caches: Caches::new(options.cache.clone()), options, is_checked: OnceCell::new() })
    }

    /// Removes what a process that ended too early has left. Nothing may be in use, so that this is
    /// for the start, once the data directory is locked.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the file system refuses.
    pub async fn clear_work(&self) -> Result<(), StepError> {
        let work = self.options.work.clone();
        files::off_thread("clear the folder of checkouts", move || {
            files::entries(&work)?.iter().try_for_each(|entry| files::remove(entry))
        })
        .await?;
        self.caches.remove_unfinished().await
    }

    /// Removes the cache of a repository that is no longer wanted.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the file system refuses.
    pub async fn forget_repository(
        &self,
        organization: OrganizationId,
        url: &GitUrl,
    ) -> Result<(), StepError> {
        self.caches.claim(organization, url).await.remove().await
    }

    /// A disk that is nearly full is left to what runs already.
    async fn refuse_without_room(&self) -> Result<(), StepError> {
        let (work, needed) = (self.options.work.clone(), self.options.limits.free_bytes);
        let free = files::off_thread("ask how much space is free", move || files::free_bytes(&work)).await?;
        if free >= needed {
            return Ok(());
        }
        let [free, needed] = [free, needed].map(|bytes| bytes / (1024 * 1024));
        Err(StepError::Refused(format!(
            "This machine has only {free} MiB of free disk space, and {needed} MiB have to be free before something is built."
        )))
    }

    /// Fetches, and puts the files into `scratch`. What may be the fault of a damaged cache is tried
    /// again with a new one.
    async fn bring(&self, git: &Git<'_>, wish: &Wish<'_>, claim: &Claim) -> Result<(), StepError> {
        let cache = Cache::open(git, claim, wish.commit).await?;
        match wish.fulfil(git, &cache).await {
            Err(trouble) if trouble.may_be_the_cache && cache.was_there => {
                tracing::warn!(reason = %trouble.error, "a cached repository is fetched anew");
                let cache = Cache::make(git, claim, wish.commit).await?;
                git.scratch.empty_tree().await?;
                wish.fulfil(git, &cache).await.map_err(|trouble| trouble.error)
            }
            fulfilled => fulfilled.map_err(|trouble| trouble.error),
        }
    }

    async fn route(&self, source: &GitSource) -> Result<Route, StepError> {
        self.is_checked.get_or_try_init(command::check_version).await?;
        Route::find(source, &self.options).await
    }

    fn checkout(&self, owner: &Owner) -> PathBuf {
        self.options.work.join(format!("{}-{}", owner.deployment, owner.attempt))
    }
}

/// What is to be fetched.
struct Wish<'a> {
    source: &'a GitSource,
    commit: &'a CommitHash,
    limits: &'a GitLimits,
    output: &'a dyn Output,
}

impl Wish<'_> {
    async fn fulfil(&self, git: &Git<'_>, cache: &Cache) -> Result<(), Trouble> {
        cache.fetch(git, self).await?;
        let contents = tree::list(git, cache, self).await?;
        for submodule in contents.submodules {
            self.output.write(format!("Submodule {submodule} is not fetched\n").as_bytes()).await;
        }
        tree::check_out(git, cache, self).await
    }
}

#[async_trait]
impl SourceFetcher for GitFetcher {
    async fn head(&self, source: &GitSource) -> Result<CommitHash, StepError> {
        let route = self.route(source).await?;
        let scratch = Scratch::make(&self.options.work, route.files.clone()).await?;
        let git = Git { limits: &self.options.limits, scratch: &scratch, route: &route };
        let head = git.head(source).await;
        scratch.remove().await?;
        head
    }

    async fn fetch(
        &self,
        source: &GitSource,
        commit: &CommitHash,
        owner: &Owner,
        output: Arc<dyn Output>,
    ) -> Result<Checkout, StepError> {
        self.refuse_without_room().await?;
        let (branch, url) = (&source.branch, &source.url);
        let line = format!("Fetching {branch} at {} from {}\n", commit.short(), url.as_str());
        output.write(line.as_bytes()).await;
        let route = self.route(source).await?;
        let claim = self.caches.claim(owner.organization, url).await;
        let scratch = Scratch::make(&self.options.work, route.files.clone()).await?;
        let limits = &self.options.limits;
        let git = Git { limits, scratch: &scratch, route: &route };
        let wish = Wish { source, commit, limits, output: &*output };
        let brought = self.bring(&git, &wish, &claim).await;
        match brought {
            Ok(()) => {
                let root = self.checkout(owner);
                scratch.hand_over_tree(&root).await?;
                Ok(Checkout { root })
            }
            Err(error) => {
                scratch.remove().await?;
                Err(error)
            }
        }
    }

    async fn discard(&self, deployment: DeploymentId) -> Result<(), StepError> {
        let (work, prefix) = (self.options.work.clone(), format!("{deployment}-"));
        let is_its = move |path: &Path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&prefix))
        };
        files::off_thread("remove a checkout", move || {
            files::entries(&work)?.iter().filter(|path| is_its(path)).try_for_each(|path| files::remove(path))
        })
        .await
    }
}
