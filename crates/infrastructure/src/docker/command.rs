//! The command line of docker, one function for each of its commands.
//!
//! Whoever calls these functions cannot add an option: they take ids, names of our own making and
//! parsed references, none of which begins with a dash. What people wrote is the input, an inherited
//! variable, or stands behind the option or the image that it belongs to.

mod compose;
mod containers;
mod images;
mod networks;
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
use serde_json::Value;
use tokio::{sync::OnceCell, time::sleep};

pub(super) use self::{
    compose::{Compose, NewProject},
    containers::{CAPABILITIES, CONTAINER_CPU_SHARES, MountedVolume, NewContainer, Program, Surroundings},
    images::{ImageId, NewImage},
    networks::NetworkId,
};
use super::{complaints::Failure, labels::Label, socket::Socket};
use crate::process::{Finished, Invocation, ProcessError};

/// How many lines of a complaint are looked at.
const LINES_OF_COMPLAINT: usize = 20;
/// How often a call is made during which the engine trips over itself.
const TRIES: u32 = 4;
/// How long it gets to find itself again.
const PAUSE: Duration = Duration::from_millis(300);

/// How long a question to the client itself may take.
const SOON: Duration = Duration::from_secs(1);
/// The time in which an engine that is well answers a ping.
const PING_TIME: Duration = Duration::from_secs(2);

/// The client of docker.
#[derive(Debug, Clone)]
pub(super) struct Docker {
    program: PathBuf,
    environment: Arc<[(OsString, OsString)]>,
    limit: Duration,
    /// Whether the client was ever there.
    was_there: Arc<AtomicBool>,
    /// Where the client finds the engine, if that is a socket.
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

    /// A command of docker that may take as long as most.
    fn call(&self, words: &[&str]) -> Invocation {
        self.call_within(self.limit, words)
    }

    fn call_within(&self, limit: Duration, words: &[&str]) -> Invocation {
        let call = Invocation::new(&self.program, limit).args(words);
        self.environment.iter().fold(call, |call, (name, value)| call.env(name, value))
    }
}

impl Docker {
    /// What docker answers to a call that lists things of ours. On a machine that never had a docker
    /// there are none: who publishes sites needs no engine. One that is away for a moment, while it
    /// is upgraded, is a fault like any other.
    async fn listed(&self, call: Invocation) -> Result<String, Failure> {
        match self.answer(call).await {
            Err(Failure::Client(ProcessError::NotInstalled(_)))
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
    /// The socket of the engine, if the client uses one. The client is asked once, which asks no engine;
    /// one that is not installed yet is asked again. `DOCKER_HOST` counts before what the client is
    /// configured with, so that nobody has to be asked where it is set.
    pub(super) async fn socket(&self) -> Option<&Socket> {
        let find = async || {
            let host = self.environment.iter().find(|(name, _)| name == "DOCKER_HOST");
            if let Some(host) = host.and_then(|(_, host)| host.to_str()).filter(|host| !host.is_empty()) {
                return Ok(Socket::named(host));
            }
            let words = ["context", "inspect", "--format", "{{.Endpoints.docker.Host}}"];
            let call = self.call_within(self.limit.min(SOON), &words);
            match answer(call).await {
                Err(Failure::Client(error)) => Err(error),
                told => Ok(told.ok().as_deref().and_then(Socket::named)),
            }
        };
        self.socket.get_or_try_init(find).await.ok()?.as_ref()
    }
}

impl Docker {
    /// Returns what docker prints to a call that succeeds.
    async fn answer(&self, call: Invocation) -> Result<String, Failure> {
        match answer(call).await {
            Err(failure) => Err(self.diagnose(failure).await),
            answered => answered,
        }
    }

    /// Returns each record of an answer that has one on each line, without those that docker was
    /// asked for and does not have.
    async fn existing_records(&self, call: Invocation) -> Result<Vec<Value>, Failure> {
        let finished = match call.run().await {
            Ok(finished) => finished,
            Err(error) => return Err(self.diagnose(Failure::Client(error)).await),
        };
        match succeeded(&finished) {
            Err(failure) if !failure.is_only_about_what_is_gone() => Err(self.diagnose(failure).await),
            _ => parsed(&text(&finished)),
        }
    }

    /// Hands everything that docker prints to `output`.
    async fn tell(&self, call: Invocation, output: Arc<dyn Output>) -> Result<(), Failure> {
        let finished = match call.run_into(output).await {
            Ok(finished) => finished,
            Err(error) => return Err(self.diagnose(Failure::Client(error)).await),
        };
        match succeeded(&finished) {
            Err(failure) => Err(self.diagnose(failure).await),
            done => done,
        }
    }

    /// Tells a call that failed because the engine does not answer from every other failure: the
    /// client rarely says so when the engine ends, or hangs, in the middle of a call.
    async fn diagnose(&self, failure: Failure) -> Failure {
        if failure.is_told_by_the_engine() {
            return failure;
        }
        match self.ping().await {
            Ok(()) => failure,
            Err(why) => Failure::Unavailable(why),
        }
    }

    /// Asks the engine for a sign of life. Fails with the reason why there is none; a client that is
    /// not installed, or that is told something else, is no such reason.
    async fn ping(&self) -> Result<(), String> {
        let limit = self.limit.min(PING_TIME);
        if let Some(socket) = self.socket().await {
            return socket.ping(limit).await;
        }
        let call = self.call_within(limit, &["version", "--format", "{{.Server.Version}}"]);
        match answer(call).await {
            Err(Failure::Client(error @ ProcessError::TookTooLong(..))) => Err(error.to_string()),
            Err(failure) => failure.unavailability().map_or(Ok(()), Err),
            Ok(_version) => Ok(()),
        }
    }
}

/// Returns what docker prints to a call that succeeds, and asks nobody why it did not.
async fn answer(call: Invocation) -> Result<String, Failure> {
    let finished = call.run().await.map_err(Failure::Client)?;
    succeeded(&finished)?;
    Ok(text(&finished))
}

/// How often a call is made again because the engine tripped over itself.
pub(super) struct Patience(u32);

impl Patience {
    pub(super) fn new() -> Self {
        Self(TRIES)
    }

    /// Whether the call is to be made again, after a pause.
    pub(super) async fn bears(&mut self, failure: &Failure) -> bool {
        self.0 = self.0.saturating_sub(1);
        let is_borne = self.0 > 0 && failure.is_lapse();
        if is_borne {
            sleep(PAUSE).await;
        }
        is_borne
    }
}

fn succeeded(finished: &Finished) -> Result<(), Failure> {
    if finished.succeeded() {
        Ok(())
    } else {
        Err(Failure::Complaint(finished.last_complaints(LINES_OF_COMPLAINT)))
    }
}

fn text(finished: &Finished) -> String {
    String::from_utf8_lossy(&finished.answer).into_owned()
}

fn parsed(text: &str) -> Result<Vec<Value>, Failure> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(serde_json::from_str).collect::<Result<_, _>>().map_err(|_not_json| unreadable())
}

/// The answer of an engine that is not docker, or not well.
pub(super) fn unreadable() -> Failure {
    Failure::Complaint("docker answered what cannot be read".to_owned())
}

/// The time over which processors are counted, in microseconds.
pub(super) const CPU_PERIOD: u32 = 100_000;

/// Returns the processor time that `cpus` processors have in each period, in microseconds.
pub(super) fn cpu_quota(cpus: f64) -> u128 {
    // The kernel refuses less than a millisecond.
    Duration::from_micros(u64::from(CPU_PERIOD)).mul_f64(cpus).as_micros().max(1000)
}

/// Adds the limit of processors and their weight. A quota instead of `--cpus`, which the engine refuses on
/// a machine with fewer processors.
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

/// `--filter label=…` for each label; what is found has all of them.
fn with_labels(call: Invocation, labels: &[Label]) -> Invocation {
    labels.iter().fold(call, |call, label| call.arg("--filter").arg(format!("label={}", label.as_str())))
}
