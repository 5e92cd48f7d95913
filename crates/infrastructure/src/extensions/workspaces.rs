//! The workspaces of runs: `<folder>/<execution>`, and beside each `.<execution>`, which contains the files
//! that the steps of the run set aside.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use launchway_domain::{clock::Timestamp, deployments::StepError, ids::ExecutionId};
use launchway_system::files::{entries, make_private_folders, off_thread, remove};

/// The workspaces of runs.
#[derive(Debug, Clone)]
pub(super) struct Workspaces {
    folder: PathBuf,
}

impl Workspaces {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        make_private_folders(folder)?;
        Ok(Self { folder: folder.canonicalize()? })
    }

    /// Returns the workspace of a run.
    pub(super) fn of(&self, execution: ExecutionId) -> PathBuf {
        self.folder.join(execution.to_string())
    }

    /// Returns the folder of the files that its steps set aside.
    pub(super) fn aside(&self, execution: ExecutionId) -> PathBuf {
        self.folder.join(format!(".{execution}"))
    }

    /// Returns the folder that records the users that steps created.
    pub(super) fn users(&self) -> PathBuf {
        self.folder.join(".users")
    }

    pub(super) async fn make(&self, execution: ExecutionId) -> Result<(), StepError> {
        let folders = [self.of(execution), self.aside(execution)];
        off_thread("make the folder of a run", move || {
            folders.iter().try_for_each(|folder| make_private_folders(folder))
        })
        .await
    }

    /// Marks the workspace of a run as in use.
    pub(super) async fn touch(&self, execution: ExecutionId) -> Result<(), StepError> {
        let folder = self.of(execution);
        off_thread("use the folder of a run", move || match File::open(folder) {
            // A step that needs it reports the error.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            folder => folder?.set_modified(SystemTime::now()),
        })
        .await
    }

    pub(super) async fn forget_aside(&self, execution: ExecutionId) -> Result<(), StepError> {
        let folder = self.aside(execution);
        off_thread("remove what a run set aside", move || remove(&folder)).await
    }

    pub(super) async fn remove(&self, execution: ExecutionId) -> Result<(), StepError> {
        let folders = [self.of(execution), self.aside(execution)];
        off_thread("remove the folder of a run", move || folders.iter().try_for_each(|folder| remove(folder)))
            .await
    }

    /// Removes the workspaces that were not used since `before`.
    pub(super) async fn sweep(&self, before: Timestamp) -> Result<(), StepError> {
        let (all, before) = (self.clone(), SystemTime::from(before));
        off_thread("remove the folders of earlier runs", move || {
            for path in entries(&all.folder)? {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                // Other entries do not belong to a run.
                let Ok(execution) = name.trim_start_matches('.').parse::<ExecutionId>() else { continue };
                // The files set aside are removed with the workspace, or alone when that is gone already.
                let workspace = all.of(execution);
                let used = match fs::symlink_metadata(if workspace.exists() { &workspace } else { &path }) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    metadata => metadata?.modified()?,
                };
                if used < before {
                    remove(&workspace)?;
                    remove(&all.aside(execution))?;
                }
            }
            Ok(())
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt as _, time::Duration};

    use launchway_domain::clock::Clock as _;
    use launchway_system::clock::SystemClock;
    use launchway_testkit::CountingIds;

    use super::*;

    #[tokio::test]
    async fn a_workspace_is_private_and_removed_with_its_notes() {
        let folder = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::open(&folder.path().join("runs")).unwrap();
        let execution = CountingIds::nth(1).into();
        for _ in 0..2 {
            workspaces.make(execution).await.unwrap();
        }
        for path in [workspaces.of(execution), workspaces.aside(execution)] {
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
            fs::write(path.join("x"), "").unwrap();
        }
        workspaces.forget_aside(execution).await.unwrap();
        assert!(workspaces.of(execution).exists() && !workspaces.aside(execution).exists());
        for _ in 0..2 {
            workspaces.remove(execution).await.unwrap();
        }
        assert!(!workspaces.of(execution).exists());
    }

    #[tokio::test]
    async fn only_workspaces_that_nobody_used_for_a_while_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let workspaces = Workspaces::open(folder.path()).unwrap();
        let (old, used, new) =
            (CountingIds::nth(1).into(), CountingIds::nth(2).into(), CountingIds::nth(3).into());
        let long_ago = SystemTime::now() - Duration::from_secs(1000);
        for execution in [old, used, new] {
            workspaces.make(execution).await.unwrap();
            File::open(workspaces.of(execution)).unwrap().set_modified(long_ago).unwrap();
        }
        fs::create_dir(workspaces.users()).unwrap();
        File::open(workspaces.users()).unwrap().set_modified(long_ago).unwrap();
        for execution in [used, new] {
            workspaces.touch(execution).await.unwrap();
        }
        workspaces.sweep(SystemClock.now() - chrono::TimeDelta::seconds(500)).await.unwrap();
        let left = |execution| (workspaces.of(execution).exists(), workspaces.aside(execution).exists());
        assert_eq!([left(old), left(used), left(new)], [(false, false), (true, true), (true, true)]);
        assert!(workspaces.users().exists());
    }
}
