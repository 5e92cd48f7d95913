//! Compares the files of two commits.

use std::path::Path;

use async_trait::async_trait;
use launchway_domain::{
    applications::WatchPaths,
    deployments::{CommitHash, Output, StepError},
    sources::{ChangeDetector, Comparison},
};
use launchway_system::{
    files,
    output::DiscardedOutput,
    process::{Finished, ProcessError},
};

use super::{
    FetchRequest, GitFetcher,
    cache::{Cache, Claim},
    command::{Git, succeeded},
    errors::{GitError, explain},
    hosted,
    route::Route,
    scratch::Scratch,
};

/// The file with the patterns, in the temporary folder of the call.
const PATTERNS: &str = "patterns";

#[async_trait]
impl ChangeDetector for GitFetcher {
    async fn touches(&self, comparison: &Comparison) -> Result<Option<bool>, StepError> {
        let limits = &self.options.limits;
        if let Some(id) = comparison.source.url.hosted_for() {
            let repository = self.hosted().existing(id)?;
            let scratch = Scratch::make(&self.options.work, hosted::files()).await?;
            let git = Git { limits, scratch: &scratch, route: &Route::default() };
            let compared = compare(&git, &repository, comparison).await;
            scratch.remove().await?;
            return compared.map_err(|failure| failure.error);
        }
        self.refuse_without_room().await?;
        let route = self.route(&comparison.source).await?;
        let claim = self.caches.claim(comparison.organization, &comparison.source.url).await;
        let scratch = Scratch::make(&self.options.work, route.files.clone()).await?;
        let git = Git { limits, scratch: &scratch, route: &route };
        let compared = self.compare_fetched(&git, comparison, &claim).await;
        scratch.remove().await?;
        compared
    }
}

impl GitFetcher {
    /// Fetches what is missing of both commits, and compares them. Errors that may come from a damaged cache are retried
    /// with a new one.
    async fn compare_fetched(
        &self,
        git: &Git<'_>,
        comparison: &Comparison,
        claim: &Claim,
    ) -> Result<Option<bool>, StepError> {
        let cache = Cache::open(git, claim, &comparison.new).await?;
        let compared = match compare_in(git, &cache, comparison).await {
            Err(failure) if failure.may_be_the_cache && cache.was_there => {
                tracing::warn!(reason = %failure.error, "repository cache discarded");
                let cache = Cache::make(git, claim, &comparison.new).await?;
                compare_in(git, &cache, comparison).await
            }
            compared => compared,
        };
        compared.map_err(|failure| failure.error)
    }
}

async fn compare_in(git: &Git<'_>, cache: &Cache, comparison: &Comparison) -> Result<Option<bool>, GitError> {
    let request = |commit| FetchRequest {
        source: &comparison.source,
        commit,
        limits: git.limits,
        output: &DiscardedOutput as &dyn Output,
    };
    // The newer one as a deployment fetches it, which then finds it in the cache.
    cache.fetch(git, &request(&comparison.new)).await?;
    if !has(git, cache.folder(), &comparison.old).await {
        match cache.fetch_earlier(git, &request(&comparison.old)).await {
            Err(failure) if failure.is_unknown_commit => return Ok(None),
            fetched => fetched?,
        }
    }
    compare(git, cache.folder(), comparison).await
}

/// Compares two commits in `repository`.
async fn compare(
    git: &Git<'_>,
    repository: &Path,
    comparison: &Comparison,
) -> Result<Option<bool>, GitError> {
    let Comparison { old, new, source, watched, .. } = comparison;
    if !has(git, repository, old).await {
        return Ok(None);
    }
    let asked = git
        .local(repository, git.limits.answer)
        // Without renames, so that both names of a file count.
        .args(["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-commit-id", "--end-of-options"])
        .args([old.as_str(), new.as_str()]);
    let changed = listed(asked.run().await, comparison)?;
    let changed = succeeded(Ok(changed), source)?.answer;
    if changed.is_empty() {
        return Ok(Some(false));
    }
    Ok(Some(matches(git, repository, (changed, watched), comparison).await?))
}

/// Returns whether one of the paths matches the patterns. Git decides: it reads them as it reads `.gitignore`.
async fn matches(
    git: &Git<'_>,
    repository: &Path,
    (paths, watched): (Vec<u8>, &WatchPaths),
    comparison: &Comparison,
) -> Result<bool, GitError> {
    let (file, lines) = (git.scratch.folder().join(PATTERNS), watched.lines());
    let written = file.clone();
    files::off_thread("write the patterns of watched paths", move || {
        files::remove(&written)?;
        files::write_private_file(&written, &lines)
    })
    .await?;
    let mut setting = std::ffi::OsString::from("core.excludesFile=");
    setting.push(&file);
    // The work tree is empty, so that no file of a repository is read.
    let mut tree = std::ffi::OsString::from("--work-tree=");
    tree.push(git.scratch.tree());
    // A path that begins with a colon would have a special meaning.
    let paths: Vec<u8> =
        paths.split_inclusive(|byte| *byte == 0).flat_map(|path| [b"./".as_slice(), path].concat()).collect();
    let asked = git
        .local(repository, git.limits.answer)
        .arg(tree)
        .arg("-c")
        .arg(setting)
        .args(["check-ignore", "--no-index", "--stdin", "-z"])
        .input(paths);
    let finished = listed(asked.run().await, comparison)?;
    match finished.status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => succeeded(Ok(finished), &comparison.source).map(|_| false),
    }
}

/// Returns whether a commit is in `repository`.
async fn has(git: &Git<'_>, repository: &Path, commit: &CommitHash) -> bool {
    let asked =
        git.local(repository, git.limits.answer).args(["cat-file", "-e"]).arg(format!("{commit}^{{tree}}"));
    asked.run().await.is_ok_and(|finished| finished.succeeded())
}

/// Returns the output of a call, or an error if it is longer than can be read.
fn listed(finished: Result<Finished, ProcessError>, comparison: &Comparison) -> Result<Finished, GitError> {
    finished.map_err(|error| match error {
        ProcessError::AnsweredTooMuch(_) => {
            let (old, new) = (comparison.old.short(), comparison.new.short());
            GitError::refused(format!("More paths differ between {old} and {new} than can be listed."))
        }
        error => explain(Err(error), &comparison.source),
    })
}
