//! A read whose result several callers share.
//!
//! **Invariant:** every caller gets the result of a read that began after its call, so that it sees everything that was
//! committed before it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use launchway_domain::store::StoreError;
use tokio::sync::oneshot;

type Reply<T> = oneshot::Sender<Result<T, Arc<StoreError>>>;

/// The callers that wait for the next read; `None` if no read runs.
pub(super) struct SharedRead<T> {
    waiting: Mutex<Option<Vec<Reply<T>>>>,
}

impl<T> Default for SharedRead<T> {
    fn default() -> Self {
        Self { waiting: Mutex::new(None) }
    }
}

impl<T> SharedRead<T> {
    fn waiting(&self) -> MutexGuard<'_, Option<Vec<Reply<T>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Clone + Send + 'static> SharedRead<T> {
    /// Returns the result of `read`, or of the same read of another caller.
    pub(super) async fn get<S, F, R>(self: &Arc<Self>, source: &S, read: F) -> Result<T, StoreError>
    where
        S: Clone + Send + 'static,
        F: Fn(S) -> R + Send + 'static,
        R: Future<Output = Result<T, StoreError>> + Send,
    {
        let (reply, outcome) = oneshot::channel();
        if self.queue(reply) {
            let reader = Reader { shared: Arc::clone(self), is_done: false };
            let source = source.clone();
            // A task of its own: a caller that stops waiting must not stop the others' reads.
            tokio::spawn(async move {
                while let Some(callers) = reader.shared.next() {
                    let outcome = read(source.clone()).await.map_err(Arc::new);
                    for caller in callers {
                        // A caller that has stopped waiting is no problem.
                        drop(caller.send(outcome.clone()));
                    }
                }
                reader.finish();
            });
        }
        match outcome.await {
            Ok(outcome) => outcome.map_err(shared_error),
            Err(gone) => Err(StoreError::Unavailable(gone.into())),
        }
    }

    /// Queues a caller; returns whether it has to begin reading.
    fn queue(&self, caller: Reply<T>) -> bool {
        let mut waiting = self.waiting();
        let is_first = waiting.is_none();
        waiting.get_or_insert_default().push(caller);
        is_first
    }

    /// Removes the callers that wait for the next read.
    fn next(&self) -> Option<Vec<Reply<T>>> {
        let mut waiting = self.waiting();
        let callers = waiting.take().filter(|callers| !callers.is_empty())?;
        *waiting = Some(Vec::new());
        Some(callers)
    }
}

/// The task that reads. If it ends early, with its runtime or by a panic, the callers get an error and the next one reads.
struct Reader<T> {
    shared: Arc<SharedRead<T>>,
    is_done: bool,
}

impl<T> Reader<T> {
    fn finish(mut self) {
        self.is_done = true;
    }
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        if !self.is_done {
            *self.shared.waiting() = None;
        }
    }
}

/// Returns an error for one of the callers that share it.
fn shared_error(error: Arc<StoreError>) -> StoreError {
    match &*error {
        StoreError::Unavailable(_) => StoreError::Unavailable(error.into()),
        StoreError::StorageFull(_) => StoreError::StorageFull(error.into()),
        _ => StoreError::Internal(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::{sync::Semaphore, task::yield_now};

    use super::*;

    /// A source whose reads wait for a permit each.
    #[derive(Clone)]
    struct Source {
        begun: Arc<AtomicU32>,
        permits: Arc<Semaphore>,
    }

    impl Source {
        fn new() -> Self {
            Self { begun: Arc::default(), permits: Arc::new(Semaphore::new(0)) }
        }

        /// Returns the number of the read.
        async fn read(self) -> Result<u32, StoreError> {
            let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
            self.permits.acquire().await.unwrap().forget();
            if number == 2 { Err(StoreError::Unavailable("no database".into())) } else { Ok(number) }
        }

        async fn until_begun(&self, number: u32) {
            while self.begun.load(Ordering::SeqCst) < number {
                yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn callers_share_the_read_that_begins_after_their_call() {
        let (shared, source) = (Arc::new(SharedRead::default()), Source::new());
        let call = || {
            let (shared, source) = (Arc::clone(&shared), source.clone());
            tokio::spawn(async move { shared.get(&source, Source::read).await })
        };
        let first = call();
        source.until_begun(1).await;
        let later = [call(), call(), call()];
        for _ in 0..10 {
            yield_now().await;
        }
        // One that stops waiting does not stop the others.
        later[2].abort();
        source.permits.add_permits(1);
        assert_eq!(first.await.unwrap().unwrap(), 1);
        source.until_begun(2).await;
        let last = call();
        for _ in 0..10 {
            yield_now().await;
        }
        source.permits.add_permits(2);
        let [one, other, _] = later;
        for caller in [one, other] {
            assert!(matches!(caller.await.unwrap(), Err(StoreError::Unavailable(_))));
        }
        assert_eq!(last.await.unwrap().unwrap(), 3);
        // Nothing runs without a caller.
        yield_now().await;
        assert_eq!(source.begun.load(Ordering::SeqCst), 3);
        source.permits.add_permits(1);
        assert_eq!(call().await.unwrap().unwrap(), 4);
    }

    #[test]
    fn a_reader_that_ends_early_fails_its_callers_and_no_later_ones() {
        let (shared, source) = (Arc::new(SharedRead::default()), Source::new());
        let runtime = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (one, other) = (runtime(), runtime());
        let call = || {
            let (shared, source) = (Arc::clone(&shared), source.clone());
            async move { shared.get(&source, Source::read).await }
        };
        let reads = one.spawn(call());
        one.block_on(source.until_begun(1));
        let waits = other.spawn(call());
        other.block_on(async { yield_now().await });
        drop((one, reads));
        assert!(matches!(other.block_on(waits).unwrap(), Err(StoreError::Unavailable(_))));
        source.permits.add_permits(2);
        assert!(matches!(other.block_on(call()), Err(StoreError::Unavailable(_))), "the second read fails");
        assert_eq!(other.block_on(call()).unwrap(), 3);
    }
}
