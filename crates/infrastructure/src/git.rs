//! Source code from git repositories, through the program `git`.
//!
//! **Invariant:** git does not read the settings of this machine or its user, never prompts, runs nothing
//! that a repository includes, and uses one protocol to one address that the operator's policy allows. Only
//! `command` sets this up.
//!
//! **Invariant:** a cache belongs to one repository of one organization, because others may have other
//! credentials; one fetch at a time uses it.

mod cache;
mod changes;
mod command;
mod errors;
mod hosted;
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
    ids::{ApplicationId, DeploymentId, OrganizationId},
};

use launchway_system::files;
use tokio::sync::OnceCell;

pub use self::hosted::HostedRepositories;
use self::{
    cache::{Cache, Caches, Claim},
    command::Git,
    errors::GitError,
    route::Route,
    scratch::Scratch,
};

/// The options of fetching repositories.
#[derive(Debug, Clone)]
pub struct GitOptions {
    /// The folder of the caches.
    pub cache: PathBuf,
    /// The folder of the checkouts.
    pub work: PathBuf,
    /// The repositories that may be used.
    pub policy: SourcePolicy,
    /// The trusted ssh host keys, in OpenSSH's format; those of the large code hosts if `None`.
    pub known_hosts: Option<PathBuf>,
    /// The folder of the repositories that users push to.
    pub hosted: PathBuf,
    /// The limits of fetching.
    pub limits: GitLimits,
}

/// The resource limits of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitLimits {
    /// The largest file that git may write, which bounds a single pack from a server.
    pub pack_bytes: u64,
    /// The most bytes of all files of a commit.
    pub tree_bytes: u64,
    /// The most files and folders of a commit.
    pub tree_entries: usize,
    /// The most bytes of a push, and of an uploaded archive.
    pub source_bytes: u64,
    /// The bytes that must be free in the file system of the checkouts before a fetch.
    pub free_bytes: u64,
    /// The timeout of listing the branches of a server.
    pub answer: Duration,
    /// The timeout of a fetch.
    pub fetch: Duration,
    /// The time that a web server may send next to nothing.
    pub stall: Duration,
}

impl Default for GitLimits {
    fn default() -> Self {
        Self {
            pack_bytes: 1024 * 1024 * 1024,
            tree_bytes: 500 * 1024 * 1024,
            tree_entries: 100_000,
            source_bytes: 256 * 1024 * 1024,
            free_bytes: 0,
            answer: Duration::from_secs(60),
            fetch: Duration::from_secs(600),
            stall: Duration::from_secs(20),
        }
    }
}

/// Fetches with the program `git`.
#[derive(Debug)]
pub struct GitFetcher {
    options: GitOptions,
    caches: Caches,
    is_checked: OnceCell<()>,
}

impl GitFetcher {
    /// Uses the folders that `options` names, and creates them if necessary.
    ///
    /// # Errors
    /// [`io::Error`] when that fails.
    pub fn open(mut options: GitOptions) -> io::Result<Self> {
        for folder in [&mut options.cache, &mut options.work, &mut options.hosted] {
            files::make_private_folders(folder)?;
            // Git runs in folders of its own, where relative paths would mean something else.
            *folder = folder.canonicalize()?;
        }
        Ok(Self { caches: Caches::new(options.cache.clone()), options, is_checked: OnceCell::new() })
    }

    /// Removes the remains of a process that ended early. Nothing may be in use, so call this at the start,
    /// after the data directory is locked.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when the file system fails.
    pub async fn remove_work_folders(&self) -> Result<(), StepError> {
        let work = self.options.work.clone();
        files::off_thread("clear the folder of checkouts", move || {
            files::entries(&work)?.iter().try_for_each(|entry| files::remove(entry))
        })
        .await?;
        self.caches.remove_unfinished().await
    }

    /// Removes the cache of a repository that is no longer needed.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when the file system fails.
    pub async fn forget_repository(
        &self,
        organization: OrganizationId,
        url: &GitUrl,
    ) -> Result<(), StepError> {
        self.caches.claim(organization, url).await.remove().await
    }

    /// Rejects a fetch on a nearly full disk, whose space is left to running applications.
    async fn refuse_without_room(&self) -> Result<(), StepError> {
        let (work, needed) = (self.options.work.clone(), self.options.limits.free_bytes);
        let free = files::off_thread("ask how much space is free", move || files::free_bytes(&work)).await?;
        if free >= needed {
            return Ok(());
        }
        let [free, needed] = [free, needed].map(|bytes| bytes / (1024 * 1024));
        Err(StepError::Rejected(format!(
            "This machine has only {free} MiB of free disk space, and {needed} MiB have to be free before something is built."
        )))
    }

    /// Fetches, and writes the files to `scratch`. Errors that may come from a damaged cache are retried
    /// with a new one.
    async fn bring(&self, git: &Git<'_>, request: &FetchRequest<'_>, claim: &Claim) -> Result<(), StepError> {
        let cache = Cache::open(git, claim, request.commit).await?;
        match request.fulfil(git, &cache).await {
            Err(failure) if failure.may_be_the_cache && cache.was_there => {
                tracing::warn!(reason = %failure.error, "repository cache discarded");
                let cache = Cache::make(git, claim, request.commit).await?;
                git.scratch.empty_tree().await?;
                request.fulfil(git, &cache).await.map_err(|failure| failure.error)
            }
            fulfilled => fulfilled.map_err(|failure| failure.error),
        }
    }

    /// Writes the files of a commit that was pushed to this server.
    async fn fetch_hosted(
        &self,
        id: ApplicationId,
        (source, commit): (&GitSource, &CommitHash),
        owner: &Owner,
        output: &dyn Output,
    ) -> Result<Checkout, StepError> {
        if id != owner.application {
            let url = source.url.as_str();
            return Err(StepError::Rejected(format!("{url} is the repository of another application.")));
        }
        let repository = self.hosted().existing(id)?;
        let scratch = Scratch::make(&self.options.work, hosted::files()).await?;
        let limits = &self.options.limits;
        let git = Git { limits, scratch: &scratch, route: &Route::default() };
        let request = FetchRequest { source, commit, limits, output };
        match request.check_out(&git, &repository).await {
            Ok(()) => {
                let root = self.checkout(owner);
                scratch.hand_over_tree(&root).await?;
                Ok(Checkout { root })
            }
            Err(failure) => {
                scratch.remove().await?;
                Err(failure.error)
            }
        }
    }

    fn hosted(&self) -> HostedRepositories {
        HostedRepositories::at(&self.options)
    }

    async fn route(&self, source: &GitSource) -> Result<Route, StepError> {
        self.is_checked.get_or_try_init(command::check_version).await?;
        Route::find(source, &self.options).await
    }

    fn checkout(&self, owner: &Owner) -> PathBuf {
        self.options.work.join(format!("{}-{}", owner.deployment, owner.attempt))
    }
}

/// The commit to fetch.
struct FetchRequest<'a> {
    source: &'a GitSource,
    commit: &'a CommitHash,
    limits: &'a GitLimits,
    output: &'a dyn Output,
}

impl FetchRequest<'_> {
    async fn fulfil(&self, git: &Git<'_>, cache: &Cache) -> Result<(), GitError> {
        cache.fetch(git, self).await?;
        self.check_out(git, cache.folder()).await
    }

    /// Writes the files of the commit, which is in `repository`.
    async fn check_out(&self, git: &Git<'_>, repository: &Path) -> Result<(), GitError> {
        let contents = tree::list(git, repository, self).await?;
        for submodule in contents.submodules {
            self.output.write(format!("Submodule {submodule} is not fetched\n").as_bytes()).await;
        }
        tree::check_out(git, repository, self).await
    }
}

#[async_trait]
impl SourceFetcher for GitFetcher {
    async fn head(&self, source: &GitSource) -> Result<CommitHash, StepError> {
        if let Some(id) = source.url.hosted_for() {
            return self.hosted().head(id, &source.branch).await;
        }
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
        if let Some(id) = url.hosted_for() {
            return self.fetch_hosted(id, (source, commit), owner, &*output).await;
        }
        let route = self.route(source).await?;
        let claim = self.caches.claim(owner.organization, url).await;
        let scratch = Scratch::make(&self.options.work, route.files.clone()).await?;
        let limits = &self.options.limits;
        let git = Git { limits, scratch: &scratch, route: &route };
        let request = FetchRequest { source, commit, limits, output: &*output };
        let brought = self.bring(&git, &request, &claim).await;
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
