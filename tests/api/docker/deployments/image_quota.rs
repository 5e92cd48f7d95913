//! The bytes of an organization's images on a real engine.

use serde_json::{Value, json};

use super::{
    harness::{DEPLOY, Harness, page_of, spec, text},
    repository::web_server,
};
use crate::{docker::front::site, wait::until};

const SETTING: &str = "LAUNCHWAY_QUOTA_IMAGE_SIZE";

fn usage(harness: &Harness) -> Value {
    let usage = harness.admin.get("/api/v1/organizations/usage").success();
    let quotas = usage["quotas"].as_array().unwrap();
    quotas.iter().find(|quota| quota["name"] == "image_bytes").unwrap().clone()
}

fn used(harness: &Harness) -> u64 {
    usage(harness)["used"].as_u64().unwrap()
}

#[test]
fn images_beyond_the_quota_are_refused_and_what_exists_stays() {
    let mut harness = Harness::on_sqlite(&[(SETTING, "6m")]);
    let repository = harness.repository("web");
    repository.commit_page("small");
    let (application, first) = harness.create_live(&spec("web", &repository));
    let of_first = used(&harness);
    let id = harness.engine.images();
    let size = launchway_testkit::docker::docker(&["image", "inspect", "--format", "{{.Size}}", &id[0]]);
    assert_eq!((id.len(), of_first.to_string()), (1, size));
    assert_eq!(
        usage(&harness),
        json!({"name": "image_bytes", "used": of_first, "limit": 6 << 20, "unit": "bytes"})
    );

    // Its size is known when it is built.
    let large = web_server("RUN head -c 5000000 /dev/urandom > /large");
    repository.write("Dockerfile", large).commit();
    let second = harness.redeploy(&application);
    let story = harness.failed(&second);
    let sentence = "the quota `image_bytes` of this organization is reached: ";
    assert!(story.contains(sentence) && story.contains("of 6.0 MiB are in use"), "{story}");
    assert_eq!((harness.engine.images(), used(&harness)), (id.clone(), of_first));
    assert_eq!(page_of(&first), "small");

    // No byte is left: nothing is built that is not refused at once.
    harness.server.terminate();
    harness.server.set(SETTING, "1m");
    harness.server.restart();
    harness.reconnect();
    let redeployed = harness.admin.post(&format!("{DEPLOY}/redeploy"), &json!({"id": application}));
    let message = redeployed.failure(409, "conflict");
    assert!(message.starts_with(sentence) && message.contains("of 1.0 MiB are in use"), "{message}");
    harness.admin.post(DEPLOY, &spec("another", &repository)).failure(409, "conflict");
    let pages = harness.repository("site");
    pages.write("index.html", "a site").commit();
    harness.create_live(&site("site", &pages));
    let back = harness.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": first["id"]})).success();
    harness.deployed(&text(&back["id"]));
    assert_eq!(used(&harness), of_first);

    harness.admin.delete(&format!("{DEPLOY}?id={application}")).success();
    until("no byte of images", || (used(&harness) == 0).then_some(()));
    assert!(harness.engine.images().is_empty());
}
