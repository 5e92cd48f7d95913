//! The process under test.

use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use launchway_testkit::client::Client;

/// The time within which a server must answer.
const START: Duration = Duration::from_secs(60);

/// The time that a wrapper program gets to exit after the server.
const FAREWELL: Duration = Duration::from_secs(5);

/// The parameters of a start.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) binary: PathBuf,
    /// The words before the binary: a program that runs it.
    pub(crate) wrapper: Vec<OsString>,
    pub(crate) settings: Vec<(String, String)>,
    /// The file to which its output is appended.
    pub(crate) log: PathBuf,
    pub(crate) url: String,
}

/// A server, which stops when dropped, and with the thread that started it.
pub(crate) struct Server {
    child: Child,
    launch: Launch,
}

impl Server {
    /// Starts a server without waiting until it answers.
    pub(crate) fn spawn(launch: &Launch) -> Self {
        let log = OpenOptions::new().create(true).append(true).open(&launch.log).unwrap();
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .args(&launch.wrapper)
            .arg(&launch.binary)
            .env_clear()
            .envs(launch.settings.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("`setpriv` of util-linux can be started");
        Self { child, launch: launch.clone() }
    }

    /// Starts a server, and waits until it answers.
    pub(crate) fn start(launch: &Launch) -> Self {
        let mut server = Self::spawn(launch);
        let (started, client) = (Instant::now(), Client::new(&launch.url));
        while client.try_send("GET", "/health", None).is_err() {
            if let Some(status) = server.exit() {
                panic!("the server ended ({status}):\n{}", server.tail_logs());
            }
            assert!(started.elapsed() < START, "the server does not answer:\n{}", server.tail_logs());
            sleep(Duration::from_millis(5));
        }
        server
    }

    /// Kills it with SIGKILL, like a power cut.
    pub(crate) fn kill(&mut self) {
        let own = self.process_id();
        if own != self.child.id() {
            let _gone = Command::new("kill").args(["-9", &own.to_string()]).status();
            // The wrapper program writes its output, and then exits.
            let started = Instant::now();
            while self.exit().is_none() && started.elapsed() < FAREWELL {
                sleep(Duration::from_millis(5));
            }
        }
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }

    /// Stops it with SIGTERM, and waits for its end.
    pub(crate) fn terminate(&mut self) {
        let output = Command::new("kill").args(["-TERM", &self.process_id().to_string()]).status().unwrap();
        assert!(output.success());
        self.child.wait().unwrap();
    }

    /// Returns its exit status, if it has exited.
    pub(crate) fn exit(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Returns whether it exits within `limit`.
    pub(crate) fn exits_within(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while self.exit().is_none() {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(Duration::from_millis(10));
        }
        true
    }

    /// Returns the process id of the server itself, not of the program that runs it.
    pub(crate) fn process_id(&self) -> u32 {
        let pid = self.child.id();
        let runs_apart = self.launch.wrapper.first().is_some_and(|program| program == "strace");
        if !runs_apart {
            return pid;
        }
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        children.split_whitespace().next().and_then(|child| child.parse().ok()).unwrap_or(pid)
    }

    /// Returns the id of the thread with that name.
    pub(crate) fn thread(&self, name: &str) -> u32 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process_id())).unwrap().flatten();
        let found = tasks.map(|task| task.path()).find(|task| is_called(task, name));
        found.and_then(|task| task.file_name()?.to_str()?.parse().ok()).expect("a thread of that name")
    }

    /// Returns its resident memory, in MiB.
    pub(crate) fn memory(&self) -> usize {
        self.status("VmRSS:")
    }

    /// Returns its peak resident memory, in MiB.
    pub(crate) fn peak_memory(&self) -> usize {
        self.status("VmHWM:")
    }

    fn status(&self, name: &str) -> usize {
        let text = fs::read_to_string(format!("/proc/{}/status", self.process_id())).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let kibibytes: usize = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
        kibibytes / 1024
    }

    /// Returns the number of its open files and connections.
    pub(crate) fn open_files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.process_id())).map_or(0, Iterator::count)
    }

    fn tail_logs(&self) -> String {
        let log = fs::read_to_string(&self.launch.log).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn is_called(task: &Path, name: &str) -> bool {
    fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name)
}
