//! Retention of deployments, and the required free disk space.

use serde_json::json;

use super::harness::{DEPLOY, Harness, spec};
use crate::{docker::front::site, wait::until};

/// A short grace period of orphans.
const GRACE: (&str, &str) = ("LAUNCHWAY_ORPHAN_GRACE", "4s");

#[test]
fn keeps_the_newest_images_and_the_live_one_for_rollbacks() {
    let mut harness = Harness::on_sqlite(&[("LAUNCHWAY_KEEP_IMAGES", "2"), GRACE]);
    let repository = harness.repository("web");
    repository.commit_page("version 1");
    let (application, first) = harness.create_live(&spec("web", &repository));
    let mut deployments = vec![first["id"].as_str().unwrap().to_owned()];
    for number in 2..=4 {
        repository.commit_page(&format!("version {number}"));
        let id = harness.redeploy(&application);
        harness.deployed(&id);
        deployments.push(id);
    }
    harness.server.restart();
    harness.reconnect();
    until("two images", || (harness.engine.images().len() == 2).then_some(()));

    let back = |to: &str| harness.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": to}));
    for gone in &deployments[..2] {
        let said = back(gone).failure(409, "conflict");
        assert!(said.contains("was removed: only the newest 2 versions are kept"), "{said}");
    }
    let again = back(&deployments[2]).success()["id"].as_str().unwrap().to_owned();
    let deployment = harness.deployed(&again);
    assert_eq!(super::harness::page_of(&deployment), "version 3");
}

#[test]
fn the_newest_releases_of_a_site_stay() {
    let mut harness = Harness::on_sqlite(&[("LAUNCHWAY_KEEP_IMAGES", "1"), GRACE]);
    let repository = harness.repository("site");
    repository.write("index.html", "1").commit();
    let (application, first) = harness.create_live(&site("site", &repository));
    let first = first["id"].as_str().unwrap().to_owned();
    repository.write("index.html", "2").commit();
    let second = harness.redeploy(&application);
    harness.deployed(&second);
    let releases = |harness: &Harness| {
        let folder = harness.server.data_dir().join("sites").join(&application);
        let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<Vec<_>>()
    };
    harness.server.restart();
    harness.reconnect();
    until("one release", || (releases(&harness) == [second.clone()]).then_some(()));
    let back = harness.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": first}));
    back.failure(409, "conflict");
}

#[test]
fn nothing_is_built_when_the_disk_is_nearly_full() {
    let mut harness = Harness::on_sqlite(&[("LAUNCHWAY_MIN_FREE_DISK", "1000000g")]);
    let repository = harness.repository("site");
    repository.write("index.html", "1").commit();
    let (application, first) = harness.create(&site("site", &repository));
    let story = harness.failed(&first);
    assert!(
        story.contains("of free disk space") && story.contains("1024000000 MiB have to be free"),
        "{story}"
    );
    harness.server.terminate();
    harness.server.set("LAUNCHWAY_MIN_FREE_DISK", "1m");
    harness.server.restart();
    harness.reconnect();
    let second = harness.redeploy(application["id"].as_str().unwrap());
    harness.deployed(&second);
}
