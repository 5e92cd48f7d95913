//! The access log: one line for each request.
//!
//! **Invariant:** logging a request never waits for the disk. When lines arrive faster than the disk takes
//! them, some are dropped, and a line says how many.

mod entry;
mod file;

use std::{
    fmt, io, mem,
    path::Path,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, SystemTime},
};

pub use self::entry::Entry;
use self::file::RotatedFile;

/// The largest number of bytes that wait to be written.
const MOST_WAITING: usize = 4 * 1024 * 1024;

/// The time for which lines are collected before they are written. A write for each request would cost more than its
/// line.
const COLLECTED: Duration = Duration::from_millis(20);

/// The access log. Dropping it waits until every queued entry is written.
pub struct AccessLog {
    writer: Option<Writer>,
}

struct Writer {
    queue: Arc<Queue>,
    thread: Option<JoinHandle<()>>,
}

/// The lines that wait to be written.
struct Queue {
    waiting: Mutex<Waiting>,
    /// Notified when the first line waits, and when the log is dropped.
    changed: Condvar,
    most_waiting: usize,
}

#[derive(Default)]
struct Waiting {
    lines: Vec<u8>,
    count: u64,
    lost: u64,
    is_closed: bool,
}

impl AccessLog {
    /// Appends to the file at `path`, which only its owner may read. Up to two older files are kept
    /// beside it, `<path>.1` and `<path>.2`. Another process may append at the same time.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the path cannot be written, or is not a regular file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = RotatedFile::open(path, file::MOST_BYTES)?;
        Self::start(MOST_WAITING, file)
    }

    /// A log that discards every entry.
    pub fn off() -> Self {
        Self { writer: None }
    }

    /// Queues an entry. Returns at once.
    pub fn note(&self, entry: &Entry<'_>) {
        if let Some(writer) = &self.writer {
            entry.with_line(|line| writer.queue.put(line));
        }
    }

    fn start(most_waiting: usize, file: impl Lines) -> io::Result<Self> {
        let queue = Arc::new(Queue { waiting: Mutex::default(), changed: Condvar::new(), most_waiting });
        let pen = LogThread { file, queue: Arc::clone(&queue), lost: 0 };
        let thread = thread::Builder::new().name("access-log".to_owned()).spawn(move || pen.write())?;
        Ok(Self { writer: Some(Writer { queue, thread: Some(thread) }) })
    }
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AccessLog").field("is_on", &self.writer.is_some()).finish()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.lock().is_closed = true;
        self.queue.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // It never panics; if it did, there would be nothing left to write.
            let _ended = thread.join();
        }
    }
}

impl Queue {
    fn put(&self, line: &[u8]) {
        let mut waiting = self.lock();
        if waiting.lines.len() + line.len() > self.most_waiting {
            waiting.lost += 1;
            return;
        }
        waiting.lines.extend_from_slice(line);
        waiting.count += 1;
        let is_first = waiting.count == 1;
        drop(waiting);
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Waits for lines, and then a little for more of them. Returns them in place of `empty`, and what else waits; `None`
    /// if the log was dropped and there are none.
    fn take(&self, empty: Vec<u8>) -> Option<Waiting> {
        let is_idle = |waiting: &mut Waiting| !waiting.is_closed && waiting.count + waiting.lost == 0;
        let waiting = self.lock();
        let waiting = self.changed.wait_while(waiting, is_idle).unwrap_or_else(PoisonError::into_inner);
        let is_open = |waiting: &mut Waiting| !waiting.is_closed;
        let waited = self.changed.wait_timeout_while(waiting, COLLECTED, is_open);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let is_closed = waiting.is_closed;
        let taken = mem::replace(&mut *waiting, Waiting { lines: empty, is_closed, ..Waiting::default() });
        (!is_closed || taken.count + taken.lost > 0).then_some(taken)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A sink of complete lines.
trait Lines: Send + 'static {
    fn append(&mut self, lines: &[u8]) -> io::Result<()>;
}

struct LogThread<F> {
    file: F,
    queue: Arc<Queue>,
    /// The lines that were lost, and are not yet reported.
    lost: u64,
}

impl<F: Lines> LogThread<F> {
    /// Writes lines until the log is dropped.
    fn write(mut self) {
        let mut lines = Vec::new();
        while let Some(taken) = self.queue.take(lines) {
            lines = taken.lines;
            let failed_before = self.lost > 0;
            self.lost += taken.lost;
            self.append(&mut lines, taken.count, failed_before);
        }
        if self.lost > 0 {
            self.append(&mut Vec::new(), 0, true);
        }
    }

    fn append(&mut self, lines: &mut Vec<u8>, count: u64, failed_before: bool) {
        if self.lost > 0 {
            entry::write_loss(self.lost, SystemTime::now(), lines);
        }
        match self.file.append(lines) {
            Ok(()) => self.lost = 0,
            Err(error) => {
                // Once, and not for each write: the number of lost lines is logged as soon as possible.
                if !failed_before {
                    tracing::warn!(%error, "access log write failed");
                }
                self.lost += count;
            }
        }
        lines.clear();
    }
}

#[cfg(test)]
mod tests;
