//! A control group as a folder, in version 1 and in version 2.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::time::sleep;
use uuid::Uuid;

/// The time after the longest build after which a control group counts as unused.
const STALE_AFTER: Duration = Duration::from_secs(60 * 60);

/// The number of attempts to remove a group that is in use, and the time between two.
pub(super) const REMOVAL_ATTEMPTS: u32 = 60;
pub(super) const REMOVAL_PAUSE: Duration = Duration::from_millis(500);

/// The directories of the control groups of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    /// The folder in which a group has `pids.max`.
    pids: PathBuf,
    /// Every folder in which the engine creates a group of the same name.
    all: Vec<PathBuf>,
}

impl Hierarchy {
    /// Finds the directories, and checks that this process may write to them.
    pub(super) fn find(root: &Path, is_unified: bool) -> io::Result<Self> {
        let found = match is_unified {
            true => Self { pids: root.to_owned(), all: vec![root.to_owned()] },
            false => {
                let folders = fs::read_dir(root)?.filter_map(Result::ok);
                let all = folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
                Self { pids: root.join("pids"), all: all.map(|entry| entry.path()).collect() }
            }
        };
        if is_unified {
            // A group has `pids.max` only if its parent enables the controller.
            fs::write(root.join("cgroup.subtree_control"), "+pids")?;
        }
        let probe = found.pids.join(format!("launchway-probe-{}", std::process::id()));
        fs::create_dir(&probe)?;
        let has_limit = fs::metadata(probe.join("pids.max"));
        fs::remove_dir(&probe)?;
        has_limit.map(|_file| found)
    }

    /// Removes the groups of builds that ended with their server. One with processes in it stays.
    pub(super) fn remove_stale(&self, prefix: &str, longest: Duration) {
        let Ok(entries) = fs::read_dir(&self.pids) else { return };
        for entry in entries.filter_map(Result::ok) {
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let age = entry.metadata().and_then(|data| data.modified()).ok().and_then(|at| at.elapsed().ok());
            if name.starts_with(prefix) && age.is_some_and(|age| age > longest + STALE_AFTER) {
                self.remove(&name);
            }
        }
    }

    /// Removes groups of builds whose id is older than `first`. Returns whether none of them is left: one with
    /// processes in it stays.
    pub(super) fn remove_older(&self, prefix: &str, first: Uuid) -> bool {
        let Ok(entries) = fs::read_dir(&self.pids) else { return true };
        let mut is_done = true;
        for entry in entries.filter_map(Result::ok) {
            let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
            let id = name.strip_prefix(prefix).and_then(|id| id.parse::<Uuid>().ok());
            if id.is_some_and(|id| id < first) {
                is_done &= self.remove(&name);
            }
        }
        is_done
    }

    /// Removes a group, and returns whether nothing is left of it.
    fn remove(&self, name: &str) -> bool {
        let mut is_gone = true;
        for folder in &self.all {
            match fs::remove_dir(folder.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    is_gone = false;
                    tracing::debug!(group = name, %error, "control group is still in use");
                }
                _ => {}
            }
        }
        is_gone
    }
}

/// The control group of one build. It is removed on drop.
#[derive(Debug)]
pub(crate) struct BuildCgroup {
    hierarchy: Hierarchy,
    /// The path of the group, relative to the root of the control groups.
    path: String,
    limit: u32,
}

impl BuildCgroup {
    pub(super) fn create(hierarchy: &Hierarchy, name: &str, limit: u32) -> io::Result<Self> {
        fs::create_dir(hierarchy.pids.join(name))?;
        // From here on the group is removed whatever happens.
        let made = Self { hierarchy: hierarchy.clone(), path: format!("/{name}"), limit };
        fs::write(made.folder().join("pids.max"), limit.to_string())?;
        Ok(made)
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    fn folder(&self) -> PathBuf {
        self.hierarchy.pids.join(self.name())
    }

    fn name(&self) -> &str {
        self.path.trim_start_matches('/')
    }

    /// Returns whether the limit of processes was ever reached. Kernels before 6.1 do not report it.
    pub(super) fn reached_limit(&self) -> bool {
        let peak = fs::read_to_string(self.folder().join("pids.peak")).ok();
        peak.and_then(|peak| peak.trim().parse().ok()).is_some_and(|peak: u32| peak >= self.limit)
    }
}

impl Drop for BuildCgroup {
    fn drop(&mut self) {
        if self.hierarchy.remove(self.name()) {
            return;
        }
        // The engine stops the step of a cancelled build a little later.
        let (hierarchy, name) = (self.hierarchy.clone(), self.name().to_owned());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                for _ in 0..REMOVAL_ATTEMPTS {
                    sleep(REMOVAL_PAUSE).await;
                    if hierarchy.remove(&name) {
                        return;
                    }
                }
                tracing::warn!(group = name, "control group removal failed");
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_older_empty_groups_of_the_prefix_go() {
        let root = tempfile::tempdir().unwrap();
        let (pids, cpu) = (root.path().join("pids"), root.path().join("cpu"));
        let hierarchy = Hierarchy { pids: pids.clone(), all: vec![pids.clone(), cpu.clone()] };
        let id = Uuid::from_u128;
        let group = |prefix: &str, number: u128| format!("{prefix}-{}", id(number));
        let (ours, theirs) = ("launchway-ours", "launchway-theirs");
        let groups = [group(ours, 1), group(ours, 2), group(ours, 9), group(theirs, 1), format!("{ours}-x")];
        for folder in [&pids, &cpu] {
            groups.iter().for_each(|group| fs::create_dir_all(folder.join(group)).unwrap());
        }
        // A group that is in use cannot be removed, as a folder that is not empty.
        let used = cpu.join(group(ours, 2)).join("a step");
        fs::create_dir(&used).unwrap();
        let left = |folder: &Path| {
            let entries = fs::read_dir(folder).unwrap();
            let mut names: Vec<String> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let mut stay = vec![group(ours, 9), group(theirs, 1), format!("{ours}-x")];
        stay.sort();

        assert!(!hierarchy.remove_older(&format!("{ours}-"), id(5)));
        assert_eq!(left(&pids), stay);
        assert!(left(&cpu).contains(&group(ours, 2)) && !left(&cpu).contains(&group(ours, 1)));
    }
}
