//! An installation in a temporary folder, with the users, groups, modes and settings that the units have.

use std::{
    collections::BTreeMap,
    fs::{self, File, Permissions},
    io::{BufRead as _, BufReader, Read as _},
    net::{SocketAddr, TcpListener},
    os::unix::{
        fs::{MetadataExt as _, PermissionsExt as _, chown},
        net::UnixListener,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::{JoinHandle, sleep},
    time::Duration,
};

use launchway_testkit::{client::Client, repository::Repository, server::binary, wait::until};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    read,
    units::{value_of, values_of},
};

pub(super) const SERVER: &str = "launchway.service";
pub(super) const PROXY: &str = "launchway-proxy.service";
pub(super) const HOST: &str = "site.ada-s-team.localhost";

/// Ids of users and groups that no machine has, for the names in the units.
const IDS: [(&str, u32); 3] = [("launchway", 61_201), ("launchway-proxy", 61_202), ("docker", 61_203)];

fn id_of(name: &str) -> u32 {
    let found = IDS.iter().find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("{name} has no id here")).1
}

/// The user and the groups of a process.
#[derive(Debug, Clone)]
pub(super) struct Account {
    pub(super) user: u32,
    pub(super) group: u32,
    others: Vec<u32>,
}

impl Account {
    /// The account that systemd gives the process of a unit.
    pub(super) fn of(unit: &str) -> Self {
        let name = value_of(unit, "User");
        let members = read("systemd/sysusers.conf");
        let groups = members.lines().filter_map(|line| line.strip_prefix("m ")?.split_once(' '));
        let own = groups.filter(|(user, _)| *user == name).map(|(_, group)| id_of(group.trim()));
        let more = values_of(unit, "SupplementaryGroups");
        let more = more.iter().flat_map(|line| line.split_whitespace()).map(id_of);
        Self { user: id_of(&name), group: id_of(&value_of(unit, "Group")), others: own.chain(more).collect() }
    }

    /// Another user with the groups of this one.
    pub(super) fn stranger(&self) -> Self {
        Self { user: 61_209, ..self.clone() }
    }

    /// A command with these credentials and no others.
    pub(super) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new("setpriv");
        command.arg(format!("--reuid={}", self.user)).arg(format!("--regid={}", self.group));
        let others: Vec<String> = self.others.iter().map(ToString::to_string).collect();
        match others.is_empty() {
            true => command.arg("--clear-groups"),
            false => command.arg(format!("--groups={}", others.join(","))),
        };
        command.args(["--no-new-privs", "--"]).arg(program.as_ref()).env_clear();
        command.env("PATH", std::env::var("PATH").unwrap());
        command
    }

    /// Runs a program of the machine on a path with this account.
    pub(super) fn run(&self, program: &str, path: &Path) -> Output {
        self.command(program).arg(path).output().unwrap()
    }
}

/// The folder, and what runs in it.
pub(super) struct Installation {
    folder: TempDir,
    front: SocketAddr,
    server: Option<Child>,
    pub(super) api: Option<Client>,
    proxy: Option<Service>,
}

impl Installation {
    /// The folders of both units, with the program, an engine's socket, and nothing that runs.
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let front = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let installation = Self { folder, front, server: None, api: None, proxy: None };
        installation.upgrade();
        installation.make_state(SERVER, None);
        fs::create_dir(installation.data().join("source")).unwrap();
        installation.give_source();
        let engine = installation.engine();
        drop(UnixListener::bind(&engine).unwrap());
        chown(&engine, Some(0), Some(id_of("docker"))).unwrap();
        fs::set_permissions(&engine, Permissions::from_mode(0o660)).unwrap();
        installation
    }

    /// A path of a unit, inside of the folder.
    pub(super) fn place(&self, path: &str) -> PathBuf {
        self.folder.path().join(path.trim_start_matches('/'))
    }

    pub(super) fn data(&self) -> PathBuf {
        self.place("/var/lib/launchway")
    }

    pub(super) fn engine(&self) -> PathBuf {
        self.folder.path().join("docker.sock")
    }

    /// Makes the state directory of a unit as systemd does, with the mode of the unit or another one.
    pub(super) fn make_state(&self, unit: &str, mode: Option<u32>) {
        let (account, folder) = (Account::of(unit), value_of(unit, "StateDirectory"));
        let path = self.place("/var/lib").join(folder);
        fs::create_dir_all(&path).unwrap();
        chown(&path, Some(account.user), Some(account.group)).unwrap();
        let own = u32::from_str_radix(&value_of(unit, "StateDirectoryMode"), 8).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode.unwrap_or(own))).unwrap();
    }

    /// Puts the program in place, as another file than before.
    pub(super) fn upgrade(&self) {
        let program = self.place("/usr/bin/launchway");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        let next = program.with_extension("next");
        fs::copy(binary(), &next).unwrap();
        fs::set_permissions(&next, Permissions::from_mode(0o755)).unwrap();
        fs::rename(&next, &program).unwrap();
    }

    /// The settings that both units read from their file. Some name files that only the server may read.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let text = |path: &Path| path.display().to_string();
        vec![
            ("LAUNCHWAY_BIND", "127.0.0.1:0".to_owned()),
            ("LAUNCHWAY_PROXY_BIND", self.front.to_string()),
            ("LAUNCHWAY_DATABASE_URL", format!("sqlite://{}", self.data().join("launchway.db").display())),
            ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", text(&self.data().join("source"))),
            ("DOCKER_HOST", format!("unix://{}", self.engine().display())),
        ]
    }

    /// The environment of a unit: its own lines, the file of settings, and not what it takes away.
    fn environment(&self, unit: &str) -> BTreeMap<String, String> {
        let own = values_of(unit, "Environment");
        let own = own.iter().filter_map(|line| line.split_once('='));
        let own = own.map(|(name, value)| match value.strip_prefix("/var/lib/") {
            Some(path) => (name.to_owned(), self.place("/var/lib").join(path).display().to_string()),
            None if name == "LAUNCHWAY_PROXY_CONTROL_USER" => (name.to_owned(), id_of(value).to_string()),
            None => (name.to_owned(), value.to_owned()),
        });
        let mut all: BTreeMap<String, String> = own.collect();
        all.extend(self.settings().into_iter().map(|(name, value)| (name.to_owned(), value)));
        for name in values_of(unit, "UnsetEnvironment").iter().flat_map(|line| line.split_whitespace()) {
            all.remove(name);
        }
        all
    }

    /// Makes the folder of repositories one of the server's user.
    fn give_source(&self) {
        let (account, source) = (Account::of(SERVER), self.data().join("source"));
        let owner = format!("{}:{}", account.user, account.group);
        assert!(Command::new("chown").arg("-R").arg(owner).arg(&source).status().unwrap().success());
        fs::set_permissions(&source, Permissions::from_mode(0o700)).unwrap();
    }

    /// The command of a unit, or of the same program with other arguments.
    pub(super) fn command(&self, unit: &str, account: &Account, arguments: Option<&[&str]>) -> Command {
        let start = value_of(unit, "ExecStart");
        let mut words = start.split_whitespace();
        let mut command = account.command(self.place(words.next().unwrap()));
        match arguments {
            Some(arguments) => command.args(arguments),
            None => command.args(words),
        };
        command.envs(self.environment(unit));
        command
    }

    /// Returns the output of a command of the program with the credentials and settings of a unit.
    pub(super) fn output(&self, unit: &str, arguments: &[&str]) -> String {
        let output = self.command(unit, &Account::of(unit), Some(arguments)).output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }

    pub(super) fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    fn log_file(&self) -> File {
        File::options().create(true).append(true).open(self.folder.path().join("log")).unwrap()
    }

    /// Starts the server, and waits until it listens.
    pub(super) fn start_server(&mut self, change: impl FnOnce(&mut Command)) {
        let mut command = self.command(SERVER, &Account::of(SERVER), None);
        change(&mut command);
        let mut process =
            with_umask(SERVER, &command).stdout(Stdio::piped()).stderr(self.log_file()).spawn().unwrap();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        assert_ne!(output.read_line(&mut line).unwrap(), 0, "{}", self.log());
        let url = line[line.find("http://").unwrap()..].trim();
        self.api = Some(self.api.as_ref().map_or_else(|| Client::new(url), |api| api.at(url)));
        self.server = Some(process);
        std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
    }

    /// Asks the server to stop by a signal, and waits until it has.
    pub(super) fn stop_server(&mut self, name: &str) {
        let mut process = self.server.take().unwrap();
        signal(process.id(), name);
        process.wait().unwrap();
    }

    /// Has the unit of the front proxy run, as systemd would.
    pub(super) fn start_proxy(&mut self) {
        self.make_state(PROXY, None);
        let mut command = self.command(PROXY, &Account::of(PROXY), None);
        // systemd sets it for every unit.
        command.env("INVOCATION_ID", "0123456789abcdef0123456789abcdef");
        let mut command = with_umask(PROXY, &command);
        command.stdout(Stdio::null()).stderr(self.log_file());
        self.proxy = Some(Service::start(command));
    }

    /// The process that the unit of the front proxy runs.
    pub(super) fn main_process(&self) -> u32 {
        *self.proxy.as_ref().unwrap().process.lock().unwrap()
    }

    /// The process of the front proxy that answers at the control socket.
    pub(super) fn proxy_process(&self) -> Option<u32> {
        let text = self.output(SERVER, &["proxy", "status"]);
        text.lines().find_map(|line| line.strip_prefix("process ")).map(|id| id.trim().parse().unwrap())
    }

    /// Registers the first administrator, and publishes a site.
    pub(super) fn publish(&mut self, page: &str) {
        let source = self.data().join("source");
        let repository = Repository::empty(source.join("site"));
        repository.write("index.html", page).commit();
        self.give_source();
        let ada = json!({"email": "ada@example.com", "username": "ada", "password": "correct horse battery"});
        let registered = self.api().post("/api/v1/auth/register", &ada).success();
        self.api = Some(self.api().with_token(registered["access_token"].as_str().unwrap()));
        let spec = json!({
            "name": "site", "repository": repository.path(), "branch": "main", "port": 8080,
            "environment": "production", "build_pack": "static", "health_check_path": "",
        });
        let application = self.api().post("/api/v1/deploy/application", &spec).success();
        let id = application["deployments"][0]["id"].as_str().unwrap().to_owned();
        until("the deployment", || {
            let found: Value =
                self.api().get(&format!("/api/v1/deploy/application/deployments/{id}")).success();
            let state = found["status"]["status"].as_str().unwrap().to_owned();
            assert_ne!(state, "failed", "{found}\n{}", self.log());
            (state == "deployed").then_some(())
        });
    }

    fn api(&self) -> &Client {
        self.api.as_ref().unwrap()
    }

    /// Someone who asks the front proxy for the site, each time by another connection.
    pub(super) fn visitor(&self) -> Client {
        Client::new(&format!("http://{}", self.front)).with_header("host", HOST)
    }

    /// Waits until the site is served.
    #[track_caller]
    pub(super) fn shows(&self, page: &str) {
        until("the page", || {
            let answer = self.visitor().try_send("GET", "/", None).ok()?;
            (answer.status == 200 && answer.text == page).then_some(())
        });
    }
}

impl Drop for Installation {
    fn drop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ended = server.kill().and_then(|()| server.wait());
        }
        drop(self.proxy.take());
        // Successors of the unit's process, and one that a server started, belong to nobody.
        for folder in ["/var/lib/launchway-proxy", "/var/lib/launchway/proxy"] {
            let stop = Command::new(self.place("/usr/bin/launchway"))
                .args(["proxy", "stop"])
                .env("LAUNCHWAY_PROXY_DIR", self.place(folder))
                .output();
            let _ended = stop;
        }
    }
}

/// A unit that is started again whenever it ends.
struct Service {
    process: Arc<Mutex<u32>>,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    fn start(mut command: Command) -> Self {
        let (process, is_stopped) = (Arc::new(Mutex::new(0)), Arc::new(AtomicBool::new(false)));
        let (current, ended) = (Arc::clone(&process), Arc::clone(&is_stopped));
        let thread = std::thread::spawn(move || {
            while !ended.load(Ordering::SeqCst) {
                let mut child = command.spawn().unwrap();
                *current.lock().unwrap() = child.id();
                child.wait().unwrap();
                sleep(Duration::from_millis(200));
            }
        });
        Self { process, is_stopped, thread: Some(thread) }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        signal(*self.process.lock().unwrap(), "KILL");
        let _ended = self.thread.take().map(JoinHandle::join);
    }
}

/// The same command with the mask of a unit for new files.
fn with_umask(unit: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("umask {}; exec \"$@\"", value_of(unit, "UMask")), "sh"]);
    shell.arg(command.get_program()).args(command.get_args()).env_clear();
    shell.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(Stdio::null());
    shell
}

pub(super) fn signal(process: u32, name: &str) {
    let _gone = Command::new("kill").args(["-s", name, &process.to_string()]).stderr(Stdio::null()).status();
}

/// The user of a process.
pub(super) fn user_of(process: u32) -> u32 {
    fs::metadata(format!("/proc/{process}")).unwrap().uid()
}

/// The mode, the user and the group of a file.
pub(super) fn mode_of(path: &Path) -> (u32, u32, u32) {
    let found = fs::metadata(path).unwrap();
    (found.mode() & 0o7777, found.uid(), found.gid())
}
