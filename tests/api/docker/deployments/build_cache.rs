//! Builds that take unchanged steps from earlier builds, and builds that do not.

use launchway_testkit::docker::base_image;
use serde_json::{Value, json};

use super::stage::{DEPLOY, Stage, page_of, spec, text};

super::on_both_stages!(cached_steps_outlive_a_restart_unless_ignored);

/// Requests a deployment with this use of the cache, and returns the page of the version.
fn page_with(stage: &Stage, id: &str, no_cache: Value) -> String {
    let answer = stage.admin.post(&format!("{DEPLOY}/redeploy"), &json!({"id": id, "no_cache": no_cache}));
    page_of(&stage.deployed(&text(&answer.success()["id"])))
}

fn cached_steps_outlive_a_restart_unless_ignored(mut stage: Stage) {
    let repository = stage.repository("shop");
    let dockerfile = format!(
        "FROM {}\nRUN cat /proc/sys/kernel/random/uuid > /www/index.html\n\
         CMD [\"httpd\", \"-f\", \"-p\", \"8080\", \"-h\", \"/www\"]\n",
        base_image()
    );
    repository.write("Dockerfile", dockerfile).commit();
    let (id, live) = stage.create_live(&spec("shop", &repository));
    let first = page_of(&live);
    assert_eq!(page_with(&stage, &id, json!(false)), first);
    stage.server.restart();
    stage.reconnect();
    assert_eq!(page_with(&stage, &id, json!(null)), first);

    let anew = page_with(&stage, &id, json!(true));
    assert_ne!(anew, first);
    assert_eq!(page_with(&stage, &id, json!(false)), anew);

    let newest = stage.admin.get(&format!("{DEPLOY}/deployments?id={id}")).success();
    let rebuilt = text(&newest["deployments"][1]["id"]);
    assert!(stage.story_of(&rebuilt).contains("Deployment without the build cache requested by"));
    let wrong = stage.admin.post(&format!("{DEPLOY}/redeploy"), &json!({"id": id, "no_cache": "yes"}));
    assert_eq!(wrong.status, 400);
}
