//! A change in the queue of the writer.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use launchway_domain::store::StoreError;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::{connection::AnyConnection, error::QueryError};

/// A change of any result type.
pub(super) trait Job: Send {
    /// Makes the change. Returns whether to keep it.
    fn run(&mut self, connection: &mut AnyConnection) -> bool;

    /// Returns whether the change failed because the disk is full.
    fn failed_on_full_disk(&self) -> bool;

    /// Sends the caller the result, once the result of the surrounding transaction is known.
    fn answer(self: Box<Self>, transaction: Result<(), Arc<QueryError>>);
}

/// A change, its result while the transaction is not yet durable, and the channel to its caller.
pub(super) struct Task<T, F> {
    work: Option<F>,
    outcome: Option<Result<T, QueryError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    _place: OwnedSemaphorePermit,
}

impl<T, F> Task<T, F> {
    pub(super) fn new(
        work: F,
        reply: oneshot::Sender<Result<T, StoreError>>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        Self { work: Some(work), outcome: None, reply, _place: place }
    }
}

impl<T, F> Job for Task<T, F>
where
    F: FnOnce(&mut AnyConnection) -> Result<T, QueryError> + Send,
    T: Send,
{
    fn run(&mut self, connection: &mut AnyConnection) -> bool {
        let Some(work) = self.work.take() else { return false };
        // The savepoint undoes whatever a panic left half done.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(connection)));
        let outcome = outcome.unwrap_or_else(|_reported_by_the_hook| Err(QueryError::Panicked));
        let keep = outcome.is_ok();
        self.outcome = Some(outcome);
        keep
    }

    fn failed_on_full_disk(&self) -> bool {
        matches!(&self.outcome, Some(Err(error)) if error.is_storage_full())
    }

    fn answer(self: Box<Self>, transaction: Result<(), Arc<QueryError>>) {
        let answer = match (self.outcome, transaction) {
            (Some(Err(QueryError::Store(decided))), _) => Err(decided),
            (_, Err(reason)) if reason.is_storage_full() => Err(StoreError::StorageFull(reason.into())),
            (Some(Err(error)), _) => Err(error.into()),
            (_, Err(reason)) => Err(StoreError::Unavailable(reason.into())),
            (Some(Ok(value)), Ok(())) => Ok(value),
            (None, Ok(())) => Err(QueryError::Panicked.into()),
        };
        // A caller that has stopped waiting is no problem: the change is durable all the same.
        drop(self.reply.send(answer));
    }
}
