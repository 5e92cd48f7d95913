//! Runs of extensions.

use actix_web::{
    HttpResponse,
    web::{Path, ServiceConfig, get, post},
};
use askama::Template;
use launchway_application::Error;
use launchway_domain::{
    auth::{Action, Resource},
    clock::Timestamp,
    extensions::{Execution, ExecutionState},
    ids::ExecutionId,
};

use crate::{
    applications::State,
    context::PageContext,
    deployments::Step,
    error::PageError,
    form::Submitted,
    format::{Time, duration},
    frame::{Frame, Section, page, see_other},
    logs::{LogRow, seen, stream},
    router::PREFIX,
};

/// The number of lines that the page shows before the stream begins.
const SHOWN: i64 = 50;

pub(super) fn routes(config: &mut ServiceConfig) {
    config
        .route("/executions/{id}", get().to(execution_page))
        .route("/executions/{id}/stream", get().to(follow))
        .route("/executions/{id}/cancel", post().to(cancel));
}

/// Parses an id of a path. A malformed one is as unknown as any other.
fn execution_id(path: &Path<String>) -> Result<ExecutionId, Error> {
    path.parse().map_err(|_invalid| Error::NotFound("the execution"))
}

/// Returns a state with the kind that its colour shows.
fn state(state: ExecutionState) -> State {
    let kind = match state {
        ExecutionState::Pending | ExecutionState::Running => "busy",
        ExecutionState::Completed => "good",
        ExecutionState::Failed => "bad",
        ExecutionState::Cancelled => "off",
    };
    State { text: state.as_str(), kind }
}

/// A run in a list.
pub(super) struct ExecutionRow {
    pub(super) id: String,
    pub(super) state: State,
    pub(super) at: Time,
    pub(super) duration: String,
}

impl From<&Execution> for ExecutionRow {
    fn from(execution: &Execution) -> Self {
        Self {
            id: execution.id.to_string(),
            state: state(execution.state),
            at: Time(execution.created_at),
            duration: length(execution.started_at, execution.completed_at),
        }
    }
}

#[derive(Template)]
#[template(path = "execution.html")]
struct ExecutionPage {
    frame: Frame,
    row: ExecutionRow,
    key: String,
    name: String,
    steps: Vec<Step>,
    problem: String,
    server: String,
    lines: Vec<LogRow>,
    is_over: bool,
    may_cancel: bool,
}

async fn execution_page(context: PageContext, path: Path<String>) -> Result<HttpResponse, PageError> {
    let (id, extensions) = (execution_id(&path)?, &context.services().extensions);
    let detail = extensions.execution_detail(&context.visitor, id).await?;
    let execution = detail.execution;
    let (lines, _) = extensions.lines(&context.visitor, id, (execution.log_seq - SHOWN).max(0)).await?;
    let steps = detail.steps.into_iter().map(|printed| Step {
        title: printed.step.name,
        mark: match printed.step.state {
            ExecutionState::Pending => "open",
            ExecutionState::Running => "now",
            ExecutionState::Completed => "done",
            ExecutionState::Failed => "failed",
            ExecutionState::Cancelled => "cancelled",
        },
        about: length(printed.step.started_at, printed.step.completed_at),
    });
    page(&ExecutionPage {
        frame: context.frame(Section::Extensions, format!("Run of {}", detail.extension.name)),
        row: ExecutionRow::from(&execution),
        key: detail.extension.key.to_string(),
        name: detail.extension.name.to_string(),
        steps: steps.collect(),
        problem: execution.error_message,
        server: execution.server_hostname,
        lines: lines.into_iter().map(LogRow::from).collect(),
        is_over: execution.state.is_final(),
        may_cancel: context.may(Resource::Extension, Action::Update) && !execution.state.is_final(),
    })
}

/// Returns the time between a start and an end; empty before the end.
fn length(start: Option<Timestamp>, end: Option<Timestamp>) -> String {
    start.zip(end).map(|(start, end)| duration(end - start)).unwrap_or_default()
}

async fn follow(context: PageContext, path: Path<String>) -> Result<HttpResponse, PageError> {
    let after = seen(&context).map_or(Ok(0), |seen| seen.parse());
    let after = after.map_err(|_invalid| Error::Invalid("after must be a number".to_owned()))?;
    stream::follow_execution(context, execution_id(&path)?, after).await
}

async fn cancel(submitted: Submitted, path: Path<String>) -> Result<HttpResponse, PageError> {
    let (id, context) = (execution_id(&path)?, submitted.context);
    context.services().extensions.cancel(&context.visitor, id).await?;
    Ok(see_other(format!("{PREFIX}/executions/{id}?done=cancelled")))
}
