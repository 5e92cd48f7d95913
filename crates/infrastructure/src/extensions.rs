//! Executes the steps of extensions on this machine.
//!
//! **Invariant:** file steps open everything beneath the workspace of their run, enforced by the kernel
//! (`openat2`), and follow no link there, whoever created it. Replaced files are kept beside the workspace.
//!
//! **Invariant:** no value is part of a shell's text or of an option. A shell gets the values in its
//! environment; `systemctl`, `useradd` and the like get parsed names, none of which begins with a dash.

mod beneath;
mod commands;
mod copy;
mod files;
mod notes;
mod port_availability;
mod rehearsal;
mod services;
mod users;
mod workspaces;

use std::{
    collections::BTreeSet,
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use launchway_docker::{Compositions, ExtensionObjects};
use launchway_domain::{
    applications::Port,
    clock::Timestamp,
    deployments::{Container, Output, StepError},
    extensions::{
        Action, ComposeAction, ComposeText, DockerAction, ExtensionKey, ExtensionRunner, HostPorts,
        ObjectName, PortPolicy, PortRange, Run, WorkspacePath,
    },
    ids::{ExecutionId, OrganizationId},
    quotas::{Quota, Resource},
};
use launchway_system::process::{Invocation, ProcessError};
use serde_json::json;

use self::{notes::StepNotes, workspaces::Workspaces};
pub use self::{port_availability::PortAvailability, rehearsal::rehearse};

/// The largest compose file in a workspace.
const LARGEST_COMPOSE_FILE: u64 = 256 * 1024;

/// The options of running steps on this machine.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The folder in which the workspaces of runs are created.
    pub folder: PathBuf,
    /// The `PATH` of steps, and for finding programs of this machine.
    pub path: OsString,
    /// The ports of this machine that containers must not take: those of Launchway itself.
    pub reserved_ports: BTreeSet<u16>,
    /// The rules for the ports of this machine that containers publish.
    pub ports: PortPolicy,
}

impl HostOptions {
    /// Returns the options that fit most machines.
    #[must_use]
    pub fn new(folder: &Path, reserved_ports: impl IntoIterator<Item = u16>) -> Self {
        let mut path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        // The programs that manage users are there, and the `PATH` of a service often does not include it.
        path.push(":/usr/sbin:/sbin");
        let quota = Quota { resource: Resource::ExtensionPorts, limit: 0 };
        Self {
            folder: folder.to_owned(),
            path,
            reserved_ports: reserved_ports.into_iter().collect(),
            ports: PortPolicy { range: PortRange::UNPRIVILEGED, quota },
        }
    }
}

/// Executes steps on this machine and its engine.
#[derive(Debug)]
pub struct HostRunner {
    workspaces: Workspaces,
    objects: ExtensionObjects,
    host: Host,
}

/// The programs of this machine.
#[derive(Debug, Clone)]
struct Host {
    path: OsString,
}

impl HostRunner {
    /// Works in the folder of `options`, and creates it if necessary; runs its containers on the engine of
    /// `compositions`, and reserves their ports in `host_ports`.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn open(
        compositions: Arc<Compositions>,
        host_ports: Arc<dyn HostPorts>,
        options: HostOptions,
    ) -> io::Result<Self> {
        let HostOptions { folder, path, reserved_ports, ports } = options;
        Ok(Self {
            workspaces: Workspaces::open(&folder)?,
            objects: ExtensionObjects::new(compositions, reserved_ports, ports, host_ports),
            host: Host { path },
        })
    }

    fn notes(&self, run: &Run, order: i32) -> StepNotes {
        StepNotes::at(self.workspaces.aside(run.execution).join(order.to_string()))
    }

    async fn docker(
        &self,
        run: &Run,
        order: i32,
        action: &DockerAction,
        output: Arc<dyn Output>,
    ) -> Result<i32, StepError> {
        match action {
            DockerAction::Pull(image) => self.objects.pull(image, &output).await?,
            DockerAction::Run(spec) => return self.objects.run(run, order, spec, output).await,
            DockerAction::Start(name) => {
                self.note_state(run, order, name).await?;
                self.objects.start(run, name).await?;
            }
            DockerAction::Stop(name) => {
                self.note_state(run, order, name).await?;
                self.objects.stop(run, name).await?;
            }
            DockerAction::Remove(name) => self.objects.put_away(run, order, name).await?,
        }
        Ok(0)
    }

    /// Records whether a container runs, so that only a change is reverted.
    async fn note_state(&self, run: &Run, order: i32, name: &ObjectName) -> Result<(), StepError> {
        if let Some(ran) = self.objects.is_running(run, name).await? {
            self.notes(run, order).once(json!({ "ran": ran })).await?;
        }
        Ok(())
    }

    async fn revert_docker(&self, run: &Run, order: i32, action: &DockerAction) -> Result<(), StepError> {
        let (name, wants) = match action {
            // An image that is present does no harm, and may be in use by others now.
            DockerAction::Pull(_) => return Ok(()),
            DockerAction::Run(_) | DockerAction::Remove(_) => {
                return self.objects.bring_back(run, order).await;
            }
            DockerAction::Start(name) => (name, false),
            DockerAction::Stop(name) => (name, true),
        };
        let notes = self.notes(run, order);
        let ran = notes.read().await?.and_then(|note| note.get("ran")?.as_bool());
        let is_there = self.objects.is_running(run, name).await?.is_some();
        match ran {
            Some(ran) if ran == wants && is_there => match wants {
                true => self.objects.start(run, name).await?,
                false => self.objects.stop(run, name).await?,
            },
            _ => {}
        }
        notes.forget().await
    }

    async fn compose(
        &self,
        run: &Run,
        order: i32,
        action: &ComposeAction,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        match action {
            ComposeAction::Up { project, file } => {
                let text = match file {
                    ComposeText::Inline(text) => text.clone(),
                    ComposeText::InWorkspace(path) => self.text(run, path).await?,
                };
                self.objects.up(run, order, project, &text, output).await
            }
            ComposeAction::Down { project } => self.objects.down(run, order, project).await,
        }
    }

    async fn text(&self, run: &Run, path: &WorkspacePath) -> Result<String, StepError> {
        let (workspace, path) = (self.workspaces.of(run.execution), path.clone());
        let no_text = StepError::Rejected(format!("the file `{path}` is not UTF-8 text"));
        let bytes = files::blocking(move |_| files::read(&workspace, &path, LARGEST_COMPOSE_FILE)).await?;
        String::from_utf8(bytes).map_err(|_not_text| no_text)
    }
}

#[async_trait]
impl ExtensionRunner for HostRunner {
    fn workspace(&self, execution: ExecutionId) -> String {
        self.workspaces.of(execution).to_string_lossy().into_owned()
    }

    fn has_workspace(&self, execution: ExecutionId) -> bool {
        self.workspaces.of(execution).is_dir()
    }

    async fn begin(&self, run: &Run) -> Result<(), StepError> {
        self.workspaces.make(run.execution).await
    }

    async fn perform(
        &self,
        run: &Run,
        order: i32,
        action: &Action,
        output: Arc<dyn Output>,
    ) -> Result<i32, StepError> {
        self.workspaces.touch(run.execution).await?;
        match action {
            Action::Command { run: text, .. } => self.command(run, text, output).await,
            Action::File(action) => {
                let (workspace, notes) = (self.workspaces.of(run.execution), self.notes(run, order));
                files::perform(workspace, notes, action.clone()).await.map(|()| 0)
            }
            Action::Docker(action) => self.docker(run, order, action, output).await,
            Action::Compose(action) => self.compose(run, order, action, output).await.map(|()| 0),
            Action::Service { unit, verb } => {
                self.host.run_systemctl(&self.notes(run, order), unit, *verb, output).await
            }
            Action::User(action) => self.users().perform(&self.notes(run, order), action, output).await,
            Action::Proxy(_) => Err(not_ours()),
        }
    }

    async fn revert(
        &self,
        run: &Run,
        order: i32,
        action: &Action,
        output: Arc<dyn Output>,
    ) -> Result<(), StepError> {
        self.workspaces.touch(run.execution).await?;
        match action {
            Action::Command { revert: None, .. } => Ok(()),
            Action::Command { revert: Some(text), .. } => match self.command(run, text, output).await? {
                0 => Ok(()),
                code => Err(StepError::Rejected(format!("`revert_cmd` ended with exit code {code}"))),
            },
            Action::File(action) => {
                let (workspace, notes) = (self.workspaces.of(run.execution), self.notes(run, order));
                files::revert(workspace, notes, action.clone()).await
            }
            Action::Docker(action) => self.revert_docker(run, order, action).await,
            Action::Compose(_) => self.objects.bring_back(run, order).await,
            Action::Service { unit, verb } => {
                self.host.take_back_service(&self.notes(run, order), unit, *verb, output).await
            }
            Action::User(action) => self.users().revert(&self.notes(run, order), action, output).await,
            Action::Proxy(_) => Err(not_ours()),
        }
    }

    async fn finish(&self, run: &Run) -> Result<(), StepError> {
        self.objects.forget_aside(run).await?;
        self.workspaces.forget_aside(run.execution).await?;
        self.objects.release_ports(run.organization, &run.extension).await
    }

    async fn discard(&self, run: &Run) -> Result<(), StepError> {
        self.workspaces.remove(run.execution).await?;
        self.objects.release_ports(run.organization, &run.extension).await
    }

    async fn container(&self, run: &Run, name: &ObjectName, port: Port) -> Result<Container, StepError> {
        self.objects.container(run, name, port).await
    }

    async fn uninstall(
        &self,
        organization: OrganizationId,
        extension: &ExtensionKey,
        with_volumes: bool,
    ) -> Result<(), StepError> {
        self.objects.uninstall(organization, extension, with_volumes).await
    }

    async fn sweep(&self, before: Timestamp) -> Result<(), StepError> {
        self.workspaces.sweep(before).await
    }
}

impl Host {
    /// A program of this machine, with the usual timeout.
    fn call(&self, program: &str) -> Invocation {
        Invocation::new(program, commands::LONGEST).with_path(&self.path)
    }
}

fn not_ours() -> StepError {
    StepError::Retryable("a proxy step was passed to the runner of other steps".to_owned())
}

/// The error for a program that could not be run to its end.
fn not_run(error: ProcessError) -> StepError {
    match error {
        ProcessError::NotInstalled(program) => {
            StepError::Rejected(format!("this machine has no `{program}`, which the step needs"))
        }
        ProcessError::TookTooLong(..) => StepError::Rejected(error.to_string()),
        ProcessError::Io(_, source) => StepError::failed("a program could not be run", source),
        ProcessError::AnsweredTooMuch(_) => StepError::Retryable(error.to_string()),
    }
}
