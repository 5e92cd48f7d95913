//! Organizations with applications in containers, each of which answers with its own name, behind the
//! front proxy of an installation.

use std::{
    net::SocketAddr,
    path::PathBuf,
    thread::sleep,
    time::{Duration, Instant},
};

use launchway_testkit::{
    client::Client,
    docker::{base_image, docker},
};
use launchway_verifier::{figures::Figures, ledger::Ledger};
use serde_json::{Value, json};

use crate::{
    harness::{DEPLOY, Harness, Plan, free_port},
    options::Options,
    process::Server,
    repository,
    verdict::Question,
    visitor::{self, Response},
};

/// The time that a first deployment may take.
const FIRST: Duration = Duration::from_secs(120);
/// The time after which a look at an application counts as failed.
const LOOK: Duration = Duration::from_secs(1);
/// A script that answers with its page, a line each half of a second in the middle of it, until it is told to end.
const STREAM: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\r\\n\\r\\n'\n\
    read -r page < /www/index.html\necho \"${page% complete}\"\ni=0\n\
    while [ $i -lt \"$QUERY_STRING\" ] && [ ! -e /www/end ]; do i=$((i+1)); echo \"line $i\"; sleep 0.5; done\n\
    echo complete\n";
/// The command of an application.
const QUIET: &str = r#"["httpd", "-f", "-p", "8080", "-h", "/www"]"#;
/// The same, with a line each second that no other container prints.
const PRINTING: &str = r#"["sh", "-c", "(i=0; while :; do i=$((i+1)); echo tick $HOSTNAME $i; sleep 1; done) & exec httpd -f -p 8080 -h /www"]"#;
/// The beginnings of lines that a build prints.
const BUILD_LINES: [&str; 4] = [" --->", "Step ", "Removing ", "Successfully "];
/// The states that a deployment does not leave.
const ENDS: [&str; 3] = ["deployed", "failed", "cancelled"];

/// The shape of an installation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shape {
    /// The name of each organization; that of the administrator is the first.
    pub(crate) organizations: &'static [&'static str],
    /// The number of applications in each of them.
    pub(crate) applications: usize,
    /// The number of static sites in the first of them.
    pub(crate) sites: usize,
    /// The URL of the database, if it is not a file in the data folder.
    pub(crate) postgres: Option<String>,
    /// True if each application prints a numbered line each second.
    pub(crate) prints: bool,
    /// Settings of the server.
    pub(crate) settings: Vec<(String, String)>,
    /// The words before the server: a program that runs it.
    pub(crate) wrapper: &'static [&'static str],
}

/// The path of a page that takes at most so many half seconds.
pub(crate) fn slow_path(lines: u64) -> String {
    format!("/cgi-bin/stream?{lines}")
}

/// One application.
#[derive(Debug, Clone)]
pub(crate) struct Application {
    pub(crate) name: String,
    pub(crate) host: String,
    /// The position of its organization.
    pub(crate) organization: usize,
    /// Its id, which is another one after it was deleted and created again.
    pub(crate) id: String,
    version: usize,
}

/// An installation with its tenants.
pub(crate) struct Tenants {
    pub(crate) harness: Harness,
    pub(crate) front: SocketAddr,
    pub(crate) applications: Vec<Application>,
    /// The ids of the sites.
    pub(crate) sites: Vec<String>,
    organizations: Vec<(String, Client)>,
    /// The base image, asked for once: the engine may hang later.
    base: &'static str,
    prints: bool,
}

impl Tenants {
    /// Starts a server with its front proxy, and waits until every application answers.
    pub(crate) fn start(options: &Options, shape: &Shape) -> Self {
        let front = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let engine = std::env::var("DOCKER_HOST").expect("the campaign has an engine of its own");
        let own = [("LAUNCHWAY_PROXY_BIND", front.to_string()), ("DOCKER_HOST", engine)];
        let mut settings = own.map(|(name, value)| (name.to_owned(), value)).to_vec();
        settings.extend(shape.settings.iter().cloned());
        let wrapper = shape.wrapper.iter().map(|word| (*word).to_owned()).collect();
        let postgres = shape.postgres.clone();
        let plan = Plan { postgres, sites: shape.sites, settings, wrapper, ..Plan::default() };
        let harness = Harness::set(options, &plan);
        let sites = harness.applications.clone();
        let (organizations, applications, base) = (Vec::new(), Vec::new(), base_image());
        let prints = shape.prints;
        let mut tenants = Self { harness, front, applications, sites, organizations, base, prints };
        let _empty = Ledger::open(&tenants.harness.ledger()).unwrap();
        for (position, name) in shape.organizations.iter().enumerate() {
            tenants.add_organization(position, name);
            for number in 1..=shape.applications {
                tenants.add_application(position, &format!("{name}-{number}"));
            }
        }
        let started = Instant::now();
        while let Some(missing) = tenants.applications.iter().find(|each| !tenants.answers(each)) {
            assert!(started.elapsed() < FIRST, "{} does not answer:\n{}", missing.name, tenants.log(missing));
            sleep(Duration::from_millis(50));
        }
        tenants
    }

    fn add_organization(&mut self, position: usize, name: &str) {
        let admin = self.harness.admin.clone();
        let organization = match position {
            0 => admin.get("/api/v1/organizations").success(),
            _ => admin.post("/api/v1/organizations", &json!({ "name": name })).success(),
        };
        let id = text(&organization["id"]);
        let client = admin.with_header("x-organization-id", &id);
        self.organizations.push((id, client));
    }

    fn add_application(&mut self, organization: usize, name: &str) {
        let (name, host, id) = (name.to_owned(), format!("{name}.example.com"), String::new());
        self.applications.push(Application { name, host, organization, id, version: 0 });
        let position = self.applications.len() - 1;
        self.create(position).expect("the first deployment is accepted");
        self.harness.applications.push(self.applications[position].id.clone());
    }

    /// Host and name of every application.
    pub(crate) fn hosts(&self) -> Vec<(String, String)> {
        self.applications.iter().map(|each| (each.host.clone(), each.name.clone())).collect()
    }

    /// The id of an organization.
    pub(crate) fn organization(&self, position: usize) -> &str {
        &self.organizations[position].0
    }

    /// Sends the requests to the server at `url` from now on.
    pub(crate) fn use_server(&mut self, url: &str) {
        for (_, client) in &mut self.organizations {
            *client = client.at(url);
        }
    }

    /// The administrator of an organization.
    pub(crate) fn client(&self, position: usize) -> &Client {
        &self.organizations[position].1
    }

    /// Creates an application, which may have existed before; returns its first deployment.
    pub(crate) fn create(&mut self, position: usize) -> Option<String> {
        let repository = self.commit(position);
        let Application { name, host, organization, .. } = &self.applications[position];
        let body = json!({
            "name": name, "domain": host, "repository": repository, "branch": "main", "port": 8080,
            "environment": "production", "build_pack": "dockerfile", "health_check_path": "/",
        });
        let created = self.request(*organization, "POST", "", Some(&body))?;
        self.applications[position].id = text(&created["id"]);
        self.accepted(&created["deployments"][0]["id"])
    }

    /// Requests a deployment of a new version; returns its id.
    pub(crate) fn deploy(&mut self, position: usize) -> Option<String> {
        self.commit(position);
        let deployment = self.operate(position, "redeploy")?;
        self.accepted(&deployment["id"])
    }

    /// Requests `restart`, `stop` or `redeploy` of an application.
    pub(crate) fn operate(&self, position: usize, operation: &str) -> Option<Value> {
        let Application { id, organization, .. } = &self.applications[position];
        self.request(*organization, "POST", &format!("/{operation}"), Some(&json!({ "id": id })))
    }

    /// Requests the removal of an application.
    pub(crate) fn delete(&self, position: usize) -> Option<Value> {
        let Application { id, organization, .. } = &self.applications[position];
        self.request(*organization, "DELETE", &format!("?id={id}"), None)
    }

    /// The number of the version that was committed last.
    pub(crate) fn version(&self, position: usize) -> usize {
        self.applications[position].version
    }

    /// The state of a deployment of an application.
    pub(crate) fn deployment_state(&self, position: usize, deployment: &str) -> Option<String> {
        let organization = self.applications[position].organization;
        let shown = self.request(organization, "GET", &format!("/deployments/{deployment}"), None)?;
        Some(text(&shown["status"]["status"]))
    }

    /// Waits until a deployment is in that state or at its end; returns false after `timeout`.
    pub(crate) fn reaches(&self, position: usize, deployment: &str, state: &str, timeout: Duration) -> bool {
        let started = Instant::now();
        while started.elapsed() < timeout {
            let now = self.deployment_state(position, deployment).unwrap_or_default();
            if now == state || ENDS.contains(&now.as_str()) {
                return now == state;
            }
            sleep(Duration::from_millis(10));
        }
        false
    }

    /// The state of an application in the API.
    pub(crate) fn status(&self, application: &Application) -> Option<String> {
        let path = format!("?id={}", application.id);
        let shown = self.request(application.organization, "GET", &path, None)?;
        Some(text(&shown["status"]["status"]))
    }

    /// The page of an application, if one answers for its host.
    pub(crate) fn page(&self, application: &Application) -> Option<Response> {
        visitor::get(self.front, &application.host, "/", LOOK).ok()
    }

    /// Returns true if the application itself answers for its host.
    pub(crate) fn answers(&self, application: &Application) -> bool {
        let page = self.page(application);
        page.is_some_and(|page| page.status == 200 && page.application() == Some(&application.name))
    }

    /// The ids of the containers of all applications.
    pub(crate) fn containers(&self) -> Vec<String> {
        let label = format!("label=launchway.instance={}", self.harness.instance());
        docker(&["ps", "--quiet", "--filter", &label]).lines().map(str::to_owned).collect()
    }

    /// Ends the slow pages of a container.
    pub(crate) fn end_slow_pages(container: &str) {
        docker(&["exec", container, "sh", "-c", ": > /www/end"]);
    }

    /// Starts the server again after it was stopped.
    pub(crate) fn start_server(&mut self) {
        self.harness.server = Server::start(&self.harness.launch);
    }

    /// Asks the verifier about records and engine, when everything has to be at its end within `timeout`.
    pub(crate) fn compare(&self, timeout: Duration) -> Figures {
        let instance = Some(self.harness.instance().to_owned());
        let question = Question { instance, ..self.harness.ask_at_rest(timeout) };
        question.ask().expect("the verifier can read everything")
    }

    /// The newest lines of an application's log, without those of builds.
    pub(crate) fn log(&self, application: &Application) -> String {
        let path = format!("/logs/{}?page=1&page_size=20&embed=none", application.id);
        let page = self.request(application.organization, "GET", &path, None).unwrap_or_default();
        let lines = page["logs"].as_array().into_iter().flatten().filter_map(|line| line["log"].as_str());
        let own = lines.filter(|line| !BUILD_LINES.iter().any(|start| line.starts_with(start)));
        own.take(6).map(|line| format!("    {line}\n")).collect()
    }

    /// Commits another version of an application to its repository.
    fn commit(&mut self, position: usize) -> PathBuf {
        let (base, application) = (self.base, &mut self.applications[position]);
        application.version += 1;
        let folder = self.harness.folder().join("repositories").join(&application.name);
        let command = if self.prints { PRINTING } else { QUIET };
        let dockerfile = format!(
            "FROM {base}\nSTOPSIGNAL SIGKILL\nCOPY stream /www/cgi-bin/stream\n\
             RUN chmod 755 /www/cgi-bin/stream\nCOPY index.html /www/index.html\nRUN sleep 0.5\n\
             CMD {command}\n"
        );
        let page = visitor::page(&application.name, application.version);
        repository::make(&folder, &[("Dockerfile", &dockerfile), ("stream", STREAM), ("index.html", &page)])
    }

    fn accepted(&self, deployment: &Value) -> Option<String> {
        self.harness.note_accepted(deployment);
        Some(text(deployment))
    }

    /// Sends a request below the path of applications; returns the data of a success.
    fn request(&self, organization: usize, method: &str, path: &str, body: Option<&Value>) -> Option<Value> {
        let client = &self.organizations[organization].1;
        let body = body.map(Value::to_string);
        let answer = client.try_send(method, &format!("{DEPLOY}{path}"), body.as_deref());
        let answer = answer.inspect_err(|error| eprintln!("  {method} {path}: {error}")).ok()?;
        if answer.status != 200 {
            eprintln!("  {method} {path}: {} {}", answer.status, answer.text);
            return None;
        }
        Some(answer.json()["data"].clone())
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
