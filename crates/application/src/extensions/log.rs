//! The log of a run.

use std::sync::Arc;

use async_trait::async_trait;
use launchway_domain::{
    clock::Clock,
    extensions::{ExecutionLog, NewExecutionLine},
    ids::{ExecutionId, ExecutionStepId},
    logs::Level,
    store::StoreError,
};

use crate::log_writer::{LineSink, LogWriter};

/// The log of a run. Each line carries the step that it comes from.
pub(super) type RunLog = LogWriter<RunLines>;

/// The lines of a run.
pub(super) struct RunLines {
    pub(super) log: Arc<dyn ExecutionLog>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) execution: ExecutionId,
}

#[async_trait]
impl LineSink for RunLines {
    type Line = NewExecutionLine;
    type Mark = Option<ExecutionStepId>;

    const MOST_BYTES: usize = 4 * 1024 * 1024;

    fn line(&self, step_id: &Option<ExecutionStepId>, level: Level, text: String) -> NewExecutionLine {
        NewExecutionLine { step_id: *step_id, level, text, at: self.clock.now() }
    }

    async fn append(&self, lines: Vec<NewExecutionLine>) -> Result<(), StoreError> {
        self.log.append(self.execution, lines).await
    }
}
