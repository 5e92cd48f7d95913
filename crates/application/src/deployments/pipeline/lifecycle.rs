//! Jobs on a live version: restart, stop, remove, and reconcile with its record.

mod copies;
mod removal;
mod replace;

use std::sync::Arc;

use launchway_domain::{
    applications::{Health, Port, Write as ApplicationWrite},
    deployments::{
        Container, ContainerRecord, ContainerState, DiscoveredObject, LiveVersion, Owner, StepError, Write,
    },
    jobs::{ClaimedJob, Lease, Outcome},
    logs::Level,
    routes::Target,
    store::{self, StoreError},
};

use self::removal::Removal;
use super::{
    super::retirement::collect_output,
    JobError, PipelinePorts, Retired,
    health::HealthCheck,
    image_quota::ImageAccounts,
    records::JobRecords,
    subject::{Subject, SubjectLoader},
    workload::{Copies, Workload, WorkloadSpec, Workloads, addresses, running},
};
use crate::{
    Terms,
    engine_view::EngineView,
    reconciler::decision::{Action, Observed, decide},
    routes::{Routes, target_of},
    runtime_logs::RuntimeLogs,
};

/// Executes the jobs of applications that deploy nothing.
pub(crate) struct Lifecycle {
    subjects: Arc<SubjectLoader>,
    workloads: Arc<Workloads>,
    health: Arc<HealthCheck>,
    routes: Arc<Routes>,
    runtime_logs: Option<Arc<RuntimeLogs>>,
    removal: Removal,
    records: JobRecords,
}

impl Lifecycle {
    pub(super) fn new(
        ports: &PipelinePorts,
        subjects: Arc<SubjectLoader>,
        workloads: Arc<Workloads>,
        health: Arc<HealthCheck>,
        accounts: Arc<ImageAccounts>,
        records: &JobRecords,
    ) -> Self {
        let removal = Removal {
            routes: Arc::clone(&ports.routes),
            sites: Arc::clone(&ports.sites),
            inventory: Arc::clone(&ports.inventory),
            accounts,
            composer: Arc::clone(&ports.composer),
            homes: records.context.homes.clone(),
        };
        let (routes, runtime_logs) = (Arc::clone(&ports.routes), ports.runtime_logs.clone());
        Self { subjects, workloads, health, routes, runtime_logs, removal, records: records.clone() }
    }

    /// Restarts the live version: beside the one that serves where that is possible, so that no request is
    /// dropped.
    pub(crate) async fn restart(&self, claimed: &ClaimedJob) -> Result<Vec<Retired>, JobError> {
        let Some(live) = self.subjects.live(claimed).await? else {
            self.records.settle(claimed, Outcome::Cancelled, Vec::new()).await?;
            return Ok(Vec::new());
        };
        live.log.write_line(Level::Info, "Restarting").await;
        let restarted = self.start_anew(&live, claimed.lease).await;
        let (scope, id) = (claimed.job.scope, live.application.id);
        let at = self.records.now();
        let (outcome, write, what, retired) = match restarted {
            Ok(retired) => {
                live.log.write_line(Level::Info, "Restarted").await;
                let write = ApplicationWrite::SetStopped { scope, id, is_stopped: false, at };
                (Outcome::Succeeded, Some(write), "restarted", retired)
            }
            Err(JobError::Permanent(reason)) => {
                live.log.write_line(Level::Error, format!("Restart failed: {reason}")).await;
                (Outcome::Failed { reason }, None, "failed to restart", Vec::new())
            }
            Err(stop) => {
                live.log.flush().await;
                return Err(stop);
            }
        };
        live.log.flush().await;
        let mut more: Vec<_> = write.map(Into::into).into_iter().collect();
        more.push(self.records.ended(&live.application, &live.deployment, what));
        self.records.settle(claimed, outcome, more).await?;
        // Not before: until now an update of the routes from the records would have routed it as stopped again.
        if live.application.is_stopped
            && let Err(error) = self.routes.follow(scope, id).await
        {
            tracing::warn!(application.id = %id, %error, "route could not be updated");
        }
        Ok(retired)
    }

    /// Stops the live version.
    pub(crate) async fn stop(&self, claimed: &ClaimedJob) -> Result<(), JobError> {
        let Some(live) = self.subjects.live(claimed).await? else {
            return self.records.settle(claimed, Outcome::Cancelled, Vec::new()).await;
        };
        let (scope, id, at) = (claimed.job.scope, live.application.id, self.records.now());
        self.routes.route_to(scope, id, Target::Stopped).await?;
        self.routes.drain(id, None).await;
        // A second time, because a version that went live concurrently has reset it.
        let mut more = vec![ApplicationWrite::SetStopped { scope, id, is_stopped: true, at }.into()];
        more.extend(self.stop_containers(&live).await?);
        more.push(self.records.ended(&live.application, &live.deployment, "stopped"));
        live.log.write_line(Level::Info, "Stopped").await;
        live.log.flush().await;
        self.records.settle(claimed, Outcome::Succeeded, more).await
    }

    async fn stop_containers(&self, live: &Subject) -> Result<Vec<store::Write>, StepError> {
        if live.deployment.container.is_none() {
            return Ok(Vec::new());
        }
        self.stop_copies(&live.deployment).await?;
        let at = self.records.now();
        // What it printed at its end: the output of a stopped application is not collected later.
        if let Some(runtime_logs) = &self.runtime_logs {
            let (inventory, deployment) = (&*self.workloads.inventory, &live.deployment);
            let collected = collect_output(runtime_logs, inventory, &live.application, deployment, at).await;
            if let Err(error) = collected {
                tracing::warn!(deployment.id = %deployment.id, %error, "last output could not be collected");
            }
        }
        let stopped = live.deployment.copies().map(|container| {
            let container = ContainerRecord { state: ContainerState::Exited, ..container.clone() };
            Write::RecordContainer { id: live.deployment.id, container, at }.into()
        });
        Ok(stopped.collect())
    }

    /// Removes the resources of a deleted application.
    pub(crate) async fn remove(&self, claimed: &ClaimedJob) -> Result<(), JobError> {
        self.removal.remove(claimed.job.subject.into()).await?;
        self.records.settle(claimed, Outcome::Succeeded, Vec::new()).await
    }

    /// Makes the engine match the record of an application. Decides again, now that no other job works on
    /// it, and acts.
    pub(crate) async fn reconcile(&self, claimed: &ClaimedJob) -> Result<Vec<Retired>, JobError> {
        let Some(live) = self.subjects.live(claimed).await? else {
            self.records.settle(claimed, Outcome::Cancelled, Vec::new()).await?;
            return Ok(Vec::new());
        };
        let reconciled =
            live.log.keep_writing_during(Box::pin(self.follow_record(&live, claimed.lease))).await;
        let (outcome, retired) = match reconciled {
            Ok(retired) => (Outcome::Succeeded, retired),
            Err(JobError::Permanent(reason)) => {
                live.log.write_line(Level::Error, format!("Recovery failed: {reason}")).await;
                self.record_failure(&live, &reason).await?;
                (Outcome::Failed { reason }, Vec::new())
            }
            Err(stop) => {
                live.log.flush().await;
                return Err(stop);
            }
        };
        live.log.flush().await;
        self.records.settle(claimed, outcome, Vec::new()).await?;
        Ok(retired)
    }

    async fn follow_record(&self, live: &Subject, lease: Lease) -> Result<Vec<Retired>, JobError> {
        let view: EngineView = self.workloads.containers_of(live.application.id).await?.into();
        let (application, deployment) = (live.application.clone(), live.deployment.clone());
        let version = LiveVersion { application, deployment };
        if !version.application.is_stopped && live.has_several_copies() {
            return self.reconcile_copies(live, lease, &version, &view).await;
        }
        let actions = version
            .deployment
            .copies()
            .map(|recorded| decide(&version, recorded, Observed::of(&version, recorded, &view), false));
        // The copies of a stopped application are stopped together, and there is only one otherwise.
        match actions.max_by_key(|action| *action == Action::Stop).unwrap_or(Action::Keep) {
            Action::Keep | Action::Wait | Action::Record(_) => Ok(Vec::new()),
            Action::Stop => {
                let instance = self.records.context.terms.instance;
                let text = format!("Stopping the {instance}: the application is stopped");
                live.log.write_line(Level::Warn, text).await;
                let writes = self.stop_containers(live).await?;
                self.records.commit(lease, writes).await?;
                Ok(Vec::new())
            }
            Action::Resume => self.resume(live, lease).await,
            Action::Recreate => self.recreate(live, lease).await,
        }
    }

    /// Starts the containers of a version as they are, or creates new ones from its images.
    async fn resume(&self, live: &Subject, lease: Lease) -> Result<Vec<Retired>, JobError> {
        let Some(recorded) = &live.deployment.container else { return Ok(Vec::new()) };
        if live.deployment.is_composition() {
            self.workloads.remove_all_but(live.application.id, &[live.deployment.id]).await?;
        }
        match self.workloads.deployer.resume(&recorded.id).await {
            Ok(container) => self.serve_from(live, lease, &container, false).await.map(|()| Vec::new()),
            Err(StepError::Rejected(reason)) => {
                let instance = self.records.context.terms.instance;
                live.log.write_line(Level::Warn, format!("The {instance} cannot be started: {reason}")).await;
                self.recreate(live, lease).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Creates the container, or the services of a composition, anew from the images of the version.
    async fn recreate(&self, live: &Subject, lease: Lease) -> Result<Vec<Retired>, JobError> {
        let Terms { instance, artifact, .. } = self.records.context.terms;
        live.log.write_line(Level::Info, format!("Recreating the {instance} from its {artifact}")).await;
        if live.deployment.is_composition() {
            // Two databases on the same files would destroy them.
            self.workloads.deployer.remove(live.deployment.id).await?;
        }
        self.replace(live, lease).await
    }

    async fn start_anew(&self, live: &Subject, lease: Lease) -> Result<Vec<Retired>, JobError> {
        let Some(recorded) = &live.deployment.container else {
            let published = self.routes.site(&live.deployment).await?;
            let folder = published
                .ok_or_else(|| JobError::Permanent("the published files no longer exist".to_owned()))?;
            self.route_unless_stopped(live, Target::Site(folder)).await?;
            return Ok(Vec::new());
        };
        if live.has_several_copies() || self.can_run_beside(live).await? {
            return self.replace(live, lease).await;
        }
        if live.deployment.is_composition() {
            live.log
                .write_line(Level::Warn, "With downtime: two versions of its services cannot share volumes")
                .await;
            self.workloads.remove_all_but(live.application.id, &[live.deployment.id]).await?;
        }
        match self.workloads.deployer.restart(&recorded.id).await {
            Ok(container) => self.serve_from(live, lease, &container, true).await.map(|()| Vec::new()),
            Err(StepError::Rejected(_)) => self.recreate(live, lease).await,
            Err(error) => Err(error.into()),
        }
    }

    /// True if a second copy of the version can run while the first one serves: not if they would share
    /// volumes.
    async fn can_run_beside(&self, live: &Subject) -> Result<bool, JobError> {
        Ok(self.workload(live, live.owner(1), Copies::all(1)).await?.can_run_beside_live().await?)
    }

    /// Returns the port that the containers of a version listen on. A service is recorded with the port of the nodes that leads
    /// there, so that the engine is asked; if none of its containers is left, it is that of the application.
    async fn listening_port(&self, live: &Subject) -> Result<Port, JobError> {
        if !live.deployment.container.as_ref().is_some_and(|recorded| recorded.id.is_service()) {
            return Ok(live.port());
        }
        let found = self.workloads.containers_of(live.application.id).await?;
        let of_version = found.iter().filter(|found| found.owner.deployment == live.deployment.id);
        let mut ports = of_version.filter_map(|found| match found.what {
            DiscoveredObject::Container { port, .. } => port,
            _ => None,
        });
        Ok(ports.next().unwrap_or(live.application.blueprint.port))
    }

    /// Returns the workload of `copies` of `live`.
    async fn workload(
        &self,
        live: &Subject,
        owner: Owner,
        copies: Copies,
    ) -> Result<Box<dyn Workload>, JobError> {
        let Some(image) = &live.deployment.image else {
            let artifact = self.records.context.terms.artifact;
            return Err(JobError::Permanent(format!("the version has no {artifact}")));
        };
        let (port, environment) = (self.listening_port(live).await?, &live.secrets.environment_variables);
        let spec = WorkloadSpec { owner, image, port, environment, live: Some(live.deployment.id), copies };
        Ok(self.workloads.plan(spec).await?)
    }

    /// Waits until `container` is healthy, records it and routes to it.
    async fn serve_from(
        &self,
        live: &Subject,
        lease: Lease,
        container: &Container,
        is_new: bool,
    ) -> Result<(), JobError> {
        let containers = std::slice::from_ref(container);
        self.check_containers(live, containers, is_new).await?;
        self.switch_to(live, lease, containers).await
    }

    /// Waits until all `containers` are healthy. If one is not, logs its last lines if they are `new`.
    async fn check_containers(
        &self,
        live: &Subject,
        containers: &[Container],
        are_new: bool,
    ) -> Result<(), StepError> {
        let path = live.application.blueprint.health_check_path.clone();
        let checked = self.health.wait_until_all_healthy(containers, live.port(), path).await;
        let Err(unhealthy) = checked else { return Ok(()) };
        if are_new {
            self.health.log_tail(&live.log, &unhealthy.container).await;
        }
        Err(unhealthy.error)
    }

    /// Records that `containers` run the version from now on, and routes to them.
    async fn switch_to(
        &self,
        live: &Subject,
        lease: Lease,
        containers: &[Container],
    ) -> Result<(), JobError> {
        let records = containers.iter().map(|container| running(container, live.port())).collect();
        self.switch_to_recorded(live, lease, records).await
    }

    /// Records these copies of the version, and routes to those that run.
    async fn switch_to_recorded(
        &self,
        live: &Subject,
        lease: Lease,
        mut copies: Vec<ContainerRecord>,
    ) -> Result<(), JobError> {
        if copies.is_empty() {
            return Ok(());
        }
        let target = target_of(copies.iter());
        let (id, at, container) = (live.deployment.id, self.records.now(), copies.remove(0));
        let replaced = Write::ReplaceContainer { id, container, further_copies: copies, at };
        self.records.commit(lease, vec![replaced.into()]).await?;
        let running_at = match &target {
            Target::Endpoints(endpoints) => Some(format!("Running at {}", addresses(endpoints))),
            _ => None,
        };
        self.route_unless_stopped(live, target).await?;
        if let Some(text) = running_at {
            live.log.write_line(Level::Info, text).await;
        }
        Ok(())
    }

    /// Routes the traffic of an application to `target`. A stopped one is routed when its record says that it runs.
    async fn route_unless_stopped(&self, live: &Subject, target: Target) -> Result<(), StepError> {
        match live.application.is_stopped {
            true => Ok(()),
            false => self.routes.route_to(live.scope(), live.application.id, target).await,
        }
    }

    /// Records that the version could not be restored. It still serves if one of several copies runs.
    async fn record_failure(&self, live: &Subject, reason: &str) -> Result<(), JobError> {
        let (deployment, at) = (live.deployment.id, self.records.now());
        let runs = |copy: &ContainerRecord| copy.state == ContainerState::Running;
        let health = match live.has_several_copies() && live.deployment.copies().any(runs) {
            true => Health::Degraded(reason.to_owned()),
            false => Health::Broken(reason.to_owned()),
        };
        let write = ApplicationWrite::SetHealth { deployment, health, at };
        match self.records.context.store.commit(vec![write.into()]).await {
            // It was replaced or stopped in the meantime.
            Ok(()) | Err(StoreError::Stale) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
