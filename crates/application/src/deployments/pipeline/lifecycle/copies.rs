//! Makes the copies of a live version match its record: their number, and that each of them runs.

use std::sync::Arc;

use launchway_domain::{
    deployments::{Condition, ContainerId, ContainerRecord, Deployment, LiveVersion, StepError},
    jobs::Lease,
    logs::Level,
};
use tokio::task::JoinSet;

use super::{
    Action, Copies, EngineView, JobError, Lifecycle, Observed, Retired, Subject, decide,
    replace::next_attempt, running,
};

/// The copies of a version, and those that leave it.
#[derive(Default)]
struct Plan {
    /// The copies that stay, by their numbers from 1; `None` for one that has to be started.
    copies: Vec<Option<ContainerRecord>>,
    /// The copies that lose the traffic.
    leaving: Vec<(u16, ContainerId)>,
    /// True if a copy that was stopped runs again.
    is_changed: bool,
}

impl Plan {
    fn missing(&self) -> Vec<u16> {
        let missing = (1..).zip(&self.copies).filter(|(_, copy)| copy.is_none());
        missing.map(|(number, _)| number).collect()
    }
}

impl Lifecycle {
    /// Starts the copies that are missing, waits until they are healthy, routes to all of them, and returns those
    /// that are too many. A failure leaves the serving ones as they were.
    pub(super) async fn reconcile_copies(
        &self,
        live: &Subject,
        lease: Lease,
        version: &LiveVersion,
        view: &EngineView,
    ) -> Result<Vec<Retired>, JobError> {
        let plan = self.plan_copies(live, version, view).await?;
        let missing = plan.missing();
        if missing.is_empty() && plan.leaving.is_empty() && !plan.is_changed {
            return Ok(Vec::new());
        }
        let (before, after) = (live.deployment.copies().count(), plan.copies.len());
        if before != after {
            live.log.write_line(Level::Info, format!("Scaling from {before} to {after} copies")).await;
        }
        let started = match Copies::these(&missing) {
            Some(copies) => {
                let found = self.workloads.containers_of(live.application.id).await?;
                self.start_beside(live, live.owner(next_attempt(live, &found)), copies).await?
            }
            None => Vec::new(),
        };
        let mut new = started.iter().map(|container| running(container, live.port()));
        let copies = plan.copies.into_iter().filter_map(|copy| copy.or_else(|| new.next()));
        self.switch_to_recorded(live, lease, copies.collect()).await?;
        self.workloads.enable_restart_policies(started.iter().map(|container| &container.id)).await?;
        if plan.leaving.is_empty() {
            return Ok(Vec::new());
        }
        Ok(vec![Retired::copies(&live.deployment, plan.leaving)])
    }

    /// Decides about each copy, and starts those that are stopped.
    async fn plan_copies(
        &self,
        live: &Subject,
        version: &LiveVersion,
        view: &EngineView,
    ) -> Result<Plan, JobError> {
        let (mut plan, wanted) = (Plan::default(), live.wanted_copies());
        for (number, recorded) in live.deployment.numbered_copies() {
            if number > wanted {
                plan.leaving.push((number, recorded.id.clone()));
                continue;
            }
            let observed = Observed::of(version, recorded, view);
            let copy = match decide(version, recorded, observed, false) {
                Action::Resume => {
                    plan.is_changed = true;
                    let resumed = self.resume_copy(live, number, recorded).await?;
                    if resumed.is_none() {
                        plan.leaving.push((number, recorded.id.clone()));
                    }
                    resumed
                }
                Action::Recreate => None,
                Action::Keep | Action::Record(_) | Action::Wait | Action::Stop => {
                    Some(as_observed(recorded, observed.container))
                }
            };
            plan.copies.push(copy);
        }
        plan.copies.resize(wanted.into(), None);
        Ok(plan)
    }

    /// Starts a copy as it is; returns `None` if it cannot be started, so that another one replaces it.
    async fn resume_copy(
        &self,
        live: &Subject,
        number: u16,
        recorded: &ContainerRecord,
    ) -> Result<Option<ContainerRecord>, JobError> {
        match self.workloads.deployer.resume(&recorded.id).await {
            Ok(container) => {
                self.check_containers(live, std::slice::from_ref(&container), false).await?;
                Ok(Some(running(&container, recorded.port)))
            }
            Err(StepError::Rejected(reason)) => {
                let text = format!("Copy {number} cannot be started: {reason}");
                live.log.write_line(Level::Warn, text).await;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Stops every copy of a version.
    pub(super) async fn stop_copies(&self, version: &Deployment) -> Result<(), StepError> {
        let mut copies: Vec<ContainerId> = version.copies().map(|copy| copy.id.clone()).collect();
        if let (Some(only), true) = (copies.pop(), copies.is_empty()) {
            return self.workloads.deployer.stop(&only).await;
        }
        let mut stops = JoinSet::new();
        for copy in version.copies() {
            let (deployer, id) = (Arc::clone(&self.workloads.deployer), copy.id.clone());
            stops.spawn(async move { deployer.stop(&id).await });
        }
        while let Some(ended) = stops.join_next().await {
            ended.map_err(|error| StepError::failed("a copy could not be stopped", error))??;
        }
        Ok(())
    }
}

/// Returns the record of a copy that stays, with the address at which it runs.
fn as_observed(recorded: &ContainerRecord, condition: Condition) -> ContainerRecord {
    match condition {
        Condition::Running { address, .. } => ContainerRecord {
            state: launchway_domain::deployments::ContainerState::Running,
            address: Some(address),
            ..recorded.clone()
        },
        _ => recorded.clone(),
    }
}
