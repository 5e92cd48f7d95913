//! Releases a built version: starts it, checks it, and switches traffic to it.

mod predecessors;

use std::{path::Path, sync::Arc, time::Duration};

use launchway_domain::{
    applications::RunCommand,
    deployments::{Container, DeploymentState, Progress, StepError, Write},
    ids::DeploymentId,
    logs::{Level, Write as LogWrite},
    organizations::Scope,
    routes::Target,
};

use self::predecessors::Predecessors;
use super::{
    JobError, PipelinePorts, Retired,
    build::Version,
    health::{HealthCheck, UnhealthyCopy},
    records::JobRecords,
    recreate::Recreate,
    subject::Attempt,
    workload::{Copies, Workload, WorkloadSpec, Workloads, addresses, endpoints, running},
};
use crate::routes::Routes;

/// The number of times that a switch of the router is tried before it is left to the router's own retry.
const SWITCHES: u32 = 5;

/// Releases versions.
pub(super) struct Releaser {
    workloads: Arc<Workloads>,
    health: Arc<HealthCheck>,
    pub(super) recreate: Recreate,
    predecessors: Predecessors,
    routes: Arc<Routes>,
    records: JobRecords,
}

impl Releaser {
    pub(super) fn new(
        ports: &PipelinePorts,
        workloads: Arc<Workloads>,
        health: Arc<HealthCheck>,
        records: &JobRecords,
    ) -> Self {
        let recreate = Recreate {
            workloads: Arc::clone(&workloads),
            deployments: Arc::clone(&ports.deployments),
            logs: Arc::clone(&ports.logs),
            routes: Arc::clone(&ports.routes),
            records: records.clone(),
        };
        let deployments = Arc::clone(&ports.deployments);
        let predecessors = Predecessors { deployments, workloads: Arc::clone(&workloads) };
        let (routes, records) = (Arc::clone(&ports.routes), records.clone());
        Self { workloads, health, recreate, predecessors, routes, records }
    }

    /// Releases `version` in place of the live one. The progress `made` is recorded first, or while a
    /// container starts that changes no existing resource.
    pub(super) async fn release(
        &self,
        attempt: &Attempt<'_>,
        version: &Version,
        made: Progress,
    ) -> Result<Vec<Retired>, JobError> {
        let blueprint = &attempt.application.blueprint;
        let unrecorded = match version {
            Version::Container(_) if blueprint.pre_run_command.is_none() => Some(made),
            _ if made == Progress::default() => None,
            _ => {
                self.records.advance(attempt, made).await?;
                None
            }
        };
        let image = match version {
            Version::Site(folder) => return self.release_site(attempt, folder).await,
            Version::Container(image) => image,
            Version::Composition(composition) => {
                self.recreate.stop_live(attempt, &composition.shared_volumes).await?;
                &composition.image
            }
        };
        let spec = WorkloadSpec {
            owner: attempt.owner,
            image,
            port: blueprint.port,
            environment: &attempt.secrets.environment_variables,
            live: attempt.application.live,
            copies: Copies::all(blueprint.copies.get()),
        };
        let workload = self.workloads.plan(spec).await?;
        self.release_workload(attempt, &*workload, unrecorded).await
    }

    async fn release_site(&self, attempt: &Attempt<'_>, folder: &Path) -> Result<Vec<Retired>, JobError> {
        let url = self.routes.url(&attempt.application);
        let text = url.map_or_else(|| "Live".to_owned(), |url| format!("Live at {url}"));
        self.go_live(attempt, &text).await?;
        self.switch(attempt, &Target::Site(folder.to_owned())).await;
        self.finish(attempt).await?;
        self.predecessors.previous(attempt).await
    }

    async fn release_workload(
        &self,
        attempt: &Attempt<'_>,
        workload: &dyn Workload,
        unrecorded: Option<Progress>,
    ) -> Result<Vec<Retired>, JobError> {
        let blueprint = &attempt.application.blueprint;
        if let Some(command) = &blueprint.pre_run_command {
            workload.prepare(&attempt.log).await?;
            attempt.log.write_line(Level::Info, "Running the pre-run command").await;
            let ran = run_once(attempt, workload, command).await;
            ran.map_err(|error| in_command("pre-run", error))?;
        }
        let started = workload.start(&attempt.log);
        let containers = match unrecorded {
            Some(made) => self.records.while_recorded(attempt, made, started).await?,
            None => started.await?,
        };
        if let Err(unhealthy) = self.check(attempt, &containers).await? {
            self.health.log_tail(&attempt.log, &unhealthy.container).await;
            return Err(unhealthy.error.into());
        }
        let endpoints = endpoints(&containers, blueprint.port);
        let url = self.routes.url(&attempt.application).unwrap_or_else(|| addresses(&endpoints));
        self.go_live(attempt, &format!("Live at {url}")).await?;
        let target = Target::Endpoints(endpoints);
        // The deployment does not wait until the engine has stored the restart policy.
        let (kept, finished) = tokio::join!(
            self.workloads.enable_restart_policies(containers.iter().map(|container| &container.id)),
            self.switch_traffic(attempt, workload, &target),
        );
        finished?;
        kept?;
        self.predecessors.previous(attempt).await
    }

    async fn switch_traffic(
        &self,
        attempt: &Attempt<'_>,
        workload: &dyn Workload,
        target: &Target,
    ) -> Result<(), JobError> {
        self.switch(attempt, target).await;
        if let Some(command) = &attempt.application.blueprint.post_run_command {
            attempt.log.write_line(Level::Info, "Running the post-run command").await;
            if let Err(error) = run_once(attempt, workload, command).await {
                attempt.log.write_line(Level::Error, format!("The post-run command failed: {error}")).await;
            }
        }
        self.finish(attempt).await
    }

    /// Continues after an earlier attempt was lost once its version was live.
    pub(super) async fn take_over(&self, attempt: &Attempt<'_>) -> Result<Vec<Retired>, JobError> {
        if !attempt.deployment.status.state.is_final() {
            attempt.log.write_line(Level::Info, "Resuming after an interruption").await;
        }
        let target = self.routes.live_target(&attempt.deployment).await?;
        self.switch(attempt, &target).await;
        self.finish(attempt).await?;
        let copies = attempt.deployment.copies().map(|container| &container.id);
        self.workloads.enable_restart_policies(copies).await?;
        // The previous live version is no longer known: every other one has lost the traffic.
        Ok(self.predecessors.others(attempt).await?)
    }

    /// Removes the containers of a version that is not live.
    pub(super) async fn remove(&self, deployment: DeploymentId) -> Result<(), StepError> {
        self.workloads.deployer.remove(deployment).await
    }

    /// Checks the health of every copy. Their record and the log are written concurrently, so that the
    /// result does not wait for them.
    async fn check(
        &self,
        attempt: &Attempt<'_>,
        containers: &[Container],
    ) -> Result<Result<(), Box<UnhealthyCopy>>, JobError> {
        let blueprint = &attempt.application.blueprint;
        let path = &blueprint.health_check_path;
        for container in containers {
            let address = container.endpoint(blueprint.port);
            let text = match path {
                Some(path) => format!("Waiting for http://{address}{path}"),
                None => format!("Waiting for {address}"),
            };
            attempt.log.write_line(Level::Info, text).await;
        }
        let mut copies = containers.iter().map(|container| running(container, blueprint.port));
        let (container, further_copies) = (copies.next(), copies.collect());
        let progress = Progress { container, further_copies, ..Progress::default() };
        let checked = async {
            let healthy = self.health.wait_until_all_healthy(containers, blueprint.port, path.clone());
            Ok::<_, JobError>(tokio::join!(attempt.log.flush(), healthy).1)
        };
        self.records.while_recorded(attempt, progress, checked).await
    }

    /// Commits the new version as the live one.
    async fn go_live(&self, attempt: &Attempt<'_>, text: &str) -> Result<(), JobError> {
        attempt.log.flush().await;
        let (id, at) = (attempt.deployment.id, self.records.now());
        let line = attempt.log.line(Level::Info, text);
        let writes = vec![Write::GoLive { id, at }.into(), LogWrite::Append(vec![line]).into()];
        // From here on the attempt must not be interrupted half way.
        attempt.job_control.mark_committed();
        self.records.commit(attempt.lease, writes).await
    }

    /// Routes traffic to the version. The record is authoritative: if the router cannot be updated now, the
    /// update is retried later.
    async fn switch(&self, attempt: &Attempt<'_>, target: &Target) {
        for left in (0..SWITCHES).rev() {
            let (scope, id) = (Scope::of_record(attempt.owner.organization), attempt.owner.application);
            let Err(error) = self.routes.route_to(scope, id, target.clone()).await else { return };
            if left == 0 {
                let text = format!("Traffic switch failed, retrying later: {error}");
                attempt.log.write_line(Level::Warn, text).await;
            } else {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }

    /// Records that the version is live: the remaining work concerns the old one only.
    async fn finish(&self, attempt: &Attempt<'_>) -> Result<(), JobError> {
        if attempt.deployment.status.state.is_final() {
            return Ok(());
        }
        attempt.log.flush().await;
        let (id, at) = (attempt.deployment.id, self.records.now());
        let progress = Progress { state: Some(DeploymentState::Deployed), ..Progress::default() };
        let duration = (at - attempt.deployment.created_at).as_seconds_f64();
        let line = attempt.log.line(Level::Info, &format!("Deployed in {duration:.1} s"));
        let event = self.records.ended(&attempt.application, &attempt.deployment, "deployed");
        let writes =
            vec![Write::Advance { id, progress, at }.into(), LogWrite::Append(vec![line]).into(), event];
        self.records.commit(attempt.lease, writes).await
    }
}

async fn run_once(
    attempt: &Attempt<'_>,
    workload: &dyn Workload,
    command: &RunCommand,
) -> Result<(), StepError> {
    // Not as output of the container, which is collected from its newest line on.
    let output = attempt.log.output(Level::Info);
    let ran = workload.run_once(command, output.clone()).await;
    output.finish().await;
    ran
}

fn in_command(which: &str, error: StepError) -> StepError {
    match error {
        StepError::Rejected(reason) => StepError::Rejected(format!("the {which} command failed: {reason}")),
        fault => fault,
    }
}
