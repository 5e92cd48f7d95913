//! A PostgreSQL server of the campaign, which can be broken.

use std::{
    env, fs,
    io::Write as _,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use diesel::{
    Connection as _, PgConnection, QueryableByName, RunQueryDsl as _, connection::SimpleConnection as _,
    sql_query, sql_types::Text,
};
use tempfile::TempDir;

use crate::harness::free_port;

const LOOPBACK: &str = "127.0.0.1";
/// The timeout of a start, also after a crash.
const START: Duration = Duration::from_secs(60);

/// A server with the default durability settings. It stops when dropped.
pub(crate) struct Cluster {
    child: Child,
    binaries: PathBuf,
    address: &'static str,
    port: u16,
    folder: TempDir,
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    value: String,
}

/// The end of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Closes connections, and writes everything to disk.
    Fast,
    /// Exits at once, and recovers at the next start.
    Immediate,
    /// Is killed; its children notice that and exit.
    Killed,
}

impl Cluster {
    /// Creates a cluster, and waits until it accepts connections.
    pub(crate) fn start() -> Self {
        Self::start_at(LOOPBACK, "127.0.0.0/8")
    }

    /// The same at another address of this machine, for clients of another network.
    pub(crate) fn start_at(address: &'static str, network: &str) -> Self {
        let binaries = binaries().expect("PostgreSQL is installed");
        // Root's own temporary folder may be closed to the user that runs it.
        let parent = if is_root() { PathBuf::from("/tmp") } else { env::temp_dir() };
        let folder = tempfile::Builder::new().prefix("launchway-chaos-postgres-").tempdir_in(parent).unwrap();
        if is_root() {
            let id = |option| {
                let output = Command::new("id").args([option, "postgres"]).output().unwrap();
                String::from_utf8_lossy(&output.stdout).trim().parse().expect("there is a user `postgres`")
            };
            chown(folder.path(), Some(id("-u")), Some(id("-g"))).unwrap();
        }
        let made = as_postgres(&binaries.join("initdb"), folder.path())
            .args(["-D", "cluster", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"])
            .stdout(Stdio::null())
            .status();
        assert!(made.unwrap().success(), "initdb");
        let rules = folder.path().join("cluster/pg_hba.conf");
        let mut rules = fs::OpenOptions::new().append(true).open(rules).unwrap();
        writeln!(rules, "host all all {network} trust").unwrap();
        let port = free_port();
        let child = run(&binaries, folder.path(), address, port);
        let cluster = Self { child, binaries, address, port, folder };
        cluster.wait();
        cluster
    }

    /// Returns the URL of its database.
    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@{}:{}/postgres", self.address, self.port)
    }

    /// Returns the folder of its files.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns every table, with all of its rows as text.
    pub(crate) fn tables(&self) -> Vec<(String, String)> {
        let mut connection = PgConnection::establish(&self.url()).unwrap();
        let mut texts = |query: String| -> Vec<Row> { sql_query(query).load(&mut connection).unwrap() };
        let names =
            texts("SELECT tablename::text AS value FROM pg_tables WHERE schemaname = 'public'".to_owned());
        let tables = names.into_iter().map(|Row { value: name }| {
            let rows = format!("SELECT COALESCE(string_agg(t::text, E'\n'), '') AS value FROM \"{name}\" t");
            let rows = texts(rows).remove(0).value;
            (name, rows)
        });
        tables.collect()
    }

    /// Returns the number in the column `value` of a query's only row.
    pub(crate) fn number(&self, query: &str) -> usize {
        let mut connection = PgConnection::establish(&self.url()).unwrap();
        let rows: Vec<Row> = sql_query(query).load(&mut connection).unwrap();
        rows[0].value.parse().unwrap()
    }

    /// Stops the server.
    pub(crate) fn stop(&mut self, end: End) {
        let signal = match end {
            End::Fast => "-INT",
            End::Immediate => "-QUIT",
            End::Killed => "-KILL",
        };
        let _told = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        self.child.wait().unwrap();
    }

    /// Starts the server again, and waits until it accepts connections.
    pub(crate) fn restart(&mut self) {
        let started = Instant::now();
        self.child = run(&self.binaries, self.folder.path(), self.address, self.port);
        while PgConnection::establish(&self.url()).is_err() {
            // It refuses to start while a child of the killed one is still there.
            if self.child.try_wait().unwrap().is_some() {
                self.child = run(&self.binaries, self.folder.path(), self.address, self.port);
            }
            assert!(started.elapsed() < START, "PostgreSQL does not start again");
            sleep(Duration::from_millis(20));
        }
    }

    /// Terminates every connection to it.
    pub(crate) fn end_connections(&self) {
        let mut connection = PgConnection::establish(&self.url()).unwrap();
        let ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                     WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'";
        connection.batch_execute(ended).unwrap();
    }

    fn wait(&self) {
        let started = Instant::now();
        while PgConnection::establish(&self.url()).is_err() {
            assert!(started.elapsed() < START, "PostgreSQL does not start");
            sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            self.stop(End::Immediate);
        }
    }
}

fn run(binaries: &Path, folder: &Path, address: &str, port: u16) -> Child {
    let log = fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).unwrap();
    as_postgres(&binaries.join("postgres"), folder)
        .args(["-D", "cluster", "-c", "unix_socket_directories="])
        .args(["-c", &format!("listen_addresses={address}"), "-c", &format!("port={port}")])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .unwrap()
}

/// Runs a program as another user than root, which the server refuses. It ends with the thread that started
/// it.
fn as_postgres(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new("setpriv");
    if is_root() {
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]);
    }
    command.args(["--pdeathsig", "INT"]).arg(program).current_dir(folder).stdin(Stdio::null());
    command
}

/// Returns whether this process runs as root.
pub(crate) fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().unwrap();
    output.stdout.trim_ascii() == b"0"
}

/// Returns the folder of the server's programs: Debian's newest, or one on the path.
fn binaries() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<_> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort_by_key(|folder| {
        let version = folder.parent().and_then(Path::file_name).unwrap_or_default();
        version.to_string_lossy().parse::<u32>().unwrap_or_default()
    });
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path)
        .filter_map(|folder| folder.join("initdb").canonicalize().ok()?.parent().map(Path::to_owned));
    folders.into_iter().rev().chain(on_path).find(|folder| folder.join("postgres").exists())
}
