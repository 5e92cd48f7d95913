//! Lets one push or upload at a time change the repository of an application.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use launchway_domain::ids::ApplicationId;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// The locks of repositories. Beside other servers, the locks of git decide.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<ApplicationId, Arc<Turn<()>>>>);

impl Turns {
    /// Waits until nobody else changes the repository.
    pub(super) async fn wait(&self, id: ApplicationId) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(turns.entry(id).or_default())
        };
        turn.lock_owned().await
    }
}
