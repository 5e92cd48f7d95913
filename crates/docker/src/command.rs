//! The command line of docker, one function for each of its commands.
//!
//! Callers of these functions cannot add an option: the functions take ids, names of our own making and
//! parsed references, none of which begins with a dash. Text of users is passed as standard input, as an
//! inherited variable, or after the option or the image that it belongs to.

mod compose;
mod containers;
mod images;
mod networks;
mod services;
mod volumes;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use launchway_domain::deployments::Output;
use launchway_system::process::{Finished, Invocation, ProcessError};
use serde_json::Value;
use tokio::{sync::OnceCell, time::sleep};

pub(super) use self::{
    compose::{Compose, NewProject},
    containers::{
        CAPABILITIES, CONTAINER_CPU_SHARES, ContainerOptions, MountedVolume, NewContainer, Program,
    },
    images::{ImageId, NewImage},
    networks::NetworkId,
    services::{NODE_LABEL, NewService, ServiceChange},
};
use super::{errors::EngineError, labels::Label, socket::Socket};

/// The lines of an error message that are read.
const ERROR_LINES: usize = 20;
/// The number of attempts of a call that fails with a transient error of the engine.
const TRIES: u32 = 4;
/// The delay between these attempts.
const PAUSE: Duration = Duration::from_millis(300);

/// The timeout of a call that only the client answers.
const SOON: Duration = Duration::from_secs(1);
/// The timeout of a ping of the engine.
const PING_TIME: Duration = Duration::from_secs(2);

/// The client of docker.
#[derive(Debug, Clone)]
pub(super) struct Docker {
    program: PathBuf,
    environment: Arc<[(OsString, OsString)]>,
    limit: Duration,
    /// True if the client was ever installed.
    was_there: Arc<AtomicBool>,
    /// The socket of the engine, if the client uses one.
    socket: Arc<OnceCell<Option<Socket>>>,
}

impl Docker {
    pub(super) fn new(program: &Path, environment: &[(OsString, OsString)], limit: Duration) -> Self {
        Self {
            program: program.to_owned(),
            environment: environment.into(),
            limit,
            was_there: Arc::default(),
            socket: Arc::default(),
        }
    }

    /// A command of docker with the usual timeout.
    fn call(&self, words: &[&str]) -> Invocation {
        self.call_within(self.limit, words)
    }

    fn call_within(&self, limit: Duration, words: &[&str]) -> Invocation {
        let call = Invocation::new(&self.program, limit).args(words);
        self.environment.iter().fold(call, |call, (name, value)| call.env(name, value))
    }
}

impl Docker {
    /// Returns docker's output of a call that lists our resources. On a machine where docker was never
    /// installed there are none: publishing sites needs no engine. A client that is missing temporarily,
    /// during an upgrade, is an error like any other.
    async fn listed(&self, call: Invocation) -> Result<String, EngineError> {
        match self.answer(call).await {
            Err(EngineError::Client(ProcessError::NotInstalled(_)))
                if !self.was_there.load(Ordering::Relaxed) =>
            {
                Ok(String::new())
            }
            Ok(listed) => {
                self.was_there.store(true, Ordering::Relaxed);
                Ok(listed)
            }
            failed => failed,
        }
    }
}

impl Docker {
    /// Returns the socket of the engine, if the client uses one. The client is asked once, which does not
    /// involve the engine; one that is not installed yet is asked again. `DOCKER_HOST` takes precedence
    /// over the client's configuration, so the client is not asked if it is set.
    pub(super) async fn socket(&self) -> Option<&Socket> {
        let find = async || {
            let host = self.environment.iter().find(|(name, _)| name == "DOCKER_HOST");
            if let Some(host) = host.and_then(|(_, host)| host.to_str()).filter(|host| !host.is_empty()) {
                return Ok(Socket::named(host));
            }
            let words = ["context", "inspect", "--format", "{{.Endpoints.docker.Host}}"];
            let call = self.call_within(self.limit.min(SOON), &words);
            match answer(call).await {
                Err(EngineError::Client(error)) => Err(error),
                told => Ok(told.ok().as_deref().and_then(Socket::named)),
            }
        };
        self.socket.get_or_try_init(find).await.ok()?.as_ref()
    }
}

impl Docker {
    /// Returns the output of docker for a call that succeeds.
    async fn answer(&self, call: Invocation) -> Result<String, EngineError> {
        match answer(call).await {
            Err(failure) => Err(self.diagnose(failure).await),
            answered => answered,
        }
    }

    /// As [`answer`](Self::answer), for a call that only the leader of a Swarm can answer.
    async fn answer_of_leader(&self, call: Invocation) -> Result<String, EngineError> {
        self.wait_for_leader().await?;
        self.answer(call).await
    }

    /// Parses an output with one record per line, without the records that docker does not have.
    async fn existing_records(&self, call: Invocation) -> Result<Vec<Value>, EngineError> {
        let finished = match call.run().await {
            Ok(finished) => finished,
            Err(error) => return Err(self.diagnose(EngineError::Client(error)).await),
        };
        match succeeded(&finished) {
            Err(failure) if !failure.is_only_about_missing_objects() => Err(self.diagnose(failure).await),
            _ => parsed(&text(&finished)),
        }
    }

    /// Writes the output of docker to `output`.
    async fn stream(&self, call: Invocation, output: Arc<dyn Output>) -> Result<(), EngineError> {
        let finished = match call.run_into(output).await {
            Ok(finished) => finished,
            Err(error) => return Err(self.diagnose(EngineError::Client(error)).await),
        };
        match succeeded(&finished) {
            Err(failure) => Err(self.diagnose(failure).await),
            done => done,
        }
    }

    /// Distinguishes an engine that does not answer from every other failure: the client rarely reports it
    /// when the engine stops, or hangs, in the middle of a call.
    async fn diagnose(&self, failure: EngineError) -> EngineError {
        if failure.is_from_engine() {
            return failure;
        }
        match self.ping().await {
            Ok(()) => failure,
            Err(why) => EngineError::Unavailable(why),
        }
    }

    /// Pings the engine. Fails with the reason if it does not answer; a client that is not installed, or
    /// that gets another error, is no such reason.
    async fn ping(&self) -> Result<(), String> {
        let limit = self.limit.min(PING_TIME);
        if let Some(socket) = self.socket().await {
            return socket.ping(limit).await;
        }
        let call = self.call_within(limit, &["version", "--format", "{{.Server.Version}}"]);
        match answer(call).await {
            Err(EngineError::Client(error @ ProcessError::TookTooLong(..))) => Err(error.to_string()),
            Err(failure) => failure.unavailability().map_or(Ok(()), Err),
            Ok(_version) => Ok(()),
        }
    }
}

/// Returns the output of docker for a call that succeeds, without diagnosing a failure.
async fn answer(call: Invocation) -> Result<String, EngineError> {
    let finished = call.run().await.map_err(EngineError::Client)?;
    succeeded(&finished)?;
    Ok(text(&finished))
}

/// The remaining attempts of a call that fails with transient errors of the engine.
pub(super) struct RetryBudget(u32);

impl RetryBudget {
    pub(super) fn new() -> Self {
        Self(TRIES)
    }

    /// Returns whether to retry the call, after a delay.
    pub(super) async fn should_retry(&mut self, failure: &EngineError) -> bool {
        self.0 = self.0.saturating_sub(1);
        let is_retried = self.0 > 0 && failure.is_transient();
        if is_retried {
            sleep(PAUSE).await;
        }
        is_retried
    }
}

fn succeeded(finished: &Finished) -> Result<(), EngineError> {
    if finished.succeeded() {
        Ok(())
    } else {
        Err(EngineError::Message(finished.last_error_lines(ERROR_LINES)))
    }
}

fn text(finished: &Finished) -> String {
    String::from_utf8_lossy(&finished.answer).into_owned()
}

fn parsed(text: &str) -> Result<Vec<Value>, EngineError> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(serde_json::from_str).collect::<Result<_, _>>().map_err(|_not_json| unreadable())
}

/// The error for an answer that cannot be parsed.
pub(super) fn unreadable() -> EngineError {
    EngineError::Message("docker returned unreadable output".to_owned())
}

/// The period of CPU quotas, in microseconds.
pub(super) const CPU_PERIOD: u32 = 100_000;

/// Returns the CPU quota of `cpus` per period, in microseconds.
pub(super) fn cpu_quota(cpus: f64) -> u128 {
    // The kernel refuses less than a millisecond.
    Duration::from_micros(u64::from(CPU_PERIOD)).mul_f64(cpus).as_micros().max(1000)
}

/// Adds the CPU limit and weight. A quota instead of `--cpus`, which the engine rejects on a machine with
/// fewer CPUs.
fn cpu_limited(call: Invocation, cpus: Option<f64>, shares: u32) -> Invocation {
    let call = call.args(["--cpu-shares", &shares.to_string()]);
    match cpus {
        Some(cpus) => {
            let (period, quota) = (CPU_PERIOD.to_string(), cpu_quota(cpus).to_string());
            call.args(["--cpu-period", &period, "--cpu-quota", &quota])
        }
        None => call,
    }
}

/// Adds `--filter label=…` for each label; the results have all of them.
fn with_labels(call: Invocation, labels: &[Label]) -> Invocation {
    labels.iter().fold(call, |call, label| call.arg("--filter").arg(format!("label={}", label.as_str())))
}
