//! The commands about services of Swarm, and about the images that their nodes pull.

use std::time::Duration;

use launchway_domain::{
    applications::Port,
    deployments::{ContainerId, ImageName},
    nodes::{NodeAvailability, NodeId},
};
use launchway_system::process::Invocation;

use super::{CAPABILITIES, Docker, NetworkId, RetryBudget, unreadable};
use crate::{
    ContainerLimits,
    environment::ContainerEnvironment,
    errors::EngineError,
    labels::{self, Label},
    swarm::{NodeConstraint, PublishedImage},
};

/// The label of the nodes that may run containers of applications.
pub(crate) const NODE_LABEL: &str = "launchway.apps";
/// The delay before Swarm replaces a container that ended.
const RESTART_DELAY: &str = "1s";

/// A service with one container, to be created.
#[derive(Debug)]
pub(crate) struct NewService<'a> {
    pub(crate) name: &'a str,
    pub(crate) labels: &'a [Label],
    pub(crate) limits: &'a ContainerLimits,
    pub(crate) environment: &'a ContainerEnvironment,
    pub(crate) image: &'a PublishedImage,
    /// The port that the container listens on.
    pub(crate) target: Port,
    /// The port of its node that leads there.
    pub(crate) published: u16,
    /// The node that it is started on; any node if `None`.
    pub(crate) node: Option<&'a NodeId>,
}

/// A change of a service.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ServiceChange<'a> {
    /// Starts or stops its container.
    Run(bool),
    /// Replaces its container, or starts it.
    Restart,
    /// Replaces its container by one on another node, whatever has become of the first one.
    Leave(&'a NodeId),
    /// Removes these constraints, and lets its container run where it is.
    Free(&'a [NodeConstraint]),
    /// As [`Free`](Self::Free), and marks it as one that has been healthy.
    Keep(&'a [NodeConstraint]),
}

impl Docker {
    /// Creates a service. It may exist even if that fails.
    ///
    /// There is no option against new privileges and none for swap: both are settings of the nodes' engines.
    pub(crate) async fn create_service(
        &self,
        service: &NewService<'_>,
        network: &NetworkId,
    ) -> Result<ContainerId, EngineError> {
        let mut call = self
            .call(&["service", "create", "--detach", "--quiet", "--no-resolve-image", "--with-registry-auth"])
            .args(["--name", service.name, "--replicas", "1", "--network", network.as_str()])
            // Neither virtual addresses nor the ingress mesh: traffic goes to the node of the container.
            .args(["--endpoint-mode", "dnsrr"])
            .args(["--restart-condition", "any", "--restart-delay", RESTART_DELAY])
            .args(["--stop-grace-period", "10s", "--no-healthcheck", "--cap-drop", "ALL"]);
        let (target, published) = (service.target.get(), service.published);
        call = call.arg("--publish");
        call = call.arg(format!("mode=host,protocol=tcp,target={target},published={published}"));
        call = call.args(["--constraint", &format!("node.labels.{NODE_LABEL}==true")]);
        if let Some(node) = service.node {
            call = call.args(["--constraint", &NodeConstraint::On(node.clone()).to_string()]);
        }
        for capability in CAPABILITIES {
            call = call.args(["--cap-add", capability]);
        }
        call = limited(call, service.limits).args(["--log-driver", "json-file"]);
        call = call.args(["--log-opt", "max-size=10m", "--log-opt", "max-file=3"]);
        for label in service.labels {
            call = call.args(["--label", label.as_str()]);
        }
        // The image has the label of the installation, but its containers are found by their service.
        call = call.args(["--container-label", &format!("{}=", labels::INSTANCE)]);
        call = call.args(["--env-file", "/dev/stdin"]).input(service.environment.file.as_slice());
        for (name, value) in &service.environment.inherited {
            call = call.args(["--env", name]).env(name, value);
        }
        let id = self.answer_of_leader(call.arg(service.image.as_str())).await?;
        id.trim().parse().map_err(|_not_an_id| unreadable())
    }

    /// Removes services without tasks that Swarm removes at the same time. One that is gone is no error.
    pub(crate) async fn remove_settled_services(&self, services: &[ContainerId]) -> Result<(), EngineError> {
        let call = self.call(&["service", "rm"]);
        match self.answer_of_leader(call.args(services.iter().map(ContainerId::as_str))).await {
            Err(failure) if !failure.is_only_about_missing_objects() => Err(failure),
            _ => Ok(()),
        }
    }

    pub(crate) async fn update_service(
        &self,
        service: &ContainerId,
        change: ServiceChange<'_>,
    ) -> Result<(), EngineError> {
        self.update(|| self.service_update(service, change)).await
    }

    fn service_update(&self, service: &ContainerId, change: ServiceChange<'_>) -> Invocation {
        let call = self.call(&["service", "update", "--detach", "--quiet", "--no-resolve-image"]);
        let call = call.arg("--with-registry-auth");
        let call = match change {
            ServiceChange::Run(is_run) => call.args(["--replicas", if is_run { "1" } else { "0" }]),
            // Two containers cannot have the same port of a node.
            ServiceChange::Restart => {
                call.args(["--force", "--replicas", "1", "--update-order", "stop-first"])
            }
            // The node does not say when the container there has ended, so nothing waits for that.
            ServiceChange::Leave(node) => {
                let call = free(call, &[NodeConstraint::On(node.clone())]);
                let other = NodeConstraint::NotOn(node.clone()).to_string();
                call.args(["--constraint-add", &other, "--update-order", "start-first"])
            }
            ServiceChange::Free(constraints) => free(call, constraints),
            ServiceChange::Keep(constraints) => {
                free(call.args(["--label-add", Label::of_kept().as_str()]), constraints)
            }
        };
        call.arg(service.as_str())
    }

    /// Runs an update of an object of the Swarm, again if others changed the object since the client read it.
    async fn update(&self, call: impl Fn() -> Invocation) -> Result<(), EngineError> {
        let mut retries = RetryBudget::new();
        loop {
            match self.answer_of_leader(call()).await {
                Err(failure) if retries.should_retry(&failure).await => {}
                updated => return updated.map(drop),
            }
        }
    }

    /// Labels a node that may run containers of applications.
    pub(crate) async fn label_node(&self, node: &NodeId) -> Result<(), EngineError> {
        let label = format!("{NODE_LABEL}=true");
        self.update(|| self.call(&["node", "update", "--label-add", &label, node.as_str()])).await
    }

    pub(crate) async fn set_availability(
        &self,
        node: &NodeId,
        availability: NodeAvailability,
    ) -> Result<(), EngineError> {
        let words = ["node", "update", "--availability", availability.as_str(), node.as_str()];
        self.update(|| self.call(&words)).await
    }

    /// Adds the name by which an image is pushed to a registry.
    pub(crate) async fn tag_for_push(&self, image: &ImageName, name: &str) -> Result<(), EngineError> {
        self.answer(self.call(&["image", "tag", image.as_str(), name])).await.map(drop)
    }

    /// Names an image that was pulled by its digest.
    pub(crate) async fn tag_pulled(
        &self,
        pulled: &PublishedImage,
        name: &ImageName,
    ) -> Result<(), EngineError> {
        self.answer(self.call(&["image", "tag", pulled.as_str(), name.as_str()])).await.map(drop)
    }

    /// Pushes an image. The message of a failure quotes the registry.
    pub(crate) async fn push(&self, name: &str, limit: Duration) -> Result<String, EngineError> {
        self.answer(self.call_within(limit, &["push", name])).await
    }

    /// Pulls an image of ours by its digest.
    pub(crate) async fn pull_published(
        &self,
        image: &PublishedImage,
        limit: Duration,
    ) -> Result<(), EngineError> {
        self.answer(self.call_within(limit, &["pull", "--quiet", image.as_str()])).await.map(drop)
    }

    /// Removes the name by which an image was pushed.
    pub(crate) async fn remove_pushed_name(&self, name: &str) -> Result<(), EngineError> {
        self.answer(self.call(&["image", "rm", "--no-prune", name])).await.map(drop)
    }
}

/// Removes constraints of a service. One that it does not have is no error.
fn free(call: Invocation, constraints: &[NodeConstraint]) -> Invocation {
    constraints.iter().fold(call, |call, one| call.args(["--constraint-rm", &one.to_string()]))
}

fn limited(call: Invocation, limits: &ContainerLimits) -> Invocation {
    let (memory, pids) = (limits.memory.to_string(), limits.pids.to_string());
    let call = call.args(["--limit-memory", &memory, "--limit-pids", &pids]);
    match limits.cpus {
        Some(cpus) => call.args(["--limit-cpu", &cpus.to_string()]),
        None => call,
    }
}
