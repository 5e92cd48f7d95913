//! The temporary folder of one call: the files that git reads and writes besides the cache.
//!
//! **Invariant:** a checkout is created beside its final path and moved there by one rename, so that it is
//! always complete.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use launchway_domain::deployments::StepError;
use launchway_system::files;

/// A folder that only its owner may enter, and that is removed on drop.
#[derive(Debug)]
pub(super) struct Scratch {
    folder: PathBuf,
    files: Vec<&'static str>,
}

impl Scratch {
    /// Creates one in `work` with `files`, which may contain secrets.
    pub(super) async fn make(work: &Path, files: Vec<(&'static str, String)>) -> Result<Self, StepError> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = work.join(format!(".scratch-{}-{number}", std::process::id()));
        files::off_thread("write the files that git needs", move || {
            files::remove(&folder)?;
            files::make_private_folder(&folder)?;
            let names = files.iter().map(|(name, _)| *name).collect();
            // From here on dropping it removes it, half written or not.
            let scratch = Self { folder, files: names };
            files::make_private_folder(&scratch.tree())?;
            for (name, text) in files {
                files::write_private_file(&scratch.folder.join(name), &text)?;
            }
            Ok(scratch)
        })
        .await
    }

    /// Returns the working directory of git: paths in the files are relative to it.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder for the files of a commit.
    pub(super) fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }

    /// Returns the index file of git.
    pub(super) fn index(&self) -> PathBuf {
        self.folder.join("index")
    }

    /// Removes the files of a first attempt.
    pub(super) async fn empty_tree(&self) -> Result<(), StepError> {
        let (tree, index) = (self.tree(), self.index());
        files::off_thread("empty a checkout", move || {
            files::remove(&index)?;
            files::remove(&tree)?;
            files::make_private_folder(&tree)
        })
        .await
    }

    /// Moves the files of a commit to `root` by one rename, so that the folder is always complete. Then
    /// removes this.
    pub(super) async fn hand_over_tree(mut self, root: &Path) -> Result<(), StepError> {
        let root = root.to_owned();
        // The closure owns this value, so that nothing is removed while it is being moved.
        files::off_thread("move a checkout to its place", move || {
            // An existing folder is moved into this one, and is never visible half removed.
            match std::fs::rename(&root, self.folder.join("replaced")) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => std::fs::rename(self.tree(), &root)?,
            }
            self.clear();
            Ok(())
        })
        .await
    }

    /// Removes this, and returns when it is gone.
    pub(super) async fn remove(mut self) -> Result<(), StepError> {
        files::off_thread("remove the files that git needed", move || {
            self.clear();
            Ok(())
        })
        .await
    }

    fn clear(&mut self) {
        let folder = std::mem::take(&mut self.folder);
        if let Err(error) = files::remove(&folder) {
            let folder = folder.display();
            tracing::warn!(%folder, %error, "scratch folder removal failed");
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.folder.as_os_str().is_empty() {
            return;
        }
        // The key first, whatever happens to the rest.
        for name in &self.files {
            let _gone = std::fs::remove_file(self.folder.join(name));
        }
        let mut rest = Self { folder: std::mem::take(&mut self.folder), files: Vec::new() };
        match tokio::runtime::Handle::try_current() {
            // A checkout may be large, and this thread serves others.
            Ok(runtime) => drop(runtime.spawn_blocking(move || rest.clear())),
            Err(_) => rest.clear(),
        }
    }
}
