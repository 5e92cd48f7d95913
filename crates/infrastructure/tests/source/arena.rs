//! The setting of a test: folders of its own, repositories, and a fetcher.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use launchway_domain::{
    applications::{GitUrl, SourcePolicy},
    deployments::{Checkout, CommitHash, GitSource, Output, Owner, SourceFetcher as _, StepError},
    network::AllowedEndpoint,
};
use launchway_infrastructure::git::{GitFetcher, GitLimits, GitOptions};
use launchway_testkit::ids::id_of;
pub(crate) use launchway_testkit::ports::free_port;
use tempfile::TempDir;

/// The timeout of waiting for a condition in a test.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A folder for repositories (`repositories`), a cache and checkouts. Its name has a space, because an
/// operator's may.
pub(crate) struct Arena {
    folder: TempDir,
}

impl Arena {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("launchway source ").tempdir().unwrap();
        fs::create_dir(folder.path().join("repositories")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A new repository with one commit on `main`: a file `index.html`.
    pub(crate) fn repository(&self, name: &str) -> Repository {
        let repository = self.empty_repository(name);
        repository.write("index.html", "<h1>Hello</h1>\n");
        repository.commit("first");
        repository
    }

    pub(crate) fn empty_repository(&self, name: &str) -> Repository {
        let path = self.path("repositories").join(name);
        fs::create_dir_all(&path).unwrap();
        let repository = Repository { path };
        repository.git(&["init", "--quiet", "--initial-branch=main"]);
        repository
    }

    /// Local repositories are allowed, and nothing else that needs an allowance.
    pub(crate) fn options(&self) -> GitOptions {
        GitOptions {
            cache: self.path("cache"),
            work: self.path("work"),
            policy: SourcePolicy {
                allow: Vec::new(),
                local_root: Some(self.path("repositories")),
                containers: None,
            },
            known_hosts: None,
            hosted: self.path("hosted"),
            limits: GitLimits { answer: TIMEOUT, fetch: TIMEOUT, ..GitLimits::default() },
        }
    }

    pub(crate) fn fetcher(&self) -> GitFetcher {
        GitFetcher::open(self.options()).unwrap()
    }

    /// Returns a fetcher that may connect to `port` of this machine.
    pub(crate) fn fetcher_to(&self, port: u16) -> GitFetcher {
        GitFetcher::open(self.options_to(port)).unwrap()
    }

    pub(crate) fn options_to(&self, port: u16) -> GitOptions {
        let mut options = self.options();
        let loopback = ["127.0.0.1/32", "::1/128"].map(|network| network.parse().unwrap());
        options.policy.allow = loopback.map(|network| AllowedEndpoint { network, port }).to_vec();
        options
    }

    /// Returns every file in the cache and among the checkouts, with its contents.
    pub(crate) fn kept_files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.path("cache"), self.path("work")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                match entry.file_type().unwrap() {
                    kind if kind.is_dir() => folders.push(entry.path()),
                    kind if kind.is_file() => found.push((entry.path(), fs::read(entry.path()).unwrap())),
                    _ => {}
                }
            }
        }
        found
    }

    /// Returns the names in the folder of checkouts.
    pub(crate) fn work(&self) -> Vec<String> {
        let names = fs::read_dir(self.path("work")).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

pub(crate) struct Repository {
    pub(crate) path: PathBuf,
}

impl Repository {
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git(&self.path, arguments, "")
    }

    pub(crate) fn git_with_input(&self, arguments: &[&str], input: &str) -> String {
        git(&self.path, arguments, input)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn commit(&self, message: &str) -> CommitHash {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.head()
    }

    pub(crate) fn head(&self) -> CommitHash {
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    pub(crate) fn source(&self) -> GitSource {
        source(self.path.to_str().unwrap())
    }
}

/// Runs git as a developer would, but independent of the machine's settings.
pub(crate) fn git(folder: &Path, arguments: &[&str], input: &str) -> String {
    let output = git_with_bytes(folder, arguments, input.as_bytes());
    String::from_utf8(output).unwrap().trim().to_owned()
}

/// Runs git with input and output that are not text.
pub(crate) fn git_with_bytes(folder: &Path, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .envs([("GIT_AUTHOR_NAME", "Ada"), ("GIT_AUTHOR_EMAIL", "ada@example.com")])
        .envs([("GIT_COMMITTER_NAME", "Ada"), ("GIT_COMMITTER_EMAIL", "ada@example.com")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The branch `main` of a repository, with the credentials that are in its URL.
pub(crate) fn source(url: &str) -> GitSource {
    let (url, credentials) = GitUrl::parse(url).unwrap();
    GitSource { url, branch: "main".parse().unwrap(), credentials, key: None }
}

pub(crate) fn owner(deployment: &str) -> Owner {
    Owner {
        organization: id_of("acme").into(),
        application: id_of("shop").into(),
        deployment: id_of(deployment).into(),
        attempt: 1,
    }
}

/// Records the output.
#[derive(Default)]
pub(crate) struct Recorder(Mutex<Vec<u8>>);

impl Recorder {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.bytes()).unwrap()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl Output for Recorder {
    async fn write(&self, piece: &[u8]) {
        self.0.lock().unwrap().extend_from_slice(piece);
    }
}

/// Fetches the head of the branch, for the deployment of that name.
pub(crate) async fn fetch(
    fetcher: &GitFetcher,
    source: &GitSource,
    deployment: &str,
) -> Result<Checkout, StepError> {
    let commit = fetcher.head(source).await?;
    fetcher.fetch(source, &commit, &owner(deployment), Arc::new(Recorder::default())).await
}

/// Returns the message of a rejection.
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, StepError>) -> String {
    match result {
        Err(StepError::Rejected(sentence)) => sentence,
        other => panic!("not refused: {other:?}"),
    }
}

/// Waits until `is_so` holds, and fails the test if that never happens.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < TIMEOUT, "it never came to this: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until `is_so` holds, while other tasks run.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < TIMEOUT, "it never came to this: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Returns the command lines of all visible processes, by their ids.
pub(crate) fn command_lines() -> Vec<(u32, String)> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // A process may end while it is looked at.
    let line = |id: u32| Some((id, fs::read(format!("/proc/{id}/cmdline")).ok()?));
    ids.filter_map(line).map(|(id, line)| (id, String::from_utf8_lossy(&line).into_owned())).collect()
}

/// Asserts that two folders have the same contents, links as links.
pub(crate) fn assert_same_files(one: &Path, other: &Path) {
    let compared = Command::new("diff")
        .args(["--recursive", "--no-dereference", "--exclude=.git"])
        .args([one, other])
        .output()
        .unwrap();
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stdout));
}
