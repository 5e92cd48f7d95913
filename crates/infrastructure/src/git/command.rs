//! The invocation of git.
//!
//! **Invariant:** only this module starts git. A secret reaches it through the environment, or through a
//! file in a folder that is removed with the call, never through a command line.

use std::{ffi::OsString, path::Path, time::Duration};

use launchway_domain::deployments::{CommitHash, GitSource, StepError};
use launchway_system::process::{Finished, Invocation};

use super::{
    GitLimits,
    errors::{GitError, explain},
    route::Route,
    scratch::Scratch,
};

/// Settings of every call, which override those of the machine and the repository.
const SETTINGS: &[(&str, &str)] = &[
    // Nothing that a repository or this machine includes is run.
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.attributesFile", "/dev/null"),
    ("init.templateDir", ""),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("safe.bareRepository", "explicit"),
    // Git never prompts.
    ("credential.helper", ""),
    ("core.askPass", ""),
    // No process continues after the call, and every fetch leaves one file.
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("fetch.unpackLimit", "1"),
    ("fetch.writeCommitGraph", "false"),
    // Received objects are checked. The exceptions are harmless mistakes of old programs.
    ("transfer.fsckObjects", "true"),
    ("fetch.fsck.zeroPaddedFilemode", "ignore"),
    ("fetch.fsck.missingSpaceBeforeDate", "ignore"),
    ("fetch.fsck.badTimezone", "ignore"),
    ("core.protectNTFS", "true"),
    ("core.protectHFS", "true"),
    // Only the checked address is connected to.
    ("http.followRedirects", "false"),
    ("http.proxy", ""),
    ("http.lowSpeedLimit", "1024"),
    ("advice.detachedHead", "false"),
    ("init.defaultBranch", "main"),
];

/// The environment of every call, in addition to its settings.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C.UTF-8"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "/bin/false"),
    ("SSH_ASKPASS", "/bin/false"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    ("GIT_LFS_SKIP_SMUDGE", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    // Git gives this text to a shell. It is always the same: the rest is in the file it names.
    ("GIT_SSH_COMMAND", "ssh -F ./ssh_config"),
    ("GIT_SSH_VARIANT", "ssh"),
];

/// The oldest version that can be given the address of a host name. Older ones would resolve it again, and
/// might get another address than the one that was checked.
const OLDEST: (u32, u32) = (2, 37);

/// The address space limit of git: packs are mapped whole.
const MEMORY: u64 = 4 * 1024 * 1024 * 1024;

/// Git for one repository.
pub(super) struct Git<'a> {
    pub(super) limits: &'a GitLimits,
    pub(super) scratch: &'a Scratch,
    pub(super) route: &'a Route,
}

impl Git<'_> {
    /// Returns the commit at the head of the branch of `source`.
    pub(super) async fn head(&self, source: &GitSource) -> Result<CommitHash, StepError> {
        let name = format!("refs/heads/{}", source.branch);
        let heads = ["ls-remote", "--quiet", "--exit-code", "--heads", "--"];
        let asked = self.remote(self.limits.answer).args(heads).arg(&self.route.url).arg(&name);
        let finished = asked.run().await;
        let nothing = finished.as_ref().is_ok_and(|finished| finished.status.code() == Some(2));
        if nothing {
            return Err(self.without_branch(source).await);
        }
        let finished = succeeded(finished, source).map_err(|failure| failure.error)?;
        // Patterns also match the ends of names: `refs/heads/a/refs/heads/main`.
        let text = String::from_utf8_lossy(&finished.answer);
        let mut lines = text.lines().filter_map(|line| line.split_once('\t'));
        let hash = lines.find_map(|(hash, found)| (found == name).then_some(hash));
        match hash.map(str::parse) {
            Some(Ok(hash)) => Ok(hash),
            Some(Err(_)) => Err(StepError::Rejected(format!("{} is not a git server.", source.url.as_str()))),
            None => Err(no_branch(source)),
        }
    }

    async fn without_branch(&self, source: &GitSource) -> StepError {
        let any = self.remote(self.limits.answer).args(["ls-remote", "--quiet", "--heads", "--"]);
        match any.arg(&self.route.url).run().await {
            Ok(finished) if finished.succeeded() && finished.answer.is_empty() => {
                StepError::Rejected(format!("The repository {} has no commits yet.", source.url.as_str()))
            }
            _ => no_branch(source),
        }
    }

    /// A call that connects to the repository.
    pub(super) fn remote(&self, limit: Duration) -> Invocation {
        let stall = self.limits.stall.as_secs().max(1).to_string();
        let mut settings = settings();
        settings.push(("http.lowSpeedTime".into(), stall.into()));
        settings
            .extend(self.route.settings.iter().map(|(name, value)| ((*name).into(), value.clone().into())));
        let started = self.started(limit, settings).env("GIT_ALLOW_PROTOCOL", self.route.protocol);
        self.route.environment.iter().fold(started, |started, (name, value)| started.env(name, value))
    }

    /// A call without a connection.
    pub(super) fn local(&self, cache: &Path, limit: Duration) -> Invocation {
        self.started(limit, settings()).env("GIT_ALLOW_PROTOCOL", "").arg(git_dir(cache))
    }

    fn started(&self, limit: Duration, settings: Vec<(OsString, OsString)>) -> Invocation {
        let limits = [
            "prlimit".to_owned(),
            format!("--fsize={}", self.limits.pack_bytes),
            format!("--cpu={}", limit.as_secs().max(1)),
            format!("--as={MEMORY}"),
            "--core=0".to_owned(),
            "--".to_owned(),
        ];
        let mut git = Invocation::new("git", limit)
            .under(limits)
            .at_low_priority()
            .in_folder(self.scratch.folder())
            .env("GIT_CONFIG_GLOBAL", self.scratch.folder().join("gitconfig"))
            .env("GIT_CONFIG_COUNT", settings.len().to_string());
        for (name, value) in ENVIRONMENT {
            git = git.env(name, value);
        }
        // By the environment, because a command line can be read by every user of this machine.
        for (number, (name, value)) in settings.into_iter().enumerate() {
            git = git.env(format!("GIT_CONFIG_KEY_{number}"), name);
            git = git.env(format!("GIT_CONFIG_VALUE_{number}"), value);
        }
        git
    }
}

/// Checks that the program `git` is recent enough for these settings.
pub(super) async fn check_version() -> Result<(), StepError> {
    let asked = Invocation::new("git", Duration::from_secs(30)).arg("version").run().await;
    let finished = asked.map_err(|error| StepError::failed("cannot run git", error))?;
    let text = String::from_utf8_lossy(&finished.answer);
    if version(&text).is_some_and(|version| version >= OLDEST) {
        Ok(())
    } else {
        let (major, minor) = OLDEST;
        let text = text.trim();
        Err(StepError::Retryable(format!("git {major}.{minor} or newer is needed, and this is `{text}`")))
    }
}

/// Parses the numbers in `git version 2.47.3`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("git version ")?.split('.').map(|part| part.trim().parse());
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn settings() -> Vec<(OsString, OsString)> {
    SETTINGS.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

pub(super) fn git_dir(cache: &Path) -> OsString {
    let mut option = OsString::from("--git-dir=");
    option.push(cache);
    option
}

/// Returns the output of a call, or the error for its messages.
pub(super) fn succeeded(
    finished: Result<Finished, launchway_system::process::ProcessError>,
    source: &GitSource,
) -> Result<Finished, GitError> {
    match finished {
        Ok(finished) if finished.succeeded() => Ok(finished),
        other => Err(explain(other, source)),
    }
}

fn no_branch(source: &GitSource) -> StepError {
    StepError::Rejected(format!("There is no branch `{}` in {}.", source.branch, source.url.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_a_git_that_would_resolve_the_host_again() {
        for (text, new_enough) in [
            ("git version 2.47.3\n", true),
            ("git version 2.39.5 (Apple Git-154)\n", true),
            ("git version 2.37.0", true),
            ("git version 3.0.rc1", true),
            ("git version 2.36.6", false),
            ("git version 1.99.0", false),
            ("something else", false),
        ] {
            assert_eq!(version(text).is_some_and(|version| version >= OLDEST), new_enough, "{text}");
        }
    }

    #[tokio::test]
    async fn the_git_of_this_machine_is_new_enough() {
        assert_eq!(check_version().await, Ok(()));
    }
}
