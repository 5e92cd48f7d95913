//! Starts services, and runs commands beside them.

use std::{
    collections::{BTreeMap, HashSet},
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use launchway_domain::{
    applications::{RunCommand, Variables},
    deployments::{
        CompositionPlan, Condition, Container, ContainerPlan, EngineInventory as _, Exit, Output,
        ServiceName, StepError,
    },
};

use launchway_system::{output::DiscardedOutput, process::ProcessError};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    Allowed, Compositions, compose_file_error,
    render::{Rendering, project_name, volume_name},
};

use crate::{
    command::NewProject,
    containers::{self, ContainerGuard, MOST_ADDRESSES},
    errors::{EngineError, TAKEN_ADDRESS},
    groups::Member,
    labels::{self, Label},
    networks::Network,
    published::{MOST_PORTS, is_about_a_port},
};

/// The interval between two inspections of services.
const PAUSE: Duration = Duration::from_millis(300);
/// The number of a failed service's last log lines that are shown.
const LAST_WORDS: usize = 20;

impl Compositions {
    /// Creates and starts `services` with their dependencies; all if empty.
    pub(super) async fn bring_up(
        &self,
        plan: &CompositionPlan,
        allowed: &Allowed,
        services: &[&ServiceName],
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let name = project_name(&plan.owner);
        // The same for every call of an attempt: compose would replace containers whose labels change.
        let unfinished = ContainerGuard::called(&self.engine.docker, &name);
        let brought_up = self.up(plan, allowed, services, unfinished.label()).await;
        if brought_up.is_err() {
            let marks = labels::of(self.engine.options.instance, &plan.owner);
            self.print_log_tail(&marks, &output).await;
        }
        unfinished.end(brought_up.is_ok()).await;
        brought_up
    }

    async fn up(
        &self,
        plan: &CompositionPlan,
        allowed: &Allowed,
        services: &[&ServiceName],
        call: Label,
    ) -> Result<(), StepError> {
        self.require_images(allowed).await?;
        let network = self.network_of(plan).await?;
        self.make_volumes(plan, allowed).await?;
        let mut labels = labels::of(self.engine.options.instance, &plan.owner);
        labels.push(call);
        // Compose would replace the container of an earlier call that has another address.
        let mut address = self.address_of_web(plan).await?;
        let (mut assignments, mut refused) = (Vec::new(), HashSet::new());
        let mut endpoint = self.endpoint_of_web(plan).await?;
        loop {
            if address.is_none() {
                let organization = plan.owner.organization;
                assignments.extend(self.engine.assign(&network, organization, &plan.reserved).await?);
                address = assignments.last().map(|assignment| assignment.address);
            }
            if endpoint.is_none() {
                endpoint = self.engine.choose_endpoint(&refused).await?;
            }
            let published = endpoint.map(|endpoint| (endpoint, allowed.port));
            let rendering = Rendering { published, ..self.rendering(plan, allowed, &labels, address) };
            let file = rendering.render().map_err(compose_file_error)?;
            match self.bring_project_up(&project_name(&plan.owner), file, services).await {
                Err(error) if is_about_the_address(&error) && assignments.len() < MOST_ADDRESSES => {
                    address = None;
                }
                Err(error) if is_about_a_port(&error) && refused.len() < MOST_PORTS => {
                    refused.extend(endpoint.take().map(|endpoint| endpoint.port()));
                }
                done => return done,
            }
        }
    }

    /// Returns the address of the service that gets the traffic, from an earlier call of this attempt.
    async fn address_of_web(&self, plan: &CompositionPlan) -> Result<Option<Ipv4Addr>, StepError> {
        let records = self.records_of_web(plan).await?;
        Ok(records.iter().find_map(|record| labels::address(record.get("labels")?)))
    }

    /// Returns the address and port at which it is published, from an earlier call of this attempt.
    async fn endpoint_of_web(&self, plan: &CompositionPlan) -> Result<Option<SocketAddr>, StepError> {
        let records = self.records_of_web(plan).await?;
        Ok(records.iter().find_map(|record| self.engine.published(record)))
    }

    async fn records_of_web(&self, plan: &CompositionPlan) -> Result<Vec<Value>, StepError> {
        let mut marks = labels::of(self.engine.options.instance, &plan.owner);
        marks.push(Label::of_web());
        let web = self.engine.docker.containers(&marks).await.map_err(EngineError::or_fault)?;
        self.engine.docker.inspect(&web).await.map_err(EngineError::or_fault)
    }

    /// Creates and starts services of a generated file; all if empty.
    pub(crate) async fn bring_project_up(
        &self,
        name: &str,
        file: Vec<u8>,
        services: &[&ServiceName],
    ) -> Result<(), StepError> {
        let compose = self.installed().await?;
        let project = NewProject { name, file, services, folder: &self.folder };
        let limit = self.engine.options.command_time;
        let up = self.engine.docker.compose_up(compose, &project, limit, Arc::new(DiscardedOutput)).await;
        up.map_err(|failure| match failure {
            EngineError::Client(ProcessError::TookTooLong(..)) => {
                StepError::Rejected(format!("the services were not running within {limit:?}"))
            }
            EngineError::Message(text) => engine_error(&text).or_refused(),
            failure => failure.or_fault(),
        })
    }

    /// Waits until all dependencies of the service that gets the traffic are ready: it is not started yet,
    /// so compose has no reason to wait.
    pub(super) async fn wait_for_what_is_needed(
        &self,
        plan: &CompositionPlan,
        allowed: &Allowed,
    ) -> Result<(), StepError> {
        let Some(web) = allowed.file.services.get(&allowed.web) else { return Ok(()) };
        let marks = labels::of(self.engine.options.instance, &plan.owner);
        let deadline = Instant::now() + self.engine.options.command_time;
        loop {
            let members = self.engine.members(&marks).await?;
            let mut waits_for = None;
            for (service, condition) in &web.depends_on {
                let member = members.iter().find(|member| member.service() == service);
                if !is_ready(service, condition, member).map_err(StepError::Rejected)? {
                    waits_for = Some(service);
                }
            }
            match waits_for {
                None => return Ok(()),
                Some(service) if Instant::now() >= deadline => {
                    return Err(StepError::Rejected(format!(
                        "the service `{service}` was not ready in time"
                    )));
                }
                Some(_) => sleep(PAUSE).await,
            }
        }
    }

    /// Returns the container that gets the traffic.
    pub(super) async fn web_container(&self, plan: &CompositionPlan) -> Result<Container, StepError> {
        let mut marks = labels::of(self.engine.options.instance, &plan.owner);
        marks.push(Label::of_web());
        let members = self.engine.members(&marks).await?;
        let gone = || StepError::Retryable("the container was removed as soon as it was started".to_owned());
        let web = members.first().ok_or_else(gone)?;
        let record = self.engine.record(&web.id).await?.ok_or_else(gone)?;
        let network = self.network_of(plan).await?;
        let container = containers::read(&record, Some(&network)).ok_or_else(gone)?;
        self.engine.reached(container).await
    }

    pub(super) async fn run_command(
        &self,
        plan: &CompositionPlan,
        allowed: &Allowed,
        command: &RunCommand,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        let rendering = self.rendering(plan, allowed, &[], None);
        let environment = rendering.environment(&allowed.web).map_err(compose_file_error)?;
        let gone = || StepError::Rejected("the image of that deployment no longer exists".to_owned());
        let container = ContainerPlan {
            owner: plan.owner,
            image: allowed.kept.images.get(&allowed.web).cloned().ok_or_else(gone)?,
            environment: fitting(environment)?,
            port: allowed.port,
            reserved: plan.reserved.clone(),
            copy: 1,
        };
        let network = self.network_of(plan).await?;
        self.engine.run_in(Some(&network), &container, command, output).await
    }

    fn rendering<'a>(
        &'a self,
        plan: &'a CompositionPlan,
        allowed: &'a Allowed,
        labels: &'a [Label],
        address: Option<Ipv4Addr>,
    ) -> Rendering<'a> {
        Rendering {
            owner: &plan.owner,
            file: &allowed.file,
            kept: &allowed.kept,
            web: &allowed.web,
            variables: &plan.environment,
            labels,
            limits: &self.engine.options.limits,
            address,
            published: None,
        }
    }

    /// Returns the network of a composition. It has no label of the organization alone, which would make it
    /// the organization's own network.
    async fn network_of(&self, plan: &CompositionPlan) -> Result<Network, StepError> {
        let owner = &plan.owner;
        let mut labels = labels::of_image(self.engine.options.instance, owner);
        labels.push(Label::of_deployment(owner.deployment));
        self.engine.network_called(&project_name(owner), &labels, &plan.reserved).await
    }

    /// Version 1 of compose would look for a missing image in a registry, where anyone may have published
    /// one of that name.
    async fn require_images(&self, allowed: &Allowed) -> Result<(), StepError> {
        for (service, image) in &allowed.kept.images {
            if !self.engine.docker.has_image(image.as_str()).await.map_err(EngineError::or_fault)? {
                return Err(StepError::Rejected(format!(
                    "the image of the service `{service}` no longer exists"
                )));
            }
        }
        Ok(())
    }

    async fn make_volumes(&self, plan: &CompositionPlan, allowed: &Allowed) -> Result<(), StepError> {
        let owner = &plan.owner;
        let labels = [
            Label::of_instance(self.engine.options.instance),
            Label::of_organization(owner.organization),
            Label::of_application(owner.application),
        ];
        for volume in &allowed.file.volumes {
            let made = self.engine.docker.create_volume(&volume_name(owner, volume), &labels).await;
            made.map_err(EngineError::or_fault)?;
        }
        Ok(())
    }

    /// Shows the last log lines of failed services.
    pub(crate) async fn print_log_tail(&self, marks: &[Label], output: &Arc<dyn Output>) {
        for member in self.engine.members(marks).await.unwrap_or_default() {
            if is_well(&member) {
                continue;
            }
            for line in self.engine.tail_logs(&member.id, LAST_WORDS).await.unwrap_or_default() {
                let line = [format!("{} | ", member.service()).as_bytes(), &line.text, b"\n"].concat();
                output.write(&line).await;
            }
        }
    }
}

/// Returns whether the engine has given the address to another container.
pub(crate) fn is_about_the_address(error: &StepError) -> bool {
    matches!(error, StepError::Rejected(why) | StepError::Retryable(why) if why.contains(TAKEN_ADDRESS))
}

/// Returns whether a service meets the condition of another one; fails if it never will.
fn is_ready(service: &ServiceName, condition: &str, member: Option<&Member>) -> Result<bool, String> {
    let Some(member) = member else { return Err(format!("the service `{service}` is gone")) };
    match (condition, member.condition, member.health.as_deref()) {
        ("service_completed_successfully", Condition::Exited(Exit { code, .. }), _) if code != 0 => {
            Err(format!("the service `{service}` ended with exit code {code}"))
        }
        ("service_completed_successfully", condition, _) => Ok(matches!(condition, Condition::Exited(_))),
        ("service_healthy", Condition::Exited(Exit { code, .. }), _) => {
            Err(format!("the service `{service}` ended with exit code {code}"))
        }
        ("service_healthy", _, None) => Err(format!("the service `{service}` has no `healthcheck`")),
        ("service_healthy", _, Some("unhealthy")) => Err(format!("the service `{service}` is not healthy")),
        ("service_healthy", _, Some(health)) => Ok(health == "healthy"),
        _ => Ok(true),
    }
}

fn is_well(member: &Member) -> bool {
    matches!(member.condition, Condition::Running { .. } | Condition::Exited(Exit { code: 0, .. }))
}

/// Returns the variables that a command can have.
fn fitting(environment: BTreeMap<String, String>) -> Result<Variables, StepError> {
    // Compose takes names with dots, which no shell can use.
    let is_plain = |name: &String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let fitting: BTreeMap<_, _> = environment.into_iter().filter(|(name, _)| is_plain(name)).collect();
    fitting
        .try_into()
        .map_err(|error| StepError::Rejected(format!("the variables of the web service: {error}")))
}

/// Extracts the error of compose from its output.
fn engine_error(text: &str) -> EngineError {
    let complaints = text.lines().filter_map(|line| line.trim().strip_prefix("ERROR: "));
    let first = complaints.map(str::trim).find(|line| !line.is_empty());
    let said = first.map(|line| match line.strip_prefix("for ").and_then(|line| line.split_once("  ")) {
        Some((service, what)) => format!("{service}: {what}"),
        None => line.to_owned(),
    });
    EngineError::Message(said.unwrap_or_else(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Role;

    #[test]
    fn what_another_service_waits_for_is_ready_or_never_will_be() {
        let db: ServiceName = "db".parse().unwrap();
        let running = Condition::Running { address: [10, 0, 0, 1].into(), restarts: 0 };
        let exited = |code| Condition::Exited(Exit { code, out_of_memory: false, restarts: 0 });
        let ready = |condition: &str, is: Condition, health: Option<&str>| {
            let role = Role { service: db.clone(), place: 0, restart: None, is_web: false };
            let id = "a".repeat(64).parse().unwrap();
            let member =
                Member { id, role, condition: is, is_kept: false, health: health.map(str::to_owned) };
            is_ready(&db, condition, Some(&member)).ok()
        };
        assert_eq!(ready("service_started", running, None), Some(true));
        assert_eq!(ready("service_healthy", running, Some("starting")), Some(false));
        assert_eq!(ready("service_healthy", running, Some("healthy")), Some(true));
        for (is, health) in [(running, Some("unhealthy")), (running, None), (exited(1), Some("starting"))] {
            assert_eq!(ready("service_healthy", is, health), None);
        }
        let task = "service_completed_successfully";
        assert_eq!(ready(task, running, None), Some(false));
        assert_eq!(ready(task, exited(0), None), Some(true));
        assert_eq!(ready(task, exited(3), None), None);
        assert!(is_ready(&db, task, None).is_err());
    }

    #[test]
    fn errors_are_reported_without_the_decoration_of_compose() {
        for (text, sentence) in [
            (
                "Creating x ... done\n\nERROR: for web  Container \"4e84\" is unhealthy.\nEncountered errors while bringing up the project.",
                "web: Container \"4e84\" is unhealthy",
            ),
            (
                " Container x-db  Error\ndependency failed to start: container x-db exited (1)",
                "dependency failed to start: container x-db exited (1)",
            ),
        ] {
            assert_eq!(engine_error(text).or_refused(), StepError::Rejected(sentence.to_owned()));
        }
        let engine = "ERROR: Couldn't connect to Docker daemon at http+docker://localhost - is it running?";
        assert!(matches!(engine_error(engine).or_refused(), StepError::Unavailable(_)));
    }
}
