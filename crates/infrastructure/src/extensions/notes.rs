//! The notes of a step before it changes something, so that only its own changes are reverted.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use launchway_domain::deployments::StepError;
use launchway_system::files::{make_private_folders, off_thread, remove, write_private_file};
use serde_json::Value;

/// The notes of one step, with a file or folder that it set aside if there is one.
#[derive(Debug, Clone)]
pub(super) struct StepNotes {
    folder: PathBuf,
}

impl StepNotes {
    pub(super) fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Records the current state, unless an earlier attempt has recorded one. Returns the recorded state.
    pub(super) async fn once(&self, now: Value) -> Result<Value, StepError> {
        let notes = self.clone();
        off_thread("note what a step is about to change", move || notes.note(&now)).await
    }

    /// Returns the recorded state.
    pub(super) async fn read(&self) -> Result<Option<Value>, StepError> {
        let notes = self.clone();
        off_thread("read what a step noted", move || notes.noted()).await
    }

    /// Removes the notes of a reverted step.
    pub(super) async fn forget(&self) -> Result<(), StepError> {
        let notes = self.clone();
        off_thread("remove what a step noted", move || notes.remove()).await
    }

    /// As [`once`](StepNotes::once). Blocks.
    pub(super) fn note(&self, now: &Value) -> io::Result<Value> {
        if let Some(noted) = self.noted()? {
            return Ok(noted);
        }
        make_private_folders(&self.folder)?;
        let draft = self.folder.join("note.draft");
        remove(&draft)?;
        write_private_file(&draft, &now.to_string())?;
        fs::rename(&draft, self.place())?;
        Ok(now.clone())
    }

    /// As [`read`](StepNotes::read). Blocks.
    pub(super) fn noted(&self) -> io::Result<Option<Value>> {
        match fs::read_to_string(self.place()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            text => serde_json::from_str(&text?).map(Some).map_err(io::Error::other),
        }
    }

    /// As [`forget`](StepNotes::forget). Blocks.
    pub(super) fn remove(&self) -> io::Result<()> {
        remove(&self.folder)
    }

    fn place(&self) -> PathBuf {
        self.folder.join("note.json")
    }
}
