//! Runs other programs.
//!
//! **Invariant:** of all adapters only this module starts processes. A program gets exactly the arguments
//! and the environment that its caller set, no shell in between; it and all its child processes end with
//! its timeout, with its future, and with this process.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use launchway_domain::deployments::Output;
use rustix::process::{Pid, Signal, getpriority_process, kill_process_group, setpriority_process};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, Command},
    time::timeout,
};

/// The number of bytes at the end of a program's output that are kept.
const REMEMBERED: usize = 64 * 1024;
/// The longest output that a program may return.
const LONGEST_ANSWER: usize = 32 * 1024 * 1024;
/// The longest incomplete line that is buffered.
const LONGEST_BEGUN: usize = 128 * 1024;
/// Runs a program with the kernel's promise to end it with its parent.
const SETPRIV: &str = "setpriv";
/// The time that child processes may hold the output after the program itself has ended.
const AFTERMATH: Duration = Duration::from_secs(2);
/// The niceness that programs of low priority have more than this process: beside busy ones they get a tenth of a
/// processor.
const NICENESS: i32 = 10;

/// A program to run once. Its arguments and input may be secret, so they are never shown.
pub struct Invocation {
    program: PathBuf,
    wrappers: Vec<OsString>,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    input: Vec<u8>,
    input_file: Option<File>,
    folder: Option<PathBuf>,
    limit: Duration,
    gives_way: bool,
}

/// A program that has ended.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    /// Its standard output; empty when that went elsewhere.
    pub answer: Vec<u8>,
    /// The end of its standard error, or of all its output when that went elsewhere.
    pub complaints: Vec<u8>,
}

/// An error of running a program.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error("`{0}` is not installed")]
    NotInstalled(String),
    #[error("`{0}` took longer than {1:?}")]
    TookTooLong(String, Duration),
    #[error("`{0}` answered more than can be used")]
    AnsweredTooMuch(String),
    #[error("`{0}` could not be run")]
    Io(String, #[source] io::Error),
}

impl Finished {
    /// Returns whether it succeeded.
    pub fn succeeded(&self) -> bool {
        self.status.success()
    }

    /// Returns the last lines of its error output, for users.
    pub fn last_error_lines(&self, lines: usize) -> String {
        let text = String::from_utf8_lossy(&self.complaints);
        let lines: Vec<&str> =
            text.lines().filter(|line| !line.trim().is_empty()).rev().take(lines).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

impl Invocation {
    /// `program` by its name on the `PATH`, or by its path. It has no environment but `PATH`.
    pub fn new(program: impl AsRef<OsStr>, limit: Duration) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        Self {
            program: program.as_ref().into(),
            wrappers: Vec::new(),
            arguments: Vec::new(),
            environment: vec![("PATH".into(), path)],
            input: Vec::new(),
            input_file: None,
            folder: None,
            limit,
            gives_way: false,
        }
    }

    /// Sets the `PATH`, for finding the program and for the program itself.
    pub fn with_path(mut self, path: &OsStr) -> Self {
        self.environment = vec![("PATH".into(), path.to_owned())];
        self
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets its standard input, which is empty by default.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Sets a file as its standard input.
    pub fn input_file(mut self, file: File) -> Self {
        self.input_file = Some(file);
        self
    }

    pub fn in_folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_owned());
        self
    }

    /// Runs the program through a wrapper, which gets it and its arguments as arguments.
    pub fn under<A: AsRef<OsStr>>(mut self, wrapper: impl IntoIterator<Item = A>) -> Self {
        self.wrappers.extend(wrapper.into_iter().map(|part| part.as_ref().to_owned()));
        self
    }

    /// Runs the program at a low priority, so that requests do not wait for it.
    pub fn at_low_priority(mut self) -> Self {
        self.gives_way = true;
        self
    }

    /// Runs it and returns its output.
    pub async fn run(self) -> Result<Finished, ProcessError> {
        self.run_within_limit(Sink::Nothing).await
    }

    /// Runs it, and writes its output to `output` as it is printed.
    pub async fn run_into(self, output: Arc<dyn Output>) -> Result<Finished, ProcessError> {
        self.run_within_limit(Sink::Lines(output)).await
    }

    /// Runs it, and writes its standard output to `output` as it is, however long it is.
    pub async fn run_streaming(self, output: Arc<dyn Output>) -> Result<Finished, ProcessError> {
        self.run_within_limit(Sink::Bytes(output)).await
    }

    async fn run_within_limit(self, output: Sink) -> Result<Finished, ProcessError> {
        let (name, limit) = (self.name(), self.limit);
        match timeout(limit, Box::pin(self.run_to_the_end(output))).await {
            Ok(finished) => finished,
            Err(_elapsed) => Err(ProcessError::TookTooLong(name, limit)),
        }
    }

    async fn run_to_the_end(mut self, output: Sink) -> Result<Finished, ProcessError> {
        let name = self.name();
        let broken = |error| ProcessError::Io(name.clone(), error);
        let input = std::mem::take(&mut self.input);
        let mut group = self.spawn()?;
        let (id, child) = (group.id, &mut group.child);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A program may end without reading everything.
                let _unread = stdin.write_all(&input).await;
            }
        };
        let read = async {
            match &output {
                Sink::Nothing => tokio::join!(answer(stdout), end_of(stderr, None)),
                Sink::Lines(output) => (Ok(Some(Vec::new())), both_ends(stdout, stderr, output).await),
                Sink::Bytes(output) => {
                    let (copied, complaints) = tokio::join!(copy(stdout, output), end_of(stderr, None));
                    (copied.map(|()| Some(Vec::new())), complaints)
                }
            }
        };
        let mut reading = Box::pin(async { tokio::join!(feed, read).1 });
        // Child processes may hold the pipes open for ever.
        let (status, (answer, complaints)) = tokio::select! {
            read = &mut reading => (child.wait().await.map_err(broken)?, read),
            status = child.wait() => {
                let status = status.map_err(broken)?;
                match timeout(AFTERMATH, &mut reading).await {
                    Ok(read) => (status, read),
                    Err(_elapsed) => {
                        end_group(id);
                        (status, reading.await)
                    }
                }
            }
        };
        let answer = answer.map_err(broken)?.ok_or_else(|| ProcessError::AnsweredTooMuch(name.clone()))?;
        Ok(Finished { status, answer, complaints: complaints.map_err(broken)? })
    }

    fn spawn(self) -> Result<ProcessGroup, ProcessError> {
        let name = self.name();
        let program = self.found(&self.program).ok_or_else(|| ProcessError::NotInstalled(name.clone()))?;
        // `setpriv` ends the program when this process is lost without a chance to. By its path, because a program that
        // has to be looked up in another `PATH` is started by a fork, which copies the page tables of this process.
        let setpriv = self.found(Path::new(SETPRIV));
        let setpriv = setpriv.ok_or_else(|| ProcessError::NotInstalled(SETPRIV.to_owned()))?;
        let mut command = Command::new(setpriv);
        command
            .args(["--pdeathsig", "KILL", "--"])
            .args(self.wrappers)
            .arg(program)
            .args(self.arguments)
            .env_clear()
            .envs(self.environment)
            .stdin(self.input_file.map_or_else(Stdio::piped, Stdio::from))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(folder) = self.folder {
            command.current_dir(folder);
        }
        match command.spawn() {
            Ok(child) => {
                let group = ProcessGroup { id: child.id(), child };
                if let Some(id) = pid(group.id).filter(|_| self.gives_way) {
                    // One that has already ended needs no priority.
                    let own = getpriority_process(None).unwrap_or_default();
                    let _gone = setpriority_process(Some(id), own + NICENESS);
                }
                Ok(group)
            }
            Err(error) => Err(ProcessError::Io(name, error)),
        }
    }

    /// Returns the full path of a program.
    fn found(&self, program: &Path) -> Option<PathBuf> {
        let (_, path) = self.environment.first()?;
        let mut places = std::env::split_paths(path).map(|folder| folder.join(program));
        places.find(|place| place.is_file())
    }

    fn name(&self) -> String {
        self.program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// The destination of the output of a program.
enum Sink {
    /// It is returned.
    Nothing,
    /// Whole lines of both outputs.
    Lines(Arc<dyn Output>),
    /// The standard output as it is.
    Bytes(Arc<dyn Output>),
}

/// A program and its child processes; all of them are killed on drop.
struct ProcessGroup {
    child: Child,
    id: Option<u32>,
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        end_group(self.id);
    }
}

fn pid(id: Option<u32>) -> Option<Pid> {
    Pid::from_raw(i32::try_from(id?).ok()?)
}

fn end_group(id: Option<u32>) {
    if let Some(id) = pid(id) {
        // Most groups are already empty.
        let _gone = kill_process_group(id, Signal::KILL);
    }
}

/// Reads everything; `None` when it is too much.
async fn answer(source: Option<impl AsyncRead + Unpin>) -> io::Result<Option<Vec<u8>>> {
    let mut answer = Vec::new();
    if let Some(source) = source {
        source.take(LONGEST_ANSWER as u64 + 1).read_to_end(&mut answer).await?;
    }
    Ok((answer.len() <= LONGEST_ANSWER).then_some(answer))
}

/// Copies everything.
async fn copy(source: Option<impl AsyncRead + Unpin>, output: &Arc<dyn Output>) -> io::Result<()> {
    let Some(mut source) = source else { return Ok(()) };
    let mut piece = vec![0; 64 * 1024];
    loop {
        let length = source.read(&mut piece).await?;
        match piece.get(..length) {
            Some(piece) if length > 0 => output.write(piece).await,
            _ => return Ok(()),
        }
    }
}

/// Returns the end of the input, which also goes to `output`.
async fn end_of(
    source: Option<impl AsyncRead + Unpin>,
    output: Option<&Arc<dyn Output>>,
) -> io::Result<Vec<u8>> {
    let (mut end, mut piece) = (Vec::new(), vec![0; 16 * 1024]);
    let Some(mut source) = source else { return Ok(end) };
    // Lines of two sources must not be mixed, so only whole ones are written.
    let mut begun = Vec::new();
    loop {
        let length = source.read(&mut piece).await?;
        let piece = piece.get(..length).unwrap_or_default();
        remember(&mut end, piece);
        let Some(output) = output.filter(|_| length > 0 || !begun.is_empty()) else {
            if length == 0 {
                return Ok(end);
            }
            continue;
        };
        begun.extend_from_slice(piece);
        let whole = match begun.iter().rposition(|byte| *byte == b'\n') {
            Some(position) => position + 1,
            None if length == 0 || begun.len() > LONGEST_BEGUN => begun.len(),
            None => 0,
        };
        let rest = begun.split_off(whole);
        if !begun.is_empty() {
            output.write(&begun).await;
        }
        begun = rest;
        if length == 0 && begun.is_empty() {
            return Ok(end);
        }
    }
}

/// Returns the ends of two inputs, one after the other, which also go to `output` as they come.
async fn both_ends(
    one: Option<impl AsyncRead + Unpin>,
    other: Option<impl AsyncRead + Unpin>,
    output: &Arc<dyn Output>,
) -> io::Result<Vec<u8>> {
    let (one, other) = tokio::join!(end_of(one, Some(output)), end_of(other, Some(output)));
    let mut ends = one?;
    ends.extend(other?);
    Ok(ends)
}

fn remember(end: &mut Vec<u8>, piece: &[u8]) {
    end.extend_from_slice(piece);
    if end.len() > 2 * REMEMBERED {
        end.drain(..end.len() - REMEMBERED);
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Mutex, time::Instant};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(20);

    fn shell(script: &str) -> Invocation {
        Invocation::new("sh", LIMIT).args(["-c", script])
    }

    #[derive(Default)]
    struct Recorder(Mutex<Vec<String>>);

    #[async_trait::async_trait]
    impl Output for Recorder {
        async fn write(&self, piece: &[u8]) {
            self.0.lock().unwrap().push(String::from_utf8_lossy(piece).into_owned());
        }
    }

    #[tokio::test]
    async fn a_program_answers_complains_and_ends() {
        let finished = shell("cat; echo bad >&2; exit 3").input("hello").run().await.unwrap();
        assert_eq!((finished.answer.as_slice(), finished.status.code()), (b"hello".as_slice(), Some(3)));
        assert_eq!(finished.last_error_lines(5), "bad");
    }

    #[tokio::test]
    async fn a_file_is_its_input_and_its_output_is_passed_on_as_it_is() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, &[b'x'; 300_000]).unwrap();
        io::Seek::rewind(&mut file).unwrap();
        let recorder = Arc::new(Recorder::default());
        let script = shell("cat; echo bad >&2").input_file(file);
        let finished = script.run_streaming(recorder.clone()).await.unwrap();
        assert_eq!(recorder.0.lock().unwrap().concat(), "x".repeat(300_000));
        assert_eq!((finished.answer.len(), finished.last_error_lines(5)), (0, "bad".to_owned()));
    }

    #[tokio::test]
    async fn a_program_knows_only_what_it_was_given() {
        let finished = shell("env").env("GIVEN", "a b\nc").run().await.unwrap();
        let text = String::from_utf8(finished.answer).unwrap();
        assert!(text.contains("GIVEN=a b\nc\n"), "{text}");
        assert!(!text.contains("CARGO"), "{text}");
    }

    #[tokio::test]
    async fn lines_of_both_outputs_are_handed_over_whole() {
        let recorder = Arc::new(Recorder::default());
        let script = "printf a; printf x >&2; sleep 0.1; echo b; echo y >&2; printf end";
        shell(script).run_into(recorder.clone()).await.unwrap();
        let pieces = recorder.0.lock().unwrap().clone();
        assert_eq!(pieces.len(), 3, "{pieces:?}");
        for whole in ["ab\n", "xy\n", "end"] {
            assert!(pieces.iter().any(|piece| piece == whole), "{pieces:?}");
        }
    }

    #[tokio::test]
    async fn what_takes_too_long_ends_with_everything_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("late");
        let script = format!("(sleep 4; touch {}) & wait", file.display());
        let slow = Invocation::new("sh", Duration::from_millis(300)).args(["-c", &script]);
        let started = Instant::now();
        assert!(matches!(slow.run().await, Err(ProcessError::TookTooLong(..))));
        assert!(started.elapsed() < Duration::from_secs(4));
        tokio::time::sleep(Duration::from_millis(4300)).await;
        assert!(!file.exists());
    }

    #[tokio::test]
    async fn a_program_of_low_priority_is_nicer_with_its_children() {
        let own = getpriority_process(None).unwrap();
        // It gets its input when it has its priority.
        let finished = shell("read go; nice").input("go\n").at_low_priority().run().await.unwrap();
        let lowest = 19;
        assert_eq!(finished.answer, format!("{}\n", (own + NICENESS).min(lowest)).into_bytes());
        let usual = shell("read go; nice").input("go\n").run().await.unwrap();
        assert_eq!(usual.answer, format!("{own}\n").into_bytes());
    }

    #[tokio::test]
    async fn a_missing_program_is_reported_by_name() {
        let error = Invocation::new("no-such-program", LIMIT).run().await.unwrap_err();
        assert_eq!(error.to_string(), "`no-such-program` is not installed");
    }

    #[tokio::test]
    async fn what_a_program_leaves_behind_holds_nobody_up() {
        let started = Instant::now();
        let finished = shell("sleep 100 & echo done").run().await.unwrap();
        assert!(finished.succeeded() && started.elapsed() < Duration::from_secs(90));
        assert_eq!(finished.answer, b"done\n");
    }
}
