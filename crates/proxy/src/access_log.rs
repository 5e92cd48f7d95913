//! STUB: replaced by the engineer who owns it; a merge takes the other side.

use std::{io, path::Path, time::Duration};

/// One request.
#[derive(Debug)]
pub struct Entry {
    /// Status.
    pub status: u16,
    /// Duration.
    pub duration: Duration,
}

/// The log.
#[derive(Debug)]
pub struct AccessLog;

impl AccessLog {
    /// Opens it.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened.
    pub fn open(_path: &Path) -> io::Result<Self> {
        Ok(Self)
    }

    /// None.
    pub fn off() -> Self {
        Self
    }

    /// Notes a request.
    pub fn note(&self, _entry: Entry) {}
}
