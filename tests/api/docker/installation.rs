//! Data directories and databases that belong together, and those that do not.

mod adoption;
mod foreign_files;
mod shared_files;
mod shared_on_postgres;
mod upgrade;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use launchway_testkit::{
    docker::{Traces, base_image, docker},
    postgres::FreshDatabase,
    server::{TestServer, WITH_A_FRONT},
};
use tempfile::TempDir;

use crate::backups::words;

crate::on_both_databases!(
    refuses_an_empty_database_beside_a_used_data_directory,
    refuses_the_database_of_another_installation,
    a_lost_id_file_comes_back_with_the_id_of_the_database,
    a_new_data_directory_takes_the_id_of_the_database,
);

const ORGANIZATION: &str = "01980000-0000-7000-8000-0000000000a1";
const APPLICATION: &str = "01980000-0000-7000-8000-0000000000a2";
const DEPLOYMENT: &str = "01980000-0000-7000-8000-0000000000a3";

/// A stopped server with a published release and objects on the engine that no record of another database
/// accounts for.
struct Stopped {
    server: TestServer,
    engine: Traces,
    id: String,
    before: BTreeMap<PathBuf, Vec<u8>>,
}

impl Stopped {
    fn new(mut server: TestServer) -> Self {
        server.admin();
        assert!(server.terminate().success());
        let id = id_in(server.data_dir());
        let release = release_in(server.data_dir());
        fs::create_dir_all(&release).unwrap();
        fs::write(release.join("index.html"), "a site").unwrap();
        let engine = Traces::of(id.parse().unwrap());
        let name = format!("launchway-test-{id}");
        let labels = [
            format!("launchway.instance={id}"),
            format!("launchway.organization={ORGANIZATION}"),
            format!("launchway.application={APPLICATION}"),
            format!("launchway.deployment={DEPLOYMENT}"),
            "launchway.attempt=1".to_owned(),
            format!("launchway.owner={ORGANIZATION}/{APPLICATION}/{DEPLOYMENT}/1"),
        ];
        let labels: Vec<&str> = labels.iter().flat_map(|label| ["--label", label.as_str()]).collect();
        docker(&[&["network", "create"], labels.as_slice(), &[&name]].concat());
        docker(&[&["create", "--name", &name], labels.as_slice(), &[base_image()]].concat());
        // The server finds the engine from now on.
        server.set("PATH", &std::env::var("PATH").unwrap());
        let before = files_in(server.data_dir());
        Self { server, engine, id, before }
    }

    /// Asserts that nothing is missing or changed.
    #[track_caller]
    fn is_untouched(&self) {
        let now = files_in(self.server.data_dir());
        for (path, content) in &self.before {
            assert!(now.get(path) == Some(content), "{} is not as it was", path.display());
        }
        assert_eq!(now.keys().collect::<Vec<_>>(), self.before.keys().collect::<Vec<_>>());
        assert_eq!((self.engine.containers().len(), self.engine.networks().len()), (1, 1));
    }
}

fn release_in(data: &Path) -> PathBuf {
    data.join("sites").join(APPLICATION).join(DEPLOYMENT)
}

/// Returns the id of the installation in a data directory.
fn id_in(data: &Path) -> String {
    fs::read_to_string(data.join("instance-id")).unwrap().trim().to_owned()
}

/// Returns every file below a folder with its content, except the log of the test itself.
fn files_in(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().unwrap() != "test.log" && !is_shared_memory(&path) {
                let content = fs::read(&path).unwrap();
                files.insert(path, content);
            }
        }
    }
    files
}

/// Returns true for the index of a write-ahead log, which SQLite recreates for each reader: it has no
/// content.
fn is_shared_memory(path: &Path) -> bool {
    path.to_string_lossy().ends_with("-shm")
}

/// The URL of the database that a server uses.
pub(crate) fn database_of(server: &TestServer) -> String {
    let command = server.command(&[]);
    let configured = command.get_envs().find(|(name, _)| *name == "LAUNCHWAY_DATABASE_URL");
    match configured.and_then(|(_, value)| value) {
        Some(url) => url.to_str().unwrap().to_owned(),
        None => format!("sqlite://{}", server.data_dir().join("launchway.db").display()),
    }
}

/// An empty database of the kind that a server uses.
enum Empty {
    File(TempDir),
    Server(FreshDatabase),
}

impl Empty {
    fn like(server: &TestServer) -> Self {
        match server.is_on_sqlite() {
            true => Self::File(tempfile::tempdir().unwrap()),
            false => Self::Server(FreshDatabase::create()),
        }
    }

    fn url(&self) -> String {
        match self {
            Self::File(folder) => format!("sqlite://{}", folder.path().join("lauchway.db").display()),
            Self::Server(database) => database.url(),
        }
    }

    /// Asserts that it is empty, and has no file.
    #[track_caller]
    fn assert_untouched(self, server: &mut TestServer) {
        match self {
            Self::File(folder) => assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0),
            Self::Server(database) => {
                server.use_database(Some(database));
                let tables = "SELECT table_name::text AS value FROM information_schema.tables WHERE table_schema = 'public'";
                assert_eq!(server.query(tables), Vec::<String>::new());
            }
        }
    }
}

/// Runs a command that has to fail, and returns its output.
#[track_caller]
fn refused(mut command: Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{command:?}: {}", words(&output));
    words(&output)
}

/// A command of a server with other settings.
fn command_with(server: &TestServer, arguments: &[&str], settings: &[(&str, &str)]) -> Command {
    let mut command = server.command(arguments);
    command.envs(settings.iter().copied());
    command
}

fn refuses_an_empty_database_beside_a_used_data_directory(server: TestServer) {
    let mut stopped = Stopped::new(server);
    let empty = Empty::like(&stopped.server);
    let url = empty.url();
    let wrong = [("LAUNCHWAY_DATABASE_URL", url.as_str()), WITH_A_FRONT];
    for verb in [&["serve"][..], &[], &["migrate"]] {
        let output = refused(command_with(&stopped.server, verb, &wrong));
        let folder = stopped.server.data_dir().display().to_string();
        for expected in [
            &folder,
            &stopped.id,
            &url,
            "is empty",
            "Nothing was changed",
            "LAUNCHWAY_DATABASE_URL",
            "LAUNCHWAY_DATA_DIR",
            "launchway serve --adopt",
        ] {
            assert!(output.contains(expected), "{verb:?}: {expected} is not in: {output}");
        }
        stopped.is_untouched();
    }
    let backup = tempfile::tempdir().unwrap();
    let backup = backup.path().join("backup").display().to_string();
    for verb in [
        &["audit", "verify"][..],
        &["key", "rotate"],
        &["backup", "create", &backup],
        &["database", "move", "--to", "sqlite:///nowhere/at/all.db"],
    ] {
        refused(command_with(&stopped.server, verb, &wrong));
        stopped.is_untouched();
    }
    let admin = ["admin", "create", "--email", "eve@example.com", "--username", "eve"];
    let output = crate::administration::with_input(
        command_with(&stopped.server, &admin, &wrong),
        "another good passphrase",
    );
    assert!(!output.status.success() && words(&output).contains("is empty"), "{}", words(&output));
    stopped.is_untouched();
    empty.assert_untouched(&mut stopped.server);
}

fn refuses_the_database_of_another_installation(server: TestServer) {
    let other = if server.is_on_sqlite() { TestServer::on_sqlite() } else { TestServer::on_postgres() };
    let (stopped, other) = (Stopped::new(server), Stopped::new(other));
    let backup = tempfile::tempdir().unwrap();
    let backup = backup.path().join("backup").display().to_string();
    // Once with the wrong database, and once with the wrong data directory.
    for (directory, database) in [(&stopped, &other), (&other, &stopped)] {
        let url = database_of(&database.server);
        let wrong = [("LAUNCHWAY_DATABASE_URL", url.as_str()), WITH_A_FRONT];
        for verb in [
            &["serve"][..],
            &[],
            &["migrate"],
            &["audit", "verify"],
            &["key", "rotate"],
            &["backup", "create", &backup],
            &["database", "move", "--to", "sqlite:///nowhere/at/all.db"],
        ] {
            let message = refused(command_with(&directory.server, verb, &wrong));
            for expected in [&directory.id, &database.id, &url, "Nothing was changed", "--adopt"] {
                assert!(message.contains(expected), "{verb:?}: {expected} is not in: {message}");
            }
            stopped.is_untouched();
            other.is_untouched();
        }
    }
    for mut stopped in [stopped, other] {
        stopped.server.restart();
        stopped.server.client().get("/ready").success();
    }
}

fn a_lost_id_file_comes_back_with_the_id_of_the_database(mut server: TestServer) {
    let id = id_in(server.data_dir());
    server.kill();
    // As a crash leaves it between the two writes of the first start.
    fs::remove_file(server.data_dir().join("instance-id")).unwrap();
    server.restart();
    assert_eq!(id_in(server.data_dir()), id);
    server.client().get("/ready").success();
}

fn a_new_data_directory_takes_the_id_of_the_database(mut server: TestServer) {
    let id = id_in(server.data_dir());
    let other = tempfile::tempdir().unwrap();
    server.terminate();
    let (url, key) = (database_of(&server), server.data_dir().join("secret.key"));
    let settings =
        [("LAUNCHWAY_DATABASE_URL", url.as_str()), ("LAUNCHWAY_SECRET_KEY_FILE", key.to_str().unwrap())];
    let mut command = command_with(&server, &[], &settings);
    command.env("LAUNCHWAY_DATA_DIR", other.path());
    let log = adoption::started(command);
    assert!(log.contains("data directory took the installation id over"), "{log}");
    assert_eq!(id_in(other.path()), id);
    // Jobs of one replica are not those of another.
    let [one, two] =
        [server.data_dir(), other.path()].map(|data| fs::read_to_string(data.join("server-id")).unwrap());
    assert_ne!(one, two);
}
