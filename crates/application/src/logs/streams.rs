//! Open streams of logs: each reads the database again and again, so there is a limit to them.

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
/// The wait that a refused client is told.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// The most open streams of this process, whosever they are.
const TOTAL: usize = 256;

/// Counts the open streams of this process, and refuses those beyond the quotas.
#[derive(Debug)]
pub struct LogStreams {
    quotas: Quotas,
    open: Mutex<OpenStreams>,
}

#[derive(Debug, Default)]
struct OpenStreams {
    total: usize,
    by_organization: HashMap<OrganizationId, u64>,
    by_user: HashMap<UserId, u64>,
}

impl LogStreams {
    /// No stream is open yet.
    #[must_use]
    pub fn new(quotas: Quotas) -> Self {
        Self { quotas, open: Mutex::default() }
    }

    /// Opens a stream for the actor in the organization that it acts in. It counts until the permit
    /// is dropped.
    ///
    /// # Errors
    /// [`Error::Busy`] when a quota of the user or the organization is reached,
    /// [`Error::RateLimited`] when the process has too many, [`Error::Forbidden`] without the
    /// permission `deploy:read`.
    pub fn open(self: &Arc<Self>, actor: &Actor) -> Result<StreamPermit, Error> {
        let organization = actor.require(READ)?.id();
        let user = actor.user_id();
        let mut open = self.lock();
        let used = [
            (Resource::UserLogStreams, count(&open.by_user, &user)),
            (Resource::LogStreams, count(&open.by_organization, &organization)),
        ];
        for (resource, used) in used {
            let checked = self.quotas.of(resource).check(used, 1);
            checked.map_err(|exceeded| Error::Busy { exceeded, retry_after: RETRY_AFTER })?;
        }
        if open.total >= TOTAL {
            return Err(Error::RateLimited { retry_after: RETRY_AFTER });
        }
        open.total += 1;
        *open.by_user.entry(user).or_default() += 1;
        *open.by_organization.entry(organization).or_default() += 1;
        Ok(StreamPermit { streams: Arc::clone(self), organization, user })
    }

    /// Returns how many streams an organization has open.
    #[must_use]
    pub fn of_organization(&self, id: OrganizationId) -> u64 {
        count(&self.lock().by_organization, &id)
    }

    /// Returns how many streams a user has open, in all organizations.
    #[must_use]
    pub fn of_user(&self, id: UserId) -> u64 {
        count(&self.lock().by_user, &id)
    }

    fn lock(&self) -> MutexGuard<'_, OpenStreams> {
        // Nothing between two changes can panic, so that the counts are right in any case.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to keep one stream open.
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

/// Forgets keys that have no stream any more, so that the map does not grow for ever.
fn release<K: Eq + Hash>(counts: &mut HashMap<K, u64>, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(&key);
        }
    }
}
