//! Organizations, their members, and the audit log.

use std::fs;

use launchway_testkit::{
    people::join,
    server::{ADMIN_EMAIL, TestServer},
};

use crate::person::Person;

#[test]
fn an_organization_is_made_chosen_renamed_and_deleted() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::ada(&server);
    let id =
        ada.runs(&["org", "create", "Engines", "--description", "for engines"]).succeeded().trim().to_owned();
    assert!(ada.runs(&["whoami"]).succeeded().contains("in ada's Team"));
    assert!(ada.runs(&["whoami", "--organization", "engines"]).succeeded().contains("in Engines"));
    ada.runs(&["org", "create", "engines"]).failed(5);

    ada.runs(&["org", "use", "Engines"]).succeeded();
    assert!(ada.runs(&["whoami"]).succeeded().contains("in Engines"));
    let listed = ada.runs(&["org", "list"]);
    let marked: Vec<&str> = listed.succeeded().lines().filter(|line| line.starts_with('*')).collect();
    assert!(matches!(marked[..], [one] if one.contains("Engines") && one.contains("admin")), "{listed}");
    let shown = ada.runs(&["org", "show"]);
    assert!(shown.succeeded().starts_with("Engines: for engines\n") && shown.stdout.contains(&id), "{shown}");
    assert!(ada.runs(&["org", "show", "ada's Team"]).succeeded().starts_with("ada's Team\n"));

    // It is remembered by its id, which a new name does not change.
    ada.runs(&["org", "rename", "Machines"]).succeeded();
    assert!(ada.runs(&["whoami"]).succeeded().contains("in Machines"));

    ada.runs(&["org", "delete", "Machines"]).failed(2);
    ada.runs(&["org", "delete", "Machines", "--yes"]).succeeded();
    assert!(ada.runs(&["whoami"]).succeeded().contains("in ada's Team"));
    assert!(!fs::read_to_string(ada.contexts_file()).unwrap().contains(&id));
}

#[test]
fn usage_shows_each_quota_with_its_limit() {
    let server = TestServer::configured(&[
        ("LAUNCHWAY_QUOTA_APPLICATIONS", "7"),
        ("LAUNCHWAY_QUOTA_LOG_STREAMS", "0"),
        ("LAUNCHWAY_ORGANIZATION_LOG_SIZE", "1536m"),
    ]);
    server.admin();
    let ada = Person::ada(&server);
    let shown = ada.runs(&["org", "usage"]);
    let row = |name: &str| -> Vec<String> {
        let line = shown.succeeded().lines().find(|line| line.split_whitespace().next() == Some(name));
        line.unwrap_or_else(|| panic!("{shown}")).split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(row("QUOTA"), ["QUOTA", "USED", "LIMIT", "UNIT"]);
    assert_eq!(row("applications"), ["applications", "0", "7", "count"]);
    assert_eq!(row("log_streams"), ["log_streams", "0", "none", "count"]);
    assert_eq!(row("log_bytes"), ["log_bytes", "0.0", "MiB", "1.5", "GiB", "bytes"]);
    let usage = ada.runs(&["org", "usage", "ada's Team", "--output", "json"]).json();
    assert_eq!(usage["quotas"][0]["limit"], 7);
    ada.runs(&["org", "usage", "Nowhere"]).failed(4);
}

#[test]
fn another_organization_can_be_chosen_if_the_current_is_gone() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let ada = Person::ada(&server);
    let id = ada.runs(&["org", "create", "Engines"]).succeeded().trim().to_owned();
    ada.runs(&["org", "use", "Engines"]).succeeded();
    admin.delete(&format!("/api/v1/organizations?id={id}")).success();
    let output = ada.runs(&["apps"]);
    assert!(output.failed(4).contains("ada's Team"), "{output}");
    ada.runs(&["org", "list"]).succeeded();
    ada.runs(&["org", "use", "ada's Team"]).succeeded();
    ada.runs(&["apps"]).succeeded();
}

#[test]
fn org_use_fails_with_a_token_in_the_environment() {
    let server = TestServer::on_sqlite();
    server.admin();
    let token = Person::ada(&server).runs(&["tokens", "create", "ci"]).succeeded().trim().to_owned();
    let script = Person::new().with("LAUNCHWAY_URL", server.url()).with("LAUNCHWAY_TOKEN", &token);
    let output = script.runs(&["org", "use", "ada's Team"]);
    assert!(output.failed(2).contains("LAUNCHWAY_ORGANIZATION"), "{output}");
}

#[test]
fn members_come_change_and_go() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::ada(&server);
    let add = ["members", "add", "grace@example.com", "--role", "viewer", "--username", "grace"];
    let added = ada.runs(&add);
    assert!(added.stderr.contains(&format!("launchway join {}", server.url())), "{added}");
    ada.runs(&add).failed(5);
    ada.runs(&["members", "add", "bob@example.com", "--role", "owner"]).failed(2);

    let listed = ada.runs(&["members", "list"]);
    let grace = listed.succeeded().lines().find(|line| line.starts_with("grace ")).unwrap();
    assert!(grace.contains("grace@example.com") && grace.contains("viewer"), "{listed}");
    ada.runs(&["members", "role", "Grace@example.com", "member"]).succeeded();
    let members = ada.runs(&["members", "list", "--output", "json"]).json();
    assert_eq!(members[1]["roles"][0], "member");
    let last = ada.runs(&["members", "role", ADMIN_EMAIL, "viewer"]);
    assert!(last.failed(5).contains("admin"), "{last}");

    ada.runs(&["members", "remove", "grace"]).failed(2);
    ada.runs(&["members", "remove", "grace", "--yes"]).succeeded();
    let gone = ada.runs(&["members", "remove", "grace", "--yes"]);
    assert!(gone.failed(4).contains("members list"), "{gone}");
}

#[test]
fn the_audit_log_is_shown_and_filtered() {
    let server = TestServer::on_sqlite();
    server.admin();
    let ada = Person::ada(&server);
    ada.runs(&["tokens", "create", "ci"]).succeeded();
    let shown = ada.runs(&["audit"]);
    let lines: Vec<&str> = shown.succeeded().lines().collect();
    assert!(lines[0].starts_with("WHEN") && lines[1].contains("ada") && lines[1].contains("ci"), "{shown}");

    let entries = |arguments: &[&str]| {
        let all: Vec<&str> = ["audit", "--output", "json"].iter().chain(arguments).copied().collect();
        ada.runs(&all).json()["activities"].as_array().unwrap().len()
    };
    assert!(entries(&[]) >= 3);
    assert_eq!(entries(&["--resource", "token", "--action", "create", "--actor", "ADA"]), 1);
    assert_eq!(entries(&["--actor", "nobody"]), 0);
    assert_eq!(entries(&["--search", "the API token `ci`"]), 1);
    assert_eq!(entries(&["--from", "2100-01-01T00:00:00Z"]), 0);
    assert_eq!(entries(&["--to", "2000-01-01T00:00:00Z"]), 0);
    assert_eq!(entries(&["--page", "99"]), 0);
    let wrong = ada.runs(&["audit", "--action", "dance"]);
    assert!(wrong.failed(2).contains("action"), "{wrong}");
    // The check of the server's files is a verb of the same name.
    let verified = server.command(&["audit", "verify"]).output().unwrap();
    assert!(verified.status.success(), "{verified:?}");
    let mixed = server.command(&["audit", "--actor", "ada", "verify"]).output().unwrap();
    assert_eq!(mixed.status.code(), Some(2), "{mixed:?}");
}

#[test]
fn an_invitation_is_accepted_or_declined() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let ada = Person::ada(&server);
    let grace = join(&server, &admin, "grace@example.com", "viewer");
    let client = Person::new();
    client
        .runs_with(&["login", server.url(), "--email", &grace.email], &format!("{}\n", grace.password))
        .succeeded();
    let none = client.runs(&["invitations"]);
    assert!(none.to_string().contains("No invitations"), "{none}");
    ada.runs(&["org", "create", "Engines"]).succeeded();
    let add = ["members", "add", "grace@example.com", "--role", "member", "--organization", "Engines"];
    let invited = ada.runs(&add);
    let token = invited.succeeded().to_owned();
    assert!(token.starts_with("lwv_") && token.lines().count() == 1, "{invited}");
    assert!(
        invited.stderr.contains("not verified") && invited.stderr.contains("invitations accept"),
        "{invited}"
    );

    let listed = client.runs(&["invitations", "list"]);
    let line = listed.succeeded().lines().find(|line| line.starts_with("Engines ")).unwrap();
    assert!(line.contains("member") && line.contains("ada") && line.contains("needed"), "{listed}");
    client.runs_with(&["invitations", "accept", "Engines"], "lwv_wrong\n").failed(3);
    client.runs(&["invitations", "accept", "Nobody's"]).failed(4);
    client.runs(&["invitations", "decline", "engines"]).succeeded();
    client.runs_with(&["invitations", "accept", "Engines"], &token).failed(4);

    let token = ada.runs(&add).succeeded().to_owned();
    let accepted = client.runs_with(&["invitations", "accept", "Engines"], &token);
    accepted.succeeded();
    assert!(accepted.stderr.contains("You are now member of Engines"), "{accepted}");
    assert!(client.runs(&["org", "list"]).succeeded().contains("Engines"));

    ada.runs(&["org", "create", "Looms"]).succeeded();
    ada.runs(&["members", "add", "grace@example.com", "--role", "viewer", "--organization", "Looms"])
        .succeeded();
    ada.runs(&["members", "remove", "grace", "--organization", "Looms"]).failed(2);
    let withdrawn = ada.runs(&["members", "remove", "grace", "--organization", "Looms", "--yes"]);
    withdrawn.succeeded();
    assert!(withdrawn.stderr.contains("Withdrew the invitation of "), "{withdrawn}");
    client.runs(&["invitations", "decline", "Looms"]).failed(4);
}
