//! Stores the output of programs: masked, in order, durable in batches.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use launchway_domain::{
    deployments::Output,
    logs::{Level, LineAssembler, Masker, clean},
    store::StoreError,
};
use tokio::sync::{Mutex, Notify};

/// The number of lines after which a batch is written.
const LINES: usize = 500;
/// The number of bytes after which a batch is written.
const BYTES: usize = 256 * 1024;
/// The age at which a batch is written.
const AGE: Duration = Duration::from_millis(100);
/// The least that a line counts, in bytes: even an empty line is a record.
const LEAST: usize = 40;
/// The delay before a batch that could not be written is retried.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The storage of lines.
#[async_trait]
pub(crate) trait LineSink: Send + Sync {
    /// A stored line.
    type Line: Clone + Send + Sync;
    /// Metadata of a line.
    type Mark: Clone + Send + Sync;

    /// The largest output, in bytes.
    const MOST_BYTES: usize;

    /// Creates a line with its metadata.
    fn line(&self, mark: &Self::Mark, level: Level, text: String) -> Self::Line;

    /// Stores lines durably.
    async fn append(&self, lines: Vec<Self::Line>) -> Result<(), StoreError>;
}

/// The writer of a log. Lines are masked, kept in order, and durable in batches. A program that prints
/// faster than lines become durable is slowed down.
pub(crate) struct LogWriter<K: LineSink> {
    sink: K,
    masker: Masker,
    pending: Mutex<Pending<K::Line>>,
    ended: Notify,
}

struct Pending<L> {
    lines: Vec<L>,
    bytes: usize,
    /// The bytes since the start.
    printed: usize,
}

impl<K: LineSink> LogWriter<K> {
    pub(crate) fn new(sink: K, masker: Masker) -> Arc<Self> {
        let pending = Mutex::new(Pending { lines: Vec::new(), bytes: 0, printed: 0 });
        Arc::new(Self { sink, masker, pending, ended: Notify::new() })
    }

    /// Logs a message of Launchway itself.
    pub(crate) async fn write_line_of(&self, mark: &K::Mark, level: Level, text: impl Into<String>) {
        for line in text.into().lines() {
            self.push(mark, level, self.shown(line)).await;
        }
    }

    /// Returns an output that logs the lines of a program at `level`.
    pub(crate) fn output_of(self: &Arc<Self>, mark: K::Mark, level: Level) -> Arc<PrintedOutput<K>> {
        Arc::new(PrintedOutput { log: Arc::clone(self), mark, level, assembler: Mutex::default() })
    }

    /// Flushes periodically while `work` runs.
    ///
    /// The end of the work does not interrupt a batch: it would be written a second time.
    pub(crate) async fn keep_writing_during<T>(&self, work: impl Future<Output = T>) -> T {
        let write = async {
            while tokio::time::timeout(AGE, self.ended.notified()).await.is_err() {
                self.flush().await;
            }
        };
        let work = async {
            let outcome = work.await;
            self.ended.notify_one();
            outcome
        };
        tokio::join!(work, write).0
    }

    /// Returns when all lines so far are durable.
    pub(crate) async fn flush(&self) {
        let mut pending = self.pending.lock().await;
        self.write(&mut pending).await;
    }

    /// Returns a line of this log, with its secrets masked, for the caller to write.
    pub(crate) fn line_of(&self, mark: &K::Mark, level: Level, text: &str) -> K::Line {
        self.sink.line(mark, level, self.shown(text))
    }

    /// Returns a text without secrets and without terminal escape sequences.
    pub(crate) fn shown(&self, text: &str) -> String {
        let lines: Vec<String> = text.lines().map(|line| self.masker.mask(&clean(line.as_bytes()))).collect();
        lines.join("\n")
    }

    async fn push(&self, mark: &K::Mark, level: Level, text: String) {
        let mut pending = self.pending.lock().await;
        if pending.printed > K::MOST_BYTES {
            return;
        }
        pending.printed += text.len().max(LEAST);
        let is_full = pending.printed > K::MOST_BYTES;
        pending.bytes += text.len();
        let line = match is_full {
            true => {
                self.sink.line(mark, Level::Warn, "Log limit reached: further lines are dropped".to_owned())
            }
            false => self.sink.line(mark, level, text),
        };
        pending.lines.push(line);
        if pending.lines.len() >= LINES || pending.bytes >= BYTES {
            self.write(&mut pending).await;
        }
    }

    /// Writes the pending lines, and retries until it succeeds: no output is dropped. If the lease is lost
    /// in the meantime, another check drops this future.
    async fn write(&self, pending: &mut Pending<K::Line>) {
        while !pending.lines.is_empty() {
            match self.sink.append(pending.lines.clone()).await {
                Ok(()) => {
                    pending.lines.clear();
                    pending.bytes = 0;
                }
                Err(error) => {
                    tracing::warn!(%error, "log lines could not be stored yet");
                    tokio::time::sleep(TIMEOUT).await;
                }
            }
        }
    }
}

/// The output of a program, which is split into lines of a log.
pub(crate) struct PrintedOutput<K: LineSink> {
    log: Arc<LogWriter<K>>,
    mark: K::Mark,
    level: Level,
    assembler: Mutex<LineAssembler>,
}

impl<K: LineSink> PrintedOutput<K> {
    /// Ends the output: an unfinished line is logged too.
    pub(crate) async fn finish(&self) {
        let rest = self.assembler.lock().await.finish(&self.log.masker);
        if let Some(line) = rest {
            self.log.push(&self.mark, self.level, line).await;
        }
    }
}

#[async_trait]
impl<K: LineSink> Output for PrintedOutput<K> {
    async fn write(&self, piece: &[u8]) {
        let lines = self.assembler.lock().await.push(piece, &self.log.masker);
        for line in lines {
            self.log.push(&self.mark, self.level, line).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Kept(Mutex<Vec<String>>);

    #[async_trait]
    impl LineSink for Kept {
        type Line = String;
        type Mark = ();

        const MOST_BYTES: usize = 10 * LEAST;

        fn line(&self, (): &(), _: Level, text: String) -> String {
            text
        }

        async fn append(&self, lines: Vec<String>) -> Result<(), StoreError> {
            self.0.lock().await.extend(lines);
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_flood_of_lines_that_show_nothing_has_an_end_too() {
        for line in [b"\x07\n".as_slice(), b"\x1b[0m\n", b"y\n"] {
            let log = LogWriter::new(Kept::default(), Masker::new([]));
            let output = log.output_of((), Level::Runtime);
            output.write(&line.repeat(1000)).await;
            log.flush().await;
            let kept = log.sink.0.lock().await;
            assert_eq!(kept.len(), 11, "{line:?}");
            assert_eq!(kept.last().map(String::as_str), Some("Log limit reached: further lines are dropped"));
        }
    }
}
