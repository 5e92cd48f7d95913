//! Control groups that limit the processes of builds.
//!
//! The classic builder takes limits of memory and CPU, and none of processes. It starts every step below
//! `--cgroup-parent`, and the limit of a parent applies to everything below it. So each build gets a parent
//! of its own, which is created before the build and removed after it
//! (`docs/decisions/0039-build-cgroups.md`).
//!
//! `--ulimit nproc` is no replacement: the kernel exempts root from it, and counts the processes of any
//! other user over all containers of the machine.

mod directory;

use std::{path::Path, time::Duration};

use launchway_domain::{deployments::StepError, ids::Ids as _};
use launchway_system::{
    clock::TimeOrderedIds,
    process::{Invocation, ProcessError},
};
use rustix::system::uname;
use tokio::time::sleep;
use uuid::Uuid;

pub(super) use self::directory::BuildCgroup;
use self::directory::{Hierarchy, REMOVAL_ATTEMPTS, REMOVAL_PAUSE};
use super::{Builder, DockerEngine, errors::EngineError};

/// The slice that the packages install, for engines with the systemd cgroup driver.
const BUILD_SLICE: &str = "launchway-builds.slice";
/// The mount point of the control groups.
const CGROUP_ROOT: &str = "/sys/fs/cgroup";
/// The timeout of `systemctl`.
const SYSTEMCTL_TIME: Duration = Duration::from_secs(5);

/// The way in which the processes of builds are limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PidsLimiter {
    /// A control group for each build.
    Directory(Hierarchy),
    /// A slice of systemd that all builds share, and its limit.
    Slice(u64),
    /// No limit, for this reason.
    Unavailable(String),
}

/// A limit that is configured but not enforced for builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingLimit {
    /// The setting that has no effect.
    pub setting: &'static str,
    /// The reason.
    pub reason: String,
}

/// The parent of a build's control groups.
#[derive(Debug)]
pub(super) enum CgroupParent {
    Directory(BuildCgroup),
    Slice,
}

impl CgroupParent {
    /// Returns the value of `--cgroup-parent`.
    pub(super) fn as_str(&self) -> &str {
        match self {
            Self::Directory(cgroup) => cgroup.path(),
            Self::Slice => BUILD_SLICE,
        }
    }

    /// Returns whether the build reached its limit of processes.
    pub(super) fn reached_limit(&self) -> bool {
        matches!(self, Self::Directory(cgroup) if cgroup.reached_limit())
    }
}

impl DockerEngine {
    /// Creates the parent of the control groups of one build. `None` if the engine, or the permissions of
    /// this process, do not allow one.
    pub(super) async fn cgroup_parent(&self) -> Result<Option<CgroupParent>, StepError> {
        match self.pids_limiter().await? {
            PidsLimiter::Directory(hierarchy) => {
                let prefix = self.cgroup_prefix();
                let name = format!("{prefix}{}", TimeOrderedIds.next());
                hierarchy.remove_stale(&prefix, self.options.build_limits.time);
                let made = BuildCgroup::create(hierarchy, &name, self.options.build_limits.pids);
                let made = made.map_err(|error| {
                    StepError::failed("the control group of the build cannot be made", error)
                })?;
                Ok(Some(CgroupParent::Directory(made)))
            }
            PidsLimiter::Slice(_) => Ok(Some(CgroupParent::Slice)),
            PidsLimiter::Unavailable(reason) => {
                tracing::debug!(reason, "build runs without a process limit");
                Ok(None)
            }
        }
    }

    /// Removes the control groups of builds that an earlier run of the server left behind: those whose time-ordered
    /// id is older than `first`. A build that the engine still ends is waited for.
    ///
    /// # Errors
    /// [`StepError`] when the engine does not report its cgroup driver.
    pub async fn remove_leftover_cgroups(&self, first: Uuid) -> Result<(), StepError> {
        let PidsLimiter::Directory(hierarchy) = self.pids_limiter().await? else { return Ok(()) };
        let prefix = self.cgroup_prefix();
        for _ in 0..REMOVAL_ATTEMPTS {
            if hierarchy.remove_older(&prefix, first) {
                return Ok(());
            }
            sleep(REMOVAL_PAUSE).await;
        }
        tracing::warn!("control groups of earlier builds could not be removed");
        Ok(())
    }

    fn cgroup_prefix(&self) -> String {
        format!("launchway-{}-", self.options.instance)
    }

    /// Returns the configured limits that are not enforced for builds.
    pub async fn missing_build_limits(&self) -> Result<Vec<MissingLimit>, StepError> {
        if self.builder().await? == Builder::BuildKit {
            let missing = |setting| MissingLimit { setting, reason: "BuildKit does not hold it".to_owned() };
            let settings = ["LAUNCHWAY_BUILD_MEMORY", "LAUNCHWAY_BUILD_PIDS", "LAUNCHWAY_BUILD_CPUS"];
            return Ok(settings.map(missing).into());
        }
        Ok(match self.pids_limiter().await? {
            PidsLimiter::Directory(_) => Vec::new(),
            PidsLimiter::Slice(tasks) => vec![MissingLimit {
                setting: "LAUNCHWAY_BUILD_PIDS",
                reason: format!("`{BUILD_SLICE}` limits all builds together to {tasks} processes instead"),
            }],
            PidsLimiter::Unavailable(reason) => {
                vec![MissingLimit { setting: "LAUNCHWAY_BUILD_PIDS", reason: reason.clone() }]
            }
        })
    }

    async fn pids_limiter(&self) -> Result<&PidsLimiter, StepError> {
        let find = async || {
            let engine = self.docker.cgroup_settings().await.map_err(EngineError::or_fault)?;
            let is_local = self.docker.socket().await.is_some();
            Ok(find_limiter(&engine, is_local, Path::new(CGROUP_ROOT)).await)
        };
        self.pids_limiter.get_or_try_init(find).await
    }
}

/// Chooses by the engine's answer: cgroup driver, cgroup version, kernel and host name.
async fn find_limiter(engine: &str, is_local: bool, root: &Path) -> PidsLimiter {
    let unavailable = |reason: &str| PidsLimiter::Unavailable(reason.to_owned());
    let mut words = engine.split_whitespace();
    let (Some(driver), Some(version), Some(kernel), Some(host)) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return unavailable("the engine does not report its cgroup driver");
    };
    let own = uname();
    let is_here =
        own.release().to_bytes() == kernel.as_bytes() && own.nodename().to_bytes() == host.as_bytes();
    if !is_local || !is_here {
        return unavailable("the engine runs on another machine, or the server in a container");
    }
    match driver {
        "systemd" => find_slice("systemctl").await,
        "cgroupfs" => match Hierarchy::find(root, version == "2") {
            Ok(hierarchy) => PidsLimiter::Directory(hierarchy),
            Err(error) => PidsLimiter::Unavailable(format!(
                "the server may not make control groups in `{}`: {error}",
                root.display()
            )),
        },
        other => PidsLimiter::Unavailable(format!("the engine makes control groups by `{other}`")),
    }
}

/// Asks systemd for the slice that packages install.
async fn find_slice(systemctl: &str) -> PidsLimiter {
    let call = Invocation::new(systemctl, SYSTEMCTL_TIME).args([
        "show",
        "--property=LoadState,TasksMax",
        BUILD_SLICE,
    ]);
    let reason = match call.run().await {
        Ok(finished) if finished.succeeded() => {
            let text = String::from_utf8_lossy(&finished.answer).into_owned();
            let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            let tasks = value("TasksMax").and_then(|tasks| tasks.parse().ok());
            match (value("LoadState"), tasks) {
                (Some("loaded"), Some(tasks)) => return PidsLimiter::Slice(tasks),
                _ => format!("`{BUILD_SLICE}` is not installed, or has no `TasksMax`"),
            }
        }
        Ok(_) => "systemd does not answer".to_owned(),
        Err(error @ ProcessError::Io(..)) => format!("systemd cannot be asked: {error}"),
        Err(error) => error.to_string(),
    };
    PidsLimiter::Unavailable(reason)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn engine(driver: &str, version: &str) -> String {
        let own = uname();
        format!("{driver} {version} {} {}", own.release().to_str().unwrap(), own.nodename().to_str().unwrap())
    }

    fn reason(limiter: PidsLimiter) -> String {
        match limiter {
            PidsLimiter::Unavailable(reason) => reason,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn an_engine_elsewhere_gets_no_cgroup_parent() {
        let root = tempfile::tempdir().unwrap();
        for (engine, is_local, expected) in [
            (String::new(), true, "does not report"),
            (engine("cgroupfs", "2"), false, "another machine"),
            ("cgroupfs 2 1.2.3 elsewhere".to_owned(), true, "another machine"),
            (engine("none", "2"), true, "`none`"),
            (engine("cgroupfs", "1"), true, "may not make control groups"),
        ] {
            let told = reason(find_limiter(&engine, is_local, root.path()).await);
            assert!(told.contains(expected), "{told}");
        }
    }

    #[tokio::test]
    async fn the_slice_of_systemd_counts_only_with_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("systemctl");
        for (answer, limit) in [
            ("LoadState=loaded\nTasksMax=4096", Some(4096)),
            ("LoadState=loaded\nTasksMax=infinity", None),
            ("LoadState=not-found\nTasksMax=4096", None),
        ] {
            fs::write(&program, format!("#!/bin/sh\nprintf '%s\\n' '{answer}'\n")).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            let found = find_slice(program.to_str().unwrap()).await;
            assert_eq!(matches!(&found, PidsLimiter::Slice(_)), limit.is_some(), "{found:?}");
        }
        let missing = reason(find_slice("/nowhere/systemctl").await);
        assert!(missing.contains("not installed"), "{missing}");
    }
}
