//! Limits the open log streams, because each of them polls the database.

use std::{
    collections::HashMap,
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use launchway_domain::{
    auth::{Action, Actor, Permission, Resource as Permitted},
    ids::{OrganizationId, UserId},
    quotas::{Quotas, Resource},
};

use crate::Error;

const READ: Permission = Permission::new(Permitted::Deploy, Action::Read);
/// The `Retry-After` of a rejected client.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Counts the open streams of this process, and rejects those beyond the quotas.
#[derive(Debug)]
pub struct LogStreams {
    quotas: Quotas,
    open: Mutex<OpenStreams>,
}

#[derive(Debug, Default)]
struct OpenStreams {
    total: u64,
    by_organization: HashMap<OrganizationId, u64>,
    by_user: HashMap<UserId, u64>,
}

impl LogStreams {
    /// Returns a limiter without open streams.
    #[must_use]
    pub fn new(quotas: Quotas) -> Self {
        Self { quotas, open: Mutex::default() }
    }

    /// Opens a stream for the actor in their current organization. It counts until the permit is dropped.
    ///
    /// # Errors
    /// [`Error::Busy`] when a quota of the user, the organization or the server is reached,
    /// [`Error::Forbidden`] without the permission `deploy:read`.
    pub fn open(self: &Arc<Self>, actor: &Actor) -> Result<StreamPermit, Error> {
        let organization = actor.require(READ)?.id();
        let user = actor.user_id();
        let mut open = self.lock();
        let used = [
            (Resource::UserLogStreams, count(&open.by_user, &user)),
            (Resource::LogStreams, count(&open.by_organization, &organization)),
            (Resource::ServerLogStreams, open.total),
        ];
        for (resource, used) in used {
            let checked = self.quotas.of(resource).check(used, 1);
            checked.map_err(|exceeded| Error::Busy { exceeded, retry_after: RETRY_AFTER })?;
        }
        open.total += 1;
        *open.by_user.entry(user).or_default() += 1;
        *open.by_organization.entry(organization).or_default() += 1;
        Ok(StreamPermit { streams: Arc::clone(self), organization, user })
    }

    /// Returns the number of open streams of an organization.
    #[must_use]
    pub fn of_organization(&self, id: OrganizationId) -> u64 {
        count(&self.lock().by_organization, &id)
    }

    /// Returns the number of open streams of a user, in all organizations.
    #[must_use]
    pub fn of_user(&self, id: UserId) -> u64 {
        count(&self.lock().by_user, &id)
    }

    fn lock(&self) -> MutexGuard<'_, OpenStreams> {
        // No code under the lock can panic, so the counts are consistent even if it is poisoned.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A permit for one open stream.
#[derive(Debug)]
pub struct StreamPermit {
    streams: Arc<LogStreams>,
    organization: OrganizationId,
    user: UserId,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        open.total = open.total.saturating_sub(1);
        release(&mut open.by_organization, self.organization);
        release(&mut open.by_user, self.user);
    }
}

fn count<K: Eq + Hash>(counts: &HashMap<K, u64>, key: &K) -> u64 {
    counts.get(key).copied().unwrap_or_default()
}

/// Removes keys without streams, so that the map does not grow without limit.
fn release<K: Eq + Hash>(counts: &mut HashMap<K, u64>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}
