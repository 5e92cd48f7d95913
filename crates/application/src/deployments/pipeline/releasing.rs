//! From something that can be released to what is live.

use std::{net::SocketAddr, time::Duration};

use launchway_domain::{
    applications::{Application, Port, RunCommand},
    deployments::{
        Container, ContainerPlan, ContainerRecord, ContainerState, Deployment, FoundObject, Progress,
        StepError, Write,
    },
    ids::{ApplicationId, DeploymentId},
    logs::{Level, Write as LogWrite},
    organizations::Scope,
    page::PageRequest,
    routes::Target,
};

use super::{
    Attempt, Pipeline, Stop,
    composing::{Runnable, composition_plan},
    making::Version,
};

/// How many of a container's last lines are shown when it fails.
const LAST_WORDS: usize = 50;
/// How often the router is asked before it is left to find out by itself.
const SWITCHES: u32 = 5;

impl Pipeline {
    /// Brings `version` to life in the place of the live one. What was `made` is recorded first, or
    /// while a container starts that changes nothing of what there is.
    pub(super) async fn release(
        &self,
        attempt: &Attempt<'_>,
        version: &Version,
        made: Progress,
    ) -> Result<(), Stop> {
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
                };
                self.release_running(attempt, &Runnable::Container(plan), unrecorded).await
            }
            Version::Composition(composition) => {
                self.open_gap(attempt, composition).await?;
                let runnable = Runnable::Composition(composition_plan(attempt));
                self.release_running(attempt, &runnable, None).await
            }
            Version::Site(folder) => {
                let text =
                    self.live_at(attempt).map_or_else(|| "Live".to_owned(), |url| format!("Live at {url}"));
                self.go_live(attempt, &text).await?;
                self.switch(attempt, &Target::Site(folder.clone())).await;
                self.finish(attempt).await?;
                self.retire(attempt, attempt.application.live).await;
                Ok(())
            }
        }
    }

    async fn release_running(
        &self,
        attempt: &Attempt<'_>,
        runnable: &Runnable,
        unrecorded: Option<Progress>,
    ) -> Result<(), Stop> {
        let blueprint = &attempt.application.blueprint;
        if let Some(command) = &blueprint.pre_run_command {
            self.prepare(attempt, runnable).await?;
            attempt.log.say(Level::Info, "Running the pre-run command").await;
            self.run_once(attempt, runnable, command).await.map_err(|error| in_command("pre-run", error))?;
        }
        let started = self.start(attempt, runnable);
        let container = match unrecorded {
            Some(made) => self.while_recorded(attempt, made, started).await?,
            None => started.await?,
        };
        if let Err(error) = self.check(attempt, &container).await? {
            self.log_last_words(attempt, &container).await;
            return Err(error.into());
        }
        let port = blueprint.port.get();
        let address = SocketAddr::new(container.address, port);
        let url = self.live_at(attempt).unwrap_or_else(|| format!("http://{address}"));
        self.go_live(attempt, &format!("Live at {url}")).await?;
        let target = Target::Container { id: container.id.clone(), address };
        // Nobody has to wait until the engine has written down that this one stays.
        let (kept, finished) = tokio::join!(
            self.ports.deployer.keep(&container.id),
            self.take_the_traffic(attempt, runnable, &target),
        );
        finished?;
        self.retire(attempt, attempt.application.live).await;
        Ok(kept?)
    }

    async fn take_the_traffic(
        &self,
        attempt: &Attempt<'_>,
        runnable: &Runnable,
        target: &Target,
    ) -> Result<(), Stop> {
        self.switch(attempt, target).await;
        if let Some(command) = &attempt.application.blueprint.post_run_command {
            attempt.log.say(Level::Info, "Running the post-run command").await;
            if let Err(error) = self.run_once(attempt, runnable, command).await {
                attempt.log.say(Level::Error, format!("The post-run command failed: {error}")).await;
            }
        }
        self.finish(attempt).await
    }

    /// Goes on where an earlier attempt was lost after its version had become the live one.
    pub(super) async fn take_over(&self, attempt: &Attempt<'_>) -> Result<(), Stop> {
        if !attempt.deployment.status.state.is_over() {
            attempt.log.say(Level::Info, "Going on after an interruption").await;
        }
        let target = self.ports.routes.live_target(&attempt.deployment).await?;
        self.switch(attempt, &target).await;
        self.finish(attempt).await?;
        // Which version was live before is not known any more. What no record accounts for is
        // removed, and this is such a moment.
        if let Err(error) = self.remove_others(attempt).await {
            attempt.log.say(Level::Warn, format!("The old version is removed later: {error}")).await;
        }
        match &attempt.deployment.container {
            Some(container) => Ok(self.ports.deployer.keep(&container.id).await?),
            None => Ok(()),
        }
    }

    /// Ends every container of the application that is not the live one, and records what an earlier
    /// attempt ended without a chance to.
    async fn remove_others(&self, attempt: &Attempt<'_>) -> Result<(), StepError> {
        let live = attempt.deployment.container.as_ref().map(|container| &container.id);
        let mut others = self.recorded_others(attempt).await?;
        for found in self.containers_of(attempt.owner.application).await? {
            let FoundObject::Container { id, service, .. } = &found.what else { continue };
            if found.owner.deployment != attempt.deployment.id {
                others.push(found.owner.deployment);
            } else if Some(id) != live && service.is_none() {
                // That of a command, which was cut off.
                self.ports.inventory.remove(&found).await?;
            }
        }
        others.sort_unstable();
        others.dedup();
        for other in others {
            self.retire(attempt, Some(other)).await;
        }
        Ok(())
    }

    /// The newest other deployments whose containers are not recorded as gone.
    async fn recorded_others(&self, attempt: &Attempt<'_>) -> Result<Vec<DeploymentId>, StepError> {
        let scope = Scope::of_record(attempt.owner.organization);
        let newest = PageRequest::new(1, 20, 20).map_err(|_never| StepError::Fault("no page".to_owned()))?;
        let page = self.ports.deployments.page(scope, attempt.owner.application, newest).await;
        let page = page.map_err(|error| StepError::Fault(format!("the records cannot be read: {error}")))?;
        let is_there = |record: &Deployment| {
            record.container.as_ref().is_some_and(|container| container.state != ContainerState::Removed)
        };
        let others =
            page.items.iter().filter(|record| record.id != attempt.deployment.id && is_there(record));
        Ok(others.map(|record| record.id).collect())
    }

    async fn run_once(
        &self,
        attempt: &Attempt<'_>,
        runnable: &Runnable,
        command: &RunCommand,
    ) -> Result<(), StepError> {
        // Not as the container's own output, which is collected behind its newest line.
        let output = attempt.log.output(Level::Info);
        let ran = match runnable {
            Runnable::Container(plan) => self.ports.deployer.run_once(plan, command, output.clone()).await,
            Runnable::Composition(plan) => self.ports.composer.run_once(plan, command, output.clone()).await,
        };
        output.finish().await;
        ran
    }

    /// Whether the container works. It is recorded meanwhile, and the log written, so that nobody has
    /// to wait for that behind the answer.
    async fn check(
        &self,
        attempt: &Attempt<'_>,
        container: &Container,
    ) -> Result<Result<(), StepError>, Stop> {
        attempt.log.say(Level::Info, self.question(attempt, container)).await;
        let blueprint = &attempt.application.blueprint;
        let progress =
            Progress { container: Some(running(container, blueprint.port)), ..Progress::default() };
        let path = blueprint.health_check_path.clone();
        let checked = async {
            let healthy = self.wait_until_healthy(container, blueprint.port.get(), path);
            Ok::<_, Stop>(tokio::join!(attempt.log.flush(), healthy).1)
        };
        self.while_recorded(attempt, progress, checked).await
    }

    /// The moment from which the new version is the one that counts.
    async fn go_live(&self, attempt: &Attempt<'_>, text: &str) -> Result<(), Stop> {
        attempt.log.flush().await;
        let (id, at) = (attempt.deployment.id, self.tools.clock.now());
        let line = attempt.log.line(Level::Info, text);
        let writes = vec![Write::GoLive { id, at }.into(), LogWrite::Append(vec![line]).into()];
        // Whoever ends this attempt now must not do so half way.
        attempt.course.pass_the_point_of_no_return();
        self.commit(attempt.lease, writes).await
    }

    /// The record is what counts: a router that cannot be told now is told again later.
    async fn switch(&self, attempt: &Attempt<'_>, target: &Target) {
        for left in (0..SWITCHES).rev() {
            let (scope, id) = (Scope::of_record(attempt.owner.organization), attempt.owner.application);
            let Err(error) = self.ports.routes.lead(scope, id, target.clone()).await else { return };
            if left == 0 {
                attempt.log.say(Level::Warn, format!("Traffic follows later: {error}")).await;
            } else {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
    }

    /// Ends the version that was live before. It must not fail what is live already.
    async fn retire(&self, attempt: &Attempt<'_>, old: Option<DeploymentId>) {
        let Some(old) = old.filter(|old| *old != attempt.deployment.id) else { return };
        self.drain(attempt.owner.application).await;
        let retired = self.end_version(&attempt.application, old).await;
        let text = match retired {
            Ok(()) => return,
            Err(error) => format!("The old version is removed later: {error}"),
        };
        attempt.log.say(Level::Warn, text).await;
    }

    /// Lets requests that are under way to where traffic went before come to their end.
    pub(super) async fn drain(&self, application: ApplicationId) {
        if let Err(error) = self.ports.routes.drain(application).await {
            tracing::warn!(application.id = %application, %error, "nobody tells whether requests are under way");
        }
    }

    /// Where people reach what is live; `None` when no traffic is led.
    fn live_at(&self, attempt: &Attempt<'_>) -> Option<String> {
        self.ports.routes.url(&attempt.application)
    }

    /// Lets a version's container end in peace, and removes it.
    async fn end_version(
        &self,
        application: &Application,
        deployment: DeploymentId,
    ) -> Result<(), StepError> {
        let scope = Scope::of_record(application.organization_id);
        let faulty = |error| StepError::Fault(format!("the record cannot be read: {error}"));
        let record = self.ports.deployments.get(scope, deployment).await.map_err(faulty)?;
        let container = record.as_ref().and_then(|record| record.container.clone());
        if let Some(container) = &container {
            self.ports.deployer.stop(&container.id).await?;
        }
        if let Some(record) = &record
            && let Err(reason) = self.collect_last(application, record).await
        {
            tracing::warn!(deployment.id = %deployment, reason, "last output could not be collected");
        }
        self.ports.deployer.remove(deployment).await?;
        if let Some(container) = container {
            let removed = ContainerRecord { state: ContainerState::Removed, address: None, ..container };
            let at = self.tools.clock.now();
            let write = Write::RecordContainer { id: deployment, container: removed, at };
            self.tools.store.commit(vec![write.into()]).await.map_err(faulty)?;
        }
        Ok(())
    }

    async fn log_last_words(&self, attempt: &Attempt<'_>, container: &Container) {
        match self.ports.inventory.last_words(&container.id, LAST_WORDS).await {
            Ok(lines) if lines.is_empty() => {
                attempt.log.say(Level::Info, "The container printed nothing").await
            }
            Ok(lines) => {
                attempt.log.say(Level::Info, "The container's last lines:").await;
                let output = attempt.log.output(Level::Runtime);
                for line in lines {
                    use launchway_domain::deployments::Output as _;
                    output.write(&line.text).await;
                    output.finish().await;
                }
            }
            Err(error) => {
                attempt.log.say(Level::Warn, format!("The container's output cannot be read: {error}")).await
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

/// How a container that was just started is recorded.
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
        StepError::Refused(reason) => StepError::Refused(format!("the {which} command failed: {reason}")),
        fault => fault,
    }
}
