//! An installation whose every secret is a canary, and a workload that uses all of them.

use std::{
    fs::OpenOptions,
    io::Write as _,
    path::Path,
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use launchway_testkit::{
    authenticator::Authenticator,
    client::Client,
    docker::base_image,
    external::{MailServer, MailServerOptions, Manner, Safety, TestReceiver, Web},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::net::Canary;
use crate::{
    document::Ids,
    harness::{DEPLOY, Harness, Plan, free_port},
    options::Options,
    repository,
    rng::Rng,
};

/// The name of the canary that must be found everywhere.
pub(crate) const PLANTED: &str = "planted on purpose";
/// The name of the canary that an image keeps in its history, as documented.
pub(crate) const BUILD_VARIABLE: &str = "build variable";
/// The name of the canary that a container has in its environment, as intended.
pub(crate) const ENVIRONMENT_VARIABLE: &str = "environment variable";

const LOGIN: &str = "/api/v1/auth/login";
const EXTENSIONS: &str = "/api/v1/extensions";
const NOTIFICATION: &str = "/api/v1/notification";
/// The timeout of a deployment, a run or a notification.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Fields are dropped in their order: the server stops before the services it uses.
pub(crate) struct Installation {
    pub(crate) harness: Harness,
    pub(crate) viewer: Client,
    pub(crate) member: Client,
    pub(crate) ids: Ids,
    pub(crate) canaries: Vec<Canary>,
    pub(crate) receiver: TestReceiver,
    pub(crate) mail: MailServer,
    web: Web,
    _hosted: TempDir,
}

/// Creates canaries, and remembers them.
struct CanarySet {
    rng: Rng,
    canaries: Vec<Canary>,
}

impl CanarySet {
    fn fresh(&mut self, what: &'static str) -> String {
        let number = |rng: &mut Rng| rng.below(1 << 32);
        let value = format!("canary-{:08x}{:08x}", number(&mut self.rng), number(&mut self.rng));
        self.keep(what, &value);
        value
    }

    /// Adds a secret that the server generated.
    fn keep(&mut self, what: &'static str, value: &str) {
        self.canaries.push(Canary { what, value: value.to_owned() });
    }
}

impl Installation {
    /// Starts a server, and uses every secret.
    pub(crate) fn populated(options: &Options, postgres: Option<String>) -> Self {
        let mut canary_set = CanarySet { rng: Rng::fresh(), canaries: Vec::new() };
        let (planted, token) =
            (canary_set.fresh(PLANTED), canary_set.fresh("token in a repository's address"));
        let hosted = tempfile::tempdir().unwrap();
        make_repositories(hosted.path(), &planted);
        let web = Web::serve(hosted.path(), Manner::Locked(format!("ada:{token}")));
        let receiver = TestReceiver::taking();
        let password = canary_set.fresh("password of a mail server");
        let login = Some(("launchway".to_owned(), password));
        let mail = MailServer::start(&MailServerOptions { login, ..MailServerOptions::new(Safety::None) });
        let silent = free_port();
        let at = |port: u16| format!("127.0.0.1/32:{port}");
        let settings = [
            ("LAUNCHWAY_LOG", "trace".to_owned()),
            ("LAUNCHWAY_BUILDER", "legacy".to_owned()),
            ("LAUNCHWAY_GIT_ALLOW", at(web.port)),
            ("LAUNCHWAY_OUTBOUND_ALLOW", [receiver.port, mail.port, silent].map(at).join(",")),
            ("LAUNCHWAY_NOTIFICATION_RETRIES", "100ms".to_owned()),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let mut harness = Harness::set(options, &Plan { postgres, settings, ..Plan::default() });
        harness.watch_engine();
        harness.admin.patch("/api/v1/user/name", &json!({ "name": planted })).success();
        let (viewer, member) = people(&harness, &mut canary_set);
        let mut installation = Self {
            viewer,
            member,
            ids: Ids {
                domain: "shop.example.com".to_owned(),
                extension: "hello-note".to_owned(),
                ..Ids::default()
            },
            canaries: Vec::new(),
            receiver,
            mail,
            web,
            _hosted: hosted,
            harness,
        };
        installation.set_up_channels(&mut canary_set, silent);
        installation.run_extensions(&mut canary_set);
        installation.deploy(&mut canary_set, &token, options.is_long);
        installation.wait_for_messages();
        installation.plant(&planted);
        installation.canaries = canary_set.canaries;
        installation
    }

    /// Configures every notification channel, one of which is unreachable.
    fn set_up_channels(&mut self, canary_set: &mut CanarySet, silent: u16) {
        let admin = &self.harness.admin;
        let channel =
            |path: &str, body: Value| admin.post(&format!("{NOTIFICATION}/{path}"), &body).success();
        let mut hook = |port: u16, what| format!("http://127.0.0.1:{port}/hook/{}", canary_set.fresh(what));
        for (kind, url) in [
            ("generic", hook(self.receiver.port, "address of a receiver")),
            ("slack", hook(self.receiver.port, "address of a Slack channel")),
            ("discord", hook(silent, "address of a receiver that does not answer")),
        ] {
            channel("webhook", json!({"type": kind, "webhook_url": url}));
        }
        let secret = channel("webhook/generic/secret", json!({}));
        canary_set.keep("signing secret", secret["secret"].as_str().unwrap().trim_start_matches("whsec_"));
        let password =
            canary_set.canaries.iter().find(|canary| canary.what == "password of a mail server").unwrap();
        let mail = json!({
            "host": "127.0.0.1", "port": self.mail.port, "username": "launchway", "password": password.value,
            "from_email": "launchway@example.com", "to": ["ops@example.com"], "security": "none",
        });
        channel("smtp", mail);
        assert_eq!(channel("test", json!({"channel": "smtp"}))["delivered"], true);
        assert_eq!(channel("test", json!({"channel": "discord"}))["delivered"], false);
        // The notification about a new member goes to all of them.
        let extra = json!({"email": "linus@example.com", "role": "viewer"});
        let added = admin.post("/api/v1/organizations/users", &extra).success();
        canary_set.keep("setup token of a user", added["setup_token"].as_str().unwrap());
        self.ids.user = text(&added["user_id"]);
        self.ids.organization = text(&added["organization_id"]);
    }

    /// Runs an extension that prints its secret, once successfully and once with a failure.
    fn run_extensions(&mut self, canary_set: &mut CanarySet) {
        let admin = &self.harness.admin;
        let value = canary_set.fresh("variable of an extension");
        for end in ["true", "exit 1"] {
            let print =
                format!("echo it is {{{{ password }}}}; printf %s {{{{ password }}}} | base64; {end}");
            let yaml = json!({
                "metadata": {
                    "id": "printer", "name": "Printer", "description": "Prints", "author": "ada", "icon": "P",
                    "category": "Utility", "type": "run", "version": "1.0.0", "isVerified": true,
                },
                "variables": {"password": {"type": "string", "sensitive": true, "is_required": true}},
                "execution": {"run": [{"name": "Print", "type": "command", "properties": {"cmd": print}}]},
            });
            let fork = json!({"yaml_content": yaml.to_string()});
            let fork = admin.post(&format!("{EXTENSIONS}/hello-note/fork"), &fork).success();
            self.ids.extension = text(&fork["extension_id"]);
            let run = format!("{EXTENSIONS}/{}/run", self.ids.extension);
            let run = admin.post(&run, &json!({"variables": {"password": value}})).success();
            self.ids.execution = text(&run["id"]);
            let path = format!("{EXTENSIONS}/execution/{}", self.ids.execution);
            until("the end of a run", || {
                let status = text(&admin.get(&path).success()["status"]);
                ["completed", "failed"].contains(&status.as_str()).then_some(())
            });
        }
    }

    /// Runs successful and failing deployments, from a code host that requires a token.
    fn deploy(&mut self, canary_set: &mut CanarySet, token: &str, is_long: bool) {
        let admin = self.harness.admin.clone();
        admin.get("/api/v1/organizations/deploy-key").success();
        canary_set.keep("private half of a deploy key", "OPENSSH PRIVATE KEY");
        let variables = (canary_set.fresh(BUILD_VARIABLE), canary_set.fresh(ENVIRONMENT_VARIABLE));
        let options = |name: &str, pack: &str, token: &str| {
            json!({
                "name": name, "repository": self.web.url_for(&format!("ada:{token}"), name), "branch": "main",
                "port": 8080, "environment": "production", "build_pack": pack,
                "build_variables": {"TOKEN": variables.0}, "environment_variables": {"PASSWORD": variables.1},
            })
        };
        let mut shop = options("shop", "dockerfile", token);
        shop["domain"] = json!(self.ids.domain);
        shop["pre_run_command"] = json!("echo \"preparing with $PASSWORD\"");
        // The response, with its variables, is stored for repeated requests.
        let shop = admin.with_header("idempotency-key", "once").post(DEPLOY, &shop).success();
        self.ids.application = text(&shop["id"]);
        self.ids.deployment = text(&shop["deployments"][0]["id"]);
        let made = |options: &Value| text(&admin.post(DEPLOY, options).success()["deployments"][0]["id"]);
        let site = made(&options("site", "static", token));
        let broken = made(&options("broken", "dockerfile", token));
        let mut refused =
            options("site", "static", &canary_set.fresh("wrong token in a repository's address"));
        refused["name"] = json!("refused");
        let refused = made(&refused);
        self.ends(&self.ids.deployment, "deployed");
        self.ends(&site, "deployed");
        self.ends(&broken, "failed");
        self.ends(&refused, "failed");
        if is_long {
            self.ends(&made(&options("services", "docker-compose", token)), "deployed");
        }
        self.ids.ended = broken;
        let put =
            json!({"environment_variables": {"PASSWORD": canary_set.fresh("changed environment variable")}});
        admin.put(&format!("{DEPLOY}?id={}&redeploy=false", self.ids.application), &put).success();
        self.push(canary_set);
    }

    /// Deploys by a webhook with its secret.
    fn push(&self, canary_set: &mut CanarySet) {
        let admin = &self.harness.admin;
        let path = format!("{DEPLOY}/webhook-secret?id={}", self.ids.application);
        let secret = text(&admin.get(&path).success()["secret"]);
        canary_set.keep("secret of a code host's webhook", &secret);
        let host = self.harness.stranger().with_header("x-gitlab-event", "Push Hook");
        let push = json!({
            "ref": "refs/heads/main", "after": "a".repeat(40),
            "project": {"git_http_url": self.web.url("shop")},
        });
        host.with_header("x-gitlab-token", &secret).post("/api/v1/webhook", &push).success();
        let path = format!("{DEPLOY}/deployments?id={}", self.ids.application);
        let pushed = text(&admin.get(&path).success()["deployments"][0]["id"]);
        assert_ne!(pushed, self.ids.deployment, "the push deploys");
        self.ends(&pushed, "deployed");
    }

    fn ends(&self, deployment: &str, expected: &str) {
        let path = format!("{DEPLOY}/deployments/{deployment}");
        let status = until("the end of a deployment", || {
            let status = text(&self.harness.admin.get(&path).success()["status"]["status"]);
            ["deployed", "failed", "cancelled"].contains(&status.as_str()).then_some(status)
        });
        if status != expected {
            let log = self.harness.admin.get(&format!("{path}/logs")).text;
            panic!("the deployment {deployment} has {status} instead of {expected}:\n{log}");
        }
    }

    /// Waits until no notification is pending.
    fn wait_for_messages(&mut self) {
        let path = format!("{NOTIFICATION}/deliveries?page_size=100");
        let over = until("the end of all messages", || {
            let page = self.harness.admin.get(&path).success();
            let all = page["deliveries"].as_array().unwrap().clone();
            let is_over = |one: &Value| one["status"] == "delivered" || one["status"] == "dead";
            all.iter().all(is_over).then_some(all)
        });
        let dead = over.iter().find(|one| one["status"] == "dead").expect("one channel leads nowhere");
        self.ids.delivery = text(&dead["id"]);
        assert!(!self.receiver.messages().is_empty() && !self.mail.taken().is_empty());
    }

    /// Puts the planted canary where nothing else puts it: into the log, and on a command line.
    fn plant(&self, planted: &str) {
        let mut log = OpenOptions::new().append(true).open(&self.harness.launch.log).unwrap();
        writeln!(log, "not the server: {planted}").unwrap();
        let status = Command::new("sh").args(["-c", "sleep 0.2", planted]).status();
        assert!(status.unwrap().success());
    }
}

/// Uses passwords, sessions, tokens, and the second factor; returns a viewer and a member.
fn people(harness: &Harness, canary_set: &mut CanarySet) -> (Client, Client) {
    let (admin, stranger) = (&harness.admin, harness.stranger());
    let password = canary_set.fresh("password");
    let change = json!({"current_password": crate::harness::PASSWORD, "new_password": password});
    admin.patch("/api/v1/user/password", &change).success();
    let token = text(&admin.post("/api/v1/auth/tokens", &json!({"name": "ci"})).success()["token"]);
    canary_set.keep("API token", &token);
    stranger.with_token(&token).get("/api/v1/user").success();
    let session =
        stranger.post(LOGIN, &json!({"email": crate::harness::EMAIL, "password": password})).success();
    canary_set.keep("session token", session["access_token"].as_str().unwrap());
    let wrong = canary_set.fresh("wrong password");
    let guess = json!({"email": crate::harness::EMAIL, "password": wrong});
    assert_eq!(stranger.post(LOGIN, &guess).status, 401);
    // Requests that fail while they contain a secret.
    let torn = format!("{{\"password\": \"{password}\", \"setup_token\": \"{token}\"");
    assert_eq!(stranger.send("POST", LOGIN, Some(&torn)).status, 400);
    let more = json!({"current_password": password, "new_password": wrong, "more": token});
    assert_eq!(admin.patch("/api/v1/user/password", &more).status, 400);

    let mut join = |email: &str, role: &str| {
        let password = canary_set.fresh("password of a member");
        let joined = harness.join(email, role, &password);
        canary_set.keep("setup token of a user", &joined.setup_token);
        canary_set.keep("session token of a member", &joined.session);
        (joined, password)
    };
    let (viewer, _) = join("grace@example.com", "viewer");
    let (member, password) = join("alan@example.com", "member");
    let (mut authenticator, codes) = Authenticator::enabled_for(&member.client);
    canary_set.keep("two-factor secret", &authenticator.secret);
    for code in &codes {
        canary_set.keep("recovery code", code);
        canary_set.keep("recovery code", &code.replace('-', ""));
    }
    let mut login = json!({"email": "alan@example.com", "password": password});
    login["totp_code"] = json!(authenticator.next_code());
    stranger.post(LOGIN, &login).success();
    login["totp_code"] = json!(codes[0]);
    stranger.post(LOGIN, &login).success();
    (viewer.client, member.client)
}

/// Creates applications that print their variables, and one that cannot be built.
fn make_repositories(folder: &Path, planted: &str) {
    let dockerfile = |end: &str| {
        format!(
            "FROM {}\nSTOPSIGNAL SIGKILL\nLABEL planted={planted}\nARG TOKEN\nCOPY index.html /www/index.html\n\
             RUN echo \"building with $TOKEN\" && printf '%s' \"$TOKEN\" | base64 && {end}\n\
             CMD echo \"serving with $PASSWORD\"; exec httpd -f -p 8080 -h /www\n",
            base_image()
        )
    };
    let page = ("index.html", planted);
    repository::make(&folder.join("site"), &[page]);
    repository::make(&folder.join("shop"), &[page, ("Dockerfile", &dockerfile("true"))]);
    repository::make(&folder.join("broken"), &[page, ("Dockerfile", &dockerfile("exit 1"))]);
    let composition = "services:\n  web:\n    build: {context: ., args: [TOKEN]}\n    expose: [\"8080\"]\n    \
                       environment: {AGAIN: \"${PASSWORD}\"}\n";
    let files = [page, ("Dockerfile", &dockerfile("true")), ("compose.yaml", composition)];
    repository::make(&folder.join("services"), &files);
}

/// Polls until there is a result.
fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(started.elapsed() < TIMEOUT, "{what} did not come");
        sleep(Duration::from_millis(50));
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
