//! An installation for a campaign, with an administrator who deploys on it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

pub(crate) use launchway_testkit::ports::free_port;
use launchway_testkit::{client::Client, docker::Traces};
use launchway_verifier::{
    figures::Figures,
    ledger::{Fact, Ledger},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    options::Options,
    process::{Launch, Server},
    repository,
    verdict::Question,
};

/// The path of applications.
pub(crate) const DEPLOY: &str = "/api/v1/deploy/application";
/// The first user and their password.
pub(crate) const EMAIL: &str = "ada@example.com";
pub(crate) const PASSWORD: &str = "correct horse battery";
/// The timeout of the first deployments.
const FIRST: Duration = Duration::from_secs(120);

/// The setup of an installation.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    /// The URL of the database, if it is not a file in the data folder.
    pub(crate) postgres: Option<String>,
    /// The number of static sites.
    pub(crate) sites: usize,
    /// The number of applications in containers.
    pub(crate) containers: usize,
    /// Additional settings, or environment variables, of the server.
    pub(crate) settings: Vec<(String, String)>,
    /// The words before the server's binary; `DATA` stands for the data folder.
    pub(crate) wrapper: Vec<String>,
}

/// Fields are dropped in their order: the server stops before its resources are removed.
pub(crate) struct Harness {
    pub(crate) server: Server,
    pub(crate) launch: Launch,
    pub(crate) admin: Client,
    pub(crate) applications: Vec<String>,
    engine: Option<Traces>,
    instance: String,
    session: String,
    postgres: Option<String>,
    verifier: PathBuf,
    folder: TempDir,
}

/// A user who was added to the organization.
pub(crate) struct Joined {
    pub(crate) setup_token: String,
    pub(crate) session: String,
    pub(crate) client: Client,
}

impl Harness {
    /// Starts a server, registers its administrator, and waits for the first deployments.
    pub(crate) fn set(options: &Options, plan: &Plan) -> Self {
        let folder = tempfile::Builder::new().prefix("launchway-chaos-").tempdir().unwrap();
        let launch = launch(options, plan, folder.path());
        let server = Server::start(&launch);
        let client = Client::new(&launch.url);
        let registration = json!({"email": EMAIL, "username": "ada", "password": PASSWORD});
        let token = client.post("/api/v1/auth/register", &registration).success();
        let session = token["access_token"].as_str().unwrap().to_owned();
        let admin = client.with_token(&session);
        let mut harness = Self {
            server,
            launch,
            admin,
            applications: Vec::new(),
            engine: None,
            instance: String::new(),
            session,
            postgres: plan.postgres.clone(),
            verifier: options.verifier.clone(),
            folder,
        };
        harness.instance =
            fs::read_to_string(harness.data_seen().join("instance-id")).unwrap().trim().to_owned();
        if plan.containers > 0 {
            harness.watch_engine();
        }
        harness.deploy_first(plan);
        harness
    }

    /// Tracks the server's resources on the engine, and removes them at the end.
    pub(crate) fn watch_engine(&mut self) {
        self.engine = Some(Traces::of(self.instance.parse().unwrap()));
    }

    /// Returns the server's resources on the engine.
    pub(crate) fn engine(&self) -> &Traces {
        self.engine.as_ref().expect("the engine is watched")
    }

    /// Returns the token of the administrator.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// Returns a client without a token.
    pub(crate) fn stranger(&self) -> Client {
        Client::new(&self.launch.url)
    }

    /// Adds a user to the organization, who sets a password and logs in.
    pub(crate) fn join(&self, email: &str, role: &str, password: &str) -> Joined {
        self.join_as(&self.admin, email, role, password)
    }

    /// The same, in the organization of `admin`.
    pub(crate) fn join_as(&self, admin: &Client, email: &str, role: &str, password: &str) -> Joined {
        let stranger = self.stranger();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let options = json!({"email": email, "role": role});
        let added = admin.post("/api/v1/organizations/users", &options).success();
        let setup_token = text(&added["setup_token"]);
        let setup = json!({"token": setup_token, "password": password});
        stranger.post("/api/v1/auth/password/setup", &setup).success();
        let login = json!({"email": email, "password": password});
        let session = text(&stranger.post("/api/v1/auth/login", &login).success()["access_token"]);
        Joined { setup_token, client: stranger.with_token(&session), session }
    }

    fn deploy_first(&mut self, plan: &Plan) {
        // The verifier requires the file, even if it is empty.
        let _empty = Ledger::open(&self.ledger()).unwrap();
        if plan.sites > 0 {
            repository::site(&self.folder.path().join("repositories/site"));
        }
        if plan.containers > 0 {
            repository::container(&self.folder.path().join("repositories/shop"));
        }
        let sites = (0..plan.sites).map(|number| self.site(&format!("site-{number}")));
        let shops = (0..plan.containers).map(|number| self.shop(&format!("shop-{number}")));
        for options in sites.chain(shops).collect::<Vec<_>>() {
            let made = self.admin.post(DEPLOY, &options).success();
            self.note_accepted(&made["deployments"][0]["id"]);
            self.applications.push(made["id"].as_str().unwrap().to_owned());
        }
        let figures = self.ask_at_rest(FIRST).ask().unwrap();
        assert_eq!(figures.wrong(), 0, "{figures:?}");
        let all = self.applications.len();
        assert_eq!(figures.succeeded, all, "the first deployments: {figures:?}\n{}", self.last_lines());
    }

    /// Returns the log of every application, newest line first: it contains the reason of a failed
    /// deployment.
    fn last_lines(&self) -> String {
        let logs = self.applications.iter().map(|application| {
            let page = self.admin.get(&format!("{DEPLOY}/logs/{application}?page=1&page_size=20")).success();
            page["logs"].as_array().unwrap().iter().map(|line| format!("{}\n", line["log"])).collect()
        });
        logs.collect::<Vec<String>>().join("\n")
    }

    /// Returns the body of a request that creates a static site.
    pub(crate) fn site(&self, name: &str) -> Value {
        let repository = self.folder.path().join("repositories/site");
        json!({
            "name": name, "repository": repository, "branch": "main", "port": 80,
            "environment": "production", "build_pack": "static",
        })
    }

    fn shop(&self, name: &str) -> Value {
        let repository = self.folder.path().join("repositories/shop");
        json!({
            "name": name, "repository": repository, "branch": "main", "port": 8080,
            "environment": "production", "build_pack": "dockerfile", "health_check_path": "/",
        })
    }

    /// Returns the folder for files of the campaign.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the data folder, as the server names it.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Returns the data folder, as seen from outside of the server's own mounts.
    pub(crate) fn data_seen(&self) -> PathBuf {
        let root = format!("/proc/{}/root", self.server.process_id());
        match self.has_own_mounts() {
            true => Path::new(&root).join(self.data().strip_prefix("/").unwrap()),
            false => self.data(),
        }
    }

    fn has_own_mounts(&self) -> bool {
        self.launch.wrapper.first().is_some_and(|program| program == "unshare")
    }

    /// Returns the path of the ledger.
    pub(crate) fn ledger(&self) -> PathBuf {
        self.folder.path().join("ledger")
    }

    /// Returns the label of this installation on the engine.
    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    pub(crate) fn note_accepted(&self, deployment: &Value) {
        let deployment = deployment.as_str().unwrap().to_owned();
        Ledger::open(&self.ledger()).unwrap().note(Fact::Accepted { deployment }).unwrap();
    }

    /// Starts the server again, and waits until it answers.
    pub(crate) fn restart(&mut self) {
        self.server.kill();
        self.server = Server::start(&self.launch);
    }

    /// Returns the verifier's question about this installation.
    pub(crate) fn question(&self) -> Question {
        let file = || format!("sqlite:{}", self.data().join("launchway.db").display());
        Question {
            verifier: self.verifier.clone(),
            ledger: self.ledger(),
            database: self.postgres.clone().unwrap_or_else(file),
            instance: self.engine.is_some().then(|| self.instance.clone()),
            until: None,
            at_rest: None,
            beside: self.has_own_mounts().then(|| self.server.process_id()),
        }
    }

    /// The same, if everything must finish within a timeout.
    pub(crate) fn ask_at_rest(&self, max_wait: Duration) -> Question {
        Question { at_rest: Some(max_wait.as_secs()), ..self.question() }
    }

    /// Returns the figures of this moment, in which everything should have finished.
    pub(crate) fn question_now(&self) -> Figures {
        let question = Question { at_rest: Some(0), instance: None, ..self.question() };
        question.ask().expect("the verifier can read everything")
    }

    /// Waits until everything has finished; returns the figures, and the time it took.
    pub(crate) fn wait_until_finished(&self, max_wait: Duration) -> (Figures, Duration) {
        let started = Instant::now();
        let figures = self.ask_at_rest(max_wait).ask().expect("the verifier can read everything");
        (figures, started.elapsed())
    }

    /// Requests another deployment; returns the status of the response, or `None` if there was none.
    pub(crate) fn redeploy(&self, application: &str) -> Option<u16> {
        let body = json!({ "id": application }).to_string();
        let answer = self.admin.try_send("POST", &format!("{DEPLOY}/redeploy"), Some(&body)).ok()?;
        if answer.status == 200 {
            self.note_accepted(&answer.json()["data"]["id"]);
        }
        Some(answer.status)
    }

    /// Retries until a deployment is accepted; returns the time it took.
    pub(crate) fn accepts_within(&self, application: &str, max_wait: Duration) -> Option<Duration> {
        let started = Instant::now();
        while started.elapsed() < max_wait {
            if self.redeploy(application) == Some(200) {
                return Some(started.elapsed());
            }
            sleep(Duration::from_millis(20));
        }
        None
    }
}

fn launch(options: &Options, plan: &Plan, folder: &Path) -> Launch {
    let (data, repositories) = (folder.join("data"), folder.join("repositories"));
    fs::create_dir_all(&data).unwrap();
    fs::create_dir_all(&repositories).unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let mut settings = vec![
        ("PATH", env::var("PATH").unwrap_or_default()),
        ("LAUNCHWAY_DATA_DIR", data.display().to_string()),
        ("LAUNCHWAY_BIND", address.clone()),
        ("LAUNCHWAY_PROXY_BIND", "off".to_owned()),
        ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", repositories.display().to_string()),
        ("LAUNCHWAY_HEALTH_TIMEOUT", "20s".to_owned()),
        ("LAUNCHWAY_MAX_BUILDS", "4".to_owned()),
        ("LAUNCHWAY_QUOTA_APPLICATIONS", "0".to_owned()),
    ];
    settings.extend(plan.postgres.iter().map(|url| ("LAUNCHWAY_DATABASE_URL", url.clone())));
    let mut settings: Vec<_> = settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    settings.extend(plan.settings.iter().cloned());
    let wrapper = plan.wrapper.iter().map(|word| word.replace("DATA", &data.display().to_string()).into());
    Launch {
        binary: options.server.clone(),
        wrapper: wrapper.collect(),
        settings,
        log: folder.join("server.log"),
        url: format!("http://{address}"),
    }
}
