//! `app`, `deployments`, `rollback`, `cancel`, `restart`, `stop` and `open`.

use std::{fs, os::unix::fs::PermissionsExt as _};

use launchway_testkit::{repository::web_server, wait::until};

use crate::{
    harness::{Harness, text},
    person::Person,
};

fn page(harness: &Harness) -> String {
    harness.server.visitor("shop.ada-s-team.localhost").try_send("GET", "/", None).unwrap().text
}

#[test]
fn an_application_is_shown_changed_and_deleted() {
    let harness = Harness::new();
    let (ada, repository) = harness.site("shop");
    let shown = ada.runs(&["app", "show", "shop"]);
    let words = shown.succeeded();
    for text in [
        "shop (production), running",
        "Address         http://shop.ada-s-team.localhost:",
        "static",
        "deployed",
    ] {
        assert!(words.contains(text), "{text:?} in {shown}");
    }
    assert!(words.contains(repository.path().to_str().unwrap()), "{shown}");
    assert!(!words.contains("Health check") && !words.contains("Build file"), "{shown}");

    let nothing = ada.runs(&["app", "edit", "shop"]);
    assert!(nothing.failed(2).contains("--branch"), "{nothing}");
    let output = ada.runs(&[
        "app",
        "edit",
        "shop",
        "--no-deploy",
        "--label",
        "a",
        "--label",
        "b",
        "--auto-deploy",
        "false",
    ]);
    assert_eq!(output.succeeded(), "");
    let known = ada.runs(&["app", "show", "--output", "json"]).json();
    assert_eq!((&known["labels"], &known["auto_deploy"]), (&serde_json::json!(["a", "b"]), &false.into()));
    assert_eq!(known["deployments"].as_array().unwrap().len(), 1);
    let output = ada.runs(&["app", "edit", "shop", "--domain", "shop.example.com"]);
    assert!(output.succeeded().contains("Live at http://shop.example.com:"), "{output}");
    let refused = ada.runs(&["app", "edit", "shop", "--branch", "no such..branch"]);
    assert!(refused.failed(2).contains("branch must be"), "{refused}");

    let unasked = ada.runs(&["app", "delete", "shop"]);
    assert!(unasked.failed(2).contains("--yes"), "{unasked}");
    ada.runs(&["app", "delete", "shop", "--yes"]).succeeded();
    ada.runs(&["app", "show", "shop"]).failed(4);
    assert!(ada.runs(&["apps"]).succeeded().contains("No applications"));
}

#[test]
fn one_goes_back_and_forth_between_versions() {
    let harness = Harness::new();
    let (ada, repository) = harness.site("shop");
    let alone = ada.runs(&["rollback", "shop"]);
    assert!(alone.failed(5).contains("no previous version"), "{alone}");
    repository.write("index.html", "the second page\n").commit();
    ada.runs(&["deploy"]).succeeded();
    assert_eq!(page(&harness), "the second page\n");

    let output = ada.runs(&["rollback"]);
    assert!(output.succeeded().starts_with("Live at "), "{output}");
    assert_eq!(page(&harness), "the first page\n");
    let listed = ada.runs(&["deployments", "shop", "--output", "json"]).json();
    let ids: Vec<_> = listed["deployments"].as_array().unwrap().iter().map(|one| text(&one["id"])).collect();
    assert_eq!(ids.len(), 3);
    ada.runs(&["rollback", "shop", "--to", &ids[1]]).succeeded();
    assert_eq!(page(&harness), "the second page\n");
    ada.runs(&["rollback", &ids[2]]).succeeded();
    assert_eq!(page(&harness), "the first page\n");
    let id = text(&listed["deployments"][0]["application_id"]);
    ada.runs(&["rollback", &id]).succeeded();
    assert_eq!(page(&harness), "the second page\n");

    let shown = ada.runs(&["deployments"]);
    let lines: Vec<_> = shown.succeeded().lines().collect();
    assert_eq!(lines.len(), 7, "{shown}");
    assert!(lines[0].starts_with("DEPLOYMENT") && lines[6].starts_with(&ids[2]), "{shown}");
    let pages = ada.runs(&["deployments", "-n", "4"]);
    assert!(pages.succeeded().ends_with("6 in total; --page 2 shows more\n"), "{pages}");
    assert_eq!(ada.runs(&["deployments", "-n", "4", "--page", "2"]).succeeded().lines().count(), 3);

    let other = harness.repository("other");
    other.write("index.html", "another page\n").commit();
    let ada = ada.standing_in(other.path());
    ada.runs(&["deploy", "--yes"]).succeeded();
    let wrong = ada.runs(&["rollback", "other", "--to", &ids[2]]);
    assert!(wrong.failed(2).contains("is not a deployment of other"), "{wrong}");
    ada.runs(&["rollback", "other", "--to", "yesterday"]).failed(2);
    ada.runs(&["rollback", "01900000-0000-7000-8000-000000000000"]).failed(4);
}

#[test]
fn what_is_running_is_cancelled() {
    let harness = Harness::new();
    let repository = harness.repository("shop");
    repository.write("Dockerfile", web_server("RUN sleep 30")).write("index.html", "a page\n").commit();
    let ada = Person::ada(&harness.server).standing_in(repository.path());
    ada.runs(&["init", "--yes"]).succeeded();
    let deployment = ada.runs(&["deploy", "--detach", "--output", "json"]).json();
    let output = ada.runs(&["cancel"]);
    assert!(output.succeeded().contains(&text(&deployment["id"])), "{output}");
    until("the end", || {
        let listed = ada.runs(&["deployments", "--output", "json"]).json();
        (listed["deployments"][0]["status"]["status"] == "cancelled").then_some(())
    });
    let nothing = ada.runs(&["cancel", "shop"]);
    assert!(nothing.failed(5).contains("no deployment of shop is running"), "{nothing}");
    // By the id of the deployment, which has finished.
    assert_ne!(ada.runs(&["cancel", &text(&deployment["id"])]).code, Some(0));
    let second = ada.runs(&["deploy", "shop", "--detach", "--output", "json"]).json();
    ada.runs(&["cancel", &text(&second["id"])]).succeeded();
}

#[test]
fn an_application_is_stopped_started_and_opened() {
    let harness = Harness::new();
    let (ada, _) = harness.site("shop");
    let state =
        |ada: &Person| text(&ada.runs(&["app", "show", "--output", "json"]).json()["status"]["status"]);
    ada.runs(&["stop"]).succeeded();
    until("that it stops", || (state(&ada) == "stopped").then_some(()));
    ada.runs(&["restart", "shop"]).succeeded();
    until("that it runs", || (state(&ada) == "running").then_some(()));

    // A fake browser that records the URL.
    let programs = ada.home().join("programs");
    let shown = ada.home().join("shown");
    fs::create_dir(&programs).unwrap();
    let browser = programs.join("xdg-open");
    fs::write(&browser, format!("#!/bin/sh\necho \"$@\" > '{}'\n", shown.display())).unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let ada = ada.with("PATH", &path);
    let output = ada.runs(&["open", "shop"]);
    assert!(output.succeeded().starts_with("http://shop.ada-s-team.localhost:"), "{output}");
    assert_eq!(fs::read_to_string(shown).unwrap(), output.stdout);

    let without = ada.with("PATH", "/var/empty");
    let output = without.runs(&["open", "shop"]);
    assert!(
        output.succeeded().starts_with("http://shop.") && output.stderr.contains("No browser"),
        "{output}"
    );
    assert_eq!(without.runs(&["open", "shop", "--output", "json"]).json().as_array().unwrap().len(), 1);
}
