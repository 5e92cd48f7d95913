//! Containers, compositions and volumes of extensions.
//!
//! **Invariant:** the objects that a step sets aside are kept on the engine only: as a stopped container
//! under another name, which contains the run and the step. So no secret of a container is written to disk
//! to restore it, and a crash loses nothing.

mod aside;
mod compositions;
mod containers;
mod names;
mod ports;

use std::{collections::BTreeSet, sync::Arc};

use chrono::DateTime;
use launchway_domain::{
    applications::{ImageRef, Port, Variables},
    clock::Timestamp,
    deployments::{Condition, Container, ContainerId, StepError},
    extensions::{ExtensionKey, HostPorts, ObjectName, PortPolicy, PublishedPort, Run},
    ids::OrganizationId,
};
use serde_json::Value;
use uuid::Uuid;

use self::names::ExtensionOwner;
use super::{
    DockerEngine,
    compose::{Compositions, ExtensionFile},
    containers::{condition, done_or_gone, read},
    errors::EngineError,
    forwarded_ports::ForwardedPort,
    labels::{self, Label, Origin},
    references,
};

/// Creates and removes the objects of extensions on the engine.
#[derive(Debug)]
pub struct ExtensionObjects {
    compositions: Arc<Compositions>,
    engine: Arc<DockerEngine>,
    /// The ports of this machine that must not be allocated.
    reserved: BTreeSet<u16>,
    /// The rules for ports that may be allocated.
    ports: PortPolicy,
    /// The records of allocated ports.
    host_ports: Arc<dyn HostPorts>,
}

/// A container of an extension, from docker's record.
#[derive(Debug, Clone)]
struct Made {
    id: ContainerId,
    name: String,
    origin: Origin,
    /// Its position in the order of starting.
    place: usize,
    /// True if it runs or is about to be restarted.
    is_running: bool,
    /// When it ended last, if it is one that the engine restarts unless somebody stops it.
    stopped_at: Option<Timestamp>,
}

impl Made {
    fn read(record: &Value) -> Option<Self> {
        let labels = record.get("labels")?;
        Some(Self {
            id: record.get("id")?.as_str()?.parse().ok()?,
            name: record.get("name")?.as_str()?.trim_start_matches('/').to_owned(),
            origin: Origin::read(labels)?,
            place: labels::place(labels),
            is_running: record.get("state")?.get("Running")?.as_bool()?,
            stopped_at: stopped_at(record),
        })
    }

    /// Returns whether somebody stopped it since a run was requested, and this run did not create it.
    fn was_stopped_during(&self, run: &Run) -> bool {
        let requested = Uuid::from(run.execution).get_timestamp().map(|at| at.to_unix());
        let requested =
            requested.and_then(|(seconds, nanos)| DateTime::from_timestamp(seconds.cast_signed(), nanos));
        !self.is_running
            && self.origin.execution != run.execution.to_string()
            && requested.zip(self.stopped_at).is_some_and(|(requested, stopped)| stopped >= requested)
    }

    /// Returns whether this step of this run created it.
    fn is_by(&self, run: &Run, order: i32) -> bool {
        self.origin.execution == run.execution.to_string() && self.origin.step == order.to_string()
    }
}

impl ExtensionObjects {
    /// Returns objects that run compositions by `compositions`, and everything else on its engine.
    pub fn new(
        compositions: Arc<Compositions>,
        reserved: BTreeSet<u16>,
        ports: PortPolicy,
        host_ports: Arc<dyn HostPorts>,
    ) -> Self {
        let engine = compositions.engine();
        Self { compositions, engine, reserved, ports, host_ports }
    }

    fn whose(&self, organization: OrganizationId, extension: &ExtensionKey) -> ExtensionOwner {
        ExtensionOwner { instance: self.engine.options.instance, organization, extension: extension.clone() }
    }

    fn whose_run(&self, run: &Run) -> ExtensionOwner {
        self.whose(run.organization, &run.extension)
    }

    /// Returns a running container of a run, by its name, or by those of its composition and service, as its `port` is reached.
    pub async fn container(&self, run: &Run, name: &ObjectName, port: Port) -> Result<Container, StepError> {
        let mut marks = self.whose_run(run).marks();
        marks.push(Label::of_execution(run.execution));
        for record in self.records(&marks).await? {
            let Some(made) = Made::read(&record) else { continue };
            let called = match made.origin.project.as_str() {
                "" => made.origin.alias.clone(),
                project => format!("{project}-{}", made.origin.alias),
            };
            let is_running = matches!(condition(&record), Condition::Running { .. });
            if called == name.as_str() && is_running && names::aside(&made.name).is_none() {
                let container = read(&record, None).ok_or_else(|| not_running(name))?;
                return self.reached(container, &record, port);
            }
        }
        Err(not_running(name))
    }

    /// Returns a container as front proxies reach its `port`: on several machines, at the one that is forwarded to it.
    fn reached(&self, container: Container, record: &Value, port: Port) -> Result<Container, StepError> {
        if self.engine.options.published_ports.is_none() {
            return Ok(container);
        }
        let is_published = |binding: &ForwardedPort| {
            binding.container == port && !binding.is_udp && !binding.endpoint.ip().is_loopback()
        };
        let published = ForwardedPort::read_all(record).into_iter().find(is_published);
        let Some(ForwardedPort { endpoint, .. }) = published else {
            let (name, port) = (&container.name, port.get());
            return Err(StepError::Rejected(format!(
                "port {port} of the container `{name}` is not published"
            )));
        };
        Ok(Container { address: endpoint.ip(), port: endpoint.port().try_into().ok(), ..container })
    }

    /// Removes everything that an extension created for an organization.
    pub async fn uninstall(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
        with_volumes: bool,
    ) -> Result<(), StepError> {
        let marks = self.whose(organization, extension).marks();
        let docker = &self.engine.docker;
        let found = docker.containers(&marks).await.map_err(EngineError::or_fault)?;
        docker.remove(&found).await.map_err(EngineError::or_fault)?;
        if with_volumes {
            for volume in docker.volumes(&marks).await.map_err(EngineError::or_fault)? {
                done_or_gone(docker.remove_volume(&volume).await)?;
            }
        }
        self.release_ports(organization, extension).await
    }

    async fn records(&self, marks: &[Label]) -> Result<Vec<Value>, StepError> {
        let found = self.engine.docker.containers(marks).await.map_err(EngineError::or_fault)?;
        self.engine.docker.inspect(&found).await.map_err(EngineError::or_fault)
    }

    /// Returns every container with these labels, in the order of starting.
    async fn all(&self, marks: &[Label]) -> Result<Vec<Made>, StepError> {
        let mut all: Vec<Made> = self.records(marks).await?.iter().filter_map(Made::read).collect();
        all.sort_by_key(|made| made.place);
        Ok(all)
    }

    async fn remove<'a>(&self, made: impl Iterator<Item = &'a Made>) -> Result<(), StepError> {
        let ids: Vec<ContainerId> = made.map(|made| made.id.clone()).collect();
        self.engine.docker.remove(&ids).await.map_err(EngineError::or_fault)
    }

    /// Rejects names in use: two containers with the same alias would be taken for each other.
    async fn require_free_names(
        &self,
        organization: OrganizationId,
        wanted: &[&str],
        is_replaced: impl Fn(&Made) -> bool,
    ) -> Result<(), StepError> {
        let everyones = [
            Label::of_instance(self.engine.options.instance),
            Label::of_organization(organization),
            Label::of_no_application(),
        ];
        let all = self.all(&everyones).await?;
        let mut others = all.iter().filter(|made| names::aside(&made.name).is_none() && !is_replaced(made));
        match others.find(|made| wanted.contains(&made.origin.alias.as_str())) {
            None => Ok(()),
            Some(taken) => Err(StepError::Rejected(format!(
                "the name `{}` is used by another resource of this organization: choose another",
                taken.origin.alias
            ))),
        }
    }

    /// Creates missing volumes. One that was created otherwise is not used.
    async fn make_volumes(&self, whose: &ExtensionOwner, wanted: &[String]) -> Result<(), StepError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let marks = whose.marks();
        for volume in wanted {
            self.engine.docker.create_volume(volume, &marks).await.map_err(EngineError::or_fault)?;
        }
        let ours = self.engine.docker.volumes(&marks).await.map_err(EngineError::or_fault)?;
        match wanted.iter().find(|volume| !ours.contains(volume)) {
            None => Ok(()),
            Some(foreign) => Err(StepError::Rejected(format!(
                "the volume `{foreign}` belongs to another owner on this machine"
            ))),
        }
    }
}

/// Returns when a container ended that the engine restarts unless somebody stops it.
fn stopped_at(record: &Value) -> Option<Timestamp> {
    record.get("policy")?.as_str().filter(|policy| *policy == "unless-stopped")?;
    let finished = record.get("state")?.get("FinishedAt")?.as_str()?;
    DateTime::parse_from_rfc3339(finished).ok().map(Into::into)
}

fn not_running(name: &ObjectName) -> StepError {
    StepError::Rejected(format!("this run has created no running container `{name}`"))
}

/// Checks the compose file of an extension without an engine.
///
/// # Errors
/// A message about the first thing in it that is not allowed.
pub fn check_file(text: &str, values: &Variables) -> Result<(), String> {
    let file = ExtensionFile::read(text, values)?;
    file.images().try_for_each(|(service, image)| match references::familiar(image) {
        Some(_) => Ok(()),
        None => Err(format!("the service `{service}`: there is no image `{}`", image.as_str())),
    })
}

/// Returns the ports that a compose file publishes, each with the name of its service; none of a file that cannot
/// be used.
pub fn file_ports(text: &str, values: &Variables) -> Vec<(String, PublishedPort)> {
    let Ok(file) = ExtensionFile::read(text, values) else { return Vec::new() };
    file.ports().map(|(service, port)| (service.to_string(), *port)).collect()
}

/// Returns whether an image may be referred to by this name.
pub fn may_be_named(image: &ImageRef) -> bool {
    references::familiar(image).is_some()
}
