//! Changing and deleting applications.

use serde_json::{Value, json};

use super::harness::{DEPLOY, Harness, page_of, spec, text};
use crate::wait::until;

super::on_both_engines!(a_deleted_application_leaves_nothing_but_its_name_free);

fn live(harness: &Harness, name: &str) -> (String, Value) {
    let repository = harness.repository(name);
    repository.commit_page("a page");
    harness.create_live(&spec(name, &repository))
}

#[test]
fn a_change_is_deployed_unless_it_is_not_to_be() {
    let harness = Harness::on_sqlite(&[]);
    let (id, deployment) = live(&harness, "shop");
    let path = format!("{DEPLOY}?id={id}");
    let changed =
        harness.admin.put(&format!("{path}&redeploy=false"), &json!({"name": "store", "labels": ["a"]}));
    let changed = changed.success();
    assert_eq!((&changed["name"], &changed["labels"]), (&json!("store"), &json!(["a"])));
    assert_eq!(changed["deployments"].as_array().unwrap().len(), 1);
    assert_eq!(changed["deployments"][0]["id"], deployment["id"]);

    let other = harness.repository("other");
    other.commit_page("another page");
    let second = harness.change(&id, &json!({"repository": other.path()}));
    assert_eq!(page_of(&harness.deployed(&second)), "another page");
    harness.has_containers(1);

    harness.admin.put(&path, &json!({"port": 0})).failure(400, "validation_failed");
    harness.admin.put(&path, &json!({"status": "running"})).failure(400, "unknown_field");
    let missing = format!("{DEPLOY}?id=01980000-0000-7000-8000-0000000000ff");
    harness.admin.put(&missing, &json!({"port": 80})).failure(404, "not_found");
    assert_eq!(harness.application(&id)["deployments"].as_array().unwrap().len(), 2);
}

fn a_deleted_application_leaves_nothing_but_its_name_free(harness: Harness) {
    let (id, deployment) = live(&harness, "shop");
    let site = harness.repository("site");
    site.write("index.html", "a site").commit();
    let mut of_site = spec("site", &site);
    of_site["build_pack"] = json!("static");
    of_site["health_check_path"] = json!("");
    let (site_id, _) = harness.create_live(&of_site);
    let releases = harness.server.data_dir().join("sites").join(&site_id);
    assert!(releases.exists());

    let organization = text(&harness.admin.get("/api/v1/organizations").success()["id"]);
    harness.admin.post("/api/v1/organizations", &json!({"name": "Elsewhere"})).success();
    let refused = harness.admin.delete(&format!("/api/v1/organizations?id={organization}"));
    assert!(refused.failure(409, "conflict").contains("application"), "{refused:?}");

    for id in [&id, &site_id] {
        harness.admin.delete(&format!("{DEPLOY}?id={id}")).success();
        harness.admin.get(&format!("{DEPLOY}?id={id}")).failure(404, "not_found");
        harness.admin.delete(&format!("{DEPLOY}?id={id}")).failure(404, "not_found");
        harness.admin.get(&format!("{DEPLOY}/logs/{id}")).failure(404, "not_found");
    }
    harness.admin.get(&format!("{DEPLOY}/deployments/{}", text(&deployment["id"]))).failure(404, "not_found");
    harness.has_containers(0);
    until("the end of images", || harness.engine.images().is_empty().then_some(()));
    until("the end of releases", || (!releases.exists()).then_some(()));
    harness.has_no_work_left();
    assert_eq!(harness.admin.get("/api/v1/deploy/applications").success()["applications"], json!([]));

    let repository = harness.repository("again");
    repository.commit_page("a new page");
    let (_, again) = harness.create_live(&spec("shop", &repository));
    assert_eq!(page_of(&again), "a new page");
}
