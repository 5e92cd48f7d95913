//! The attacks of the hostile organization.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
    thread::sleep,
    time::{Duration, Instant},
};

use launchway_testkit::{client::Client, docker::base_image};
use serde_json::{Value, json};

use crate::{harness::DEPLOY, options::Options, repository, tenants::Tenants};

/// The largest number of log streams that are opened.
const STREAMS: usize = 300;
/// The largest number of applications that are created.
const APPLICATIONS: usize = 1_000;
/// The number of rejections after which an attack stops.
const REFUSALS: usize = 5;
/// Ports that services of the machine listen on.
const PORTS: [u16; 3] = [80, 443, 5432];
/// The timeout of an attack before the next one begins.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Tries to start 5,000 processes that wait.
const FORK_BOMB: &str = "RUN i=0; while [ $i -lt 5000 ]; do sleep 20 & i=$((i+1)); done; wait\n";
/// Prints without a pause beside the server.
const FLOOD: &str = "CMD [\"sh\", \"-c\", \"yes 0123456789012345678901234567890123456789 & exec httpd -f -p 8080 -h /www\"]\n";

/// The results of the attacks.
#[derive(Debug, Default)]
pub(super) struct Damage {
    pub(super) builds: usize,
    pub(super) applications: usize,
    pub(super) refused_applications: usize,
    pub(super) streams: usize,
    pub(super) refused_streams: usize,
    pub(super) published_ports: usize,
    pub(super) kept_lines: u64,
}

/// An administrator of the hostile organization.
pub(super) struct Attacker {
    client: Client,
    session: String,
    organization: String,
    api: SocketAddr,
    repositories: PathBuf,
    megabytes: usize,
    base: &'static str,
    streams: Vec<TcpStream>,
}

impl Attacker {
    /// Adds a user to the hostile organization, and to no other.
    pub(super) fn join(tenants: &Tenants, options: &Options) -> Self {
        let organization = tenants.organization(1).to_owned();
        let joined = tenants.harness.join_as(
            tenants.client(1),
            "mallory@example.com",
            "admin",
            "a hostile pass phrase",
        );
        let api = tenants.harness.launch.url.trim_start_matches("http://").parse().expect("an address");
        Self {
            client: joined.client.with_header("x-organization-id", &organization),
            session: joined.session,
            organization,
            api,
            repositories: tenants.harness.folder().join("repositories"),
            megabytes: options.count(64, 512),
            base: base_image(),
            streams: Vec::new(),
        }
    }

    /// Attacks until `is_over` is set.
    pub(super) fn attack(&mut self, is_over: &AtomicBool) -> Damage {
        let mut damage = Damage::default();
        let large = format!("RUN dd if=/dev/urandom of=/large bs=1M count={}\n", self.megabytes);
        let flood = self.create("flood", FLOOD).expect("a first application is within the quota");
        let bomb = self.create("bomb", FORK_BOMB).expect("a second application is within the quota");
        let large = self.create("large", &large).expect("a third application is within the quota");
        self.open_streams(&flood.1, &mut damage);
        self.create_applications(&mut damage, is_over);
        for port in PORTS {
            damage.published_ports += usize::from(self.publishes(port));
        }
        for application in [&bomb, &large].into_iter().cycle() {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            damage.builds += usize::from(self.deploys(&application.0, is_over));
        }
        damage.applications = self.count_applications();
        damage.kept_lines = self.kept_lines(&flood.0);
        for (application, _) in [flood, bomb, large] {
            let _refused_if_it_never_ran =
                self.post(&format!("{DEPLOY}/stop"), &json!({ "id": application }));
        }
        self.streams.clear();
        damage
    }

    /// Creates an application; returns its id and that of its first deployment.
    fn create(&self, name: &str, instruction: &str) -> Option<(String, String)> {
        let dockerfile = format!(
            "FROM {}\nCOPY index.html /www/index.html\n\
             CMD [\"httpd\", \"-f\", \"-p\", \"8080\", \"-h\", \"/www\"]\n{instruction}",
            self.base
        );
        let files = [("Dockerfile", dockerfile.as_str()), ("index.html", "hostile\n")];
        let repository = repository::make(&self.repositories.join(format!("hostile-{name}")), &files);
        let body = json!({
            "name": name, "repository": repository, "branch": "main", "port": 8080,
            "environment": "production", "build_pack": "dockerfile",
        });
        let created = self.post(DEPLOY, &body).ok()?;
        Some((text(&created["id"]), text(&created["deployments"][0]["id"])))
    }

    /// Opens log streams, and holds those that it gets.
    fn open_streams(&mut self, deployment: &str, damage: &mut Damage) {
        for _ in 0..STREAMS {
            match self.open_stream(deployment) {
                Some((200, stream)) => self.streams.push(stream),
                _ => damage.refused_streams += 1,
            }
            if damage.refused_streams >= REFUSALS {
                break;
            }
        }
        damage.streams = self.streams.len();
    }

    fn open_stream(&self, deployment: &str) -> Option<(u16, TcpStream)> {
        let mut stream = TcpStream::connect_timeout(&self.api, TIMEOUT).ok()?;
        stream.set_read_timeout(Some(TIMEOUT)).ok()?;
        let head = format!(
            "GET {DEPLOY}/deployments/{deployment}/logs/stream HTTP/1.1\r\nHost: {}\r\n\
             Authorization: Bearer {}\r\nX-Organization-Id: {}\r\n\r\n",
            self.api, self.session, self.organization
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut status = String::new();
        BufReader::new(stream.try_clone().ok()?).read_line(&mut status).ok()?;
        Some((status.split(' ').nth(1)?.parse().ok()?, stream))
    }

    fn create_applications(&self, damage: &mut Damage, is_over: &AtomicBool) {
        for number in 0..APPLICATIONS {
            if is_over.load(Ordering::Relaxed) || damage.refused_applications >= REFUSALS {
                break;
            }
            if self.create(&format!("more-{number}"), "").is_none() {
                damage.refused_applications += 1;
            }
        }
    }

    /// Runs an extension that publishes a port of the machine; returns whether the port is open then.
    fn publishes(&self, port: u16) -> bool {
        let definition = format!(
            "metadata: {{id: squat-{port}, name: Squat {port}, description: Takes a port, author: mallory, icon: S, \
             category: Utility, type: install, version: 1.0.0, isVerified: false}}\n\
             execution:\n  run:\n    - {{name: Run, type: docker, properties: {{action: run, name: squat-{port}, \
             image: \"{}\", command: [httpd, -f, -p, \"8080\"], ports: [\"{port}:8080\"]}}}}\n",
            self.base
        );
        let listed = self.client.get("/api/v1/extensions?page_size=1").success();
        let source = text(&listed["extensions"][0]["extension_id"]);
        let path = format!("/api/v1/extensions/{source}/fork");
        let Ok(fork) = self.post(&path, &json!({ "yaml_content": definition })) else { return false };
        let path = format!("/api/v1/extensions/{}/run", text(&fork["extension_id"]));
        let Ok(execution) = self.post(&path, &json!({ "variables": {} })) else { return false };
        let path = format!("/api/v1/extensions/execution/{}", text(&execution["id"]));
        let started = Instant::now();
        while started.elapsed() < TIMEOUT {
            let state = text(&self.client.get(&path).success()["status"]);
            if ["completed", "failed", "cancelled"].contains(&state.as_str()) {
                break;
            }
            sleep(Duration::from_millis(200));
        }
        TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), Duration::from_secs(1)).is_ok()
    }

    /// Deploys an application again; returns whether the deployment finished.
    fn deploys(&self, application: &str, is_over: &AtomicBool) -> bool {
        let Ok(deployment) = self.post(&format!("{DEPLOY}/redeploy"), &json!({ "id": application })) else {
            sleep(Duration::from_millis(500));
            return false;
        };
        let path = format!("{DEPLOY}/deployments/{}", text(&deployment["id"]));
        let started = Instant::now();
        while started.elapsed() < TIMEOUT && !is_over.load(Ordering::Relaxed) {
            let state = text(&self.client.get(&path).success()["status"]["status"]);
            if ["deployed", "failed", "cancelled"].contains(&state.as_str()) {
                return true;
            }
            sleep(Duration::from_millis(200));
        }
        false
    }

    fn count_applications(&self) -> usize {
        let page = self.client.get("/api/v1/deploy/applications?page_size=1").success();
        page["pagination"]["total_count"].as_u64().and_then(|count| count.try_into().ok()).unwrap_or_default()
    }

    fn kept_lines(&self, application: &str) -> u64 {
        let page = self.client.get(&format!("{DEPLOY}/logs/{application}?page_size=1")).success();
        page["total_count"].as_u64().unwrap_or_default()
    }

    /// Returns the data of an accepted request, or the status of a rejection.
    fn post(&self, path: &str, body: &Value) -> Result<Value, u16> {
        let answer =
            self.client.try_send("POST", path, Some(&body.to_string())).map_err(|_unanswered| 0_u16)?;
        match answer.status {
            200 => Ok(answer.json()["data"].clone()),
            status => Err(status),
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
