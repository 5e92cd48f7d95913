//! Makes system calls of one thread fail, or kills the process in them, by `strace`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

/// The timeout of attaching `strace` to a thread.
const ATTACHING: Duration = Duration::from_secs(10);

/// The injected fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The whole process is killed in the call.
    Death,
    /// The call fails with this error, once.
    Once(&'static str),
    /// The call and every later one fail with this error.
    FromThenOn(&'static str),
}

/// An attached tracer, which is detached when dropped.
pub(crate) struct Tracer {
    child: Child,
    output: PathBuf,
}

impl Tracer {
    /// Attaches to the thread `id`, and injects the fault into the `number`-th of its `calls` from now
    /// on.
    ///
    /// Calls are counted for each thread. Only this one writes to the database, so its calls are all
    /// there are, and no other thread is slowed down.
    pub(crate) fn attach(id: u32, calls: &str, fault: Fault, number: usize, folder: &Path) -> Self {
        let output = folder.join("strace");
        let _none = fs::remove_file(&output);
        let what = match fault {
            Fault::Death => format!("signal=SIGKILL:when={number}"),
            Fault::Once(error) => format!("error={error}:when={number}"),
            Fault::FromThenOn(error) => format!("error={error}:when={number}+"),
        };
        let child = Command::new("strace")
            .args(["-p", &id.to_string(), "-o"])
            .arg(&output)
            .args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:{what}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("`strace` is installed");
        let tracer = Self { child, output };
        let started = Instant::now();
        while !is_traced(id) {
            assert!(started.elapsed() < ATTACHING, "strace does not get hold of thread {id}");
            sleep(Duration::from_millis(2));
        }
        tracer
    }

    /// Returns whether a fault was injected.
    pub(crate) fn has_injected(&self) -> bool {
        fs::read_to_string(&self.output).is_ok_and(|output| output.contains("(INJECTED)"))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // It detaches when it is interrupted; when killed, the thread might stay stopped.
        let _told = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let _ended = self.child.wait();
    }
}

fn is_traced(id: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}
