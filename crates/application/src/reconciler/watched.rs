//! The copies of live versions that the reconciler watches.

use launchway_domain::{
    deployments::{ContainerRecord, LiveVersion},
    ids::DeploymentId,
};

use super::{backoff::Backoff, health::HealthRecord, scale::ScaleRecord};

/// A copy of a live version, by its number. The state of the version as a whole is that of the first one.
pub(super) type CopyKey = (DeploymentId, u16);

/// The state of the reconciler for one copy of a live version.
#[derive(Default)]
pub(super) struct Watched {
    pub(super) backoff: Backoff,
    pub(super) health: HealthRecord,
    pub(super) scaling: ScaleRecord,
}

/// One copy of a live version.
#[derive(Clone, Copy)]
pub(super) struct WatchedCopy<'a> {
    pub(super) version: &'a LiveVersion,
    pub(super) number: u16,
    pub(super) recorded: &'a ContainerRecord,
}

impl WatchedCopy<'_> {
    pub(super) fn key(&self) -> CopyKey {
        (self.version.deployment.id, self.number)
    }

    /// Returns `text` for the log, with the number of the copy if there are several.
    pub(super) fn titled(&self, text: String) -> String {
        match self.version.deployment.further_copies.is_empty() {
            true => text,
            false => format!("Copy {}: {}", self.number, uncapitalized(&text)),
        }
    }
}

/// Returns a sentence as a part of another one.
fn uncapitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
