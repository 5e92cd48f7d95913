//! A Docker engine of the campaign, which can be broken. It runs in the namespaces of [`crate::isolation`].

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::isolation;

/// The time until an engine has to answer, also after a kill.
const START: Duration = Duration::from_secs(90);
/// The time that an engine gets to stop.
const STOP: Duration = Duration::from_secs(60);
/// The time that a ping may take.
const PING: Duration = Duration::from_secs(2);
/// The number of starts before an exit is a failure: a service manager retries, too.
const STARTS: usize = 5;

/// The end of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EngineEnd {
    /// SIGTERM: it stops its containers first.
    Terminated,
    /// SIGKILL: its containers go on until the next engine finds them.
    Killed,
}

/// A running `dockerd` with its containerd.
pub(crate) struct Engine {
    process: Child,
    folder: PathBuf,
    failed_starts: usize,
}

impl Engine {
    /// Starts an engine without images, and waits until it answers.
    pub(crate) fn start() -> Self {
        let folder = isolation::folder();
        let mut engine = Self { process: spawn(&folder), folder, failed_starts: 0 };
        engine.wait_until_it_answers();
        engine
    }

    /// Ends the process of the engine.
    pub(crate) fn end(&mut self, end: EngineEnd) {
        match end {
            EngineEnd::Killed => self.process.kill().unwrap(),
            EngineEnd::Terminated => signal("TERM", self.process.id()),
        }
        let started = Instant::now();
        while self.process.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < STOP, "the engine does not stop:\n{}", self.tail_log());
            sleep(Duration::from_millis(10));
        }
    }

    /// Starts the engine again on the same data, and waits until it answers.
    pub(crate) fn start_again(&mut self) {
        self.process = spawn(&self.folder);
        self.wait_until_it_answers();
    }

    /// Stops all threads of the engine and of its containerd: connections are accepted, requests hang.
    pub(crate) fn freeze(&self) {
        for process in self.processes() {
            signal("STOP", process);
        }
    }

    /// Lets a frozen engine continue, and waits until it answers.
    pub(crate) fn thaw(&mut self) {
        for process in self.processes() {
            signal("CONT", process);
        }
        self.wait_until_it_answers();
    }

    /// Returns the number of starts after which the engine exited.
    pub(crate) fn failed_starts(&self) -> usize {
        self.failed_starts
    }

    /// The engine and its containerd.
    fn processes(&self) -> [u32; 2] {
        let file = self.folder.join("run/containerd/containerd.pid");
        let containerd = fs::read_to_string(file).unwrap().trim().parse().unwrap();
        [self.process.id(), containerd]
    }

    fn wait_until_it_answers(&mut self) {
        let (started, mut exits) = (Instant::now(), 0);
        while !self.answers() {
            if self.process.try_wait().unwrap().is_some() {
                (exits, self.failed_starts) = (exits + 1, self.failed_starts + 1);
                assert!(exits < STARTS, "the engine exits after every start:\n{}", self.tail_log());
                self.process = spawn(&self.folder);
            }
            assert!(started.elapsed() < START, "the engine does not answer:\n{}", self.tail_log());
            sleep(Duration::from_millis(20));
        }
    }

    fn answers(&self) -> bool {
        let ping = || {
            let mut stream = UnixStream::connect(isolation::socket(&self.folder))?;
            stream.set_read_timeout(Some(PING))?;
            stream.write_all(b"GET /_ping HTTP/1.0\r\nHost: engine\r\n\r\n")?;
            let mut response = String::new();
            stream.read_to_string(&mut response)?;
            io::Result::Ok(response)
        };
        ping().is_ok_and(|response| response.lines().next().is_some_and(|line| line.contains(" 200 ")))
    }

    fn tail_log(&self) -> String {
        let log = fs::read_to_string(self.folder.join("engine.log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _exited = self.process.kill();
        let _exited = self.process.wait();
    }
}

fn spawn(folder: &Path) -> Child {
    // A killed engine leaves its pid file behind, and the pid may be reused by now.
    let _absent = fs::remove_file(folder.join("engine.pid"));
    let log = OpenOptions::new().create(true).append(true).open(folder.join("engine.log")).unwrap();
    Command::new("dockerd")
        .arg("--data-root")
        .arg(folder.join("data"))
        .arg("--exec-root")
        .arg(folder.join("run"))
        .arg("--pidfile")
        .arg(folder.join("engine.pid"))
        .arg("--host")
        .arg(format!("unix://{}", isolation::socket(folder).display()))
        .args(["--bip", "10.223.0.1/24", "--exec-opt", "native.cgroupdriver=cgroupfs"])
        .arg("--cgroup-parent")
        .arg(format!("/{}", isolation::control_group(folder)))
        .env_remove("DOCKER_HOST")
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .expect("`dockerd` of the package docker.io can be started")
}

fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status().unwrap();
    assert!(sent.success(), "process {process} exists");
}
