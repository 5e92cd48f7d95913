//! A secret of the application reaches neither the build, the container nor the API of a preview.

use launchway_testkit::docker::docker;
use serde_json::json;

use super::super::{
    DEPLOY,
    code_hosts::Host,
    deliveries::handled,
    previews::{DONE, previews, set},
    requests::{Happened, Request},
    secret_of,
};
use crate::docker::deployments::{
    harness::{Harness, page_of, spec, text},
    repository::web_server,
};

/// Secrets of the application: in its environment, its build and its commands.
const CANARIES: [&str; 3] = ["canary-of-the-environment", "canary-of-the-build", "canary-of-a-command"];

#[test]
fn production_secrets_do_not_reach_a_preview_on_sqlite() {
    production_secrets_do_not_reach_a_preview(&Harness::on_sqlite(&[]));
}

#[test]
fn production_secrets_do_not_reach_a_preview_on_postgres() {
    production_secrets_do_not_reach_a_preview(&Harness::on_postgres(&[]));
}

fn production_secrets_do_not_reach_a_preview(harness: &Harness) {
    let repository = harness.repository("shop");
    // The build writes all that it gets into the page.
    let more = "ARG SECRET\nARG LEVEL\nARG NAME\nRUN env > /www/index.html";
    repository.write("Dockerfile", web_server(more)).write("index.html", "").commit();
    let mut shop = spec("shop", &repository);
    shop["environment_variables"] =
        json!({"SECRET": CANARIES[0], "REGION": "shared-region", "MODE": "production"});
    shop["build_variables"] = json!({"SECRET": CANARIES[1], "LEVEL": "shared-level"});
    shop["pre_run_command"] = json!(format!("echo {}", CANARIES[2]));
    let (id, live) = harness.create_live(&shop);
    assert!(page_of(&live).contains(CANARIES[1]), "the build of the application has its variables");
    let secret = secret_of(&harness.admin, &id);
    set(
        &harness.admin,
        &id,
        &json!({
            "enabled": true, "shared_variables": ["REGION", "LEVEL"],
            "environment_variables": {"MODE": "preview"}, "build_variables": {"NAME": "preview-build"},
        }),
    );
    repository.git(&["checkout", "--quiet", "-b", "feature/login"]);
    let head = repository.write("added", "").commit();
    let url = format!("file://{}", repository.path().display());
    let request = Request { url: &url, number: 7, branch: "feature/login", head: &head, is_from_fork: false };
    let opened = request.by(Host::GitHub, Happened::Opened).send(&harness.server.client(), &secret);
    assert_eq!(handled(&opened), DONE);
    let listed = previews(&harness.admin, &id);
    let preview = text(&listed[0]["application_id"]);
    let application = harness.application(&preview);
    let deployed = harness.deployed(&text(&application["deployments"][0]["id"]));
    assert_eq!(deployed["commit_hash"], head.as_str());

    let container = text(&deployed["container_id"]);
    let environment = docker(&["container", "inspect", "--format", "{{json .Config}}", &container]);
    let image = docker(&[
        "image",
        "history",
        "--no-trunc",
        "--format",
        "{{.CreatedBy}}",
        &text(&deployed["container_image"]),
    ]);
    let seen = [
        ("container", environment),
        ("page of the build", page_of(&deployed)),
        ("history of the image", image),
        ("application", harness.application(&preview).to_string()),
        ("previews", json!(previews(&harness.admin, &id)).to_string()),
        ("settings", harness.admin.get(&format!("{DEPLOY}/previews/settings?id={id}")).success().to_string()),
        ("log", harness.story_of(&text(&deployed["id"]))),
    ];
    for (name, text) in &seen {
        for canary in CANARIES {
            assert!(!text.contains(canary), "{canary} is in the {name}: {text}");
        }
    }
    let [(_, environment), (_, page), ..] = &seen;
    for own in ["MODE=preview", "REGION=shared-region"] {
        assert!(environment.contains(own), "{environment}");
    }
    for own in ["NAME=preview-build", "LEVEL=shared-level"] {
        assert!(page.contains(own), "{page}");
    }
    // What is not shared any more is gone with the next deployment.
    set(&harness.admin, &id, &json!({"shared_variables": []}));
    let head = repository.write("added", "again").commit();
    let updated = Request { head: &head, ..request }.by(Host::GitHub, Happened::Updated);
    assert_eq!(handled(&updated.send(&harness.server.client(), &secret)), DONE);
    let newest = text(&harness.application(&preview)["deployments"][0]["id"]);
    let deployed = harness.deployed(&newest);
    assert_eq!(deployed["commit_hash"], head.as_str());
    let container = text(&deployed["container_id"]);
    let environment = docker(&["container", "inspect", "--format", "{{json .Config.Env}}", &container]);
    assert!(environment.contains("MODE=preview") && !environment.contains("REGION"), "{environment}");
}
