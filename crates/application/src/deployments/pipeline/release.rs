//! Releases a built version.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use launchway_domain::{
    applications::{Port, RunCommand},
    deployments::{
        Container, ContainerPlan, ContainerRecord, ContainerState, Deployment, DiscoveredObject, Progress,
        StepError, Write,
    },
    ids::ApplicationId,
    logs::{Level, Write as LogWrite},
    organizations::Scope,
    page::PageRequest,
    routes::Target,
};

use super::{
    super::log::DeploymentLog,
    Attempt, JobError, Pipeline, Retired,
    build::Version,
    compose::{Runnable, composition_plan},
};

/// The number of lines of a container's output that are logged when it fails.
const TAIL_LINES: usize = 50;
/// The number of times that a switch of the router is tried before it is left to the router's own retry.
const SWITCHES: u32 = 5;

impl Pipeline {
    /// Releases `version` in place of the live one. The progress `made` is recorded first, or while a
    /// container starts that changes no existing resource.
    pub(super) async fn release(
        &self,
        attempt: &Attempt<'_>,
        version: &Version,
        made: Progress,
    ) -> Result<Vec<Retired>, JobError> {
        let has_command = attempt.application.blueprint.pre_run_command.is_some();
        let unrecorded = match version {
            Version::Container(_) if !has_command => Some(made),
            _ if made == Progress::default() => None,
            _ => {
                self.record(attempt, made).await?;
                None
            }
        };
        match version {
            Version::Container(image) => {
                let plan = ContainerPlan {
                    owner: attempt.owner,
                    image: image.clone(),
                    environment: attempt.secrets.environment_variables.clone(),
                    port: attempt.application.blueprint.port,
                    reserved: self.reserved().await?,
                };
                self.release_running(attempt, &Runnable::Container(plan), unrecorded).await
            }
            Version::Composition(composition) => {
                self.stop_for_recreate(attempt, composition).await?;
                let plan = composition_plan(attempt, self.reserved().await?);
                let runnable = Runnable::Composition(plan);
                self.release_running(attempt, &runnable, None).await
            }
            Version::Site(folder) => {
                let text =
                    self.live_at(attempt).map_or_else(|| "Live".to_owned(), |url| format!("Live at {url}"));
                self.go_live(attempt, &text).await?;
                self.switch(attempt, &Target::Site(folder.clone())).await;
                self.finish(attempt).await?;
                self.previous(attempt).await
            }
        }
    }

    async fn release_running(
        &self,
        attempt: &Attempt<'_>,
        runnable: &Runnable,
        unrecorded: Option<Progress>,
    ) -> Result<Vec<Retired>, JobError> {
        let blueprint = &attempt.application.blueprint;
        if let Some(command) = &blueprint.pre_run_command {
            self.prepare(attempt, runnable).await?;
            attempt.log.write_line(Level::Info, "Running the pre-run command").await;
            self.run_once(attempt, runnable, command).await.map_err(|error| in_command("pre-run", error))?;
        }
        let started = self.start(attempt, runnable);
        let container = match unrecorded {
            Some(made) => self.while_recorded(attempt, made, started).await?,
            None => started.await?,
        };
        if let Err(error) = self.check(attempt, &container).await? {
            self.log_tail(&attempt.log, &container).await;
            return Err(error.into());
        }
        let port = blueprint.port.get();
        let address = SocketAddr::new(container.address, port);
        let url = self.live_at(attempt).unwrap_or_else(|| format!("http://{address}"));
        self.go_live(attempt, &format!("Live at {url}")).await?;
        let target = Target::Container { id: container.id.clone(), address };
        // The deployment does not wait until the engine has stored the restart policy.
        let (kept, finished) = tokio::join!(
            self.ports.deployer.enable_restart_policy(&container.id),
            self.take_the_traffic(attempt, runnable, &target),
        );
        finished?;
        kept?;
        self.previous(attempt).await
    }

    async fn take_the_traffic(
        &self,
        attempt: &Attempt<'_>,
        runnable: &Runnable,
        target: &Target,
    ) -> Result<(), JobError> {
        self.switch(attempt, target).await;
        if let Some(command) = &attempt.application.blueprint.post_run_command {
            attempt.log.write_line(Level::Info, "Running the post-run command").await;
            if let Err(error) = self.run_once(attempt, runnable, command).await {
                attempt.log.write_line(Level::Error, format!("The post-run command failed: {error}")).await;
            }
        }
        self.finish(attempt).await
    }

    /// Continues after an earlier attempt was lost once its version was live.
    pub(super) async fn take_over(&self, attempt: &Attempt<'_>) -> Result<Vec<Retired>, JobError> {
        if !attempt.deployment.status.state.is_over() {
            attempt.log.write_line(Level::Info, "Resuming after an interruption").await;
        }
        let target = self.ports.routes.live_target(&attempt.deployment).await?;
        self.switch(attempt, &target).await;
        self.finish(attempt).await?;
        if let Some(container) = &attempt.deployment.container {
            self.ports.deployer.enable_restart_policy(&container.id).await?;
        }
        // The previous live version is no longer known: every other one has lost the traffic.
        Ok(self.others(attempt).await?)
    }

    /// Returns every other version of the application that has a container, or is recorded with one.
    /// Removes the container of an interrupted command.
    async fn others(&self, attempt: &Attempt<'_>) -> Result<Vec<Retired>, StepError> {
        let live = attempt.deployment.container.as_ref().map(|container| &container.id);
        let mut others = self.recorded_others(attempt).await?;
        for found in self.containers_of(attempt.owner.application).await? {
            let DiscoveredObject::Container { id, service, .. } = &found.what else { continue };
            if found.owner.deployment == attempt.deployment.id {
                if Some(id) != live && service.is_none() {
                    self.ports.inventory.remove(&found).await?;
                }
            } else if !others.iter().any(|other| other.deployment() == found.owner.deployment) {
                others.push(Retired::container(found.owner, id.clone(), false));
            }
        }
        Ok(others)
    }

    /// Returns the newest other deployments whose containers are not recorded as removed.
    async fn recorded_others(&self, attempt: &Attempt<'_>) -> Result<Vec<Retired>, StepError> {
        let scope = Scope::of_record(attempt.owner.organization);
        let newest =
            PageRequest::new(1, 20, 20).map_err(|_never| StepError::Retryable("no page".to_owned()))?;
        let page = self.ports.deployments.page(scope, attempt.owner.application, newest).await;
        let page =
            page.map_err(|error| StepError::Retryable(format!("the database cannot be read: {error}")))?;
        let is_there = |record: &Deployment| {
            record.container.as_ref().is_some_and(|container| container.state != ContainerState::Removed)
        };
        let others =
            page.items.iter().filter(|record| record.id != attempt.deployment.id && is_there(record));
        Ok(others.map(|record| Retired::version((scope, attempt.owner.application), record)).collect())
    }

    async fn run_once(
        &self,
        attempt: &Attempt<'_>,
        runnable: &Runnable,
        command: &RunCommand,
    ) -> Result<(), StepError> {
        // Not as output of the container, which is collected from its newest line on.
        let output = attempt.log.output(Level::Info);
        let ran = match runnable {
            Runnable::Container(plan) => self.ports.deployer.run_once(plan, command, output.clone()).await,
            Runnable::Composition(plan) => self.ports.composer.run_once(plan, command, output.clone()).await,
        };
        output.finish().await;
        ran
    }

    /// Checks the health of the container. Its record and the log are written concurrently, so that the
    /// result does not wait for them.
    async fn check(
        &self,
        attempt: &Attempt<'_>,
        container: &Container,
    ) -> Result<Result<(), StepError>, JobError> {
        attempt.log.write_line(Level::Info, self.question(attempt, container)).await;
        let blueprint = &attempt.application.blueprint;
        let progress =
            Progress { container: Some(running(container, blueprint.port)), ..Progress::default() };
        let path = blueprint.health_check_path.clone();
        let checked = async {
            let healthy = self.wait_until_healthy(container, blueprint.port.get(), path);
            Ok::<_, JobError>(tokio::join!(attempt.log.flush(), healthy).1)
        };
        self.while_recorded(attempt, progress, checked).await
    }

    /// Commits the new version as the live one.
    async fn go_live(&self, attempt: &Attempt<'_>, text: &str) -> Result<(), JobError> {
        attempt.log.flush().await;
        let (id, at) = (attempt.deployment.id, self.context.clock.now());
        let line = attempt.log.line(Level::Info, text);
        let writes = vec![Write::GoLive { id, at }.into(), LogWrite::Append(vec![line]).into()];
        // From here on the attempt must not be interrupted half way.
        attempt.job_control.mark_committed();
        self.commit(attempt.lease, writes).await
    }

    /// Routes traffic to the version. The record is authoritative: if the router cannot be updated now, the
    /// update is retried later.
    async fn switch(&self, attempt: &Attempt<'_>, target: &Target) {
        for left in (0..SWITCHES).rev() {
            let (scope, id) = (Scope::of_record(attempt.owner.organization), attempt.owner.application);
            let Err(error) = self.ports.routes.route_to(scope, id, target.clone()).await else { return };
            if left == 0 {
                attempt
                    .log
                    .write_line(Level::Warn, format!("Traffic switch failed, retrying later: {error}"))
                    .await;
            } else {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }

    /// Returns the version that was live before and lost the traffic.
    async fn previous(&self, attempt: &Attempt<'_>) -> Result<Vec<Retired>, JobError> {
        let scope = Scope::of_record(attempt.owner.organization);
        let Some(id) = attempt.application.live.filter(|id| *id != attempt.deployment.id) else {
            return Ok(Vec::new());
        };
        let record = self.ports.deployments.get(scope, id).await?;
        let record = record.filter(|record| record.container.is_some());
        Ok(record.iter().map(|record| Retired::version((scope, attempt.owner.application), record)).collect())
    }

    /// Waits for the requests that are running on the previous target.
    pub(super) async fn drain(&self, application: ApplicationId) {
        if let Err(error) = self.ports.routes.drain(application, None).await {
            tracing::warn!(application.id = %application, %error, "drain failed");
        }
    }

    /// Returns the URL of the live version; `None` if no traffic is routed.
    fn live_at(&self, attempt: &Attempt<'_>) -> Option<String> {
        self.ports.routes.url(&attempt.application)
    }

    /// Logs the last lines of the output of a container.
    pub(super) async fn log_tail(&self, log: &Arc<DeploymentLog>, container: &Container) {
        match self.ports.inventory.tail_logs(&container.id, TAIL_LINES).await {
            Ok(lines) if lines.is_empty() => log.write_line(Level::Info, "The container log is empty").await,
            Ok(lines) => {
                log.write_line(Level::Info, "The last lines of the container log:").await;
                let output = log.output(Level::Runtime);
                for line in lines {
                    use launchway_domain::deployments::Output as _;
                    output.write(&line.text).await;
                    output.finish().await;
                }
            }
            Err(error) => {
                log.write_line(Level::Warn, format!("The container log cannot be read: {error}")).await
            }
        }
    }

    fn question(&self, attempt: &Attempt<'_>, container: &Container) -> String {
        let blueprint = &attempt.application.blueprint;
        let address = SocketAddr::new(container.address, blueprint.port.get());
        match &blueprint.health_check_path {
            Some(path) => format!("Waiting for http://{address}{path}"),
            None => format!("Waiting for {address}"),
        }
    }
}

/// Returns the record of a container that was just started.
pub(super) fn running(container: &Container, port: Port) -> ContainerRecord {
    ContainerRecord {
        id: container.id.clone(),
        name: container.name.clone(),
        state: ContainerState::Running,
        address: Some(container.address),
        port,
    }
}

fn in_command(which: &str, error: StepError) -> StepError {
    match error {
        StepError::Rejected(reason) => StepError::Rejected(format!("the {which} command failed: {reason}")),
        fault => fault,
    }
}
