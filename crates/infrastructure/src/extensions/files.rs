//! Steps about files of the workspace.
//!
//! A file that is about to be replaced is moved to `kept` beside the note of the step. A file that a second
//! attempt finds in its place is moved to `spent`.

use std::{
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use launchway_domain::{
    deployments::StepError,
    extensions::{FileAction, WorkspacePath},
};
use launchway_system::files::{Unwanted, fault, make_private_folders, remove, write_private_file};
use rustix::io::Errno;
use serde_json::{Value, json};

use super::{
    beneath::{Root, step_error},
    copy::{Bounds, Copying},
    notes::StepNotes,
};

/// Runs `work` on a blocking thread; it gets a flag that is set when the caller is gone.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce(&AtomicBool) -> Result<T, StepError> + Send + 'static,
) -> Result<T, StepError> {
    let unwanted = Unwanted::default();
    let is_unwanted = unwanted.flag();
    let done = tokio::task::spawn_blocking(move || work(&is_unwanted)).await;
    done.map_err(|error| fault("change files of a workspace", &io::Error::other(error)))?
}

/// Returns the bytes of a file of the workspace. Blocks.
pub(super) fn read(workspace: &Path, path: &WorkspacePath, largest: u64) -> Result<Vec<u8>, StepError> {
    let path = path.as_str();
    let file = open(workspace)?.entry(path).map_err(|error| step_error(path, error))?;
    let unreadable = |error: io::Error| fault("read a file of the workspace", &error);
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err(StepError::Rejected(format!("`{path}` is not a file")));
    }
    let mut bytes = Vec::new();
    file.take(largest + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > largest {
        return Err(StepError::Rejected(format!("`{path}` has more than {} KiB", largest / 1024)));
    }
    Ok(bytes)
}

/// Executes a step.
pub(super) async fn perform(
    workspace: PathBuf,
    notes: StepNotes,
    action: FileAction,
) -> Result<(), StepError> {
    blocking(move |is_unwanted| {
        let change = Change { root: open(&workspace)?, notes: &notes };
        match &action {
            FileAction::MakeFolder(path) => change.make_folder(path.as_str()),
            FileAction::Write { dest, content } => change.write(dest.as_str(), content),
            FileAction::Copy { src, dest } => change.copy(src.as_str(), dest.as_str(), is_unwanted),
            FileAction::Move { src, dest } => change.move_to(src.as_str(), dest.as_str()),
            FileAction::Delete(path) => change.delete(path.as_str()),
        }
    })
    .await
}

/// Reverts a step.
pub(super) async fn revert(
    workspace: PathBuf,
    notes: StepNotes,
    action: FileAction,
) -> Result<(), StepError> {
    blocking(move |_| {
        let noted = notes.noted().map_err(|error| fault("read what a step noted", &error))?;
        let Some(noted) = noted else { return Ok(()) };
        let change = Change { root: open(&workspace)?, notes: &notes };
        match &action {
            FileAction::MakeFolder(_) => {}
            FileAction::Write { dest, .. } | FileAction::Copy { dest, .. } | FileAction::Delete(dest) => {
                change.put_back(dest.as_str(), had(&noted))?;
            }
            FileAction::Move { src, dest } => change.move_back(src.as_str(), dest.as_str(), had(&noted))?,
        }
        change.remove_folders(&noted);
        notes.remove().map_err(|error| fault("remove what a step noted", &error))
    })
    .await
}

fn open(workspace: &Path) -> Result<Root, StepError> {
    Root::open(workspace).map_err(|error| StepError::failed("the workspace of the run cannot be used", error))
}

/// Returns whether the destination of the step existed.
fn had(noted: &Value) -> bool {
    noted.get("had").and_then(Value::as_bool).unwrap_or_default()
}

/// A change of files by one step.
struct Change<'a> {
    root: Root,
    notes: &'a StepNotes,
}

impl Change<'_> {
    fn make_folder(&self, path: &str) -> Result<(), StepError> {
        let missing = self.root.missing(path).map_err(|error| step_error(path, error))?;
        self.note(false, missing)?;
        self.root.make_folders(path).map_err(|error| step_error(path, error))
    }

    fn write(&self, dest: &str, content: &str) -> Result<(), StepError> {
        let draft = self.draft()?;
        write_private_file(&draft, content).map_err(|error| fault("write a file", &error))?;
        self.replace(dest, |root| root.put_in(&draft, dest))
    }

    fn copy(&self, src: &str, dest: &str, is_unwanted: &AtomicBool) -> Result<(), StepError> {
        require_apart(src, dest)?;
        let source = self.root.entry(src).map_err(|error| step_error(src, error))?;
        let draft = self.draft()?;
        let noted = self.notes.folder().with_file_name("copied");
        let broken = |error: io::Error| fault("count what is copied", &error);
        let mut copying = Copying { left: Bounds::left(&noted).map_err(broken)?, is_unwanted };
        let copied = copying.copy(source, &draft, 0);
        copying.left.note(&noted).map_err(broken)?;
        copied?;
        if is_unwanted.load(Ordering::Relaxed) {
            return Err(fault("copy a file", &io::ErrorKind::Interrupted.into()));
        }
        self.replace(dest, |root| root.put_in(&draft, dest))
    }

    fn move_to(&self, src: &str, dest: &str) -> Result<(), StepError> {
        require_apart(src, dest)?;
        let was_tried = self.notes.noted().map_err(|error| fault("read what a step noted", &error))?;
        if self.kind(src)?.is_none() {
            // An earlier attempt may have moved it.
            let is_done = was_tried.is_some() && self.kind(dest)?.is_some();
            return if is_done { Ok(()) } else { Err(step_error(src, Errno::NOENT)) };
        }
        self.replace(dest, |root| root.rename(src, dest))
    }

    fn delete(&self, path: &str) -> Result<(), StepError> {
        let is_there = self.kind(path)?.is_some();
        let noted = self.note(is_there, Vec::new())?;
        self.clear(path, had(&noted))
    }

    /// Puts something at `dest`, replacing what is there.
    fn replace(&self, dest: &str, put: impl FnOnce(&Root) -> Result<(), Errno>) -> Result<(), StepError> {
        let at = |error| step_error(dest, error);
        let folder = dest.rsplit_once('/').map(|(folder, _)| folder);
        let missing = folder.map(|folder| self.root.missing(folder)).transpose().map_err(at)?;
        let missing = missing.unwrap_or_default();
        let is_there = missing.is_empty() && self.kind(dest)?.is_some();
        let noted = self.note(is_there, missing)?;
        if let Some(folder) = folder {
            self.root.make_folders(folder).map_err(at)?;
        }
        self.clear(dest, had(&noted))?;
        put(&self.root).map_err(at)
    }

    /// Removes the entry at `path`; keeps it if it was there before the step.
    fn clear(&self, path: &str, had: bool) -> Result<(), StepError> {
        if self.kind(path)?.is_none() {
            return Ok(());
        }
        let place = if had && !self.is_kept() { self.kept() } else { self.spent()? };
        self.root.take_out(path, &place).map_err(|error| step_error(path, error))
    }

    fn put_back(&self, path: &str, had: bool) -> Result<(), StepError> {
        if had && !self.is_kept() {
            // It was never moved away.
            return Ok(());
        }
        if self.kind(path)?.is_some() {
            let spent = self.spent()?;
            self.root.take_out(path, &spent).map_err(|error| step_error(path, error))?;
        }
        if self.is_kept() {
            self.root.put_in(&self.kept(), path).map_err(|error| step_error(path, error))?;
        }
        Ok(())
    }

    fn move_back(&self, src: &str, dest: &str, had: bool) -> Result<(), StepError> {
        let is_moved = self.kind(src)?.is_none() && self.kind(dest)?.is_some() && (self.is_kept() || !had);
        if is_moved {
            self.root.rename(dest, src).map_err(|error| step_error(dest, error))?;
        }
        self.put_back(dest, had)
    }

    /// Removes the folders that the step created, if they are empty.
    fn remove_folders(&self, noted: &Value) {
        let folders = noted.get("folders").and_then(Value::as_array).into_iter().flatten();
        for folder in folders.filter_map(Value::as_str).collect::<Vec<_>>().into_iter().rev() {
            let _not_empty = self.root.remove_empty(folder);
        }
    }

    fn note(&self, had: bool, folders: Vec<String>) -> Result<Value, StepError> {
        let noted = self.notes.note(&json!({ "had": had, "folders": folders }));
        noted.map_err(|error| fault("note what a step is about to change", &error))
    }

    fn kind(&self, path: &str) -> Result<Option<rustix::fs::FileType>, StepError> {
        self.root.kind(path).map_err(|error| step_error(path, error))
    }

    fn kept(&self) -> PathBuf {
        self.notes.folder().join("kept")
    }

    fn is_kept(&self) -> bool {
        fs::symlink_metadata(self.kept()).is_ok()
    }

    /// Returns an empty path for files that are not restored.
    fn spent(&self) -> Result<PathBuf, StepError> {
        self.cleared("spent")
    }

    /// Returns an empty path for new files.
    fn draft(&self) -> Result<PathBuf, StepError> {
        self.cleared("draft")
    }

    fn cleared(&self, name: &str) -> Result<PathBuf, StepError> {
        let place = self.notes.folder().join(name);
        let cleared = make_private_folders(self.notes.folder()).and_then(|()| remove(&place));
        cleared.map_err(|error| fault("set a file aside", &error))?;
        Ok(place)
    }
}

/// Rejects overlapping paths: files that were set aside cannot be copied or moved, and no folder can
/// contain itself.
fn require_apart(src: &str, dest: &str) -> Result<(), StepError> {
    let is_in =
        |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'));
    if src == dest || is_in(src, dest) {
        Err(StepError::Rejected(format!("`{dest}` would be replaced by itself or a part of it")))
    } else if is_in(dest, src) {
        Err(StepError::Rejected(format!("`{src}` cannot be put into itself")))
    } else {
        Ok(())
    }
}
