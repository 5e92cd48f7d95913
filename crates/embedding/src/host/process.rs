//! A host that runs each version as a child process.
//!
//! Every version has a folder: its address, its process id, and its output. The processes outlive the
//! service: after a restart, or a crash, they are found again by their folders.

mod output;
mod process_id;

use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Duration,
};

use async_trait::async_trait;
use launchway_domain::{
    clock::Timestamp,
    deployments::{PrintedLine, StepError},
};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use self::{output::Output, process_id::ProcessId};
use super::{Host, Version, VersionId};

/// The program of a version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessSpec {
    /// The program: a path, or a name that is searched for in `PATH`.
    pub program: OsString,
    /// The arguments.
    pub arguments: Vec<OsString>,
    /// The working directory; the one of the service if absent.
    pub directory: Option<PathBuf>,
}

impl ProcessSpec {
    /// Returns a program without arguments.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self { program: program.into(), ..Self::default() }
    }

    /// Adds arguments.
    #[must_use]
    pub fn arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }
}

/// Decides which program a version runs.
type Resolve = dyn Fn(&Version) -> Result<ProcessSpec, String> + Send + Sync;

/// Runs each version as a child process, in a process group of its own.
///
/// ```
/// use std::time::Duration;
/// use launchway_embedding::{ProcessHost, ProcessSpec, Version};
///
/// # fn main() -> std::io::Result<()> {
/// # let folder = tempfile::TempDir::new()?;
/// let program = |version: &Version| match version.image.as_str() {
///     "web:1" => Ok(ProcessSpec::new("/opt/web-1").arguments(["--quiet"])),
///     other => Err(format!("there is no program {other}")),
/// };
/// let host = ProcessHost::builder(folder.path(), program).grace(Duration::from_secs(30)).open()?;
/// # Ok(())
/// # }
/// ```
///
/// The program gets the variables of its application, `PORT` and `HOST`, the address to listen on, and the
/// `PATH` of the service; nothing else of the environment of the service. It is asked to end by `SIGTERM`,
/// and killed after a grace period.
pub struct ProcessHost {
    folder: PathBuf,
    resolve: Box<Resolve>,
    address: IpAddr,
    grace: Duration,
    output_limit: u64,
    ended: Arc<Notify>,
    /// Held while output is read, so that no line is read twice.
    reading: Arc<Mutex<()>>,
}

/// Configures a [`ProcessHost`].
pub struct ProcessHostBuilder(ProcessHost);

impl ProcessHostBuilder {
    /// Sets the address that versions listen on; `127.0.0.1` by default.
    #[must_use]
    pub fn address(mut self, address: IpAddr) -> Self {
        self.0.address = address;
        self
    }

    /// Sets the time between `SIGTERM` and `SIGKILL`; 10 s by default.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.0.grace = grace;
        self
    }

    /// Sets the bytes of collected output after which the file of a version is cut; 8 MiB by default.
    #[must_use]
    pub fn output_limit(mut self, bytes: u64) -> Self {
        self.0.output_limit = bytes;
        self
    }

    /// Creates the folder if it does not exist, and returns the host.
    ///
    /// # Errors
    /// If the folder cannot be created or read.
    pub fn open(self) -> io::Result<ProcessHost> {
        let Self(mut host) = self;
        fs::create_dir_all(host.ended_folder())?;
        // Programs may run in other folders.
        host.folder = host.folder.canonicalize()?;
        // A crash in the middle of an end may have left one.
        for entry in fs::read_dir(host.ended_folder())? {
            if let Some(process) = ProcessId::read(&entry?.path()).filter(ProcessId::is_alive) {
                process.kill();
            }
        }
        Ok(host)
    }
}

/// The interval at which the state of a process is polled.
const POLL: Duration = Duration::from_millis(10);
/// The time that a started process gets to record its id.
const START: Duration = Duration::from_secs(5);
/// The time that the output of an ended version is kept.
const OUTPUT_KEPT: Duration = Duration::from_secs(10 * 60);
/// Records the id of the process in its folder, and becomes the program. If the folder is gone, the version
/// was ended before it began.
const BEGIN: &str = r#"stat=; boot=
read -r stat 2>/dev/null </proc/$$/stat
read -r boot 2>/dev/null </proc/sys/kernel/random/boot_id
printf '%s\n%s\n%s\n' "$$" "$stat" "$boot" >"$1/pid" || exit 127
[ -e "$1/pid" ] || exit 127
shift
exec "$@""#;

impl ProcessHost {
    /// Configures a host that keeps its state in `folder`, and runs the program that `resolve` returns for a
    /// version. A version is rejected with the sentence that `resolve` returns as an error.
    pub fn builder(
        folder: impl Into<PathBuf>,
        resolve: impl Fn(&Version) -> Result<ProcessSpec, String> + Send + Sync + 'static,
    ) -> ProcessHostBuilder {
        ProcessHostBuilder(Self {
            folder: folder.into(),
            resolve: Box::new(resolve),
            address: Ipv4Addr::LOCALHOST.into(),
            grace: Duration::from_secs(10),
            output_limit: 8 * 1024 * 1024,
            ended: Arc::default(),
            reading: Arc::default(),
        })
    }

    fn folder_of(&self, id: VersionId) -> PathBuf {
        self.folder.join(id.to_string())
    }

    fn ended_folder(&self) -> PathBuf {
        self.folder.join("ended")
    }

    fn spawn(&self, spec: &ProcessSpec, version: &Version, port: u16, folder: &Path) -> io::Result<Child> {
        let output = OpenOptions::new().create(true).append(true).open(folder.join("output"))?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", BEGIN, "sh"]).arg(folder).arg(&spec.program).args(&spec.arguments);
        command.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.envs(version.environment.iter()).env(process_id::MARK, version.id.to_string());
        command.env("PORT", port.to_string()).env("HOST", self.address.to_string());
        if let Some(directory) = &spec.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        command.process_group(0).spawn()
    }

    /// Removes the output of versions that ended a while ago.
    fn forget_output(&self) {
        let Ok(entries) = fs::read_dir(self.ended_folder()) else { return };
        for folder in entries.flatten().map(|entry| entry.path()).filter(|folder| age(folder) > OUTPUT_KEPT) {
            // Another start may have removed it.
            if let Err(error) = fs::remove_dir_all(&folder).or_else(absent_is_fine) {
                tracing::warn!(%error, folder = %folder.display(), "old output could not be removed");
            }
        }
    }

    /// Asks the process of a folder to end, waits, and kills it with its whole group. The grace period begins once,
    /// however often the call is interrupted and repeated.
    async fn end_process(&self, folder: &Path, process: &ProcessId) {
        let (begun, this_call) = (folder.join("ending"), Instant::now());
        // A clock of files is coarse: only an earlier call is measured by it.
        let earlier = age(&begun);
        if !begun.exists()
            && let Err(error) = fs::write(&begun, "")
        {
            tracing::warn!(%error, "start of a grace period could not be recorded");
        }
        // Again with each call: an earlier one may have been interrupted before it.
        process.terminate();
        while process.is_alive() && earlier + this_call.elapsed() < self.grace {
            sleep(POLL).await;
        }
        let killed = process.kill();
        while process.is_alive() || killed.iter().any(ProcessId::is_alive) {
            sleep(POLL).await;
        }
    }
}

fn faulty(error: &io::Error) -> StepError {
    StepError::Retryable(format!("the folder of the host cannot be used: {error}"))
}

#[async_trait]
impl Host for ProcessHost {
    async fn start(&self, version: &Version) -> Result<SocketAddr, StepError> {
        let spec = (self.resolve)(version).map_err(StepError::Rejected)?;
        self.end(version.id).await?;
        self.forget_output();
        let free = TcpListener::bind((self.address, 0)).and_then(|listener| listener.local_addr());
        let address = free.map_err(|error| StepError::Retryable(format!("no port is free: {error}")))?;
        let folder = self.folder_of(version.id);
        let prepared =
            fs::create_dir(&folder).and_then(|()| fs::write(folder.join("address"), address.to_string()));
        prepared.map_err(|error| faulty(&error))?;
        // What an earlier run of the same version printed may not have been collected yet.
        for name in ["output", "seen"] {
            let earlier = self.ended_folder().join(version.id.to_string()).join(name);
            fs::rename(earlier, folder.join(name)).or_else(absent_is_fine).map_err(|error| faulty(&error))?;
        }
        let spawned = self.spawn(&spec, version, address.port(), &folder);
        let mut child = spawned
            .map_err(|error| StepError::Rejected(format!("the process cannot be started: {error}")))?;
        let ended = Arc::clone(&self.ended);
        // A thread of its own, because a runtime that shuts down would wait for a blocking task.
        let wait = move || {
            if let Err(error) = child.wait() {
                tracing::warn!(%error, "process could not be waited for");
            }
            ended.notify_waiters();
        };
        let waiter = thread::Builder::new().spawn(wait);
        let waiter = waiter.map_err(|error| StepError::Retryable(format!("no thread is free: {error}")))?;
        let deadline = Instant::now() + START;
        loop {
            if ProcessId::read(&folder).is_some() {
                break;
            }
            if waiter.is_finished() || Instant::now() >= deadline {
                self.end(version.id).await?;
                return Err(StepError::Rejected("the process ended before it began".to_owned()));
            }
            sleep(POLL).await;
        }
        Ok(address)
    }

    async fn list(&self) -> Result<Vec<(VersionId, SocketAddr)>, StepError> {
        let list = || {
            let mut running = Vec::new();
            for entry in fs::read_dir(&self.folder)? {
                let entry = entry?;
                let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                    continue;
                };
                let folder = entry.path();
                let address = fs::read_to_string(folder.join("address")).unwrap_or_default();
                // One without a process id is about to start, or was interrupted a while ago.
                let is_running = match ProcessId::read(&folder) {
                    Some(process) => process.is_alive(),
                    None => age(&folder) < START,
                };
                if is_running {
                    let nowhere = SocketAddr::new(self.address, 1);
                    running.push((id, address.parse().unwrap_or(nowhere)));
                }
            }
            Ok(running)
        };
        list().map_err(|error: io::Error| faulty(&error))
    }

    async fn end(&self, id: VersionId) -> Result<(), StepError> {
        let (folder, ended) = (self.folder_of(id), self.ended_folder().join(id.to_string()));
        if !folder.exists() {
            return Ok(());
        }
        if let Some(process) = ProcessId::read(&folder) {
            self.end_process(&folder, &process).await;
        }
        match fs::remove_dir_all(&ended).or_else(absent_is_fine).and_then(|()| fs::rename(&folder, &ended)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(faulty(&error)),
        }
        // It may have recorded its id in the meantime; after the rename it cannot.
        if let Some(process) = ProcessId::read(&ended) {
            self.end_process(&ended, &process).await;
        }
        Ok(())
    }

    async fn printed(
        &self,
        id: VersionId,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<PrintedLine>, StepError> {
        let (folder, ended) = (self.folder_of(id), self.ended_folder().join(id.to_string()));
        let folder = if folder.exists() { folder } else { ended };
        if !folder.exists() {
            return Ok(Vec::new());
        }
        let (output, reading) = (Output { folder, limit: self.output_limit }, Arc::clone(&self.reading));
        let read = move || {
            let _reading = reading.lock().unwrap_or_else(PoisonError::into_inner);
            output.read(since, limit)
        };
        let read = tokio::task::spawn_blocking(read).await;
        let lines = read.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
        lines.map_err(|error| faulty(&error))
    }

    async fn changed(&self) {
        self.ended.notified().await;
    }
}

/// Returns the time since a file or a folder was changed; none if it does not exist.
fn age(path: &Path) -> Duration {
    let changed = fs::metadata(path).and_then(|metadata| metadata.modified());
    changed.ok().and_then(|changed| changed.elapsed().ok()).unwrap_or_default()
}

fn absent_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests;
