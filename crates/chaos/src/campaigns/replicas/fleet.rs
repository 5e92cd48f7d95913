//! The servers of an installation.

use std::{
    fs,
    net::SocketAddr,
    thread::sleep,
    time::{Duration, Instant},
};

use launchway_testkit::client::Client;
use serde_json::json;

use crate::{
    harness::{DEPLOY, free_port},
    process::{Launch, Server},
    tenants::{Application, Tenants},
};

/// The time that a server gets until it is ready.
const READY: Duration = Duration::from_secs(60);

/// The first server, which the tenants use, and the others beside it.
pub(super) struct Fleet {
    pub(super) tenants: Tenants,
    others: Vec<Beside>,
}

struct Beside {
    server: Server,
    launch: Launch,
    front: SocketAddr,
}

impl Fleet {
    /// Starts servers beside that of the tenants until there are `count`.
    pub(super) fn start(tenants: Tenants, count: usize) -> Self {
        let others = (1..count).map(|number| {
            let (launch, front) = beside(&tenants, number);
            Beside { server: Server::start(&launch), launch, front }
        });
        let fleet = Self { others: others.collect(), tenants };
        for server in 0..count {
            fleet.wait_until_ready(server);
        }
        fleet
    }

    /// Returns the front proxies of all servers.
    pub(super) fn fronts(&self) -> impl Iterator<Item = SocketAddr> {
        [self.tenants.front].into_iter().chain(self.others.iter().map(|other| other.front))
    }

    pub(super) fn url(&self, server: usize) -> &str {
        match server.checked_sub(1) {
            None => &self.tenants.harness.launch.url,
            Some(other) => &self.others[other].launch.url,
        }
    }

    fn len(&self) -> usize {
        1 + self.others.len()
    }

    /// Lets the tenants use another server, by turns.
    pub(super) fn choose(&mut self, turn: usize) {
        let url = self.url(turn % self.len()).to_owned();
        self.tenants.use_server(&url);
    }

    /// Returns the administrator of the first organization, at a server.
    pub(super) fn admin(&self, server: usize) -> Client {
        self.tenants.harness.admin.at(self.url(server))
    }

    /// Returns the state of an application, as a server shows it.
    pub(super) fn status(&self, server: usize, application: &Application) -> Option<String> {
        let client = self.tenants.client(application.organization).at(self.url(server));
        let answer = client.try_send("GET", &format!("{DEPLOY}?id={}", application.id), None).ok()?;
        Some(answer.json()["data"]["status"]["status"].as_str()?.to_owned())
    }

    /// Requests a deployment of an application at a server, by turns; returns the status of the response.
    pub(super) fn redeploy(&self, turn: usize, application: &str) -> Option<u16> {
        let body = json!({ "id": application }).to_string();
        let client = self.admin(turn % self.len());
        let answer = client.try_send("POST", &format!("{DEPLOY}/redeploy"), Some(&body)).ok()?;
        if answer.status == 200 {
            self.tenants.harness.note_accepted(&answer.json()["data"]["id"]);
        }
        Some(answer.status)
    }

    pub(super) fn kill(&mut self, server: usize) {
        self.server(server).kill();
    }

    pub(super) fn terminate(&mut self, server: usize) {
        self.server(server).terminate();
    }

    /// Starts a server that has ended, and waits until it is ready.
    pub(super) fn start_again(&mut self, server: usize) {
        match server.checked_sub(1) {
            None => self.tenants.start_server(),
            Some(other) => self.others[other].server = Server::start(&self.others[other].launch),
        }
        self.wait_until_ready(server);
    }

    fn server(&mut self, server: usize) -> &mut Server {
        match server.checked_sub(1) {
            None => &mut self.tenants.harness.server,
            Some(other) => &mut self.others[other].server,
        }
    }

    fn wait_until_ready(&self, server: usize) {
        let (started, client) = (Instant::now(), Client::new(self.url(server)));
        while !client.try_send("GET", "/ready", None).is_ok_and(|answer| answer.status == 200) {
            assert!(started.elapsed() < READY, "server {server} is not ready");
            sleep(Duration::from_millis(20));
        }
    }
}

/// Returns the parameters of another server of the same installation.
fn beside(tenants: &Tenants, number: usize) -> (Launch, SocketAddr) {
    let first = &tenants.harness.launch;
    let front = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let address = format!("127.0.0.1:{}", free_port());
    let data = tenants.harness.folder().join(format!("data-{number}"));
    fs::create_dir_all(&data).unwrap();
    let own = [
        ("LAUNCHWAY_DATA_DIR", data.display().to_string()),
        ("LAUNCHWAY_BIND", address.clone()),
        ("LAUNCHWAY_PROXY_BIND", front.to_string()),
        ("LAUNCHWAY_SECRET_KEY_FILE", tenants.harness.data().join("secret.key").display().to_string()),
    ];
    let mut settings = first.settings.clone();
    settings.retain(|(name, _)| own.iter().all(|(other, _)| name != other));
    settings.extend(own.map(|(name, value)| (name.to_owned(), value)));
    let log = tenants.harness.folder().join(format!("server-{number}.log"));
    (Launch { settings, log, url: format!("http://{address}"), ..first.clone() }, front)
}
