//! Group commit on PostgreSQL.
//!
//! The units of an organization append to one audit chain, whose head is locked until the transaction is durable.
//! Alone they would be committed one after another, each with a wait for the disk. So the units that arrive while
//! one of their chain is committed wait, and share the next transaction and one append to the chain.
//!
//! **Invariant:** units whose shared transaction was rolled back are committed one by one, so that each caller gets
//! the result of its own unit, and no unit is applied twice.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use launchway_domain::{
    audit,
    error_chain::ErrorChain,
    store::{StoreError, Write},
};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{Database, unit_of_work::apply};

/// The most units of one transaction.
const BATCH: usize = 256;

/// A unit of work in the queue of its chain.
pub(super) struct QueuedUnit {
    writes: Arc<[Write]>,
    reply: oneshot::Sender<Result<(), StoreError>>,
}

/// The queues of the chains to which units are being committed.
#[derive(Default)]
pub(super) struct GroupCommit {
    queues: Mutex<HashMap<Uuid, Vec<QueuedUnit>>>,
}

impl GroupCommit {
    fn queues(&self) -> MutexGuard<'_, HashMap<Uuid, Vec<QueuedUnit>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a unit if others of its chain are being committed, and returns it otherwise.
    fn queue(&self, chain: Uuid, unit: QueuedUnit) -> Option<QueuedUnit> {
        let mut queues = self.queues();
        match queues.get_mut(&chain) {
            Some(queue) => {
                queue.push(unit);
                None
            }
            None => {
                queues.insert(chain, Vec::new());
                Some(unit)
            }
        }
    }

    /// Removes the units that are committed next; an empty queue is removed with its chain.
    fn next(&self, chain: Uuid) -> Option<Vec<QueuedUnit>> {
        let mut queues = self.queues();
        let queue = queues.get_mut(&chain)?;
        if queue.is_empty() {
            queues.remove(&chain);
            return None;
        }
        let later = queue.split_off(queue.len().min(BATCH));
        Some(std::mem::replace(queue, later))
    }
}

/// Returns the chain of a unit whose audit entries belong to one chain.
pub(super) fn only_chain(writes: &[Write]) -> Option<Uuid> {
    let mut chains = writes.iter().filter_map(|write| match write {
        Write::Audit(audit::Write::Append(entry)) => Some(entry.chain.id()),
        _ => None,
    });
    let first = chains.next()?;
    chains.all(|chain| chain == first).then_some(first)
}

impl Database {
    /// Commits a unit together with others of its chain.
    pub(super) async fn commit_in_group(&self, chain: Uuid, writes: Arc<[Write]>) -> Result<(), StoreError> {
        let (reply, outcome) = oneshot::channel();
        if let Some(first) = self.shared.group_commit.queue(chain, QueuedUnit { writes, reply }) {
            // A task of its own: a caller that stops waiting must not stop the others' units.
            tokio::spawn(self.clone().commit_queue(chain, first));
        }
        outcome.await.unwrap_or_else(|gone| Err(StoreError::Unavailable(gone.into())))
    }

    /// Commits a unit, and then those that were queued meanwhile, until there are none.
    async fn commit_queue(self, chain: Uuid, first: QueuedUnit) {
        let committer = Committer { group_commit: &self.shared.group_commit, chain, is_done: false };
        let mut batch = vec![first];
        loop {
            self.commit_batch(batch).await;
            match committer.group_commit.next(chain) {
                Some(next) => batch = next,
                None => break,
            }
        }
        committer.finish();
    }

    async fn commit_batch(&self, batch: Vec<QueuedUnit>) {
        if batch.len() > 1 {
            let units: Vec<Arc<[Write]>> = batch.iter().map(|unit| Arc::clone(&unit.writes)).collect();
            match self.try_write(units.len(), move |connection| apply(connection, &units)).await {
                Ok(Ok(extended)) => {
                    self.forget_identities(&extended);
                    return batch.into_iter().for_each(|unit| unit.answer(Ok(())));
                }
                // Perhaps it was committed.
                Ok(Err(error)) if error.is_connection_lost() => return fail_all(batch, error),
                Err(error @ StoreError::Unavailable(_)) => return fail_all(batch, error),
                Ok(Err(error)) => log_rollback(&error, batch.len()),
                Err(error) => log_rollback(&error, batch.len()),
            }
        }
        for unit in batch {
            let outcome = self.commit_alone(&unit.writes).await;
            unit.answer(outcome);
        }
    }
}

/// The task that commits the units of a chain. If it ends early, with its runtime or by a panic, the callers get an error, and
/// the next unit is committed by another task.
struct Committer<'a> {
    group_commit: &'a GroupCommit,
    chain: Uuid,
    is_done: bool,
}

impl Committer<'_> {
    fn finish(mut self) {
        self.is_done = true;
    }
}

impl Drop for Committer<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.group_commit.queues().remove(&self.chain);
        }
    }
}

impl QueuedUnit {
    fn answer(self, outcome: Result<(), StoreError>) {
        // A caller that has stopped waiting is no problem: the unit is durable all the same.
        drop(self.reply.send(outcome));
    }
}

/// Logs that a shared transaction was rolled back because of one of its units, whose caller gets the error.
fn log_rollback(error: &(dyn std::error::Error + 'static), units: usize) {
    tracing::debug!(error = %ErrorChain(error), units, "shared transaction was rolled back");
}

fn fail_all(batch: Vec<QueuedUnit>, error: impl std::error::Error + Send + Sync + 'static) {
    let reason = Arc::new(error);
    for unit in batch {
        unit.answer(Err(StoreError::Unavailable(Arc::clone(&reason).into())));
    }
}
