//! Three servers on the managers of a Swarm, and two organizations on it.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use launchway_testkit::{
    client::Client,
    docker::base_image,
    external::{Manner, Web},
    swarm::SwarmLab,
};
use launchway_verifier::ledger::{Fact, Ledger};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::NODES;
use crate::{
    cluster::Cluster,
    harness::{DEPLOY, EMAIL, PASSWORD},
    options::Options,
    process::{Launch, Server},
    repository,
    verdict::Question,
    visitor,
};

/// The time that a server gets until it is ready, and an application until it answers.
const READY: Duration = Duration::from_secs(120);
/// The time after which a look at an application counts as failed.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// The states that a deployment does not leave.
const ENDS: [&str; 3] = ["deployed", "failed", "cancelled"];
/// The name of each application, the position of its organization, and the number of its copies.
const APPLICATIONS: [(&str, usize, usize); 5] =
    [("north-1", 0, 1), ("north-2", 0, 2), ("north-3", 0, 1), ("south-1", 1, 1), ("south-2", 1, 2)];

/// Fields are dropped in their order: servers stop before the machines.
pub(super) struct Installation {
    servers: Vec<Member>,
    pub(super) applications: Vec<Application>,
    organizations: Vec<Client>,
    web: Web,
    cluster: Cluster,
    verifier: PathBuf,
    folder: TempDir,
    pub(super) lab: SwarmLab,
}

struct Member {
    server: Server,
    launch: Launch,
    front: SocketAddr,
}

/// An application in containers.
pub(super) struct Application {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) copies: usize,
    /// The deployment that was requested last.
    pub(super) deployment: String,
    organization: usize,
    version: usize,
}

impl Installation {
    /// Starts everything, and waits until each application answers at each front proxy.
    pub(super) fn start(options: &Options) -> Self {
        let lab = SwarmLab::with_managers(NODES, NODES, options.server.clone());
        let folder = tempfile::Builder::new().prefix("launchway-chaos-").tempdir().unwrap();
        let cluster = Cluster::start_at(lab.own_address(), lab.network());
        let repositories = folder.path().join("repositories");
        fs::create_dir(&repositories).unwrap();
        let web = Web::serve_at(lab.own_address(), &repositories, Manner::Open);
        let mut servers: Vec<Member> = Vec::new();
        for node in 1..=NODES {
            let (launch, front) = launch(options, &lab, &cluster, &web, folder.path(), node);
            servers.push(Member { server: Server::start(&launch), launch, front });
        }
        let organizations = register(&servers[0].launch, folder.path());
        // The verifier requires the file, even if it is empty.
        let _empty = Ledger::open(&folder.path().join("ledger")).unwrap();
        let (verifier, applications) = (options.verifier.clone(), Vec::new());
        let mut installation =
            Self { servers, applications, organizations, web, cluster, verifier, folder, lab };
        for (turn, (name, organization, copies)) in APPLICATIONS.into_iter().enumerate() {
            installation.create(turn % NODES, name, organization, copies);
        }
        installation.wait_until_whole();
        installation
    }

    fn create(&mut self, server: usize, name: &str, organization: usize, copies: usize) {
        let (name, id, deployment) = (name.to_owned(), String::new(), String::new());
        self.applications.push(Application { id, name, copies, deployment, organization, version: 0 });
        let position = self.applications.len() - 1;
        self.commit(position);
        let Application { name, .. } = &self.applications[position];
        let body = json!({
            "name": name, "domain": host(name), "repository": self.web.url(name), "branch": "main", "port": 8080,
            "environment": "production", "build_pack": "dockerfile", "health_check_path": "/", "replicas": copies,
        });
        let created = self.client(server, position).post(DEPLOY, &body).success();
        self.applications[position].id = text(&created["id"]);
        self.accept(position, &created["deployments"][0]["id"]);
    }

    /// Commits a version with nothing but its page to the repository of an application.
    pub(super) fn commit(&mut self, position: usize) {
        let application = &mut self.applications[position];
        application.version += 1;
        let folder = self.folder.path().join("repositories").join(&application.name);
        write_source(&folder, &visitor::page(&application.name, application.version));
    }

    /// Commits another version, and requests its deployment at a server; false if it was refused.
    pub(super) fn deploy(&mut self, server: usize, position: usize) -> bool {
        self.commit(position);
        self.redeploy(server, position)
    }

    /// Requests a deployment at a server; false if it was refused.
    pub(super) fn redeploy(&mut self, server: usize, position: usize) -> bool {
        let body = json!({ "id": self.applications[position].id }).to_string();
        let path = format!("{DEPLOY}/redeploy");
        let answer = self.client(server, position).try_send("POST", &path, Some(&body));
        let Ok(answer) = answer.inspect_err(|error| eprintln!("  redeploy: {error}")) else { return false };
        if answer.status != 200 {
            eprintln!("  redeploy: {} {}", answer.status, answer.text);
            return false;
        }
        self.accept(position, &answer.json()["data"]["id"]);
        true
    }

    fn accept(&mut self, position: usize, deployment: &Value) {
        let deployment = text(deployment);
        let ledger = Ledger::open(&self.folder.path().join("ledger")).unwrap();
        ledger.note(Fact::Accepted { deployment: deployment.clone() }).unwrap();
        self.applications[position].deployment = deployment;
    }

    /// Returns a client of a server in the organization of an application.
    pub(super) fn client(&self, server: usize, position: usize) -> Client {
        self.client_of(server, self.applications[position].organization)
    }

    /// Returns a client of a server in an organization.
    pub(super) fn client_of(&self, server: usize, organization: usize) -> Client {
        self.organizations[organization].at(&self.servers[server].launch.url)
    }

    /// Waits until the deployment of an application that was requested last has ended, and returns its state.
    pub(super) fn end_of(&self, server: usize, position: usize, limit: Duration) -> String {
        let deployment = &self.applications[position].deployment;
        self.end_of_deployment(&self.client(server, position), deployment, limit)
    }

    /// The same for any deployment.
    pub(super) fn end_of_deployment(&self, client: &Client, deployment: &str, limit: Duration) -> String {
        let (started, path) = (Instant::now(), format!("{DEPLOY}/deployments/{deployment}"));
        loop {
            let answer = client.try_send("GET", &path, None).ok().filter(|answer| answer.status == 200);
            let state = answer.map(|answer| text(&answer.json()["data"]["status"]["status"]));
            match state {
                Some(state) if ENDS.contains(&state.as_str()) => return state,
                _ if started.elapsed() > limit => return state.unwrap_or_default(),
                _ => sleep(Duration::from_millis(50)),
            }
        }
    }

    /// Returns the lines of the newest deployment of an application.
    pub(super) fn story(&self, server: usize, position: usize) -> String {
        let Application { id, deployment, .. } = &self.applications[position];
        let path = format!("{DEPLOY}/logs/{id}?page=1&page_size=60&embed=none");
        let page = self.client(server, position).get(&path).success();
        let lines = page["logs"].as_array().into_iter().flatten();
        let own = lines.filter(|line| line["deployment_id"].as_str().is_none_or(|id| id == deployment));
        let stamped = own.map(|line| format!("    {} {}\n", text(&line["created_at"]), text(&line["log"])));
        stamped.collect()
    }

    /// Returns the host and the name of every application.
    pub(super) fn hosts(&self) -> Vec<(String, String)> {
        self.applications.iter().map(|each| (host(&each.name), each.name.clone())).collect()
    }

    /// Returns the positions of the applications with that many copies.
    pub(super) fn with_copies(&self, copies: usize) -> Vec<usize> {
        let all = 0..self.applications.len();
        all.filter(|position| self.applications[*position].copies == copies).collect()
    }

    pub(super) fn front(&self, server: usize) -> SocketAddr {
        self.servers[server].front
    }

    /// Returns the version of an application that answers at a front proxy, if one does.
    pub(super) fn answer(&self, server: usize, position: usize) -> Option<usize> {
        let name = &self.applications[position].name;
        let page = visitor::get(self.front(server), &host(name), "/", LOOK).ok()?;
        let is_its = page.status == 200 && page.application() == Some(name) && page.is_complete();
        page.version().filter(|_| is_its)
    }

    /// Returns the version of an application that was committed last.
    pub(super) fn version(&self, position: usize) -> usize {
        self.applications[position].version
    }

    /// Returns the positions of the nodes, from 0, with running containers of an application, as a manager sees them.
    pub(super) fn nodes_of(&self, manager: usize, position: usize) -> Vec<usize> {
        let label = format!("launchway.application={}", self.applications[position].id);
        let machines = self.lab.machines_with(manager + 1, &label);
        let found = machines.iter().filter_map(|machine| position_of(machine));
        found.collect()
    }

    /// Returns the position of the manager that leads.
    pub(super) fn leader(&self) -> usize {
        let format = "{{.Hostname}} {{.ManagerStatus}}";
        let listed = self.lab.docker_at_last(1, &["node", "ls", "--format", format]);
        let leading = listed.lines().filter_map(|line| line.strip_suffix(" Leader"));
        leading.filter_map(position_of).next().expect("one manager leads")
    }

    /// Waits until all managers are reached by their leader, because the Swarm bears the loss of one at a time, and all
    /// applications run with all copies and answer at every front proxy.
    pub(super) fn wait_until_whole(&self) {
        let started = Instant::now();
        while let Some(missing) = self.missing() {
            assert!(started.elapsed() < READY, "{missing}");
            sleep(Duration::from_millis(100));
        }
    }

    fn missing(&self) -> Option<String> {
        for manager in 1..=NODES {
            let format = "{{.Status}} {{.ManagerStatus}}";
            let nodes = self.lab.docker_at_last(manager, &["node", "ls", "--format", format]);
            if nodes.lines().any(|state| !["Ready Leader", "Ready Reachable"].contains(&state)) {
                return Some(format!("manager {manager} does not reach all others: {nodes}"));
            }
        }
        for (server, Member { launch, .. }) in self.servers.iter().enumerate() {
            let ready = Client::new(&launch.url).try_send("GET", "/ready", None);
            if !ready.is_ok_and(|answer| answer.status == 200) {
                return Some(format!("server {server} is not ready:\n{}", tail(&launch.log)));
            }
            for (position, application) in self.applications.iter().enumerate() {
                if self.answer(server, position).is_none() {
                    let story = self.story(server, position);
                    return Some(format!("{} does not answer at {server}:\n{story}", application.name));
                }
            }
        }
        let is_short =
            |position: &usize| self.nodes_of(0, *position).len() != self.applications[*position].copies;
        let short = (0..self.applications.len()).find(is_short)?;
        Some(format!("copies are missing of {}", self.applications[short].name))
    }

    /// Runs a command of the program on the machine of a server, with its settings.
    pub(super) fn command(&self, server: usize, arguments: &[&str]) -> Output {
        let Launch { binary, wrapper, settings, .. } = &self.servers[server].launch;
        let mut command = Command::new(&wrapper[0]);
        command.args(&wrapper[1..]).arg(binary).args(arguments).env_clear();
        command.envs(settings.iter().map(|(name, value)| (name, value))).stdin(Stdio::null());
        command.output().expect("`nsenter` of util-linux can be started")
    }

    /// Returns the process of a server.
    pub(super) fn process(&self, server: usize) -> &Server {
        &self.servers[server].server
    }

    /// Returns the folder for files of the campaign.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the URL of a repository, whose source is written by [`write_source`].
    pub(super) fn repository(&self, name: &str, page: &str) -> String {
        write_source(&self.folder.path().join("repositories").join(name), page);
        self.web.url(name)
    }

    /// Returns the verifier's question, if everything must finish within `limit`.
    pub(super) fn question(&self, limit: Duration) -> Question {
        Question {
            verifier: self.verifier.clone(),
            ledger: self.folder.path().join("ledger"),
            database: self.cluster.url(),
            instance: None,
            until: None,
            at_rest: Some(limit.as_secs()),
            beside: None,
        }
    }
}

/// Writes a web server with that page to a repository, and commits it.
pub(super) fn write_source(folder: &Path, page: &str) {
    let dockerfile = format!(
        "FROM {}\nSTOPSIGNAL SIGKILL\nCOPY index.html /www/index.html\n\
         CMD [\"httpd\", \"-f\", \"-p\", \"8080\", \"-h\", \"/www\"]\n",
        base_image()
    );
    repository::make(folder, &[("Dockerfile", &dockerfile), ("index.html", page)]);
}

fn host(application: &str) -> String {
    format!("{application}.example.com")
}

/// Returns the position of the node with that name.
fn position_of(machine: &str) -> Option<usize> {
    (0..NODES).find(|position| SwarmLab::hostname(position + 1) == machine)
}

/// Registers the administrator, and returns their client in each of two organizations.
fn register(launch: &Launch, folder: &Path) -> Vec<Client> {
    let token = fs::read_to_string(folder.join("data-1/setup-token")).unwrap();
    let client = Client::new(&launch.url);
    let registration = json!({
        "email": EMAIL, "username": "ada", "password": PASSWORD, "setup_token": token.trim(),
    });
    let session = client.post("/api/v1/auth/register", &registration).success();
    let admin = client.with_token(session["access_token"].as_str().unwrap());
    let own = admin.get("/api/v1/organizations").success();
    let other = admin.post("/api/v1/organizations", &json!({ "name": "south" })).success();
    [own, other].map(|one| admin.with_header("x-organization-id", &text(&one["id"]))).to_vec()
}

/// Returns the parameters of the server on a node.
fn launch(
    options: &Options,
    lab: &SwarmLab,
    cluster: &Cluster,
    web: &Web,
    folder: &Path,
    node: usize,
) -> (Launch, SocketAddr) {
    let (data, address) = (folder.join(format!("data-{node}")), lab.address(node));
    fs::create_dir(&data).unwrap();
    let front: SocketAddr = format!("{address}:8000").parse().unwrap();
    let mut settings = lab.settings(node);
    let key = folder.join("data-1/secret.key").display().to_string();
    let own = [
        ("LAUNCHWAY_DATA_DIR", data.display().to_string()),
        ("LAUNCHWAY_BIND", format!("{address}:8080")),
        ("LAUNCHWAY_PROXY_BIND", front.to_string()),
        ("LAUNCHWAY_DATABASE_URL", cluster.url()),
        ("LAUNCHWAY_GIT_ALLOW", format!("{}/32:{}", lab.own_address(), web.port)),
        ("LAUNCHWAY_QUOTA_APPLICATIONS", "0".to_owned()),
        ("LAUNCHWAY_ORPHAN_GRACE", "30s".to_owned()),
    ];
    settings.extend(own.map(|(name, value)| (name.to_owned(), value)));
    // The first server creates it.
    settings.extend((node > 1).then(|| ("LAUNCHWAY_SECRET_KEY_FILE".to_owned(), key)));
    let namespace = format!("--net=/run/netns/{}", SwarmLab::hostname(node));
    let launch = Launch {
        binary: options.server.clone(),
        wrapper: vec!["nsenter".into(), namespace.into()],
        settings,
        log: folder.join(format!("server-{node}.log")),
        url: format!("http://{address}:8080"),
    };
    (launch, front)
}

fn tail(log: &Path) -> String {
    let log = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
