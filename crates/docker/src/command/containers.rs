//! The commands about containers.

use std::{net::Ipv4Addr, sync::Arc, time::Duration};

use launchway_domain::{
    applications::RunCommand,
    clock::Timestamp,
    deployments::{ContainerId, ImageName, Output},
};
use launchway_system::process::Invocation;
use serde_json::{Value, json};

use super::{Docker, ImageId, NetworkId, RetryBudget, cpu_limited, unreadable, with_labels};

use crate::{
    ContainerLimits,
    environment::ContainerEnvironment,
    errors::EngineError,
    forwarded_ports::ForwardedPort,
    labels::Label,
    socket::{LogRange, LogSource, Socket, SocketError},
};

/// The grace period of stopping a program, in seconds.
const GRACE: &str = "10";

/// The CPU weight of a container. A service of the machine has 1024, so that the server, its proxy and its
/// database come first.
pub(crate) const CONTAINER_CPU_SHARES: u32 = 512;

/// The capabilities of root in a container: those that images need to prepare files and switch to another
/// user, and low ports. Without `NET_RAW`, containers cannot forge packets; `MKNOD`, `SETFCAP`, `SETPCAP`,
/// `SYS_CHROOT` and `AUDIT_WRITE` are not missed.
pub(crate) const CAPABILITIES: [&str; 8] =
    ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE", "SETGID", "SETUID"];

/// The fields that are read of a container. The environment is not among them, because it is secret.
const FORMAT: &str = r#"{"id":{{json .Id}},"name":{{json .Name}},"created":{{json .Created}},"restarts":{{json .RestartCount}},"policy":{{json .HostConfig.RestartPolicy.Name}},"state":{{json .State}},"labels":{{json .Config.Labels}},"networks":{{json .NetworkSettings.Networks}},"ports":{{json .HostConfig.PortBindings}}}"#;

/// A container to be created.
#[derive(Debug)]
pub(crate) struct NewContainer<'a> {
    pub(crate) name: &'a str,
    pub(crate) labels: &'a [Label],
    pub(crate) limits: &'a ContainerLimits,
    pub(crate) environment: &'a ContainerEnvironment,
    /// Its address in the network; assigned by the engine if `None`.
    pub(crate) address: Option<Ipv4Addr>,
    pub(crate) program: Program<'a>,
    pub(crate) surroundings: ContainerOptions<'a>,
}

/// The program of a container.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Program<'a> {
    /// The default command of a deployment's image.
    Own(&'a ImageName),
    /// A shell command in a deployment's image.
    Shell(&'a ImageName, &'a RunCommand),
    /// The default command of any image, or these arguments if there are some.
    Words(&'a ImageId, &'a [String]),
}

/// Additional settings of a container. Those of deployments have none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ContainerOptions<'a> {
    /// True if the engine restarts it whenever it ends, unless it is stopped.
    pub(crate) is_kept: bool,
    /// Its alias in the network.
    pub(crate) alias: Option<&'a str>,
    pub(crate) volumes: &'a [MountedVolume],
    /// The ports of this machine that are forwarded to it.
    pub(crate) ports: &'a [ForwardedPort],
}

/// A volume in a container, with a name of our own making.
#[derive(Debug, Clone)]
pub(crate) struct MountedVolume {
    pub(crate) name: String,
    /// The path in the container, without a colon.
    pub(crate) path: String,
    pub(crate) is_read_only: bool,
}

impl Docker {
    /// Creates a container in a network and starts it. It may exist even if that fails.
    pub(crate) async fn run(
        &self,
        container: &NewContainer<'_>,
        network: &NetworkId,
    ) -> Result<ContainerId, EngineError> {
        self.make(&["run", "--detach"], container, network).await
    }

    /// Creates a container in a network, without starting it.
    pub(crate) async fn create(
        &self,
        container: &NewContainer<'_>,
        network: &NetworkId,
    ) -> Result<ContainerId, EngineError> {
        self.make(&["create"], container, network).await
    }

    /// There is no `--init`: an image with a supervisor of its own insists on being PID 1, and a missing
    /// program would be reported as an exit code only.
    async fn make(
        &self,
        words: &[&str],
        container: &NewContainer<'_>,
        network: &NetworkId,
    ) -> Result<ContainerId, EngineError> {
        let mut call = self
            .call(words)
            .args(["--pull", "never", "--name", container.name])
            .args(["--network", network.as_str(), "--restart", container.surroundings.policy()])
            // The result is not used, and an image may ask for a thousand checks a second, which the engine
            // would have to run.
            .arg("--no-healthcheck")
            .args(["--security-opt", "no-new-privileges", "--cap-drop", "ALL"]);
        if let Some(address) = container.address {
            call = call.args(["--ip", &address.to_string()]);
        }
        for capability in CAPABILITIES {
            call = call.args(["--cap-add", capability]);
        }
        call = limited(call, container.limits).args([
            "--log-driver",
            "json-file",
            "--log-opt",
            "max-size=10m",
            "--log-opt",
            "max-file=3",
        ]);
        for label in container.labels {
            call = call.args(["--label", label.as_str()]);
        }
        call = call.args(["--env-file", "/dev/stdin"]).input(container.environment.file.as_slice());
        for (name, value) in &container.environment.inherited {
            call = call.args(["--env", name]).env(name, value);
        }
        call = container.surroundings.applied_to(call);
        call = match container.program {
            Program::Own(image) => call.arg(image.as_str()),
            Program::Shell(image, command) => {
                call.args(["--entrypoint", "/bin/sh", image.as_str(), "-c", "--"]).arg(command.as_str())
            }
            Program::Words(image, words) => call.arg(image.as_str()).args(words),
        };
        self.answer(call).await?.trim().parse().map_err(|_not_an_id| unreadable())
    }

    /// Starts a container and writes its output until it ends. An error may also mean that its program
    /// failed.
    pub(crate) async fn start_attached(
        &self,
        container: &ContainerId,
        limit: Duration,
        output: Arc<dyn Output>,
    ) -> Result<(), EngineError> {
        let mut retries = RetryBudget::new();
        loop {
            let call = self.call_within(limit, &["start", "--attach", container.as_str()]);
            match self.stream(call, output.clone()).await {
                Err(failure) if retries.should_retry(&failure).await => {}
                done => return done,
            }
        }
    }

    /// Sets the restart policy of the container.
    pub(crate) async fn set_restart_policy(
        &self,
        container: &ContainerId,
        policy: &str,
    ) -> Result<(), EngineError> {
        self.answer(self.call(&["update", "--restart", policy, container.as_str()])).await.map(drop)
    }

    /// Starts a stopped container. A running one is left alone.
    pub(crate) async fn start(&self, container: &ContainerId) -> Result<(), EngineError> {
        let mut retries = RetryBudget::new();
        loop {
            match self.answer(self.call(&["start", container.as_str()])).await {
                Err(failure) if retries.should_retry(&failure).await => {}
                done => return done.map(drop),
            }
        }
    }

    /// Resumes a paused container.
    pub(crate) async fn unpause(&self, container: &ContainerId) -> Result<(), EngineError> {
        self.answer(self.call(&["unpause", container.as_str()])).await.map(drop)
    }

    /// Renames a container to a name of our own making.
    pub(crate) async fn rename(&self, container: &ContainerId, name: &str) -> Result<(), EngineError> {
        self.answer(self.call(&["rename", container.as_str(), name])).await.map(drop)
    }

    pub(crate) async fn restart(&self, container: &ContainerId) -> Result<(), EngineError> {
        let mut retries = RetryBudget::new();
        loop {
            match self.answer(self.call(&["restart", "-t", GRACE, container.as_str()])).await {
                Err(failure) if retries.should_retry(&failure).await => {}
                done => return done.map(drop),
            }
        }
    }

    pub(crate) async fn stop(&self, container: &ContainerId) -> Result<(), EngineError> {
        self.answer(self.call(&["stop", "-t", GRACE, container.as_str()])).await.map(drop)
    }

    /// Stops a container with the grace period that it was created with.
    pub(crate) async fn stop_in_its_own_time(&self, container: &ContainerId) -> Result<(), EngineError> {
        self.answer(self.call(&["stop", container.as_str()])).await.map(drop)
    }

    /// Kills containers and removes them with their anonymous volumes. One that is gone is no error.
    pub(crate) async fn remove(&self, containers: &[ContainerId]) -> Result<(), EngineError> {
        if containers.is_empty() {
            return Ok(());
        }
        let call = self.call(&["rm", "--force", "--volumes"]);
        match self.answer(call.args(containers.iter().map(ContainerId::as_str))).await {
            Err(failure) if !failure.is_only_about_missing_objects() => Err(failure),
            _ => Ok(()),
        }
    }

    /// Returns the containers with all of these labels, whether they run or not.
    ///
    /// Only those with a name of ours: a Dockerfile may put any label on the containers in which its steps
    /// run, but the engine names those.
    pub(crate) async fn containers(&self, labels: &[Label]) -> Result<Vec<ContainerId>, EngineError> {
        let call = self.call(&["ps", "--all", "--quiet", "--no-trunc", "--filter", "name=^/?launchway-"]);
        let listed = self.listed(with_labels(call, labels)).await?;
        let ids = listed.lines().filter(|line| !line.trim().is_empty());
        ids.map(|id| id.trim().parse()).collect::<Result<_, _>>().map_err(|_not_an_id| unreadable())
    }

    /// Returns the record of each container that still exists.
    pub(crate) async fn inspect(&self, containers: &[ContainerId]) -> Result<Vec<Value>, EngineError> {
        if containers.is_empty() {
            return Ok(Vec::new());
        }
        if let Some(records) = self.inspect_by_socket(containers).await {
            return Ok(records);
        }
        let call = self.call(&["container", "inspect", "--format", FORMAT]);
        self.existing_records(call.args(containers.iter().map(ContainerId::as_str))).await
    }

    /// Returns `None` as soon as one of them does not exist.
    async fn inspect_by_socket(&self, containers: &[ContainerId]) -> Option<Vec<Value>> {
        let socket = self.socket().await?;
        let mut records = Vec::with_capacity(containers.len());
        for container in containers {
            records.push(self.inspect_at(socket, container.as_str()).await?);
        }
        Some(records)
    }

    /// Inspects one container by the engine's socket.
    pub(crate) async fn inspect_at(&self, socket: &Socket, container: &str) -> Option<Value> {
        read(&socket.container(container).await?)
    }

    /// Lists every container of a network, whoever created it, by the network's id and its name: one that
    /// was never started is found by the name only.
    pub(crate) async fn containers_in(
        &self,
        network: &NetworkId,
        name: &str,
    ) -> Result<Vec<ContainerId>, EngineError> {
        let mut call = self.call(&["ps", "--all", "--quiet", "--no-trunc", "--filter"]);
        call = call.arg(format!("network={}", network.as_str()));
        if !name.is_empty() {
            call = call.arg("--filter").arg(format!("network={name}"));
        }
        let listed = self.answer(call).await?;
        let ids = listed.lines().filter(|line| !line.trim().is_empty());
        ids.map(|id| id.trim().parse()).collect::<Result<_, _>>().map_err(|_not_an_id| unreadable())
    }

    /// Writes everything that a container printed since a time, each line after its timestamp.
    pub(crate) async fn logs_since(
        &self,
        container: &ContainerId,
        since: Option<Timestamp>,
        output: Arc<dyn Output>,
    ) -> Result<(), EngineError> {
        let nanoseconds = since.and_then(|since| since.timestamp_nanos_opt());
        let range = nanoseconds.map_or(LogRange::All, LogRange::Since);
        if let Some(read) = self.logs_at_socket(container, range, &output).await {
            return read;
        }
        let mut call = self.call(&["logs", "--timestamps"]);
        if let Some(since) = since {
            call = call.arg("--since").arg(since.to_rfc3339_opts(chrono::SecondsFormat::Micros, true));
        }
        self.stream(call.arg(container.as_str()), output).await
    }

    /// Writes the last lines that a container printed, each after its timestamp.
    pub(crate) async fn last_logs(
        &self,
        container: &ContainerId,
        lines: usize,
        output: Arc<dyn Output>,
    ) -> Result<(), EngineError> {
        if let Some(read) = self.logs_at_socket(container, LogRange::Last(lines), &output).await {
            return read;
        }
        let lines = lines.to_string();
        self.stream(self.call(&["logs", "--timestamps", "--tail", &lines, container.as_str()]), output).await
    }

    /// Reads logs by the socket of the engine. `None` where there is none, and if the engine answers with
    /// an error: the client is used then, whose error messages are known.
    async fn logs_at_socket(
        &self,
        container: &ContainerId,
        range: LogRange,
        output: &Arc<dyn Output>,
    ) -> Option<Result<(), EngineError>> {
        let socket = self.socket().await?;
        match socket.logs(LogSource::Container(container), range, Arc::clone(output), self.limit).await {
            Ok(()) => Some(Ok(())),
            Err(SocketError::Status(_)) => None,
            Err(error) => Some(Err(self.diagnose(error.into()).await)),
        }
    }

    /// Writes the events of containers with these labels, from a time in nanoseconds since 1970 on. Returns
    /// when the timeout is reached or the engine is gone.
    pub(crate) async fn events(
        &self,
        labels: &[Label],
        since: i64,
        limit: Duration,
        output: Arc<dyn Output>,
    ) -> Result<(), EngineError> {
        let since = format!("{}.{:09}", since.div_euclid(1_000_000_000), since.rem_euclid(1_000_000_000));
        let mut call = self
            .call_within(limit, &["events", "--format", "{{json .}}", "--since", &since])
            .args(["--filter", "type=container"]);
        for event in ["start", "die", "oom", "destroy", "pause", "unpause", "stop", "kill"] {
            call = call.arg("--filter").arg(format!("event={event}"));
        }
        self.stream(with_labels(call, labels), output).await
    }
}

/// Converts the engine's own answer to the fields of [`FORMAT`].
fn read(container: &Value) -> Option<Value> {
    Some(json!({
        "id": container.get("Id")?,
        "name": container.get("Name")?,
        "created": container.get("Created")?,
        "restarts": container.get("RestartCount")?,
        "policy": container.get("HostConfig")?.get("RestartPolicy")?.get("Name")?,
        "state": container.get("State")?,
        "labels": container.get("Config")?.get("Labels")?,
        "networks": container.get("NetworkSettings")?.get("Networks")?,
        "ports": container.get("HostConfig")?.get("PortBindings"),
    }))
}

impl ContainerOptions<'_> {
    fn policy(&self) -> &'static str {
        if self.is_kept { "unless-stopped" } else { "no" }
    }

    fn applied_to(&self, mut call: Invocation) -> Invocation {
        if let Some(alias) = self.alias {
            call = call.args(["--network-alias", alias]);
        }
        for volume in self.volumes {
            let mode = if volume.is_read_only { "ro" } else { "rw" };
            call = call.arg("--volume").arg(format!("{}:{}:{mode}", volume.name, volume.path));
        }
        for port in self.ports {
            call = call.arg("--publish").arg(port.to_string());
        }
        call
    }
}

fn limited(call: Invocation, limits: &ContainerLimits) -> Invocation {
    let (memory, pids) = (limits.memory.to_string(), limits.pids.to_string());
    let call = call.args(["--pids-limit", &pids, "--memory", &memory, "--memory-swap", &memory]);
    cpu_limited(call, limits.cpus, CONTAINER_CPU_SHARES)
}
