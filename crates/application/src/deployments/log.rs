//! Writing the log of one attempt at a deployment.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use launchway_domain::{
    clock::Clock,
    deployments::{Deployment, Output},
    logs::{Level, LineAssembler, LogSink, Masker, NewLine, clean},
};
use tokio::sync::{Mutex, Notify};

use crate::applications::OpenSecrets;

/// A batch is written when it has so many lines …
const LINES: usize = 500;
/// … or so many bytes …
const BYTES: usize = 256 * 1024;
/// … or is so old.
const AGE: Duration = Duration::from_millis(100);
/// How much one attempt may print.
const MOST_BYTES: usize = 50 * 1024 * 1024;
/// How long to wait before a batch that could not be written is tried again.
const PATIENCE: Duration = Duration::from_millis(500);

/// The log of one attempt. Lines are masked, kept in their order, and durable in batches; who
/// prints faster than can be made durable has to wait.
pub(crate) struct DeploymentLog {
    sink: Arc<dyn LogSink>,
    clock: Arc<dyn Clock>,
    masker: Masker,
    deployment: Deployment,
    pending: Mutex<Pending>,
    ended: Notify,
}

#[derive(Default)]
struct Pending {
    lines: Vec<NewLine>,
    bytes: usize,
    /// How much was printed since the beginning.
    printed: usize,
}

impl DeploymentLog {
    pub(crate) fn new(
        sink: Arc<dyn LogSink>,
        clock: Arc<dyn Clock>,
        deployment: Deployment,
        masker: Masker,
    ) -> Arc<Self> {
        Arc::new(Self { sink, clock, masker, deployment, pending: Mutex::default(), ended: Notify::new() })
    }

    /// What happened, in Launchway's own words.
    pub(crate) async fn say(&self, level: Level, text: impl Into<String>) {
        for line in text.into().lines() {
            self.push(level, self.shown(line)).await;
        }
    }

    /// Takes what a program prints as lines of `level`.
    pub(crate) fn output(self: &Arc<Self>, level: Level) -> Arc<PrintedOutput> {
        Arc::new(PrintedOutput { log: Arc::clone(self), level, assembler: Mutex::default() })
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
    pub(crate) fn line(&self, level: Level, text: &str) -> NewLine {
        self.marked(level, self.shown(text))
    }

    /// A text as anybody may see it: without secrets, and without commands to a terminal.
    pub(crate) fn shown(&self, text: &str) -> String {
        let lines: Vec<String> = text.lines().map(|line| self.masker.mask(&clean(line.as_bytes()))).collect();
        lines.join("\n")
    }

    async fn push(&self, level: Level, text: String) {
        let mut pending = self.pending.lock().await;
        if pending.printed > MOST_BYTES {
            return;
        }
        pending.printed += text.len();
        let line = if pending.printed > MOST_BYTES {
            self.marked(Level::Warn, "The log is full: what follows is not kept".to_owned())
        } else {
            self.marked(level, text)
        };
        pending.bytes += line.text.len();
        pending.lines.push(line);
        if pending.lines.len() >= LINES || pending.bytes >= BYTES {
            self.write(&mut pending).await;
        }
    }

    /// Tries until it is done: nothing that was printed is dropped. Who holds a lease that has
    /// ended meanwhile is told so elsewhere, and drops this.
    async fn write(&self, pending: &mut Pending) {
        while !pending.lines.is_empty() {
            match self.sink.append(pending.lines.clone()).await {
                Ok(()) => {
                    pending.lines.clear();
                    pending.bytes = 0;
                }
                Err(error) => {
                    tracing::warn!(deployment.id = %self.deployment.id, %error, "log lines wait for the database");
                    tokio::time::sleep(PATIENCE).await;
                }
            }
        }
    }

    fn marked(&self, level: Level, text: String) -> NewLine {
        NewLine {
            application_id: self.deployment.application_id,
            deployment_id: self.deployment.id,
            level,
            text,
            at: self.clock.now(),
        }
    }
}

/// What a program prints, on its way into a log.
pub(crate) struct PrintedOutput {
    log: Arc<DeploymentLog>,
    level: Level,
    assembler: Mutex<LineAssembler>,
}

impl PrintedOutput {
    /// The program has ended: a line without an end is one all the same.
    pub(crate) async fn finish(&self) {
        let rest = self.assembler.lock().await.finish(&self.log.masker);
        if let Some(line) = rest {
            self.log.push(self.level, line).await;
        }
    }
}

#[async_trait]
impl Output for PrintedOutput {
    async fn write(&self, piece: &[u8]) {
        let lines = self.assembler.lock().await.push(piece, &self.log.masker);
        for line in lines {
            self.log.push(self.level, line).await;
        }
    }
}

/// What no line of an application's log may show.
pub(crate) fn secrets_of(secrets: &OpenSecrets) -> Masker {
    let variables = secrets.build_variables.iter().chain(secrets.environment_variables.iter());
    let password = secrets.credentials.as_ref().map(|credentials| credentials.password.expose().as_str());
    Masker::new(variables.map(|(_, value)| value).chain(password))
}
