//! The log of one attempt at a deployment.

use std::sync::Arc;

use async_trait::async_trait;
use launchway_domain::{
    clock::Clock,
    deployments::Deployment,
    logs::{Level, LogSink, Masker, NewLine},
    store::StoreError,
};

use crate::{
    applications::OpenSecrets,
    log_writer::{LineSink, LogWriter, PrintedOutput},
};

/// The log of one attempt.
pub(crate) type DeploymentLog = LogWriter<DeploymentLines>;

/// The lines of one attempt.
pub(crate) struct DeploymentLines {
    sink: Arc<dyn LogSink>,
    clock: Arc<dyn Clock>,
    deployment: Deployment,
}

#[async_trait]
impl LineSink for DeploymentLines {
    type Line = NewLine;
    type Mark = ();

    const MOST_BYTES: usize = 50 * 1024 * 1024;

    fn line(&self, (): &(), level: Level, text: String) -> NewLine {
        NewLine {
            application_id: self.deployment.application_id,
            deployment_id: self.deployment.id,
            level,
            text,
            at: self.clock.now(),
        }
    }

    async fn append(&self, lines: Vec<NewLine>) -> Result<(), StoreError> {
        self.sink.append(lines).await
    }
}

impl DeploymentLog {
    pub(crate) fn of(
        sink: Arc<dyn LogSink>,
        clock: Arc<dyn Clock>,
        deployment: Deployment,
        masker: Masker,
    ) -> Arc<Self> {
        Self::new(DeploymentLines { sink, clock, deployment }, masker)
    }

    /// Logs a message of Launchway itself.
    pub(crate) async fn write_line(&self, level: Level, text: impl Into<String>) {
        self.write_line_of(&(), level, text).await;
    }

    /// Returns an output that logs the lines of a program at `level`.
    pub(crate) fn output(self: &Arc<Self>, level: Level) -> Arc<PrintedOutput<DeploymentLines>> {
        self.output_of((), level)
    }

    /// Returns a line of this log, with its secrets masked, for the caller to write.
    pub(crate) fn line(&self, level: Level, text: &str) -> NewLine {
        self.line_of(&(), level, text)
    }
}

/// Returns a masker of every secret of an application.
pub(crate) fn secrets_of(secrets: &OpenSecrets) -> Masker {
    Masker::new(secrets.values())
}

/// Stores one line of a deployment outside of an attempt. A line that cannot be stored is dropped.
pub(crate) async fn store_line(sink: &dyn LogSink, line: NewLine) {
    let deployment_id = line.deployment_id;
    if let Err(error) = sink.append(vec![line]).await {
        tracing::warn!(%error, deployment.id = %deployment_id, "log line could not be stored");
    }
}
