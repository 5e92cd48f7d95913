//! A Docker engine for one run of the tests, unless one already runs on this machine.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use fs_err::{self as fs, File};

use crate::{
    install,
    needs::program_folders,
    scratch::{Scratch, throwaway_parent},
    workspace,
};

/// The parent of the data of an engine that is measured. Sockets need short paths, whatever the environment says.
const DISK: &str = "/tmp";
/// The memory at which an engine of tests collects garbage. It starts itself anew for every layer of an image and every
/// container, and collected garbage each time, for a third of what that costs.
const GARBAGE_LIMIT: [(&str, &str); 2] = [("GOGC", "off"), ("GOMEMLIMIT", "512MiB")];
/// The timeout of the start of an engine.
const TIMEOUT: Duration = Duration::from_secs(90);
/// The number of log lines that are shown when the start fails.
const LAST_WORDS: usize = 15;
/// Starts the engine with all of its data in the current folder, but at the usual socket.
const START: &str = r#"
exec dockerd --data-root "$PWD/data" --exec-root "$PWD/run" --pidfile "$PWD/engine.pid" &
echo $! > pid
"#;
/// Removes the bridges of the engine's networks, stops it and waits for its end, so that no subnet stays in
/// use on the machine, and no mount remains in its folder.
const FAREWELL: &str = r#"
pid=$(cat pid) || exit 0
docker ps --all --quiet | xargs --no-run-if-empty docker rm --force > /dev/null 2>&1
docker network prune --force > /dev/null 2>&1
kill "$pid"
for _ in $(seq 300); do
    kill -0 "$pid" 2>/dev/null || exit 0
    sleep 0.1
done
kill -9 "$pid"
"#;

/// The purpose of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Its data are thrown away soon, and in memory if there is enough of it.
    Tests,
    /// It is measured, or killed, as one of an installation.
    Measurements,
}

/// An engine that answers.
#[derive(Debug)]
pub(crate) struct Engine {
    /// The folder of the engine, if we started it: it is stopped and removed when dropped.
    started: Option<Scratch>,
}

impl Engine {
    /// Uses the engine that answers, or starts one and waits until it does.
    pub(crate) fn start(purpose: Purpose) -> Result<Self> {
        if answers() {
            return Ok(Self { started: None });
        }
        if env::var_os("DOCKER_HOST").is_some() {
            bail!("no Docker engine answers at DOCKER_HOST: start it, or unset the variable");
        }
        if !install::is_root()? {
            bail!(
                "no Docker engine answers, and only root can start one: run this as root, start `dockerd` \
                 yourself, or let your user into the group `docker` if one runs already"
            );
        }
        let farewell = ["sh", "-c", FAREWELL].map(OsString::from);
        let (parent, environment) = match purpose {
            Purpose::Tests => (throwaway_parent(), &GARBAGE_LIMIT[..]),
            Purpose::Measurements => (PathBuf::from(DISK), &[][..]),
        };
        let scratch = Scratch::create(&parent, "docker", &farewell)?;
        spawn(scratch.path(), environment)?;
        let deadline = Instant::now() + TIMEOUT;
        while !answers() {
            if Instant::now() > deadline || !is_running(scratch.path()) {
                bail!("the Docker engine did not start: {}", tail_logs(scratch.path()));
            }
            thread::sleep(Duration::from_millis(200));
        }
        Ok(Self { started: Some(scratch) })
    }

    /// Returns whether we started the engine.
    pub(crate) fn is_ours(&self) -> bool {
        self.started.is_some()
    }
}

/// Returns whether the docker command line reaches an engine.
pub(crate) fn answers() -> bool {
    let mut info = Command::new("docker");
    // The client may exit successfully without having reached an engine.
    workspace::output(info.args(["info", "--format", "{{.ServerVersion}}"]))
        .is_ok_and(|text| !text.is_empty())
}

/// Starts `dockerd` in `folder`, in a session of its own: an interrupt does not reach it, and the cleanup
/// command of its folder stops it.
fn spawn(folder: &Path, environment: &[(&str, &str)]) -> Result<()> {
    let (log, _) = File::create(folder.join("log"))?.into_parts();
    let path = env::join_paths(program_folders()).context("the PATH cannot be used")?;
    Command::new("setsid")
        .args(["sh", "-c", START])
        .env("PATH", path)
        .envs(environment.iter().copied())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .status()
        .map(drop)
        .context("cannot start `dockerd`")
}

fn is_running(folder: &Path) -> bool {
    let pid = fs::read_to_string(folder.join("pid")).unwrap_or_default();
    let pid = pid.trim();
    !pid.is_empty() && Path::new("/proc").join(pid).exists()
}

fn tail_logs(folder: &Path) -> String {
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(LAST_WORDS)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docker_that_runs_already_is_taken_as_it_is() {
        // A machine that runs the tests has an engine.
        assert!(answers());
        assert!(!Engine::start(Purpose::Tests).unwrap().is_ours());
    }

    #[test]
    fn the_tail_is_the_end_of_the_log() {
        let scratch = Scratch::create(&env::temp_dir(), "scratch", &[]).unwrap();
        assert_eq!(tail_logs(scratch.path()), "");
        let lines: Vec<_> = (1..=20).map(|number| number.to_string()).collect();
        fs::write(scratch.path().join("log"), lines.join("\n")).unwrap();
        assert!(tail_logs(scratch.path()).starts_with("6\n7\n"));
    }

    #[test]
    fn an_engine_that_was_never_started_does_not_run() {
        let scratch = Scratch::create(&env::temp_dir(), "scratch", &[]).unwrap();
        assert!(!is_running(scratch.path()));
    }
}
