//! Carrying out runs: step by step, and back again when one fails.
//!
//! **Invariant:** what a run did is either kept whole or taken back. An attempt that finds its run
//! under way follows one that was lost: it takes back, and never goes on from the middle.

mod attempt;

use std::sync::Arc;

use launchway_domain::{
    audit::{Action as Did, Author, Chain, Event, Resource as Audited},
    deployments::StepError,
    extensions::{
        Action, Definition, Execution, ExecutionDetail, ExecutionEnd, ExecutionLog, ExecutionRepository,
        ExecutionState, ExecutionStep, ExtensionKey, ExtensionRunner, Run, StepSpec, Values, WORKSPACE,
        Write,
    },
    ids::ExecutionId,
    jobs::{ClaimedJob, Lease, Outcome, Write as JobWrite},
    logs::{Level, Masker},
    secret::{Secret, SecretBox},
    store,
};

use self::attempt::{Attempt, Planned};
use super::log::{RunLines, RunLog};
use crate::{
    Tools,
    course::{Course, Stop, Wish},
    routes::Routes,
};

/// What runs are made with.
pub struct RunPorts {
    /// Where runs are read.
    pub executions: Arc<dyn ExecutionRepository>,
    /// Carries out the steps.
    pub runner: Arc<dyn ExtensionRunner>,
    /// Keeps what the steps print.
    pub log: Arc<dyn ExecutionLog>,
    /// Opens the values that a run was given.
    pub secrets: Arc<dyn SecretBox>,
    /// Leads names to containers of extensions.
    pub routes: Arc<Routes>,
    /// What this machine is called.
    pub hostname: String,
}

/// Carries out runs of extensions, and removes what they made.
pub struct Runs {
    ports: RunPorts,
    tools: Tools,
}

/// Why a run does not come to its end.
struct Failure {
    state: ExecutionState,
    exit_code: i32,
    reason: String,
}

impl Failure {
    fn of(reason: impl Into<String>) -> Self {
        Self { state: ExecutionState::Failed, exit_code: 0, reason: reason.into() }
    }

    fn by(wish: Wish) -> Self {
        match wish {
            Wish::Cancel => Self { state: ExecutionState::Cancelled, exit_code: 0, reason: String::new() },
            Wish::TimeIsUp => Self::of("it took longer than a run may take"),
        }
    }
}

impl Runs {
    /// Works with `ports`.
    #[must_use]
    pub fn new(ports: RunPorts, tools: Tools) -> Self {
        Self { ports, tools }
    }

    /// One attempt at the run of `claimed`, to its end. Whoever wants it to end says so by `course`,
    /// and it takes back what it did.
    pub(crate) async fn run(&self, claimed: &ClaimedJob, course: &Course) -> Result<(), Stop> {
        course.wind_down_by_itself();
        let scope = claimed.job.scope;
        let Ok(id) = claimed.job.payload.parse::<ExecutionId>() else {
            return self.settle(claimed.lease, Outcome::Cancelled, Vec::new()).await;
        };
        let Some(detail) = self.ports.executions.detail(scope, id).await? else {
            return self.settle(claimed.lease, Outcome::Cancelled, Vec::new()).await;
        };
        match detail.execution.state {
            ExecutionState::Pending | ExecutionState::Running => {}
            // It came to its end, and only the job does not know yet.
            _ => return self.settle(claimed.lease, Outcome::Succeeded, Vec::new()).await,
        }
        let is_left_over = detail.execution.state == ExecutionState::Running;
        let attempt = match self.attempt(claimed.lease, &detail, course) {
            Ok(attempt) => attempt,
            Err(reason) => return self.end_unopened(claimed.lease, &detail.execution, reason).await,
        };
        let ended = attempt.log.keep_writing_during(async {
            match is_left_over {
                true => Box::pin(attempt.take_up(self)).await,
                false => Box::pin(attempt.go_through(self)).await,
            }
        });
        let end = ended.await?;
        attempt.log.flush().await;
        self.end(&attempt, end).await
    }

    /// Removes what an extension made, as `claimed` says.
    pub(crate) async fn uninstall(&self, claimed: &ClaimedJob) -> Result<(), Stop> {
        let scope = claimed.job.scope;
        let payload: serde_json::Value = serde_json::from_str(&claimed.job.payload).unwrap_or_default();
        let is = |key: &str| payload.get(key).and_then(serde_json::Value::as_bool).unwrap_or_default();
        let key = payload.get("extension").and_then(serde_json::Value::as_str);
        let Some(extension) = key.and_then(|key| key.parse::<ExtensionKey>().ok()) else {
            return Err(Stop::Refused("it is not known what to uninstall".to_owned()));
        };
        self.ports.runner.uninstall(scope.id(), &extension, is("volumes")).await?;
        // Nobody could ask for the volumes of what is deleted later.
        let with_volumes = is("volumes") || is("deleted");
        let gone = Write::Uninstall { scope, extension, with_volumes }.into();
        self.settle(claimed.lease, Outcome::Succeeded, vec![gone]).await?;
        self.lead_traffic().await;
        Ok(())
    }

    /// Everything that an attempt has to know; what is wrong otherwise.
    fn attempt<'a>(
        &self,
        lease: Lease,
        detail: &ExecutionDetail,
        course: &'a Course,
    ) -> Result<Attempt<'a>, &'static str> {
        let execution = detail.execution.clone();
        let definition = Definition::parse(&execution.definition)
            .map_err(|_no_definition| "its definition cannot be read any more")?;
        let values = self.values(&execution).ok_or("what it was told cannot be opened any more")?;
        let sensitive = definition.variables.iter().filter(|spec| spec.is_sensitive);
        let masker = Masker::new(sensitive.filter_map(|spec| values.get(&spec.name)).map(String::as_str));
        let mut known = values.clone();
        known.insert(WORKSPACE.to_owned(), self.ports.runner.workspace(execution.id));
        let steps = detail.steps.iter().map(|printed| &printed.step);
        let steps = definition.steps().zip(steps).map(|(spec, step)| planned(spec, step, &known));
        let steps = steps.collect::<Option<_>>().ok_or("a step of it is not allowed any more")?;
        let lines = RunLines {
            log: Arc::clone(&self.ports.log),
            clock: Arc::clone(&self.tools.clock),
            execution: execution.id,
        };
        let run = Run {
            organization: execution.scope.id(),
            extension: detail.extension.key.clone(),
            execution: execution.id,
            values: Secret::new(values),
        };
        Ok(Attempt { lease, execution, run, steps, log: RunLog::new(lines, masker), course })
    }

    /// What a run was told.
    fn values(&self, execution: &Execution) -> Option<Values> {
        let opened =
            self.ports.secrets.open(&Execution::place(execution.id), &execution.sealed_values).ok()?;
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(opened.expose()).ok()?;
        let text = |(name, value): (String, serde_json::Value)| Some((name, value.as_str()?.to_owned()));
        object.into_iter().map(text).collect()
    }

    /// Ends a run that cannot even be looked at.
    async fn end_unopened(&self, lease: Lease, execution: &Execution, reason: &str) -> Result<(), Stop> {
        let end =
            ExecutionEnd { state: ExecutionState::Failed, exit_code: 0, error_message: reason.to_owned() };
        self.record_end(lease, execution, end).await
    }

    /// Ends a run that went through, or was taken back.
    async fn end(&self, attempt: &Attempt<'_>, failure: Option<Failure>) -> Result<(), Stop> {
        let end = match failure {
            None => {
                ExecutionEnd { state: ExecutionState::Completed, exit_code: 0, error_message: String::new() }
            }
            Some(failure) => ExecutionEnd {
                state: failure.state,
                exit_code: failure.exit_code,
                error_message: attempt.log.shown(&failure.reason),
            },
        };
        self.record_end(attempt.lease, &attempt.execution, end).await
    }

    async fn record_end(&self, lease: Lease, execution: &Execution, end: ExecutionEnd) -> Result<(), Stop> {
        let outcome = match end.state {
            ExecutionState::Completed => Outcome::Succeeded,
            ExecutionState::Cancelled => Outcome::Cancelled,
            _ => Outcome::Failed { reason: end.error_message.clone() },
        };
        let author = Author::launchway(Chain::Organization(execution.scope.id()));
        let what = format!("saw the execution {} end as {}", execution.id, end.state.as_str());
        let event = Event::new(Did::Update, Audited::Execution, execution.id, what);
        let finish = Write::Finish { id: execution.id, end, at: self.tools.clock.now() };
        self.settle(lease, outcome, vec![finish.into(), self.tools.record(author, event)]).await
    }

    async fn settle(&self, lease: Lease, outcome: Outcome, more: Vec<store::Write>) -> Result<(), Stop> {
        let settle = JobWrite::Settle { lease, outcome, at: self.tools.clock.now() }.into();
        Ok(self.tools.store.commit([settle].into_iter().chain(more).collect()).await?)
    }

    /// Changes something, if the job is still ours.
    async fn commit(&self, lease: Lease, write: Write) -> Result<(), Stop> {
        Ok(self.tools.store.commit(vec![JobWrite::Prove(lease).into(), write.into()]).await?)
    }

    /// Has traffic follow the records at once. If that does not work, upkeep does it in a moment.
    async fn lead_traffic(&self) {
        if let Err(error) = self.ports.routes.follow_all().await {
            tracing::warn!(%error, "traffic is not led by the records yet");
        }
    }
}

fn planned(spec: &StepSpec, step: &ExecutionStep, values: &Values) -> Option<Planned> {
    let action: Action = spec.resolve(values).ok()?;
    Some(Planned { action, step: step.clone(), ignores_errors: spec.ignores_errors, timeout: spec.timeout })
}

impl From<StepError> for Failure {
    fn from(error: StepError) -> Self {
        Self::of(error.to_string())
    }
}

/// A line of Launchway's own about a whole run.
async fn say(log: &RunLog, level: Level, text: impl Into<String>) {
    log.say_of(&None, level, text).await;
}
