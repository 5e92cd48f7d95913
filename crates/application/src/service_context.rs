//! The context of every use case.

use std::sync::Arc;

use launchway_domain::{
    audit::{Author, Entry, Event, Write as AuditWrite},
    clock::Clock,
    idempotency::{IdempotencyKey, Write as IdempotencyWrite},
    ids::Ids,
    replicas::Write as ReplicaWrite,
    secret::Entropy,
    store::{StoreError, UnitOfWork, Write},
};
#[cfg(feature = "notifications")]
use launchway_domain::{
    notifications::{Event as Announced, EventKind},
    organizations::Scope,
};
use uuid::Uuid;

use crate::{EngineStatus, Error, Homes, OwnReplica, Terms, WakeSignal};

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
    /// This server as one of the replicas of its installation.
    pub replica: OwnReplica,
    /// The machines of stateful applications.
    pub homes: Homes,
    /// The words for the engine, in log lines and reasons.
    pub terms: Terms,
}

impl ServiceContext {
    /// Commits changes that only the leader may make.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if another replica leads, and those of [`UnitOfWork::commit`].
    pub(crate) async fn commit_as_leader(&self, mut writes: Vec<Write>) -> Result<(), StoreError> {
        if let Some(term) = self.replica.term()? {
            writes.insert(0, ReplicaWrite::Prove(term).into());
        }
        self.store.commit(writes).await
    }

    /// Commits `writes`. Fails with `when_stale` if a guard of one of them does not hold.
    pub(crate) async fn commit(&self, writes: Vec<Write>, when_stale: Error) -> Result<(), Error> {
        self.store.commit(writes).await.map_err(|error| match error {
            StoreError::Stale => when_stale,
            error => error.into(),
        })
    }

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
