//! The access log: one line for each request.
//!
//! **Invariant:** logging a request never waits for the disk. When lines arrive faster than the disk takes
//! them, some are dropped, and a line says how many.

mod entry;
mod file;

use std::{
    fmt, io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::SystemTime,
};

pub use self::entry::Entry;
use self::file::RotatedFile;

/// The largest number of requests that wait to be written. Each takes a few hundred bytes.
const MOST_WAITING: usize = 8 * 1024;

/// The size of one write.
const MOST_AT_ONCE: usize = 64 * 1024;

/// The access log. Dropping it waits until every queued entry is written.
pub struct AccessLog {
    writer: Option<Writer>,
}

struct Writer {
    /// `None` once the log is dropped.
    queue: Option<SyncSender<Entry>>,
    lost: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
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
    pub fn note(&self, entry: Entry) {
        let Some(writer) = &self.writer else { return };
        if writer.queue.as_ref().is_some_and(|queue| queue.try_send(entry).is_err()) {
            writer.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn start(most_waiting: usize, file: impl Lines) -> io::Result<Self> {
        let (queue, entries) = sync_channel(most_waiting);
        let lost = Arc::new(AtomicU64::new(0));
        let pen = Pen { file, lost: lost.clone() };
        let thread =
            thread::Builder::new().name("access-log".to_owned()).spawn(move || pen.write(&entries))?;
        Ok(Self { writer: Some(Writer { queue: Some(queue), lost, thread: Some(thread) }) })
    }
}

impl fmt::Debug for AccessLog {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AccessLog").field("is_on", &self.writer.is_some()).finish()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            // It never panics; if it did, there would be nothing left to write.
            let _ended = thread.join();
        }
    }
}

/// A sink of complete lines.
trait Lines: Send + 'static {
    fn append(&mut self, lines: &[u8]) -> io::Result<()>;
}

struct Pen<F> {
    file: F,
    lost: Arc<AtomicU64>,
}

impl<F: Lines> Pen<F> {
    /// Writes entries until every sender is dropped.
    fn write(mut self, entries: &Receiver<Entry>) {
        let mut lines = Vec::with_capacity(MOST_AT_ONCE);
        while let Ok(first) = entries.recv() {
            let mut count = 0;
            let waiting = entries.try_iter();
            for entry in std::iter::once(first).chain(waiting) {
                entry.write_line(&mut lines);
                count += 1;
                if lines.len() >= MOST_AT_ONCE {
                    break;
                }
            }
            self.append(&mut lines, count);
        }
        if self.lost.load(Ordering::Relaxed) > 0 {
            self.append(&mut lines, 0);
        }
    }

    fn append(&mut self, lines: &mut Vec<u8>, count: u64) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            entry::write_loss(lost, SystemTime::now(), lines);
        }
        if let Err(error) = self.file.append(lines) {
            // Once, and not for each request: the number of lost lines is logged as soon as possible.
            if lost == 0 {
                tracing::warn!(%error, "access log write failed");
            }
            self.lost.fetch_add(lost + count, Ordering::Relaxed);
        }
        lines.clear();
    }
}

#[cfg(test)]
mod tests;
