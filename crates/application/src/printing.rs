//! Keeping what programs print: masked, in order, durable in batches.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use launchway_domain::{
    deployments::Output,
    logs::{Level, LineAssembler, Masker, clean},
    store::StoreError,
};
use tokio::sync::{Mutex, Notify};

/// A batch is written when it has so many lines …
const LINES: usize = 500;
/// … or so many bytes …
const BYTES: usize = 256 * 1024;
/// … or is so old.
const AGE: Duration = Duration::from_millis(100);
/// What a line costs at least, in bytes, whatever it says: one of which nothing is shown is a record
/// all the same.
const LEAST: usize = 40;
/// How long to wait before a batch that could not be written is tried again.
const PATIENCE: Duration = Duration::from_millis(500);

/// Where lines go, and how they are marked.
#[async_trait]
pub(crate) trait Keeper: Send + Sync {
    /// A line as it is kept.
    type Line: Clone + Send + Sync;
    /// What else is noted of a line than what it says.
    type Mark: Clone + Send + Sync;

    /// How much may be printed in all, in bytes.
    const MOST_BYTES: usize;

    /// A line with its marks.
    fn line(&self, mark: &Self::Mark, level: Level, text: String) -> Self::Line;

    /// Makes lines durable.
    async fn keep(&self, lines: Vec<Self::Line>) -> Result<(), StoreError>;
}

/// A log under way. Lines are masked, kept in their order, and durable in batches; who prints faster
/// than can be made durable has to wait.
pub(crate) struct Printer<K: Keeper> {
    keeper: K,
    masker: Masker,
    pending: Mutex<Pending<K::Line>>,
    ended: Notify,
}

struct Pending<L> {
    lines: Vec<L>,
    bytes: usize,
    /// How much was printed since the beginning.
    printed: usize,
}

impl<K: Keeper> Printer<K> {
    pub(crate) fn new(keeper: K, masker: Masker) -> Arc<Self> {
        let pending = Mutex::new(Pending { lines: Vec::new(), bytes: 0, printed: 0 });
        Arc::new(Self { keeper, masker, pending, ended: Notify::new() })
    }

    /// What happened, in Launchway's own words.
    pub(crate) async fn say_of(&self, mark: &K::Mark, level: Level, text: impl Into<String>) {
        for line in text.into().lines() {
            self.push(mark, level, self.shown(line)).await;
        }
    }

    /// Takes what a program prints as lines of `level`.
    pub(crate) fn output_of(self: &Arc<Self>, mark: K::Mark, level: Level) -> Arc<PrintedOutput<K>> {
        Arc::new(PrintedOutput { log: Arc::clone(self), mark, level, assembler: Mutex::default() })
    }

    /// Writes what is left every now and then while `work` is done.
    ///
    /// No batch is given up half way for the end of the work: it would be written a second time.
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

    /// Returns when everything so far is durable.
    pub(crate) async fn flush(&self) {
        let mut pending = self.pending.lock().await;
        self.write(&mut pending).await;
    }

    /// A line for somebody else to write, with the marks of this log.
    pub(crate) fn line_of(&self, mark: &K::Mark, level: Level, text: &str) -> K::Line {
        self.keeper.line(mark, level, self.shown(text))
    }

    /// A text as anybody may see it: without secrets, and without commands to a terminal.
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
                self.keeper.line(mark, Level::Warn, "The log is full: what follows is not kept".to_owned())
            }
            false => self.keeper.line(mark, level, text),
        };
        pending.lines.push(line);
        if pending.lines.len() >= LINES || pending.bytes >= BYTES {
            self.write(&mut pending).await;
        }
    }

    /// Tries until it is done: nothing that was printed is dropped. Who holds a lease that has
    /// ended meanwhile is told so elsewhere, and drops this.
    async fn write(&self, pending: &mut Pending<K::Line>) {
        while !pending.lines.is_empty() {
            match self.keeper.keep(pending.lines.clone()).await {
                Ok(()) => {
                    pending.lines.clear();
                    pending.bytes = 0;
                }
                Err(error) => {
                    tracing::warn!(%error, "log lines wait for the database");
                    tokio::time::sleep(PATIENCE).await;
                }
            }
        }
    }
}

/// What a program prints, on its way into a log.
pub(crate) struct PrintedOutput<K: Keeper> {
    log: Arc<Printer<K>>,
    mark: K::Mark,
    level: Level,
    assembler: Mutex<LineAssembler>,
}

impl<K: Keeper> PrintedOutput<K> {
    /// The program has ended: a line without an end is one all the same.
    pub(crate) async fn finish(&self) {
        let rest = self.assembler.lock().await.finish(&self.log.masker);
        if let Some(line) = rest {
            self.log.push(&self.mark, self.level, line).await;
        }
    }
}

#[async_trait]
impl<K: Keeper> Output for PrintedOutput<K> {
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
    impl Keeper for Kept {
        type Line = String;
        type Mark = ();

        const MOST_BYTES: usize = 10 * LEAST;

        fn line(&self, (): &(), _: Level, text: String) -> String {
            text
        }

        async fn keep(&self, lines: Vec<String>) -> Result<(), StoreError> {
            self.0.lock().await.extend(lines);
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_flood_of_lines_that_show_nothing_has_an_end_too() {
        for line in [b"\x07\n".as_slice(), b"\x1b[0m\n", b"y\n"] {
            let log = Printer::new(Kept::default(), Masker::new([]));
            let output = log.output_of((), Level::Runtime);
            output.write(&line.repeat(1000)).await;
            log.flush().await;
            let kept = log.keeper.0.lock().await;
            assert_eq!(kept.len(), 11, "{line:?}");
            assert_eq!(kept.last().map(String::as_str), Some("The log is full: what follows is not kept"));
        }
    }
}
