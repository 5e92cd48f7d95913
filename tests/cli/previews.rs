//! Previews of pull and merge requests.

use launchway_testkit::server::TestServer;
use serde_json::json;

use crate::person::Person;

/// Creates an application of a repository, and reports a request from a fork.
fn with_a_waiting_request(server: &TestServer) {
    let admin = server.admin();
    let spec = json!({
        "name": "web", "repository": "https://git.example.com/web.git", "branch": "main", "port": 80,
        "environment": "production", "build_pack": "static",
    });
    let web = admin.post("/api/v1/deploy/application", &spec).success();
    let id = web["id"].as_str().unwrap();
    let path = format!("/api/v1/deploy/application/previews/settings?id={id}");
    admin.put(&path, &json!({"enabled": true})).success();
    let secret = admin.get(&format!("/api/v1/deploy/application/webhook-secret?id={id}")).success();
    let host = server
        .client()
        .with_header("x-gitlab-event", "Merge Request Hook")
        .with_header("x-gitlab-token", secret["secret"].as_str().unwrap());
    let request = json!({
        "object_kind": "merge_request", "project": {"git_http_url": "https://git.example.com/web"},
        "object_attributes": {
            "iid": 7, "action": "open", "source_branch": "next", "target_branch": "main",
            "source_project_id": 16, "target_project_id": 15, "last_commit": {"id": "a".repeat(40)},
        },
    });
    host.post("/api/v1/webhook", &request).success();
}

#[test]
fn settings_are_changed_and_shown_without_values() {
    let server = TestServer::on_sqlite();
    with_a_waiting_request(&server);
    let ada = Person::ada(&server);
    let changed = ada.runs(&[
        "previews",
        "set",
        "web",
        "--off",
        "--limit",
        "3",
        "--lifetime",
        "48",
        "--share",
        "A",
        "--share",
        "B",
        "--env",
        "TOKEN=canary",
        "--run-commands",
        "true",
    ]);
    let text = changed.succeeded();
    for line in [
        "previews: off",
        "limit: 3",
        "lifetime: 48 hours",
        "shared variables: A, B",
        "run commands: yes",
        "environment variables: TOKEN",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
    assert!(!text.contains("canary"), "{text}");
    assert_eq!(ada.runs(&["previews", "settings", "web"]).succeeded(), text);
    let shown = ada.runs(&["previews", "settings", "web", "--output", "json"]).json();
    assert_eq!((&shown["enabled"], &shown["limit"]), (&json!(false), &json!(3)));
    let cleared = ada.runs(&["previews", "set", "web", "--share-none", "--output", "json"]).json();
    assert_eq!(cleared["shared_variables"], json!([]));
    ada.runs(&["previews", "set", "web", "--limit", "51"]).failed(2);
    ada.runs(&["previews", "set", "web", "--on", "--off"]).failed(2);
    let nothing = ada.runs(&["previews", "set", "web"]);
    assert!(nothing.failed(2).contains("there is nothing to change"), "{nothing}");
}

#[test]
fn a_request_from_a_fork_is_listed_and_approved() {
    let server = TestServer::on_sqlite();
    with_a_waiting_request(&server);
    let ada = Person::ada(&server);
    let listed = ada.runs(&["previews", "list", "web"]);
    let text = listed.succeeded();
    assert!(text.contains("waits for approval") && text.contains("aaaaaaa"), "{text}");
    let asked = ada.runs(&["previews", "approve", "web", "7"]);
    assert!(asked.failed(2).contains("--yes"), "{asked}");
    ada.runs(&["previews", "approve", "web", "8", "--yes"]).failed(4);
    let other = "b".repeat(40);
    ada.runs(&["previews", "approve", "web", "7", "--commit", &other, "--yes"]).failed(5);
    let approved = ada.runs(&["previews", "approve", "web", "7", "--yes"]);
    approved.succeeded();
    assert!(approved.stderr.contains("Approved request 7: pr-7-web is deployed"), "{approved}");
    let listed = ada.runs(&["previews", "list", "web", "--output", "json"]).json();
    assert_eq!((&listed[0]["state"], &listed[0]["name"]), (&json!("active"), &json!("pr-7-web")));
}
