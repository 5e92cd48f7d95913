//! The steps of extensions, on this machine and the real engine.

mod commands;
mod compositions;
mod containers;
mod files;
mod host_ports;
mod isolation;
mod services;
mod users;

use std::{collections::BTreeMap, ffi::OsString, sync::Arc, time::Duration};

use launchway_domain::{
    applications::Variables,
    deployments::StepError,
    extensions::{Action, ContainerSpec, DockerAction, ExtensionRunner as _, Run, Values},
    ids::{Ids as _, OrganizationId},
    secret::Secret,
};
use launchway_infrastructure::{
    clock::TimeOrderedIds,
    docker::Compositions,
    extensions::{HostOptions, HostRunner},
};
use launchway_testkit::{
    compositions::MemoryCompositions,
    docker::{FakeProgram, base_image, docker},
    secrets::OpenBox,
};
use serde_json::Value;
use tempfile::TempDir;

use self::host_ports::MemoryPorts;
use crate::{installation::Installation, recorder::Recorder};

/// A port of this machine that Launchway itself uses.
const RESERVED: u16 = 18_433;

/// Extensions store no compositions of applications.
fn compositions(installation: &Installation, folder: &TempDir) -> Compositions {
    let (stored, secrets) = (Arc::new(MemoryCompositions::default()), Arc::new(OpenBox));
    let folder = folder.path().join("compositions");
    Compositions::open(installation.engine.clone(), stored, secrets, &folder).unwrap()
}

/// An installation that executes steps.
struct Extending {
    runner: Arc<HostRunner>,
    ports: Arc<MemoryPorts>,
    installation: Installation,
    folder: TempDir,
}

impl Extending {
    fn new() -> Self {
        Self::with(Installation::new(), |_| {})
    }

    /// Returns one in which these programs precede the machine's own.
    fn on(programs: &[&FakeProgram]) -> Self {
        let folders = programs.iter().map(|program| program.folder().to_str().unwrap());
        let path = folders.chain(["/usr/bin", "/bin"]).collect::<Vec<_>>().join(":");
        Self::with(Installation::new(), |options| options.path = OsString::from(path))
    }

    fn with(installation: Installation, change: impl FnOnce(&mut HostOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let compositions = compositions(&installation, &folder);
        let mut options = HostOptions::new(&folder.path().join("runs"), [RESERVED]);
        change(&mut options);
        let ports = Arc::new(MemoryPorts::default());
        let runner = Arc::new(HostRunner::open(Arc::new(compositions), ports.clone(), options).unwrap());
        Self { runner, ports, installation, folder }
    }

    /// Returns the same installation with other options.
    fn restarted(self, change: impl FnOnce(&mut HostOptions)) -> Self {
        let Self { ports, installation, folder, .. } = self;
        let compositions = compositions(&installation, &folder);
        let mut options = HostOptions::new(&folder.path().join("runs"), [RESERVED]);
        change(&mut options);
        let runner = Arc::new(HostRunner::open(Arc::new(compositions), ports.clone(), options).unwrap());
        Self { runner, ports, installation, folder }
    }

    /// A run that has begun.
    async fn begin(&self, organization: OrganizationId, extension: &str) -> Run {
        self.begin_with(organization, extension, &[]).await
    }

    async fn begin_with(
        &self,
        organization: OrganizationId,
        extension: &str,
        values: &[(&str, &str)],
    ) -> Run {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let run = Run {
            organization,
            extension: extension.parse().unwrap(),
            execution: TimeOrderedIds.next().into(),
            values: Secret::new(values.collect::<Values>()),
            reserved: Vec::new(),
            routed: Vec::new(),
        };
        self.runner.begin(&run).await.unwrap();
        run
    }

    async fn perform(&self, run: &Run, order: i32, action: &Action) -> Result<i32, StepError> {
        self.runner.perform(run, order, action, Arc::new(Recorder::default())).await
    }

    async fn revert(&self, run: &Run, order: i32, action: &Action) -> Result<(), StepError> {
        self.runner.revert(run, order, action, Arc::new(Recorder::default())).await
    }

    /// Performs a step that has to succeed.
    async fn done(&self, run: &Run, order: i32, action: &Action) {
        assert_eq!(self.perform(run, order, action).await, Ok(0), "{action:?}");
    }

    /// Returns the name on the engine of the object `name`.
    async fn engine_name(&self, run: &Run, name: &str) -> String {
        self.runner.container(run, &name.parse().unwrap(), 80_u16.try_into().unwrap()).await.unwrap().name
    }
}

fn organization() -> OrganizationId {
    TimeOrderedIds.next().into()
}

/// A container that runs until it is stopped.
fn spec(name: &str) -> ContainerSpec {
    scripted(name, "trap 'exit 0' TERM; while true; do sleep 0.1; done")
}

fn scripted(name: &str, script: &str) -> ContainerSpec {
    ContainerSpec {
        name: name.parse().unwrap(),
        image: base_image().parse().unwrap(),
        command: vec!["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()],
        environment: Variables::default(),
        labels: BTreeMap::new(),
        volumes: Vec::new(),
        ports: Vec::new(),
        is_detached: true,
    }
}

fn run_it(spec: ContainerSpec) -> Action {
    Action::Docker(DockerAction::Run(Box::new(spec)))
}

fn inspected(container: &str) -> Value {
    serde_json::from_str::<Value>(&docker(&["inspect", container])).unwrap()[0].take()
}

fn is_running(container: &str) -> bool {
    inspected(container)["State"]["Running"] == true
}

/// Waits until a condition holds.
async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..200 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{what} did not come to be");
}
