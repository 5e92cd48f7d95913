//! One attempt at a run.

use std::{sync::Arc, time::Duration};

use launchway_domain::{
    extensions::{Action, Execution, ExecutionState, ExecutionStep, ExtensionRoute, ProxyAction, Run, Write},
    ids::ExecutionStepId,
    jobs::{JobState, Lease, Write as JobWrite},
    logs::Level,
    store::{self, StoreError, Unique},
};
use tokio::time::timeout;

use super::{Failure, Runs, write_line};
use crate::{
    extensions::log::RunLog,
    job_control::{JobControl, JobError, StopRequest},
};

/// One attempt at a run.
pub(super) struct Attempt<'a> {
    pub(super) lease: Lease,
    pub(super) execution: Execution,
    pub(super) run: Run,
    pub(super) steps: Vec<Planned>,
    pub(super) log: Arc<RunLog>,
    pub(super) job_control: &'a JobControl,
}

/// A step with its resolved action.
pub(super) struct Planned {
    pub(super) action: Action,
    pub(super) step: ExecutionStep,
    pub(super) ignores_errors: bool,
    pub(super) timeout: Duration,
}

impl Planned {
    /// Returns whether the step needs no more work.
    fn is_done(&self) -> bool {
        match self.step.state {
            ExecutionState::Completed => true,
            ExecutionState::Failed => self.ignores_errors,
            _ => false,
        }
    }
}

/// The end of a step.
enum Ended {
    Well,
    /// It ran and failed.
    Badly(Failure),
    /// It was interrupted before its end.
    Interrupted(Failure),
}

/// The extent of what a step did, for the rollback.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trace {
    /// It completed.
    Whole,
    /// It may have completed partly.
    Part,
    /// It failed. A command that failed has to clean up after itself, and a route that could not be
    /// replaced still belongs to an earlier run.
    Failed,
}

impl Attempt<'_> {
    /// Runs every step, and rolls back if one fails. Returns the failure, if there is one.
    pub(super) async fn go_through(&self, runs: &Runs) -> Result<Option<Failure>, JobError> {
        let (hostname, at) = (runs.ports.hostname.clone(), runs.context.clock.now());
        runs.commit(self.lease, Write::Begin { id: self.execution.id, server_hostname: hostname, at })
            .await?;
        if let Err(error) = runs.ports.runner.begin(&self.run).await {
            let failure = error.into();
            self.give_up_for(&failure).await;
            return Ok(Some(failure));
        }
        let mut done: Vec<(&Planned, Trace)> = Vec::new();
        for planned in &self.steps {
            let failure = match self.job_control.stop_request() {
                Some(request) => Some(Failure::by(request)),
                None => self.carry_out(runs, planned, &mut done).await?,
            };
            if let Some(failure) = failure {
                self.give_up_for(&failure).await;
                self.take_back(runs, &done).await;
                return Ok(Some(failure));
            }
        }
        self.complete(runs).await;
        Ok(None)
    }

    /// Continues after an attempt that was lost.
    pub(super) async fn recover_lost_attempt(&self, runs: &Runs) -> Result<Option<Failure>, JobError> {
        if self.steps.iter().all(Planned::is_done) {
            self.complete(runs).await;
            return Ok(None);
        }
        // Its files and the notes about them are on the machine that began it.
        if runs.context.replica.has_others() && !runs.ports.runner.has_workspace(self.execution.id) {
            let failure = Failure::of(JobState::SERVER_LOST);
            self.give_up_for(&failure).await;
            return Ok(Some(failure));
        }
        let failure = Failure::of("Launchway was stopped while it ran");
        self.give_up_for(&failure).await;
        let traces = self.steps.iter().filter_map(|planned| {
            let trace = match planned.step.state {
                ExecutionState::Completed => Trace::Whole,
                ExecutionState::Running | ExecutionState::Cancelled => Trace::Part,
                ExecutionState::Failed => Trace::Failed,
                ExecutionState::Pending => return None,
            };
            Some((planned, trace))
        });
        self.take_back(runs, &traces.collect::<Vec<_>>()).await;
        Ok(Some(failure))
    }

    /// Completes the run, and removes the resources that it replaced.
    async fn complete(&self, runs: &Runs) {
        self.job_control.mark_committed();
        if let Err(error) = runs.ports.runner.finish(&self.run).await {
            write_line(
                &self.log,
                Level::Warn,
                format!("The replaced resources could not be removed: {error}"),
            )
            .await;
        }
        write_line(&self.log, Level::Info, "Completed").await;
    }

    /// Runs a step. Returns the failure that ends the run, if there is one.
    async fn carry_out<'p>(
        &self,
        runs: &Runs,
        planned: &'p Planned,
        done: &mut Vec<(&'p Planned, Trace)>,
    ) -> Result<Option<Failure>, JobError> {
        let (execution, order) = (self.execution.id, planned.step.order);
        runs.commit(self.lease, Write::BeginStep { execution, order, at: runs.context.clock.now() }).await?;
        self.write_line_of(
            planned,
            Level::Info,
            format!("Step {order} of {}: {}", self.steps.len(), planned.step.name),
        )
        .await;
        let ended = self.perform(runs, planned).await?;
        let (state, exit_code, trace) = match &ended {
            Ended::Well => (ExecutionState::Completed, 0, Trace::Whole),
            Ended::Badly(failure) => (ExecutionState::Failed, failure.exit_code, Trace::Failed),
            Ended::Interrupted(failure) => (failure.state, failure.exit_code, Trace::Part),
        };
        done.push((planned, trace));
        if let Ended::Badly(failure) | Ended::Interrupted(failure) = &ended
            && !failure.reason.is_empty()
        {
            let level = if planned.ignores_errors { Level::Warn } else { Level::Error };
            self.write_line_of(planned, level, format!("Failed: {}", failure.reason)).await;
        }
        // The output of a step is durable before its end is recorded.
        self.log.flush().await;
        let at = runs.context.clock.now();
        runs.commit(self.lease, Write::EndStep { execution, order, state, exit_code, at }).await?;
        let (Ended::Badly(failure) | Ended::Interrupted(failure)) = ended else { return Ok(None) };
        if planned.ignores_errors && self.job_control.stop_request().is_none() {
            return Ok(None);
        }
        let reason = match failure.reason.as_str() {
            "" => String::new(),
            reason => format!("step {order} `{}` failed: {reason}", planned.step.name),
        };
        Ok(Some(Failure { reason, ..failure }))
    }

    async fn perform(&self, runs: &Runs, planned: &Planned) -> Result<Ended, JobError> {
        if let Action::Proxy(action) = &planned.action {
            return self.route_to(runs, action).await;
        }
        let output = self.log.output_of(self.mark(planned), Level::Runtime);
        let performed =
            runs.ports.runner.perform(&self.run, planned.step.order, &planned.action, output.clone());
        let ended = tokio::select! {
            ended = timeout(planned.timeout, performed) => match ended {
                Ok(Ok(0)) => Ended::Well,
                Ok(Ok(exit_code)) => {
                    let reason = format!("it ended with exit code {exit_code}");
                    Ended::Badly(Failure { exit_code, ..Failure::of(reason) })
                }
                Ok(Err(error)) => Ended::Badly(error.into()),
                Err(_elapsed) => {
                    let seconds = planned.timeout.as_secs();
                    Ended::Interrupted(Failure::of(format!("timed out after {seconds} seconds")))
                }
            },
            request = self.job_control.stop_requested() => Ended::Interrupted(Failure::by(request)),
        };
        output.finish().await;
        Ok(ended)
    }

    /// Adds or removes a route.
    async fn route_to(&self, runs: &Runs, action: &ProxyAction) -> Result<Ended, JobError> {
        let (scope, extension) = (self.execution.scope, self.run.extension.clone());
        let write = match action {
            ProxyAction::Add { domain, container, port } => {
                let container = match runs.ports.runner.container(&self.run, container, *port).await {
                    Ok(container) => container,
                    Err(error) => return Ok(Ended::Badly(error.into())),
                };
                Write::AddRoute(ExtensionRoute {
                    id: runs.context.ids.next().into(),
                    scope,
                    extension,
                    host: domain.clone(),
                    container: container.id,
                    address: container.address,
                    port: container.port.unwrap_or(*port),
                })
            }
            ProxyAction::Remove { domain } => Write::RemoveRoute { scope, extension, host: domain.clone() },
        };
        match runs.context.store.commit(self.proved(write)).await {
            Ok(()) => {
                runs.update_routes().await;
                Ok(Ended::Well)
            }
            Err(StoreError::Taken(Unique::Domain)) => {
                let (ProxyAction::Add { domain, .. } | ProxyAction::Remove { domain }) = action;
                Ok(Ended::Badly(Failure::of(format!("the domain `{domain}` is in use"))))
            }
            // A host name without a route is the desired result. If the lease was lost, the next write
            // fails.
            Err(StoreError::Stale) => Ok(Ended::Well),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns a write that succeeds only with a valid lease: another attempt may have rolled everything
    /// back.
    fn proved(&self, write: Write) -> Vec<store::Write> {
        vec![JobWrite::Prove(self.lease).into(), write.into()]
    }

    /// Reverts steps, the last one first.
    async fn take_back(&self, runs: &Runs, done: &[(&Planned, Trace)]) {
        let is_left = |(planned, trace): &&(&Planned, Trace)| {
            *trace != Trace::Failed || !matches!(planned.action, Action::Command { .. } | Action::Proxy(_))
        };
        for (planned, _) in done.iter().rev().filter(is_left) {
            let (order, name) = (planned.step.order, &planned.step.name);
            let reverted = match &planned.action {
                Action::Command { revert: None, .. } => continue,
                Action::Proxy(action) => self.revert_route(runs, action).await,
                action => {
                    self.write_line_of(planned, Level::Info, format!("Reverting step {order}: {name}")).await;
                    let output = self.log.output_of(self.mark(planned), Level::Runtime);
                    let revert = runs.ports.runner.revert(&self.run, order, action, output.clone());
                    let reverted = match timeout(planned.timeout, revert).await {
                        Ok(reverted) => reverted.map_err(|error| error.to_string()),
                        Err(_elapsed) => {
                            Err(format!("timed out after {} seconds", planned.timeout.as_secs()))
                        }
                    };
                    output.finish().await;
                    reverted
                }
            };
            if let Err(reason) = reverted {
                self.write_line_of(
                    planned,
                    Level::Warn,
                    format!("Step {order} could not be reverted: {reason}"),
                )
                .await;
            }
        }
        if let Err(error) = runs.ports.runner.discard(&self.run).await {
            write_line(&self.log, Level::Warn, format!("The workspace could not be removed: {error}")).await;
        }
    }

    /// Removes a route that this run added. A route that it removed is not restored: its target may be
    /// gone.
    async fn revert_route(&self, runs: &Runs, action: &ProxyAction) -> Result<(), String> {
        let ProxyAction::Add { domain, .. } = action else {
            return Err("the previous target of the route is unknown".to_owned());
        };
        let (scope, extension) = (self.execution.scope, self.run.extension.clone());
        let write = Write::RemoveRoute { scope, extension, host: domain.clone() };
        match runs.context.store.commit(self.proved(write)).await {
            Ok(()) | Err(StoreError::Stale) => {
                runs.update_routes().await;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    async fn give_up_for(&self, failure: &Failure) {
        let text = match (failure.state, self.job_control.stop_request()) {
            (ExecutionState::Cancelled, _) => "Cancelled: reverting the completed steps".to_owned(),
            (_, Some(StopRequest::Timeout)) => "Timed out: reverting the completed steps".to_owned(),
            _ => format!("Run failed: {}", failure.reason),
        };
        write_line(&self.log, Level::Error, text).await;
    }

    fn mark(&self, planned: &Planned) -> Option<ExecutionStepId> {
        Some(planned.step.id)
    }

    async fn write_line_of(&self, planned: &Planned, level: Level, text: String) {
        self.log.write_line_of(&self.mark(planned), level, text).await;
    }
}
