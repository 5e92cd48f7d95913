//! A change in the queue of the writer.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use launchway_domain::store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{connection::AnyConnection, error::QueryError, work};

/// A change, its result while the transaction is not yet durable, and the channel to its caller.
pub(super) struct Job {
    work: Option<work::Write>,
    outcome: Option<Result<(), QueryError>>,
    reply: oneshot::Sender<Result<(), StoreError>>,
    _place: OwnedSemaphorePermit,
}

impl Job {
    pub(super) fn new(
        work: work::Write,
        reply: oneshot::Sender<Result<(), StoreError>>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self { work: Some(work), outcome: None, reply, _place: place }
    }

    /// Makes the change. Returns whether to keep it.
    pub(super) fn run(&mut self, connection: &mut AnyConnection) -> bool {
        let Some(work) = self.work.take() else { return false };
        // The savepoint undoes whatever a panic left half done.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(connection)));
        let outcome = outcome.unwrap_or_else(|_reported_by_the_hook| Err(QueryError::Panicked));
        let keep = outcome.is_ok();
        self.outcome = Some(outcome);
        keep
    }

    /// Returns whether the change failed because the disk is full.
    pub(super) fn failed_on_full_disk(&self) -> bool {
        matches!(&self.outcome, Some(Err(error)) if error.is_storage_full())
    }

    /// Sends the caller the result, once the result of the surrounding transaction is known.
    pub(super) fn answer(self, transaction: Result<(), Arc<QueryError>>) {
        let answer = match (self.outcome, transaction) {
            (Some(Err(QueryError::Store(decided))), _) => Err(decided),
            (_, Err(reason)) if reason.is_storage_full() => Err(StoreError::StorageFull(reason.into())),
            (Some(Err(error)), _) => Err(error.into()),
            (_, Err(reason)) => Err(StoreError::Unavailable(reason.into())),
            (Some(Ok(())), Ok(())) => Ok(()),
            (None, Ok(())) => Err(QueryError::Panicked.into()),
        };
        // A caller that has stopped waiting is no problem: the change is durable all the same.
        drop(self.reply.send(answer));
    }
}
