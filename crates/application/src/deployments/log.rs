//! Writing the log of one attempt at a deployment.

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
    printing::{Keeper, PrintedOutput, Printer},
};

/// The log of one attempt.
pub(crate) type DeploymentLog = Printer<DeploymentLines>;

/// The lines of one attempt.
pub(crate) struct DeploymentLines {
    sink: Arc<dyn LogSink>,
    clock: Arc<dyn Clock>,
    deployment: Deployment,
}

#[async_trait]
impl Keeper for DeploymentLines {
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

    async fn keep(&self, lines: Vec<NewLine>) -> Result<(), StoreError> {
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

    /// What happened, in Launchway's own words.
    pub(crate) async fn say(&self, level: Level, text: impl Into<String>) {
        self.say_of(&(), level, text).await;
    }

    /// Takes what a program prints as lines of `level`.
    pub(crate) fn output(self: &Arc<Self>, level: Level) -> Arc<PrintedOutput<DeploymentLines>> {
        self.output_of((), level)
    }

    /// A line for somebody else to write, with the marks of this log.
    pub(crate) fn line(&self, level: Level, text: &str) -> NewLine {
        self.line_of(&(), level, text)
    }
}

/// What no line of an application's log may show.
pub(crate) fn secrets_of(secrets: &OpenSecrets) -> Masker {
    Masker::new(secrets.values())
}
