//! Removes previews whose time to live has ended, or whose application was deleted.

use launchway_domain::{
    audit::{Author, Chain},
    organizations::Scope,
    previews::{ExpiredPreview, Write},
    store::StoreError,
};

use super::Previews;
use crate::applications::{deleted, deletion};

impl Previews {
    /// Removes the previews of the installation that expired, as the leader. Returns their number.
    ///
    /// # Errors
    /// [`StoreError`] when the database fails.
    pub async fn remove_expired(&self) -> Result<usize, StoreError> {
        let mut removed = 0;
        loop {
            let now = self.context.clock.now();
            let found = self.ports.previews.expired(now).await?;
            let (count, before) = (found.len(), removed);
            for expired in found {
                removed += usize::from(self.remove(expired).await?);
            }
            let is_last = i64::try_from(count).is_ok_and(|count| count < ExpiredPreview::MOST);
            if is_last || removed == before {
                return Ok(removed);
            }
        }
    }

    /// Removes one; false if it was changed in the meantime.
    async fn remove(&self, expired: ExpiredPreview) -> Result<bool, StoreError> {
        let ExpiredPreview { organization, preview } = expired;
        let scope = Scope::of_record(organization);
        let running = match preview.application {
            Some(id) => self.ports.applications.get(scope, id).await?,
            None => None,
        };
        // First, because the record goes with its application, and must not have been extended.
        let record =
            Write::Remove { parent: preview.parent, number: preview.number, seen: preview.updated_at };
        let mut writes = vec![record.into()];
        if let Some(application) = &running {
            writes.extend(deletion(application, &self.context));
            let event = deleted(application)
                .with("preview_of", preview.parent)
                .with("request", preview.number)
                .with("reason", "its time to live ended, or its application was deleted");
            let author = Author::launchway(Chain::from(Some(organization)));
            writes.push(self.context.record(author, event));
        }
        match self.context.commit_as_leader(writes).await {
            Ok(()) => {
                self.context.wake.notify();
                Ok(true)
            }
            Err(StoreError::Stale) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
