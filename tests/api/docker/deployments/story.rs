//! The whole lifecycle: deploy, change, deploy again, roll back.

use launchway_testkit::docker::docker;
use serde_json::{Value, json};

use super::harness::{DEPLOY, Harness, page_of, spec, text};
use crate::shapes::{
    APPLICATION, APPLICATION_STATUS, DEPLOYMENT, DEPLOYMENT_STATUS, LOG, ORGANIZATION, USER, expect_record,
};

super::on_both_engines!(
    an_application_is_deployed_changed_and_rolled_back,
    answers_embed_the_documented_relations
);

fn an_application_is_deployed_changed_and_rolled_back(harness: Harness) {
    let repository = harness.repository("shop");
    let first_commit = repository.commit_page("the first page");
    let (application, first) = harness.create(&spec("shop", &repository));
    let id = text(&application["id"]);
    assert!(["queued", "cloning"].contains(&application["status"]["status"].as_str().unwrap()));
    let first = harness.deployed(&first);
    expect_live(&first, &first_commit);
    assert_eq!(page_of(&first), "the first page");
    assert_eq!(harness.application(&id)["status"]["status"], "running");

    let second_commit = repository.commit_page("the second page");
    let second = harness.deployed(&harness.redeploy(&id));
    expect_live(&second, &second_commit);
    assert_ne!(second["container_id"], first["container_id"]);
    assert_eq!(page_of(&second), "the second page");
    harness.has_containers(1);
    expect_removed(&harness, &first);

    let back = json!({"id": first["id"]});
    let third = harness.admin.post(&format!("{DEPLOY}/rollback"), &back);
    assert_eq!(third.message(), "Rollback created successfully");
    let third = harness.deployed(&text(&third.success()["id"]));
    expect_live(&third, &first_commit);
    assert_eq!(page_of(&third), "the first page");
    harness.has_containers(1);
    expect_removed(&harness, &second);
    harness.has_no_work_left();

    let list = harness.admin.get(&format!("{DEPLOY}/deployments?id={id}")).success();
    let listed: Vec<_> = list["deployments"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(listed, [&third["id"], &second["id"], &first["id"]]);
    expect_audited(&harness, &id, &[&first, &second, &third]);
}

/// Asserts the fields of a live deployment.
fn expect_live(deployment: &Value, commit: &str) {
    assert_eq!(deployment["commit_hash"], commit);
    assert_eq!(deployment["container_status"], "running");
    let image = format!("launchway/{}:{}", text(&deployment["application_id"]), text(&deployment["id"]));
    assert_eq!(deployment["container_image"], image);
    let container = text(&deployment["container_id"]);
    let name = docker(&["container", "inspect", "--format", "{{.Name}}", &container]);
    assert_eq!(deployment["container_name"], name.trim_start_matches('/'));
    let running = docker(&["container", "inspect", "--format", "{{.State.Running}}", &container]);
    assert_eq!(running, "true");
}

fn expect_removed(harness: &Harness, deployment: &Value) {
    crate::wait::until("the end of the old container", || {
        let now = harness.deployment(&text(&deployment["id"]));
        assert_eq!(now["status"]["status"], "deployed");
        (now["container_status"] == "removed").then_some(())
    });
}

/// Asserts that the audit log contains who requested what, and the result.
fn expect_audited(harness: &Harness, application: &str, deployments: &[&Value]) {
    let activities = harness.admin.get("/api/v1/audit/logs?page_size=100").success();
    let activities = activities["activities"].as_array().unwrap();
    let entries_of = |resource: &str, id: &str| -> Vec<(String, String)> {
        let about = |one: &&Value| one["resource"] == resource && one["resource_id"] == id;
        let found = activities.iter().rev().filter(about);
        found.map(|one| (text(&one["actor"]), text(&one["message"]))).collect()
    };
    let created = entries_of("application", application);
    assert_eq!(created.len(), 1, "{created:?}");
    assert!(created[0].0 == "ada" && created[0].1.contains("created the application `shop`"), "{created:?}");
    for (number, deployment) in deployments.iter().enumerate() {
        let entries = entries_of("deployment", &text(&deployment["id"]));
        let (who, what) = entries.last().unwrap();
        assert!(who == "launchway" && what.contains("deployed the application `shop`"), "{entries:?}");
        // The first one comes with the application.
        assert_eq!(entries.len(), if number == 0 { 1 } else { 2 }, "{entries:?}");
        assert!(number == 0 || entries[0].0 == "ada", "{entries:?}");
    }
}

fn answers_embed_the_documented_relations(harness: Harness) {
    let repository = harness.repository("shop");
    repository.commit_page("a page");
    let mut spec = spec("shop", &repository);
    spec["environment_variables"] = json!({"GREETING": "a = \"b\"\nc"});
    spec["labels"] = json!(["one", "two"]);
    let answer = harness.admin.post(DEPLOY, &spec);
    assert_eq!(answer.message(), "Deployment created successfully");
    let application = answer.success();
    expect_whole(&application);
    assert_eq!(application["environment_variables"], r#"{"GREETING":"a = \"b\"\nc"}"#);
    assert_eq!(
        (&application["base_path"], &application["dockerfile_path"], &application["proxy_server"]),
        (&json!("/"), &json!("Dockerfile"), &json!("launchway"))
    );
    let domains = json!(["shop.ada-s-team.localhost"]);
    assert_eq!((&application["domain"], &application["domains"]), (&json!(""), &domains));
    assert_eq!((&application["labels"], &application["auto_deploy"]), (&json!(["one", "two"]), &json!(true)));

    let id = text(&application["id"]);
    let deployment = text(&application["deployments"][0]["id"]);
    harness.deployed(&deployment);
    expect_whole(&harness.application(&id));
    expect_endpoint_11(&harness, &deployment);
    expect_endpoint_10(&harness, &id);
}

/// Asserts that an application has its organization, user, status, deployments with their status, and log
/// lines.
fn expect_whole(application: &Value) {
    expect_record(application, APPLICATION);
    expect_record(&application["organization"], ORGANIZATION);
    assert_eq!(application["organization"]["users"], json!([]));
    expect_record(&application["user"], USER);
    assert_eq!(
        (&application["user"]["organizations"], &application["user"]["organization_users"]),
        (&json!([]), &json!([]))
    );
    expect_record(&application["status"], APPLICATION_STATUS);
    assert_eq!(
        (&application["status"]["application_id"], &application["status"]["application"]),
        (&application["id"], &Value::Null)
    );
    let deployments = application["deployments"].as_array().unwrap();
    assert!(!deployments.is_empty());
    for deployment in deployments {
        expect_record(deployment, DEPLOYMENT);
        expect_status(deployment);
        assert_eq!((&deployment["application"], &deployment["logs"]), (&Value::Null, &json!([])));
    }
    expect_lines(application["logs"].as_array().unwrap());
}

fn expect_endpoint_11(harness: &Harness, id: &str) {
    let answer = harness.admin.get(&format!("{DEPLOY}/deployments/{id}"));
    assert_eq!(answer.message(), "Deployment retrieved successfully");
    let deployment = answer.success();
    expect_record(&deployment, DEPLOYMENT);
    expect_status(&deployment);
    let application = &deployment["application"];
    expect_record(application, APPLICATION);
    expect_record(&application["organization"], ORGANIZATION);
    expect_record(&application["user"], USER);
    expect_record(&application["status"], APPLICATION_STATUS);
    assert_eq!((&application["deployments"], &application["logs"]), (&json!([]), &json!([])));
    // Only the endpoints that are about an application show its variables.
    assert_eq!(
        (&application["environment_variables"], &application["build_variables"]),
        (&json!("{}"), &json!("{}"))
    );
    let lines = deployment["logs"].as_array().unwrap();
    expect_lines(lines);
    assert!(lines.iter().all(|line| line["application_deployment_id"] == id));
    assert_eq!(text(&lines[0]["log"]), "Deployment requested by ada");
}

fn expect_endpoint_10(harness: &Harness, application: &str) {
    let answer = harness.admin.get(&format!("{DEPLOY}/logs/{application}"));
    assert_eq!(answer.message(), "Logs retrieved successfully");
    let data = answer.success();
    let mut fields: Vec<_> = data.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["logs", "page", "page_size", "pagination", "total_count", "total_pages"]);
    let lines = data["logs"].as_array().unwrap();
    assert!(!lines.is_empty());
    for line in lines {
        expect_record(line, LOG);
        let (whole, deployment) = (&line["application"], &line["application_deployment"]);
        expect_record(whole, APPLICATION);
        assert_eq!(
            (&whole["environment_variables"], &whole["build_variables"]),
            (&json!("{}"), &json!("{}"))
        );
        for cut in ["organization", "user", "status"] {
            assert_eq!(whole[cut], Value::Null);
        }
        expect_record(deployment, DEPLOYMENT);
        assert_eq!((&deployment["application"], &deployment["status"]), (&Value::Null, &Value::Null));
    }
    let bare = harness.admin.get(&format!("{DEPLOY}/logs/{application}?embed=none")).success();
    expect_lines(bare["logs"].as_array().unwrap());
}

fn expect_status(deployment: &Value) {
    let status = &deployment["status"];
    expect_record(status, DEPLOYMENT_STATUS);
    assert_eq!(status["application_deployment_id"], deployment["id"]);
    assert_eq!(status["application_deployment"], Value::Null);
}

/// Asserts that lines are complete and contain nothing else.
fn expect_lines(lines: &[Value]) {
    assert!(!lines.is_empty());
    for line in lines {
        expect_record(line, LOG);
        assert_eq!((&line["application"], &line["application_deployment"]), (&Value::Null, &Value::Null));
    }
}
