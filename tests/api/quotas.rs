//! Quotas of organizations, and their usage.

use launchway_testkit::{
    client::{Answer, Client},
    people::join,
    server::TestServer,
};
use serde_json::{Value, json};

super::on_both_databases!(
    usage_lists_every_quota_with_its_limit,
    usage_is_that_of_the_organization_that_is_asked_for,
    usage_has_the_bytes_of_logs,
    an_application_beyond_the_quota_is_a_conflict,
    a_run_beyond_the_quota_of_workspaces_is_a_conflict,
);

fn a_site(name: &str) -> Value {
    json!({
        "name": name, "repository": "https://git.example.com/site.git", "branch": "main", "port": 80,
        "environment": "production", "build_pack": "static",
    })
}

fn quota(client: &Client, query: &str, name: &str) -> (u64, u64) {
    let usage = client.get(&format!("/api/v1/organizations/usage{query}")).success();
    let quota = usage["quotas"].as_array().unwrap().iter().find(|quota| quota["name"] == name);
    let quota = quota.unwrap_or_else(|| panic!("no {name} in {usage}"));
    (quota["used"].as_u64().unwrap(), quota["limit"].as_u64().unwrap())
}

fn usage_lists_every_quota_with_its_limit(server: TestServer) {
    let ada = server.admin();
    let answer = ada.get("/api/v1/organizations/usage");
    assert_eq!(answer.message(), "Usage fetched successfully");
    let usage = answer.success();
    let names: Vec<&str> =
        usage["quotas"].as_array().unwrap().iter().map(|quota| quota["name"].as_str().unwrap()).collect();
    assert_eq!(names, QUOTAS);
    assert_eq!(usage["quotas"][0], json!({"name": "applications", "used": 0, "limit": 100, "unit": "count"}));
}

const QUOTAS: &[&str] = &[
    "applications",
    "builds",
    "log_streams",
    "user_log_streams",
    "extension_ports",
    "extension_forks",
    "extension_workspaces",
    "log_bytes",
    "image_bytes",
];

fn usage_is_that_of_the_organization_that_is_asked_for(server: TestServer) {
    let ada = server.admin();
    let second = ada.post("/api/v1/organizations", &json!({"name": "Second"})).success();
    let id = second["id"].as_str().unwrap();
    ada.post("/api/v1/deploy/application", &a_site("one")).success();
    assert_eq!(quota(&ada, "", "applications"), (1, 100));
    assert_eq!(quota(&ada, &format!("?id={id}"), "applications"), (0, 100));
    let in_second = ada.with_header("x-organization-id", id);
    assert_eq!(quota(&in_second, "", "applications"), (0, 100));
    ada.get("/api/v1/organizations/usage?id=42").failure(400, "invalid_id");
    let eve = join(&server, &in_second, "eve@example.com", "viewer").log_in();
    let first = ada.get("/api/v1/organizations").success()["id"].as_str().unwrap().to_owned();
    eve.get(&format!("/api/v1/organizations/usage?id={first}")).failure(404, "not_found");
}

fn usage_has_the_bytes_of_logs(server: TestServer) {
    let ada = server.admin();
    assert_eq!(quota(&ada, "", "log_bytes"), (0, 1 << 30));
    ada.post("/api/v1/deploy/application", &a_site("one")).success();
    // The line that says who asked for the deployment is there at once, with 100 bytes beside its text.
    let (used, _) = quota(&ada, "", "log_bytes");
    assert!((100..10_000).contains(&used), "{used}");
    let usage = ada.get("/api/v1/organizations/usage").success();
    let row = usage["quotas"].as_array().unwrap().iter().find(|quota| quota["name"] == "log_bytes").unwrap();
    assert_eq!(row["unit"], "bytes");
}

fn an_application_beyond_the_quota_is_a_conflict(mut server: TestServer) {
    server.set("LAUNCHWAY_QUOTA_APPLICATIONS", "2");
    server.restart();
    let ada = server.admin();
    for name in ["one", "two"] {
        ada.post("/api/v1/deploy/application", &a_site(name)).success();
    }
    let message = ada.post("/api/v1/deploy/application", &a_site("three")).failure(409, "conflict");
    assert_eq!(
        message,
        "the quota `applications` of this organization is reached: 2 of 2 are in use, and 1 more would be needed"
    );
    assert_eq!(quota(&ada, "", "applications"), (2, 2));
    let second = ada.post("/api/v1/organizations", &json!({"name": "Second"})).success();
    let in_second = ada.with_header("x-organization-id", second["id"].as_str().unwrap());
    in_second.post("/api/v1/deploy/application", &a_site("three")).success();
}

#[test]
fn of_requests_at_once_only_as_many_pass_as_fit_on_postgres() {
    let settings = [("LAUNCHWAY_QUOTA_APPLICATIONS", "3")];
    let server = TestServer::configured_on_postgres(&settings);
    let ada = server.admin();
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let ask = |number: usize| {
            let ada = ada.clone();
            scope
                .spawn(move || ada.post("/api/v1/deploy/application", &a_site(&format!("s-{number}"))).status)
        };
        let asked: Vec<_> = (0..8).map(ask).collect();
        asked.into_iter().map(|answer| answer.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|status| **status == 200).count(), 3, "{answers:?}");
    assert_eq!(answers.iter().filter(|status| **status == 409).count(), 5, "{answers:?}");
    assert_eq!(quota(&ada, "", "applications"), (3, 3));
}

#[test]
fn a_fork_beyond_the_quota_is_a_conflict() {
    let server = TestServer::configured(&[("LAUNCHWAY_QUOTA_EXTENSION_FORKS", "1")]);
    let ada = server.admin();
    let list = ada.get("/api/v1/extensions").success();
    let key = list["extensions"][0]["extension_id"].as_str().unwrap().to_owned();
    let fork = || ada.post(&format!("/api/v1/extensions/{key}/fork"), &json!({}));
    fork().success();
    let message = fork().failure(409, "conflict");
    assert!(
        message.starts_with("the quota `extension_forks` of this organization is reached: 1 of 1"),
        "{message}"
    );
    assert_eq!(quota(&ada, "", "extension_forks"), (1, 1));
}

#[test]
fn a_quota_that_is_no_number_names_its_setting() {
    let server = TestServer::on_sqlite();
    let shown = server.command(&["config"]).env("LAUNCHWAY_QUOTA_APPLICATIONS", "many").output().unwrap();
    let text = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(!shown.status.success(), "{text}");
    assert!(
        text.contains("LAUNCHWAY_QUOTA_APPLICATIONS is `many`") && text.contains("0 for no limit"),
        "{text}"
    );
}

#[test]
fn log_streams_beyond_a_quota_are_rate_limited() {
    let server = TestServer::configured(&[
        ("LAUNCHWAY_QUOTA_LOG_STREAMS", "3"),
        ("LAUNCHWAY_QUOTA_USER_LOG_STREAMS", "2"),
        ("DOCKER_HOST", "unix:///nowhere/docker.sock"),
    ]);
    let ada = server.admin();
    let grace = join(&server, &ada, "grace@example.com", "viewer").log_in();
    let mut spec = a_site("web");
    // It waits for an engine that is not there, so that its log does not end.
    spec["build_pack"] = json!("dockerfile");
    let made = ada.post("/api/v1/deploy/application", &spec).success();
    let deployment = made["deployments"][0]["id"].as_str().unwrap();
    let path = format!("/api/v1/deploy/application/deployments/{deployment}/logs/stream");
    let open = |client: &Client| {
        let mut lines = client.lines(&path);
        assert!(lines.next().is_some());
        lines
    };
    let held = [open(&ada), open(&ada)];
    let refused = ada.get(&path);
    assert_eq!(refused.headers["retry-after"], "5");
    let message = refused.failure(429, "rate_limited");
    assert!(message.starts_with("the quota `user_log_streams` of this user is reached: 2 of 2"), "{message}");
    let _more = open(&grace);
    let message = grace.get(&path).failure(429, "rate_limited");
    assert!(
        message.starts_with("the quota `log_streams` of this organization is reached: 3 of 3"),
        "{message}"
    );
    assert_eq!((quota(&ada, "", "log_streams"), quota(&ada, "", "user_log_streams")), ((3, 3), (2, 2)));
    assert_eq!(quota(&grace, "", "user_log_streams"), (1, 2));
    drop(held);
    let is_free = || quota(&ada, "", "log_streams").0 == 1;
    assert!((0..600).any(|_| is_free() || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        false
    }));
    let _again = open(&ada);
}

/// Forks the example with another definition, and asks for a run of it.
fn run_steps(client: &Client, id: &str, steps: &Value) -> Answer {
    let yaml = json!({
        "metadata": {
            "id": id, "name": "Steps", "description": "For a test", "author": "someone", "icon": "S",
            "category": "Utility", "type": "run", "version": "1.0.0", "isVerified": true,
        },
        "variables": {},
        "execution": {"run": steps},
    });
    let spec = json!({"yaml_content": yaml.to_string()});
    let fork = client.post("/api/v1/extensions/hello-note/fork", &spec).success();
    let key = fork["extension_id"].as_str().unwrap();
    client.post(&format!("/api/v1/extensions/{key}/run"), &json!({}))
}

#[test]
fn a_host_port_out_of_the_range_is_invalid() {
    let server = TestServer::configured(&[("LAUNCHWAY_EXTENSION_PORTS", "23880-23889")]);
    let ada = server.admin();
    let compose = "services: {db: {image: postgres, ports: ['443:443']}}";
    for (id, step) in [
        (
            "run",
            json!({"name": "Start", "type": "docker", "properties": {
                "action": "run", "name": "web", "image": "nginx", "ports": ["443:80"],
            }}),
        ),
        (
            "up",
            json!({"name": "Up", "type": "docker_compose", "properties": {
                "action": "up", "project": "shop", "content": compose,
            }}),
        ),
    ] {
        let message = run_steps(&ada, id, &json!([step])).failure(400, "validation_failed");
        assert_eq!(
            message,
            "the port 443 of this machine is not among those that extensions may publish, 23880-23889: \
             choose one of them, or 0 for any that is free"
        );
    }
    assert_eq!(quota(&ada, "", "extension_workspaces").0, 0);
}

#[test]
fn host_ports_beyond_the_quota_are_a_conflict() {
    let server = TestServer::configured(&[("LAUNCHWAY_QUOTA_EXTENSION_PORTS", "1")]);
    let ada = server.admin();
    let step = json!({"name": "Start", "type": "docker", "properties": {
        "action": "run", "name": "web", "image": "nginx", "ports": ["0:80", "0:81"],
    }});
    let message = run_steps(&ada, "two", &json!([step])).failure(409, "conflict");
    assert_eq!(
        message,
        "the quota `extension_ports` of this organization is reached: 0 of 1 are in use, and 2 more would be needed"
    );
}

fn a_run_beyond_the_quota_of_workspaces_is_a_conflict(mut server: TestServer) {
    server.set("LAUNCHWAY_QUOTA_EXTENSION_WORKSPACES", "1");
    server.restart();
    let ada = server.admin();
    let step = json!({"name": "Make", "type": "file", "properties": {"action": "mkdir", "dest": "made"}});
    run_steps(&ada, "first", &json!([step])).success();
    assert_eq!(quota(&ada, "", "extension_workspaces"), (1, 1));
    let message = run_steps(&ada, "second", &json!([step])).failure(409, "conflict");
    assert_eq!(
        message,
        "the quota `extension_workspaces` of this organization is reached: 1 of 1 are in use, and 1 more would be needed"
    );
}
