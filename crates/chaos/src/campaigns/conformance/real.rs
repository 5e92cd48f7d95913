//! An installation with resources of every kind, also for deletion.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use launchway_testkit::{
    client::Client,
    external::{Reply, TestReceiver},
};
use serde_json::{Value, json};

use crate::{
    harness::{DEPLOY, EMAIL, Harness, PASSWORD, Plan},
    options::Options,
};

const EXTENSIONS: &str = "/api/v1/extensions";
const MEMBERS: &str = "/api/v1/organizations/users";
const DELIVERIES: &str = "/api/v1/notification/deliveries?page_size=100";
/// The number of resources of a kind that may be deleted.
const DOOMED: usize = 12;
/// The timeout of the first deployments and notifications.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Fields are dropped in their order: the server stops before the services it uses.
pub(crate) struct Installation {
    pub(crate) harness: Harness,
    /// The existing resources, for the hooks.
    pub(crate) real: Value,
    _receiver: TestReceiver,
}

impl Installation {
    pub(crate) fn populated(options: &Options, postgres: Option<String>) -> Self {
        // The first deliveries fail, so that there are some to replay.
        let receiver =
            TestReceiver::answering(|number, _| Reply::Status(if number < 4 * DOOMED { 500 } else { 204 }));
        let settings = [
            ("LAUNCHWAY_OUTBOUND_ALLOW", format!("127.0.0.1/32:{}", receiver.port)),
            ("LAUNCHWAY_NOTIFICATION_RETRIES", "100ms".to_owned()),
            ("LAUNCHWAY_NOTIFICATION_TIMEOUT", "2s".to_owned()),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value)).to_vec();
        let plan = Plan { postgres, settings, sites: 3, ..Plan::default() };
        let harness = Harness::set(options, &plan);
        let real = populate(&harness, &receiver);
        Self { harness, real, _receiver: receiver }
    }
}

fn populate(harness: &Harness, receiver: &TestReceiver) -> Value {
    let admin = &harness.admin;
    let made = |path: &str, body: Value, name: &str| text(&admin.post(path, &body).success()[name]);
    let many = |make: &dyn Fn(usize) -> String| (0..DOOMED).map(make).collect::<Vec<_>>();
    let channel = json!({"type": "generic", "webhook_url": receiver.url()});
    admin.post("/api/v1/notification/webhook", &channel).success();
    let members = many(&|number| {
        made(MEMBERS, json!({"email": format!("doomed-{number}@example.com"), "role": "viewer"}), "user_id")
    });
    let deliveries = dead(admin, DOOMED);
    let gone = json!({"user_id": members[0]});
    admin.send_json("DELETE", MEMBERS, &gone).success();
    let organization = text(&admin.get("/api/v1/organizations").success()["id"]);
    let mut failing = harness.site("failing");
    (failing["branch"], failing["domain"]) = (json!("nowhere"), json!("shop.example.com"));
    let failing = admin.post(DEPLOY, &failing).success();
    let ended = text(&failing["deployments"][0]["id"]);
    wait(admin, &ended);
    let doomed = many(&|number| made(DEPLOY, harness.site(&format!("doomed-{number}")), "id"));
    admin.delete(&format!("{DEPLOY}?id={}", doomed[0])).success();
    let run = made(&format!("{EXTENSIONS}/hello-note/run"), json!({"variables": {}}), "id");
    let fork = |_: usize| made(&format!("{EXTENSIONS}/hello-note/fork"), json!({}), "extension_id");
    let login = json!({"email": EMAIL, "password": PASSWORD});
    let application = &harness.applications[0];
    let deployments = admin.get(&format!("{DEPLOY}/deployments?id={application}")).success();
    let lines = admin.get(&format!("{DEPLOY}/logs/{application}")).success();
    json!({
        "session": harness.session(), "email": EMAIL, "password": PASSWORD, "domain": "shop.example.com",
        "repository": harness.site("")["repository"], "receiver": receiver.url(),
        "applications": harness.applications, "doomed_applications": doomed[1..], "applications_gone": [doomed[0]],
        "deployments": [deployments["deployments"][0]["id"], ended], "ended": [ended],
        "lines": lines["logs"].as_array().unwrap().iter().map(|line| text(&line["id"])).collect::<Vec<_>>(),
        "extensions": ["hello-note", fork(0)], "doomed_extensions": many(&fork), "executions": [run],
        "members": [made(MEMBERS, json!({"email": "grace@example.com", "role": "viewer"}), "user_id")],
        "doomed_members": members[1..], "members_gone": [members[0]],
        "organizations": [organization],
        "doomed_organizations": many(&|number| made("/api/v1/organizations", json!({"name": format!("Doomed {number}")}), "id")),
        "organizations_gone": ["01980000-0000-7000-8000-0000000000ff"],
        "doomed_tokens": many(&|number| made("/api/v1/auth/tokens", json!({"name": format!("doomed {number}")}), "id")),
        "tokens_gone": ["01980000-0000-7000-8000-0000000000ff"],
        "doomed_sessions": many(&|_| made("/api/v1/auth/login", login.clone(), "access_token")),
        "deliveries": [deliveries[0]], "doomed_deliveries": deliveries[1..],
    })
}

/// Returns dead deliveries.
fn dead(admin: &Client, count: usize) -> Vec<String> {
    let started = Instant::now();
    loop {
        let page = admin.get(&format!("{DELIVERIES}&state=dead")).success();
        let dead: Vec<_> =
            page["deliveries"].as_array().unwrap().iter().map(|one| text(&one["id"])).collect();
        if dead.len() >= count {
            return dead;
        }
        assert!(started.elapsed() < TIMEOUT, "{} of {count} messages came to nothing", dead.len());
        sleep(Duration::from_millis(100));
    }
}

/// Waits for a deployment that fails.
fn wait(admin: &Client, deployment: &str) {
    let (started, path) = (Instant::now(), format!("{DEPLOY}/deployments/{deployment}"));
    while admin.get(&path).success()["status"]["status"] != "failed" {
        assert!(started.elapsed() < TIMEOUT, "the deployment does not fail");
        sleep(Duration::from_millis(50));
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}
