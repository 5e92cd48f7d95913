//! Makes system calls of one thread fail, or be its last, by `strace`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

/// How long `strace` may take to take hold of a thread.
const ATTACHING: Duration = Duration::from_secs(10);

/// What a call is made to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The whole process is killed in it.
    Death,
    /// It fails with this error, once.
    Once(&'static str),
    /// It fails with this error, and so does every one after it.
    FromThenOn(&'static str),
}

/// A hold of a thread, which ends with this value.
pub(crate) struct Tracer {
    child: Child,
    output: PathBuf,
}

impl Tracer {
    /// Takes hold of the thread `id`; the `number`-th of its `calls` from now on is made to do that.
    ///
    /// Calls are counted for each thread. Only this one writes to the database, so that its calls are
    /// all there are, and no other thread is slowed down.
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

    /// Whether a call was made to fail.
    pub(crate) fn has_struck(&self) -> bool {
        fs::read_to_string(&self.output).is_ok_and(|output| output.contains("(INJECTED)"))
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // It lets go of the thread when it is interrupted; when killed, the thread might be stopped.
        let _told = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let _ended = self.child.wait();
    }
}

fn is_traced(id: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}
