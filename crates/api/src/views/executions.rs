//! The JSON of runs of extensions.

use launchway_domain::{
    extensions::{Execution, ExecutionDetail, ExecutionLine, PrintedStep},
    page::Page,
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::extensions::ExtensionView;
use crate::{pages::Pagination, timestamp::Moment};

/// A run of an extension. Its relations are omitted unless they are attached.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = ExtensionExecution)]
pub(crate) struct ExecutionView {
    id: Uuid,
    extension_id: Uuid,
    #[schema(no_recursion)]
    extension: Option<Box<ExtensionView>>,
    /// The machine that ran it; empty before it runs.
    server_hostname: String,
    /// `pending`, `running`, `completed`, `failed` or `cancelled`.
    status: &'static str,
    exit_code: i32,
    error_message: String,
    /// The newest 64 KiB of the log.
    execution_log: String,
    /// The number of the last line.
    log_seq: i64,
    /// A JSON object.
    variable_values: String,
    #[schema(no_recursion)]
    steps: Vec<ExecutionStepView>,
    started_at: Option<Moment>,
    completed_at: Option<Moment>,
    created_at: Moment,
}

/// A step of a run.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = ExecutionStep)]
pub(crate) struct ExecutionStepView {
    id: Uuid,
    execution_id: Uuid,
    #[schema(no_recursion)]
    execution: Option<Box<ExecutionView>>,
    step_name: String,
    /// Starts at 1, and counts over both phases.
    step_order: i32,
    /// `run` or `validate`.
    phase: &'static str,
    /// `pending`, `running`, `completed`, `failed` or `cancelled`.
    status: &'static str,
    exit_code: i32,
    /// The newest 64 KiB of the output.
    output: String,
    started_at: Option<Moment>,
    completed_at: Option<Moment>,
    created_at: Moment,
}

impl From<PrintedStep> for ExecutionStepView {
    fn from(PrintedStep { step, output }: PrintedStep) -> Self {
        Self {
            id: step.id.into(),
            execution_id: step.execution_id.into(),
            execution: None,
            step_name: step.name,
            step_order: step.order,
            phase: step.phase.as_str(),
            status: step.state.as_str(),
            exit_code: step.exit_code,
            output,
            started_at: step.started_at.map(Moment::from),
            completed_at: step.completed_at.map(Moment::from),
            created_at: step.created_at.into(),
        }
    }
}

impl From<(Execution, String)> for ExecutionView {
    fn from((execution, execution_log): (Execution, String)) -> Self {
        Self {
            id: execution.id.into(),
            extension_id: execution.extension_id.into(),
            extension: None,
            server_hostname: execution.server_hostname,
            status: execution.state.as_str(),
            exit_code: execution.exit_code,
            error_message: execution.error_message,
            execution_log,
            log_seq: execution.log_seq,
            variable_values: execution.shown_values,
            steps: Vec::new(),
            started_at: execution.started_at.map(Moment::from),
            completed_at: execution.completed_at.map(Moment::from),
            created_at: execution.created_at.into(),
        }
    }
}

impl From<ExecutionDetail> for ExecutionView {
    /// Includes its extension and its steps.
    fn from(ExecutionDetail { execution, extension, steps, log }: ExecutionDetail) -> Self {
        Self {
            extension: Some(Box::new(extension.into())),
            steps: steps.into_iter().map(ExecutionStepView::from).collect(),
            ..(execution, log).into()
        }
    }
}

/// A page of runs.
#[derive(Serialize, ToSchema)]
#[schema(as = ExtensionExecutions)]
pub(crate) struct ExecutionsView {
    executions: Vec<ExecutionView>,
    pagination: Pagination,
}

impl From<Page<(Execution, String)>> for ExecutionsView {
    fn from(page: Page<(Execution, String)>) -> Self {
        Self {
            pagination: Pagination::from(&page),
            executions: page.items.into_iter().map(ExecutionView::from).collect(),
        }
    }
}

/// A line of a run's log.
#[derive(Serialize, ToSchema)]
#[schema(as = ExecutionLogLine)]
struct ExecutionLineView {
    /// Starts at 1, without missing numbers.
    seq: i64,
    /// The step that it came from.
    step_id: Option<Uuid>,
    /// `info`, `warn` or `error` for messages of Launchway, `runtime` for the output of a step.
    level: &'static str,
    log: String,
    created_at: Moment,
}

/// Lines of a run's log, and the number to continue from.
#[derive(Serialize, ToSchema)]
#[schema(as = ExecutionLogs)]
pub(crate) struct ExecutionLogsView {
    logs: Vec<ExecutionLineView>,
    next_seq: i64,
}

impl From<(Vec<ExecutionLine>, i64)> for ExecutionLogsView {
    fn from((lines, next_seq): (Vec<ExecutionLine>, i64)) -> Self {
        let line = |line: ExecutionLine| ExecutionLineView {
            seq: line.seq,
            step_id: line.step_id.map(Uuid::from),
            level: line.level.as_str(),
            log: line.text,
            created_at: line.at.into(),
        };
        Self { logs: lines.into_iter().map(line).collect(), next_seq }
    }
}
