//! The context of every use case.

use std::sync::Arc;

use launchway_domain::{
    audit::{Author, Entry, Event, Write as AuditWrite},
    clock::Clock,
    idempotency::{IdempotencyKey, Write as IdempotencyWrite},
    ids::Ids,
    secret::Entropy,
    store::{UnitOfWork, Write},
};
#[cfg(feature = "notifications")]
use launchway_domain::{
    notifications::{Event as Announced, EventKind},
    organizations::Scope,
};
use uuid::Uuid;

use crate::{EngineStatus, WakeSignal};

/// The context of every use case.
#[derive(Clone)]
pub struct ServiceContext {
    /// Commits changes durably.
    pub store: Arc<dyn UnitOfWork>,
    /// Returns the current time.
    pub clock: Arc<dyn Clock>,
    /// Creates ids for new records.
    pub ids: Arc<dyn Ids>,
    /// Creates unpredictable random values.
    pub entropy: Arc<dyn Entropy>,
    /// Wakes tasks that wait for work.
    pub wake: WakeSignal,
    /// The availability of the engine.
    pub engine: EngineStatus,
}

impl ServiceContext {
    /// Returns the write that claims an idempotency key for a request that creates `resource`; none without
    /// a key. It comes first in its commit, so that the second of two concurrent duplicates fails as a
    /// repetition.
    pub(crate) fn claim(&self, key: Option<IdempotencyKey>, resource: Uuid) -> Option<Write> {
        let at = self.clock.now();
        let claim =
            |key| IdempotencyWrite::Claim { key, resource, since: at - IdempotencyKey::KEPT, at }.into();
        key.map(claim)
    }

    /// Returns a new event of an organization, for notifications.
    #[cfg(feature = "notifications")]
    pub(crate) fn event(&self, scope: Scope, kind: EventKind) -> Announced {
        Announced::new(self.ids.next().into(), scope.id(), kind, self.clock.now())
    }

    /// Returns the write that appends an event of `author` to the audit log.
    pub(crate) fn record(&self, author: Author, event: Event) -> Write {
        AuditWrite::Append(Entry::new(self.ids.next().into(), author, event, self.clock.now())).into()
    }
}
