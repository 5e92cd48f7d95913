//! Folders that become releases.

use std::{
    fs::{self, File},
    io,
    path::PathBuf,
    sync::atomic::{AtomicU64, Ordering},
};

use launchway_domain::ids::DeploymentId;
use launchway_system::files::{make_private_folders, remove};
use tokio::runtime::Handle;

use super::{Readers, share};

/// The folder of a release before it is published, beside its final path. It is removed on drop.
#[derive(Debug)]
pub(super) struct Draft {
    /// All releases of the application.
    releases: PathBuf,
    /// The final path of the release.
    pub(super) place: PathBuf,
    /// The temporary path.
    pub(super) path: PathBuf,
    readers: Readers,
}

impl Draft {
    /// Returns the draft of a release in `releases`. Nothing is created.
    pub(super) fn of(releases: PathBuf, deployment: DeploymentId, readers: Readers) -> Self {
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        // Each call has its own draft, because a cancelled one may still be writing.
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        Self {
            place: releases.join(deployment.to_string()),
            path: releases.join(format!(".{deployment}-{}-{number}", std::process::id())),
            releases,
            readers,
        }
    }

    /// Creates the folder of the application. Blocks.
    pub(super) fn make_parent(&self) -> io::Result<()> {
        make_private_folders(&self.releases)
    }

    /// Sets the modes of the files, and makes them durable. Blocks.
    pub(super) fn settle(&self) -> io::Result<()> {
        if self.readers == Readers::Group {
            share(&self.releases)?;
            self.readers.apply(&self.path)?;
        }
        // One call for all files: a sync of each would take minutes.
        Ok(rustix::fs::syncfs(File::open(&self.path)?)?)
    }

    /// Publishes a settled draft. Blocks.
    pub(super) fn publish(&self) -> io::Result<()> {
        match fs::rename(&self.path, &self.place) {
            // Another attempt was faster, and its release is equivalent.
            Err(_) if self.place.is_dir() => remove(&self.path)?,
            moved => moved?,
        }
        File::open(&self.releases)?.sync_all()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if self.path.symlink_metadata().is_err() {
            return;
        }
        // Drafts are never served, and the next start removes them.
        let path = std::mem::take(&mut self.path);
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || remove(&path))),
            Err(_outside) => drop(remove(&path)),
        }
    }
}
