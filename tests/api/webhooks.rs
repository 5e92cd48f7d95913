//! Inbound webhooks: `POST /api/v1/webhook`, the secrets of repositories, and branch polling.

mod code_hosts;
mod deliveries;
mod docker;
mod limits;
mod previews;
mod refusals;
mod requests;
mod secrets;

use launchway_testkit::{client::Client, server::TestServer};
use serde_json::{Value, json};

use self::code_hosts::Host;

const WEBHOOK: &str = "/api/v1/webhook";
const DEPLOY: &str = "/api/v1/deploy/application";
const AFTER: &str = "59b20b8d5c6ff8d09518454d4dd8b7b30f095ab5";

/// The body of a request that publishes the files of a repository's `main`.
fn site(name: &str, repository: &str) -> Value {
    json!({
        "name": name, "repository": repository, "branch": "main", "port": 80, "environment": "production",
        "build_pack": "static",
    })
}

/// Creates an application, and returns its id.
fn create(admin: &Client, spec: &Value) -> String {
    admin.post(DEPLOY, spec).success()["id"].as_str().unwrap().to_owned()
}

/// Returns the secret of an application's repository.
fn secret_of(admin: &Client, id: &str) -> String {
    let answer = admin.get(&format!("{DEPLOY}/webhook-secret?id={id}"));
    answer.success()["secret"].as_str().unwrap().to_owned()
}

/// Returns the deployments of an application, newest first.
fn deployments(admin: &Client, id: &str) -> Vec<Value> {
    let page = admin.get(&format!("{DEPLOY}/deployments?id={id}&page_size=100")).success();
    page["deployments"].as_array().unwrap().clone()
}

fn is_on_sqlite(server: &TestServer) -> bool {
    server.data_dir().join("launchway.db").exists()
}

/// A server, and an application on it that a code host can push to. This machine has no git, so that every
/// deployment of it fails.
struct Followed {
    server: TestServer,
    admin: Client,
    host: Host,
    id: String,
    secret: String,
}

impl Followed {
    fn by(server: TestServer, host: Host) -> Self {
        let admin = server.admin();
        let id = create(&admin, &site("site", host.address()));
        let secret = secret_of(&admin, &id);
        Self { server, admin, host, id, secret }
    }

    /// Returns the number of deployments besides the first one.
    fn pushes(&self) -> usize {
        deployments(&self.admin, &self.id).len() - 1
    }

    fn client(&self) -> Client {
        self.server.client()
    }
}
