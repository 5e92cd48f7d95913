//! Builds that take unchanged steps from earlier builds, and builds that do not.

use launchway_testkit::docker::base_image;
use serde_json::{Value, json};

use super::harness::{DEPLOY, Harness, page_of, spec, text};

super::on_both_engines!(cached_steps_outlive_a_restart_unless_ignored);

/// Requests a deployment with this use of the cache, and returns the page of the version.
fn page_with(harness: &Harness, id: &str, no_cache: Value) -> String {
    let answer = harness.admin.post(&format!("{DEPLOY}/redeploy"), &json!({"id": id, "no_cache": no_cache}));
    page_of(&harness.deployed(&text(&answer.success()["id"])))
}

fn cached_steps_outlive_a_restart_unless_ignored(mut harness: Harness) {
    let repository = harness.repository("shop");
    let dockerfile = format!(
        "FROM {}\nRUN cat /proc/sys/kernel/random/uuid > /www/index.html\n\
         CMD [\"httpd\", \"-f\", \"-p\", \"8080\", \"-h\", \"/www\"]\n",
        base_image()
    );
    repository.write("Dockerfile", dockerfile).commit();
    let (id, live) = harness.create_live(&spec("shop", &repository));
    let first = page_of(&live);
    assert_eq!(page_with(&harness, &id, json!(false)), first);
    harness.server.restart();
    harness.reconnect();
    assert_eq!(page_with(&harness, &id, json!(null)), first);

    let anew = page_with(&harness, &id, json!(true));
    assert_ne!(anew, first);
    assert_eq!(page_with(&harness, &id, json!(false)), anew);

    let newest = harness.admin.get(&format!("{DEPLOY}/deployments?id={id}")).success();
    let rebuilt = text(&newest["deployments"][1]["id"]);
    assert!(harness.story_of(&rebuilt).contains("Deployment without the build cache requested by"));
    let wrong = harness.admin.post(&format!("{DEPLOY}/redeploy"), &json!({"id": id, "no_cache": "yes"}));
    assert_eq!(wrong.status, 400);
}
