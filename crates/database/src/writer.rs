//! The one writer of a SQLite file, and its group commit.
//!
//! Making a transaction durable costs a wait for the disk, however little it holds. So the writer takes
//! every queued change, makes each in a savepoint of its own inside one transaction, waits for the disk
//! once, and only then returns each caller its result.

mod job;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use diesel::connection::{SimpleConnection as _, TransactionManager as _};
use launchway_domain::{error_chain::ErrorChain, store::StoreError};
use launchway_system::files;
use tokio::{
    sync::{Semaphore, oneshot},
    task, time,
};

use self::job::Job;
use super::{
    connection::{AnyConnection, begin, sqlite_writer},
    error::QueryError,
    options::Synchronous,
    signals::epochs::{self, Epochs, StoredEpochs},
    statistics::Counters,
    storage_state::FULL_BELOW,
    work,
};

/// The most changes that are queued for the writer before callers wait.
const QUEUE: usize = 4096;
/// The most changes of one transaction.
const BATCH: usize = 256;
/// The interval at which an idle writer checks for writes of other processes.
pub(super) const IDLE_TICK: Duration = Duration::from_millis(250);
/// The interval of checkpoints of the write-ahead log while there are changes.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(30);
/// The size in bytes above which the log is checkpointed sooner, but not at every commit.
const LARGE_LOG: u64 = 8 * 1024 * 1024;
const LARGE_LOG_EVERY: Duration = Duration::from_secs(1);

/// A handle of the thread that writes.
pub(super) struct Writer {
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    places: Arc<Semaphore>,
    max_wait: Duration,
    epochs: Arc<Epochs>,
}

impl Writer {
    /// Opens the file for writing, creating it if necessary, and starts the thread.
    pub(super) fn start(
        path: String,
        synchronous: Synchronous,
        max_wait: Duration,
        counters: Arc<Counters>,
    ) -> Result<Self, StartError> {
        let epochs = Arc::new(Epochs::default());
        // Subscribers miss nothing from the beginning.
        epochs.signals().publish_all();
        let mut worker = Worker {
            log: PathBuf::from(format!("{path}-wal")),
            path,
            synchronous,
            connection: None,
            epochs: Arc::clone(&epochs),
            counters,
            checkpointed: Instant::now(),
            log_is_empty: false,
        };
        worker.connection()?;
        worker.notice_other_writers();
        let (sender, receiver) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("database-writer".to_owned())
            .spawn(move || worker.work_off(&receiver))
            .map_err(StartError::Thread)?;
        Ok(Self {
            jobs: Mutex::new(Some(sender)),
            thread: Mutex::new(Some(thread)),
            places: Arc::new(Semaphore::new(QUEUE)),
            max_wait,
            epochs,
        })
    }

    /// Returns the counters after the last commit.
    pub(super) fn epochs(&self) -> &Epochs {
        &self.epochs
    }

    /// Queues a change and waits until it is durable or was rolled back.
    pub(super) async fn write(&self, work: work::Write) -> Result<(), StoreError> {
        let place = time::timeout(self.max_wait, Arc::clone(&self.places).acquire_owned())
            .await
            .map_err(|elapsed| StoreError::Unavailable(elapsed.into()))?
            .map_err(|closed| StoreError::Unavailable(closed.into()))?;
        let (reply, outcome) = oneshot::channel();
        let job = Job::new(work, reply, place);
        let accepted = match &*self.jobs.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(jobs) => jobs.send(job).is_ok(),
            None => false,
        };
        if !accepted {
            return Err(StoreError::Unavailable("the database is closed".into()));
        }
        outcome.await.unwrap_or_else(|gone| Err(StoreError::Unavailable(gone.into())))
    }

    /// Rejects new changes, finishes the accepted ones, and ends the thread.
    pub(super) async fn close(&self) {
        if let Some(thread) = self.stop() {
            // A panic of the thread has been reported by the panic hook.
            drop(task::spawn_blocking(move || thread.join()).await);
        }
    }

    fn stop(&self) -> Option<JoinHandle<()>> {
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // A change may hold the last handle; then this is the thread itself.
        if let Some(thread) = self.stop().filter(|thread| thread.thread().id() != thread::current().id()) {
            drop(thread.join());
        }
    }
}

/// An error of starting the writer.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error("cannot open the file")]
    Connection(#[from] diesel::r2d2::Error),
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

/// The state of the writer thread.
struct Worker {
    path: String,
    log: PathBuf,
    synchronous: Synchronous,
    /// Absent after a failed transaction, because the state of its connection is unknown.
    connection: Option<AnyConnection>,
    epochs: Arc<Epochs>,
    counters: Arc<Counters>,
    checkpointed: Instant,
    log_is_empty: bool,
}

impl Worker {
    fn work_off(mut self, jobs: &Receiver<Job>) {
        loop {
            match jobs.recv_timeout(IDLE_TICK) {
                Ok(first) => {
                    let batch = std::iter::once(first).chain(jobs.try_iter()).take(BATCH).collect();
                    self.carry_out(batch);
                }
                Err(RecvTimeoutError::Timeout) => self.notice_other_writers(),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.checkpoint_if_due();
        }
        self.checkpoint();
    }

    fn carry_out(&mut self, mut batch: Vec<Job>) {
        match self.commit(&mut batch) {
            Ok(epochs) => {
                // Before the callers get their results: whoever knows of a change must not see the old
                // epochs.
                self.publish(epochs);
                self.counters.count_transaction();
                self.log_is_empty = false;
                for job in batch {
                    job.answer(Ok(()));
                }
            }
            Err(error) => {
                self.connection = None;
                let error = if self.is_storage_full(&error, &batch) {
                    QueryError::StorageFull(Box::new(error))
                } else {
                    error
                };
                tracing::error!(error = %ErrorChain(&error), changes = batch.len(), "transaction failed");
                let reason = Arc::new(error);
                for job in batch {
                    job.answer(Err(Arc::clone(&reason)));
                }
            }
        }
    }

    /// Commits the changes of `batch` together; each that fails is rolled back alone.
    fn commit(&mut self, batch: &mut [Job]) -> Result<Option<StoredEpochs>, QueryError> {
        let connection = self.connection()?;
        begin(connection)?;
        for job in batch {
            connection.batch_execute("SAVEPOINT change")?;
            let keep = job.run(connection);
            // Some errors, such as a full disk, make SQLite roll the whole transaction back. Then the
            // savepoint is gone as well, this fails, and so does every change of the batch.
            connection.batch_execute(if keep {
                "RELEASE change"
            } else {
                "ROLLBACK TO change; RELEASE change"
            })?;
        }
        let epochs = epochs::stored(connection)?;
        AnyConnection::commit_transaction(connection)?;
        Ok(epochs)
    }

    /// Returns whether a transaction failed because of a full disk. SQLite reports it only to the statement
    /// that met it, and other errors to the statements after it; a file that cannot grow may also be a mere
    /// I/O error.
    fn is_storage_full(&self, error: &QueryError, batch: &[Job]) -> bool {
        let has_space = || files::free_bytes(Path::new(&self.path)).is_ok_and(|free| free >= FULL_BELOW);
        error.is_storage_full()
            || batch.iter().any(Job::failed_on_full_disk)
            || (error.is_file_error() && !has_space())
    }

    fn connection(&mut self) -> Result<&mut AnyConnection, diesel::r2d2::Error> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => AnyConnection::Sqlite(sqlite_writer(&self.path, self.synchronous)?),
        };
        Ok(self.connection.insert(connection))
    }

    /// Picks up changes that another process, such as a command-line tool, has written.
    fn notice_other_writers(&mut self) {
        let Ok(connection) = self.connection() else { return };
        match epochs::stored(connection) {
            Ok(epochs) => self.publish(epochs),
            Err(error) => tracing::warn!(error = %ErrorChain(&error), "epochs could not be read"),
        }
    }

    fn publish(&self, epochs: Option<StoredEpochs>) {
        if let Some(epochs) = epochs {
            self.epochs.publish(epochs);
        }
    }

    fn checkpoint_if_due(&mut self) {
        let since = self.checkpointed.elapsed();
        if self.log_is_empty || since < LARGE_LOG_EVERY {
            return;
        }
        let Ok(length) = fs::metadata(&self.log).map(|log| log.len()) else { return };
        // A transaction without a change writes nothing, and a checkpoint of nothing would look like a change.
        self.log_is_empty = length == 0;
        if length > LARGE_LOG || (length > 0 && since >= CHECKPOINT_EVERY) {
            self.checkpoint();
        }
    }

    /// Checkpoints the log into the file, unless readers block it for longer than the busy timeout.
    fn checkpoint(&mut self) {
        self.checkpointed = Instant::now();
        let Ok(connection) = self.connection() else { return };
        let outcome = connection.batch_execute(
            "PRAGMA busy_timeout = 100; PRAGMA wal_checkpoint(TRUNCATE); PRAGMA busy_timeout = 5000;",
        );
        match outcome {
            Ok(()) => self.log_is_empty = fs::metadata(&self.log).is_ok_and(|log| log.len() == 0),
            Err(error) => tracing::warn!(%error, "write-ahead log checkpoint failed"),
        }
    }
}
