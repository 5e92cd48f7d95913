//! The engine of the world, and other external ports.

use std::{collections::BTreeMap, net::IpAddr, path::PathBuf, sync::Arc, time::Duration};

use async_trait::async_trait;
use launchway_domain::{
    applications::{BasePath, CopyCount, ImageRef, RunCommand},
    clock::Timestamp,
    deployments::{
        BuildPlan, BuildPlanner, Checkout, CommitHash, Condition, Container, ContainerId, ContainerPlan,
        Deployer, Deployment, DiscoveredObject, DiscoveredResource, EngineInventory, GitSource, HealthProbe,
        ImageBuilder, ImageName, ImageSize, Output, Owner, PrintedLine, ProbeTarget, SiteStore,
        SourceFetcher, StepError,
    },
    ids::{ApplicationId, DeploymentId},
    routes::{Route, Target, TrafficRouter},
    sources::{ChangeDetector, Comparison},
};
use launchway_testkit::builders::{a_container, parsed};

use super::World;

/// The head of the branch.
pub(crate) const COMMIT: &str = "abcdef0123abcdef0123abcdef0123abcdef0123";
/// The address of every started container.
pub(crate) const ADDRESS: [u8; 4] = [10, 0, 0, 9];
/// The error of an unavailable engine.
pub(crate) const AWAY: &str = "the Docker engine does not answer";
/// The calls that need the engine.
pub(super) const CALLS: [&str; 22] = [
    "build",
    "obtain",
    "reuse",
    "start",
    "run",
    "keep",
    "condition",
    "resume",
    "restart",
    "stop",
    "remove",
    "remove attempt",
    "everything",
    "containers",
    "clear",
    "printed",
    "tail logs",
    "compose",
    "start sidecars",
    "start services",
    "run beside",
    "forget compositions",
];

/// The address of a resumed container: that of [`a_container`].
const RESUMED: [u8; 4] = [10, 0, 0, 7];

/// Returns the container that the engine starts for an attempt.
pub(crate) fn a_started_container() -> Container {
    Container {
        id: a_container("new").id,
        name: "new".to_owned(),
        address: IpAddr::from(ADDRESS),
        port: None,
    }
}

/// Returns the container that the engine starts for a copy; the first one is [`a_started_container`].
pub(crate) fn a_started_copy(copy: u16) -> Container {
    let name = format!("new {copy}");
    match copy {
        1 => a_started_container(),
        _ => Container {
            id: a_container(&name).id,
            name,
            address: IpAddr::from([10, 0, 1, copy.to_be_bytes()[1]]),
            port: None,
        },
    }
}

/// Returns a number of copies.
pub(crate) fn copies(count: i64) -> CopyCount {
    CopyCount::try_from(count).unwrap_or_else(|refused| panic!("{refused}"))
}

/// The size of every image.
pub(crate) fn an_image_size() -> ImageSize {
    ImageSize { id: parsed(&format!("sha256:{}", "a".repeat(64))), bytes: 5 << 20 }
}

/// Returns a container of a deployment as it is found on the engine.
pub(crate) fn a_container_of(
    deployment: &Deployment,
    condition: Condition,
    created_at: Timestamp,
) -> DiscoveredResource {
    let owner = Owner {
        organization: deployment.organization_id,
        application: deployment.application_id,
        deployment: deployment.id,
        attempt: 1,
    };
    let recorded = deployment.container.as_ref().map(|container| container.id.clone());
    let id = recorded.unwrap_or_else(|| a_container(&deployment.id.to_string()).id);
    DiscoveredResource {
        owner,
        what: DiscoveredObject::Container {
            id,
            condition,
            created_at,
            port: None,
            service: None,
            stays_up: true,
        },
    }
}

impl World {
    /// Writes the output of a call in pieces.
    pub(super) async fn give_output(&self, call: &'static str, output: &Arc<dyn Output>) {
        let pieces = self.state().output.get(call).cloned().unwrap_or_default();
        for piece in pieces {
            output.write(&piece).await;
        }
    }

    /// Returns the name of a container in the journal: its deployment if that is recorded with it, else the
    /// attempt that created it.
    fn container_name(&self, container: &ContainerId) -> String {
        let (recorded, found) = {
            let state = self.state();
            let runs = |known: &&Deployment| known.copies().any(|its| its.id == *container);
            let is_it = |found: &&DiscoveredResource| matches!(&found.what, DiscoveredObject::Container { id, .. } if id == container);
            let recorded = state.deployments.iter().find(runs).map(|known| known.id);
            (recorded, state.found.iter().find(is_it).map(|found| found.owner))
        };
        match (recorded, found) {
            (Some(deployment), _) => self.name_of(deployment),
            (None, Some(owner)) => format!("attempt {} of {}", owner.attempt, self.name_of(owner.deployment)),
            (None, None) => "unknown".to_owned(),
        }
    }

    /// Returns the condition of a container as it is listed; running if it is not.
    fn found_condition(&self, container: &ContainerId) -> Condition {
        let state = self.state();
        let is_it = |found: &DiscoveredResource| match &found.what {
            DiscoveredObject::Container { id, condition, .. } if id == container => Some(*condition),
            _ => None,
        };
        let running = Condition::Running { address: IpAddr::from(ADDRESS), restarts: 0 };
        state.found.iter().find_map(is_it).unwrap_or(running)
    }

    /// Returns the name of a deployment in the journal: its position in the records.
    pub(super) fn name_of(&self, deployment: DeploymentId) -> String {
        let state = self.state();
        let place = state.deployments.iter().position(|known| known.id == deployment);
        place.map_or_else(|| "unknown".to_owned(), |place| format!("#{}", place + 1))
    }
}

#[async_trait]
impl SourceFetcher for World {
    async fn head(&self, source: &GitSource) -> Result<CommitHash, StepError> {
        let user = source.credentials.as_ref().map(|given| format!(" as {}", given.username));
        let key = source.key.as_ref().map(|key| format!(" with {}", key.expose()));
        let how = format!("{}{}", user.unwrap_or_default(), key.unwrap_or_default());
        self.call("head", format!("{} of {}{how}", source.branch, source.url.as_str())).await?;
        Ok(parsed(COMMIT))
    }

    async fn fetch(
        &self,
        _: &GitSource,
        commit: &CommitHash,
        owner: &Owner,
        output: Arc<dyn Output>,
    ) -> Result<Checkout, StepError> {
        self.give_output("fetch", &output).await;
        self.call("fetch", format!("{} for attempt {}", commit.short(), owner.attempt)).await?;
        Ok(Checkout { root: PathBuf::from("/work") })
    }

    async fn discard(&self, deployment: DeploymentId) -> Result<(), StepError> {
        self.call("discard", self.name_of(deployment)).await
    }
}

#[async_trait]
impl ChangeDetector for World {
    async fn touches(&self, comparison: &Comparison) -> Result<Option<bool>, StepError> {
        let Comparison { old, new, .. } = comparison;
        self.call("compare", format!("{} with {}", old.short(), new.short())).await?;
        Ok(self.state().touched)
    }
}

#[async_trait]
impl BuildPlanner for World {
    async fn complete(&self, plan: &BuildPlan, output: Arc<dyn Output>) -> Result<BuildPlan, StepError> {
        self.give_output("plan", &output).await;
        self.call("plan", &plan.base_path).await?;
        let variables = plan.variables.iter().chain([("CI", "true")]);
        let variables: BTreeMap<_, _> =
            variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let variables = variables.try_into().unwrap_or_default();
        Ok(BuildPlan { dockerfile: parsed(".nixpacks/Dockerfile"), variables, ..plan.clone() })
    }
}

#[async_trait]
impl ImageBuilder for World {
    async fn build(&self, plan: &BuildPlan, output: Arc<dyn Output>) -> Result<ImageName, StepError> {
        self.give_output("build", &output).await;
        let arguments: Vec<&str> = plan.variables.iter().map(|(name, _)| name).collect();
        self.call("build", format!("{} with {}", plan.dockerfile, arguments.join(" "))).await?;
        Ok(ImageName::of(plan.owner.application, plan.owner.deployment))
    }

    async fn obtain(
        &self,
        owner: &Owner,
        image: &ImageRef,
        output: Arc<dyn Output>,
    ) -> Result<ImageName, StepError> {
        self.give_output("obtain", &output).await;
        self.call("obtain", image).await?;
        Ok(ImageName::of(owner.application, owner.deployment))
    }

    async fn reuse(&self, owner: &Owner, image: &ImageName) -> Result<ImageName, StepError> {
        let is_of = |known: &&Deployment| known.image.as_ref() == Some(image);
        let earlier = self.state().deployments.iter().find(is_of).map(|known| known.id);
        self.call("reuse", earlier.map(|id| self.name_of(id)).unwrap_or_default()).await?;
        Ok(ImageName::of(owner.application, owner.deployment))
    }
}

#[async_trait]
impl Deployer for World {
    async fn start(&self, plan: &ContainerPlan) -> Result<Container, StepError> {
        let names: Vec<&str> = plan.environment.iter().map(|(name, _)| name).collect();
        let copy = if plan.copy > 1 { format!(" as copy {}", plan.copy) } else { String::new() };
        self.call("start", format!("on {} with {}{copy}", plan.port.get(), names.join(" "))).await?;
        self.state().started.push(plan.clone());
        Ok(a_started_copy(plan.copy))
    }

    async fn run_once(
        &self,
        _: &ContainerPlan,
        command: &RunCommand,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        self.give_output("run", &output).await;
        self.call("run", command).await
    }

    async fn enable_restart_policy(&self, _: &ContainerId) -> Result<(), StepError> {
        self.call("keep", "").await
    }

    async fn condition(&self, container: &ContainerId) -> Result<Condition, StepError> {
        self.call("condition", "").await?;
        let of_all = self.state().condition;
        Ok(of_all.unwrap_or_else(|| self.found_condition(container)))
    }

    async fn resume(&self, container: &ContainerId) -> Result<Container, StepError> {
        self.call("resume", self.container_name(container)).await?;
        let mut state = self.state();
        let (state, address) = (&mut *state, IpAddr::from(RESUMED));
        for found in state.found.iter_mut().filter(|_| !state.stays_down) {
            if let DiscoveredObject::Container { id, condition, .. } = &mut found.what
                && id == container
            {
                *condition = Condition::Running { address, restarts: 0 };
            }
        }
        Ok(Container { id: container.clone(), name: "web".to_owned(), address, port: None })
    }

    async fn restart(&self, container: &ContainerId) -> Result<Container, StepError> {
        self.call("restart", "").await?;
        Ok(Container { id: container.clone(), ..a_started_container() })
    }

    async fn stop(&self, container: &ContainerId) -> Result<(), StepError> {
        self.call("stop", self.container_name(container)).await
    }

    async fn remove(&self, deployment: DeploymentId) -> Result<(), StepError> {
        self.call("remove", self.name_of(deployment)).await
    }

    async fn remove_attempt(&self, owner: &Owner) -> Result<(), StepError> {
        self.call("remove attempt", format!("{} of {}", owner.attempt, self.name_of(owner.deployment))).await
    }
}

#[async_trait]
impl EngineInventory for World {
    async fn everything(&self) -> Result<Vec<DiscoveredResource>, StepError> {
        self.call("everything", "").await?;
        Ok(self.state().found.clone())
    }

    async fn containers(&self) -> Result<Vec<DiscoveredResource>, StepError> {
        self.call("containers", "").await?;
        let is_container =
            |found: &DiscoveredResource| matches!(found.what, DiscoveredObject::Container { .. });
        Ok(self.state().found.iter().filter(|found| is_container(found)).cloned().collect())
    }

    async fn images_of(&self, _: &Owner) -> Result<Vec<ImageSize>, StepError> {
        Ok(vec![an_image_size()])
    }

    async fn remove(&self, found: &DiscoveredResource) -> Result<(), StepError> {
        let what = match &found.what {
            DiscoveredObject::Container { .. } => "container",
            DiscoveredObject::Image { .. } => "image",
            DiscoveredObject::Network(_) => "network",
        };
        self.call("clear", format!("{what} of {}", self.name_of(found.owner.deployment))).await?;
        self.state().found.retain(|other| other != found);
        Ok(())
    }

    async fn printed(
        &self,
        container: &ContainerId,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<PrintedLine>, StepError> {
        self.call("printed", "").await?;
        let lines = {
            let mut state = self.state();
            state.last_printed = state.printed_elsewhere.or(state.last_printed);
            state.printed.get(container).cloned().unwrap_or_default()
        };
        let behind = |line: &PrintedLine| since.is_none_or(|since| line.at > since);
        Ok(lines.into_iter().filter(behind).take(limit).collect())
    }

    async fn tail_logs(&self, _: &ContainerId, _: usize) -> Result<Vec<PrintedLine>, StepError> {
        self.call("tail logs", "").await?;
        Ok(self.state().tail_logs.clone())
    }

    async fn wait_for_events(&self, timeout: Duration) -> bool {
        tokio::time::sleep(timeout).await;
        !self.state().is_quiet
    }
}

#[async_trait]
impl HealthProbe for World {
    async fn probe(&self, target: &ProbeTarget) -> Result<(), String> {
        self.pass_time("probe").await;
        let mut state = self.state();
        state.probed.push(target.address);
        let illness = state.illnesses.get(&target.address.ip()).or(state.illness.as_ref());
        illness.map_or(Ok(()), |illness| Err(illness.clone()))
    }
}

#[async_trait]
impl SiteStore for World {
    async fn publish(&self, owner: &Owner, _: &Checkout, folder: &BasePath) -> Result<PathBuf, StepError> {
        self.call("publish", folder).await?;
        self.state().published.push(owner.deployment);
        Ok(PathBuf::from("/sites").join(self.name_of(owner.deployment)))
    }

    async fn release(
        &self,
        _: ApplicationId,
        deployment: DeploymentId,
    ) -> Result<Option<PathBuf>, StepError> {
        self.call_quietly("release").await?;
        let is_there = self.state().published.contains(&deployment);
        Ok(is_there.then(|| PathBuf::from("/sites").join(self.name_of(deployment))))
    }

    async fn releases(&self) -> Result<Vec<(ApplicationId, DeploymentId)>, StepError> {
        let application = launchway_testkit::ids::id_of("application").into();
        Ok(self.state().published.iter().map(|deployment| (application, *deployment)).collect())
    }

    async fn withdraw(&self, _: ApplicationId, deployment: DeploymentId) -> Result<(), StepError> {
        self.call("withdraw the site", format!("of {}", self.name_of(deployment))).await?;
        self.state().published.retain(|published| *published != deployment);
        Ok(())
    }

    async fn remove(&self, _: ApplicationId) -> Result<(), StepError> {
        self.call("remove the sites", "").await
    }
}

#[async_trait]
impl TrafficRouter for World {
    async fn set(&self, route: &Route) -> Result<(), StepError> {
        self.call("switch", format!("to {}", in_words(&route.target))).await
    }

    async fn remove(&self, _: ApplicationId) -> Result<(), StepError> {
        self.call("withdraw", "").await
    }

    async fn replace_all(&self, routes: &[Route]) -> Result<(), StepError> {
        self.state().routes.push(routes.to_vec());
        self.call_quietly("replace all").await
    }

    async fn drain(&self, _: ApplicationId, _: Option<ContainerId>) -> Result<(), StepError> {
        self.call("drain", "").await
    }
}

fn in_words(target: &Target) -> String {
    match target {
        Target::Endpoints(endpoints) => {
            let addresses = endpoints.iter().map(|endpoint| endpoint.address.to_string());
            addresses.collect::<Vec<_>>().join(" ")
        }
        Target::Site(folder) => folder.display().to_string(),
        Target::Stopped => "nowhere: stopped".to_owned(),
        Target::Absent => "nowhere: absent".to_owned(),
    }
}
