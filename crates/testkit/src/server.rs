//! The running binary, tested from outside.

mod database;
mod front;

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

pub use self::{database::OtherTenant, front::WITH_A_FRONT};
use crate::{
    client::{Client, Connection},
    postgres::FreshDatabase,
    services::hidden_engine,
};

/// A server for one test, with a data directory and a database of its own.
pub struct TestServer {
    process: Child,
    url: String,
    announcement: String,
    settings: Vec<(String, String)>,
    data: TempDir,
    database: Option<FreshDatabase>,
}

impl TestServer {
    /// Starts a server on the embedded database.
    pub fn on_sqlite() -> Self {
        Self::with_settings(None, &[])
    }

    /// Starts a server on a database of the real PostgreSQL server that the test command started.
    pub fn on_postgres() -> Self {
        Self::with_settings(Some(FreshDatabase::migrated()), &[])
    }

    /// Starts a server on the embedded database, with `settings`.
    pub fn configured(settings: &[(&str, &str)]) -> Self {
        Self::with_settings(None, settings)
    }

    /// Starts a server on a database of the real PostgreSQL server, with `settings`.
    pub fn configured_on_postgres(settings: &[(&str, &str)]) -> Self {
        Self::with_settings(Some(FreshDatabase::migrated()), settings)
    }

    /// Starts another server on its PostgreSQL database and with its key, but with a data directory of its own. `settings`
    /// come after those of the first.
    pub fn replica(&self, settings: &[(&str, &str)]) -> Self {
        let key = self.data.path().join("secret.key").display().to_string();
        let mut all: Vec<(&str, &str)> =
            self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        all.push(("LAUNCHWAY_SECRET_KEY_FILE", &key));
        all.extend(settings);
        Self::with_settings(None, &all)
    }

    fn with_settings(database: Option<FreshDatabase>, settings: &[(&str, &str)]) -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut settings: Vec<_> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        if let Some(database) = &database {
            settings.push(("LAUNCHWAY_DATABASE_URL".to_owned(), database.url()));
        }
        let (process, announcement) = spawn(data.path(), &settings);
        let url = url_in(&announcement);
        Self { process, url, announcement, settings, data, database }
    }

    /// Returns its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns its address, as `host:port`.
    pub fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// Returns the line that it printed when it was ready.
    pub fn announcement(&self) -> &str {
        &self.announcement
    }

    /// Returns its data directory.
    pub fn data_dir(&self) -> &Path {
        self.data.path()
    }

    /// Returns a client without a token.
    pub fn client(&self) -> Client {
        Client::new(&self.url)
    }

    /// Opens a raw connection to it, for malformed requests.
    pub fn connect(&self) -> Connection {
        Connection::open(self.address())
    }

    /// Returns the log of all processes on the same data.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.data.path().join("test.log")).unwrap()
    }

    /// Registers the first administrator and returns a client with their session.
    pub fn admin(&self) -> Client {
        let answer = self.client().post(
            "/api/v1/auth/register",
            &serde_json::json!({"email": ADMIN_EMAIL, "username": "ada", "password": ADMIN_PASSWORD}),
        );
        self.client().with_token(answer.success()["access_token"].as_str().unwrap())
    }

    /// Opens another session and returns a client with it.
    pub fn log_in(&self, email: &str, password: &str) -> Client {
        let login = serde_json::json!({"email": email, "password": password});
        let answer = self.client().post("/api/v1/auth/login", &login);
        self.client().with_token(answer.success()["access_token"].as_str().unwrap())
    }

    /// Kills the process with SIGKILL, like a power cut.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Stops the process with SIGTERM, and waits for its end.
    pub fn terminate(&mut self) -> ExitStatus {
        signal(&self.process, "TERM");
        wait(&mut self.process)
    }

    /// Sends the process a signal, by name.
    pub fn signal(&self, name: &str) {
        signal(&self.process, name);
    }

    /// Starts it again on the same data, at another port.
    pub fn restart(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        (self.process, self.announcement) = spawn(self.data.path(), &self.settings);
        self.url = url_in(&self.announcement);
    }

    /// Changes a setting, from the next start on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.settings.retain(|(known, _)| known != name);
        self.settings.push((name.to_owned(), value.to_owned()));
    }

    /// Switches to another database from the next start on: a PostgreSQL one, or without one the embedded
    /// one.
    pub fn use_database(&mut self, database: Option<FreshDatabase>) {
        self.settings.retain(|(name, _)| name != "LAUNCHWAY_DATABASE_URL");
        self.settings.extend(database.iter().map(|new| ("LAUNCHWAY_DATABASE_URL".to_owned(), new.url())));
        self.database = database;
    }

    /// Returns whether it uses the embedded database.
    pub fn is_on_sqlite(&self) -> bool {
        self.database.is_none()
    }

    /// Deletes its data directory, as a broken disk would.
    pub fn lose_data(&self) {
        for entry in self.data.path().read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                std::fs::remove_dir_all(path).unwrap();
            } else {
                std::fs::remove_file(path).unwrap();
            }
        }
    }

    /// Waits until the process has exited.
    pub fn wait(&mut self) -> ExitStatus {
        wait(&mut self.process)
    }

    /// Returns the process id.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Returns a command of the same binary on the same data.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(self.data.path(), &self.settings);
        command.args(arguments);
        command
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        self.kill_front();
    }
}

/// The e-mail address of the administrator that [`TestServer::admin`] registers.
pub const ADMIN_EMAIL: &str = "ada@example.com";
/// Their password.
pub const ADMIN_PASSWORD: &str = "correct horse battery";

/// Returns the path of the binary under test, which cargo puts beside the folder of the test binary.
pub fn binary() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let path = test.parent().and_then(Path::parent).unwrap().join("launchway");
    assert!(path.exists(), "{} is missing: run `cargo xtask test`, or `cargo build` first", path.display());
    path
}

/// Returns a command of the binary under test, with an empty environment. Unless the settings have a
/// `PATH`, it finds no programs: neither an engine nor git. Unless the name of the test says that it uses the engine,
/// there is none. Unless they have an address for it, there is no front proxy.
pub fn command(data_dir: &Path, settings: &[(String, String)]) -> Command {
    let mut command = Command::new(binary());
    command.env_clear();
    command.env("PATH", "/var/empty");
    command.env("LAUNCHWAY_DATA_DIR", data_dir).env("LAUNCHWAY_BIND", "127.0.0.1:0");
    command.env("LAUNCHWAY_PROXY_BIND", "off");
    // Images of this registry never exist: their deployments wait, or fail to pull one.
    command.env("LAUNCHWAY_IMAGE_REGISTRIES", "public,registry.example");
    if settings.iter().any(|(name, _)| name == "PATH") {
        command.envs(hidden_engine().map(|host| ("DOCKER_HOST", host)));
    }
    command.envs(settings.iter().map(|(name, value)| (name, value)));
    command
}

fn spawn(data_dir: &Path, settings: &[(String, String)]) -> (Child, String) {
    let mut command = command(data_dir, settings);
    let log = data_dir.join("test.log");
    let log = std::fs::OpenOptions::new().create(true).append(true).open(&log).unwrap();
    let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut announcement = String::new();
    // The line with the documentation is the second of the announcement; the first names the URL.
    while !announcement.contains("/docs\n") {
        let read = output.read_line(&mut announcement).unwrap();
        if read == 0 {
            let _ = process.wait();
            let log = std::fs::read_to_string(data_dir.join("test.log")).unwrap_or_default();
            panic!("the server did not start:\n{announcement}\n{log}");
        }
    }
    if announcement.contains("listening") {
        // The rest comes in the same write.
        let mut rest = output.buffer().to_vec();
        announcement.push_str(&String::from_utf8_lossy(&std::mem::take(&mut rest)));
    }
    // Reading on keeps the server from blocking, should it ever print more.
    std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
    (process, announcement)
}

fn url_in(announcement: &str) -> String {
    let start = announcement.find("http://").unwrap();
    announcement[start..].split_whitespace().next().unwrap().to_owned()
}

fn signal(process: &Child, name: &str) {
    let status = Command::new("kill").args(["-s", name, &process.id().to_string()]).status().unwrap();
    assert!(status.success());
}

fn wait(process: &mut Child) -> ExitStatus {
    let deadline = Instant::now() + Duration::from_secs(240);
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < deadline, "the server did not stop");
        std::thread::sleep(Duration::from_millis(5));
    }
}
