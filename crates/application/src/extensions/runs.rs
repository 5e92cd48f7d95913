//! Executes runs step by step, and rolls them back when a step fails.
//!
//! **Invariant:** the work of a run is either kept completely or rolled back. An attempt that finds its run
//! already running follows one that was lost: it rolls back, and never continues from the middle.

mod attempt;

use std::{net::IpAddr, sync::Arc};

use launchway_domain::{
    applications::Port,
    audit::{Action as Did, Author, Chain, Event, Resource as Audited},
    deployments::StepError,
    extensions::{
        Action, Definition, Execution, ExecutionDetail, ExecutionEnd, ExecutionLog, ExecutionRepository,
        ExecutionState, ExecutionStep, ExtensionKey, ExtensionRunner, ObjectName, ProxyAction, Run, StepSpec,
        Values, WORKSPACE, Write,
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
    ServiceContext,
    job_control::{JobControl, JobError, StopRequest},
    routes::Routes,
};

/// The ports of runs.
pub struct RunPorts {
    /// Reads runs.
    pub executions: Arc<dyn ExecutionRepository>,
    /// Executes the steps.
    pub runner: Arc<dyn ExtensionRunner>,
    /// Stores the output of the steps.
    pub log: Arc<dyn ExecutionLog>,
    /// Decrypts the values of a run.
    pub secrets: Arc<dyn SecretBox>,
    /// Routes host names to containers of extensions.
    pub routes: Arc<Routes>,
    /// The host name of this machine.
    pub hostname: String,
}

/// Executes runs of extensions, and removes what they created.
pub struct Runs {
    ports: RunPorts,
    context: ServiceContext,
}

/// The failure that ends a run.
struct Failure {
    state: ExecutionState,
    exit_code: i32,
    reason: String,
}

impl Failure {
    fn of(reason: impl Into<String>) -> Self {
        Self { state: ExecutionState::Failed, exit_code: 0, reason: reason.into() }
    }

    fn by(request: StopRequest) -> Self {
        match request {
            StopRequest::Cancel => {
                Self { state: ExecutionState::Cancelled, exit_code: 0, reason: String::new() }
            }
            StopRequest::Timeout => Self::of("the run exceeded its time limit"),
        }
    }
}

impl Runs {
    /// Returns the use cases over `ports`.
    #[must_use]
    pub fn new(ports: RunPorts, context: ServiceContext) -> Self {
        Self { ports, context }
    }

    /// Runs one attempt at the run of `claimed`. A request to stop through `job_control` rolls it back.
    pub(crate) async fn run(&self, claimed: &ClaimedJob, job_control: &JobControl) -> Result<(), JobError> {
        job_control.handles_cancellation();
        let scope = claimed.job.scope;
        let Ok(id) = claimed.job.payload.parse::<ExecutionId>() else {
            return self.settle(claimed.lease, Outcome::Cancelled, Vec::new()).await;
        };
        let Some(detail) = self.ports.executions.detail(scope, id).await? else {
            return self.settle(claimed.lease, Outcome::Cancelled, Vec::new()).await;
        };
        match detail.execution.state {
            ExecutionState::Pending | ExecutionState::Running => {}
            // The run has finished, and only its job is not settled yet.
            _ => return self.settle(claimed.lease, Outcome::Succeeded, Vec::new()).await,
        }
        let is_left_over = detail.execution.state == ExecutionState::Running;
        let reserved = self.ports.routes.addresses().await?;
        let attempt = match self.attempt(claimed.lease, &detail, reserved, job_control) {
            Ok(attempt) => attempt,
            Err(reason) => return self.end_unopened(claimed.lease, &detail.execution, reason).await,
        };
        let ended = attempt.log.keep_writing_during(async {
            match is_left_over {
                true => Box::pin(attempt.recover_lost_attempt(self)).await,
                false => Box::pin(attempt.go_through(self)).await,
            }
        });
        let end = ended.await?;
        attempt.log.flush().await;
        self.end(&attempt, end).await
    }

    /// Removes what an extension created, according to the payload of `claimed`.
    pub(crate) async fn uninstall(&self, claimed: &ClaimedJob) -> Result<(), JobError> {
        let scope = claimed.job.scope;
        let payload: serde_json::Value = serde_json::from_str(&claimed.job.payload).unwrap_or_default();
        let is = |key: &str| payload.get(key).and_then(serde_json::Value::as_bool).unwrap_or_default();
        let key = payload.get("extension").and_then(serde_json::Value::as_str);
        let Some(extension) = key.and_then(|key| key.parse::<ExtensionKey>().ok()) else {
            return Err(JobError::Permanent("the job names no extension to uninstall".to_owned()));
        };
        self.ports.runner.uninstall(scope.id(), &extension, is("volumes")).await?;
        // The volumes of a deleted extension could not be removed later.
        let with_volumes = is("volumes") || is("deleted");
        let gone = Write::Uninstall { scope, extension, subject: claimed.job.subject, with_volumes }.into();
        self.settle(claimed.lease, Outcome::Succeeded, vec![gone]).await?;
        self.update_routes().await;
        Ok(())
    }

    /// Collects the data of an attempt; fails with a description of what is wrong.
    fn attempt<'a>(
        &self,
        lease: Lease,
        detail: &ExecutionDetail,
        reserved: Vec<IpAddr>,
        job_control: &'a JobControl,
    ) -> Result<Attempt<'a>, &'static str> {
        let execution = detail.execution.clone();
        let definition = Definition::parse(&execution.definition)
            .map_err(|_no_definition| "its definition is no longer valid")?;
        let values = self.values(&execution).ok_or("its variables cannot be decrypted")?;
        let sensitive = definition.variables.iter().filter(|spec| spec.is_sensitive);
        let masker = Masker::new(sensitive.filter_map(|spec| values.get(&spec.name)).map(String::as_str));
        let mut known = values.clone();
        known.insert(WORKSPACE.to_owned(), self.ports.runner.workspace(execution.id));
        let steps = detail.steps.iter().map(|printed| &printed.step);
        let steps = definition.steps().zip(steps).map(|(spec, step)| planned(spec, step, &known));
        let steps: Vec<Planned> =
            steps.collect::<Option<_>>().ok_or("one of its steps is no longer allowed")?;
        let lines = RunLines {
            log: Arc::clone(&self.ports.log),
            clock: Arc::clone(&self.context.clock),
            execution: execution.id,
        };
        let run = Run {
            organization: execution.scope.id(),
            extension: detail.extension.key.clone(),
            execution: execution.id,
            values: Secret::new(values),
            reserved,
            routed: routed(&steps),
        };
        Ok(Attempt { lease, execution, run, steps, log: RunLog::new(lines, masker), job_control })
    }

    /// Returns the decrypted values of a run.
    fn values(&self, execution: &Execution) -> Option<Values> {
        let opened = self
            .ports
            .secrets
            .open(&Execution::associated_data(execution.id), &execution.sealed_values)
            .ok()?;
        let object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(opened.expose()).ok()?;
        let text = |(name, value): (String, serde_json::Value)| Some((name, value.as_str()?.to_owned()));
        object.into_iter().map(text).collect()
    }

    /// Fails a run whose data cannot be read.
    async fn end_unopened(&self, lease: Lease, execution: &Execution, reason: &str) -> Result<(), JobError> {
        let end =
            ExecutionEnd { state: ExecutionState::Failed, exit_code: 0, error_message: reason.to_owned() };
        self.record_end(lease, execution, end).await
    }

    /// Ends a run that succeeded or was rolled back.
    async fn end(&self, attempt: &Attempt<'_>, failure: Option<Failure>) -> Result<(), JobError> {
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

    async fn record_end(
        &self,
        lease: Lease,
        execution: &Execution,
        end: ExecutionEnd,
    ) -> Result<(), JobError> {
        let outcome = match end.state {
            ExecutionState::Completed => Outcome::Succeeded,
            ExecutionState::Cancelled => Outcome::Cancelled,
            _ => Outcome::Failed { reason: end.error_message.clone() },
        };
        let author = Author::launchway(Chain::Organization(execution.scope.id()));
        let what = format!("finished the execution {} as {}", execution.id, end.state.as_str());
        let event = Event::new(Did::Update, Audited::Execution, execution.id, what);
        let finish = Write::Finish { id: execution.id, end, at: self.context.clock.now() };
        self.settle(lease, outcome, vec![finish.into(), self.context.record(author, event)]).await
    }

    async fn settle(&self, lease: Lease, outcome: Outcome, more: Vec<store::Write>) -> Result<(), JobError> {
        let settle = JobWrite::Settle { lease, outcome, at: self.context.clock.now() }.into();
        Ok(self.context.store.commit([settle].into_iter().chain(more).collect()).await?)
    }

    /// Commits a write if this worker still holds the lease.
    async fn commit(&self, lease: Lease, write: Write) -> Result<(), JobError> {
        Ok(self.context.store.commit(vec![JobWrite::Prove(lease).into(), write.into()]).await?)
    }

    /// Updates the routes at once. If that fails, the maintenance task retries soon.
    async fn update_routes(&self) {
        if let Err(error) = self.ports.routes.follow_all().await {
            tracing::warn!(%error, "routes could not be updated yet");
        }
    }
}

/// Returns the containers that steps route host names to, each once.
fn routed(steps: &[Planned]) -> Vec<(ObjectName, Port)> {
    let mut routed = Vec::new();
    for planned in steps {
        if let Action::Proxy(ProxyAction::Add { container, port, .. }) = &planned.action {
            let target = (container.clone(), *port);
            if !routed.contains(&target) {
                routed.push(target);
            }
        }
    }
    routed
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

/// Logs a message of Launchway itself about a whole run.
async fn write_line(log: &RunLog, level: Level, text: impl Into<String>) {
    log.write_line_of(&None, level, text).await;
}
