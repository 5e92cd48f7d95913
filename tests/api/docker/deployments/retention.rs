//! Retention of deployments, and the required free disk space.

use serde_json::json;

use super::stage::{DEPLOY, Stage, spec};
use crate::{docker::front::site, wait::until};

/// A short grace period of orphans.
const GRACE: (&str, &str) = ("LAUNCHWAY_ORPHAN_GRACE", "4s");

#[test]
fn keeps_the_newest_images_and_the_live_one_for_rollbacks() {
    let mut stage = Stage::on_sqlite(&[("LAUNCHWAY_KEEP_IMAGES", "2"), GRACE]);
    let repository = stage.repository("web");
    repository.commit_page("version 1");
    let (application, first) = stage.create_live(&spec("web", &repository));
    let mut deployments = vec![first["id"].as_str().unwrap().to_owned()];
    for number in 2..=4 {
        repository.commit_page(&format!("version {number}"));
        let id = stage.redeploy(&application);
        stage.deployed(&id);
        deployments.push(id);
    }
    stage.server.restart();
    stage.reconnect();
    until("two images", || (stage.engine.images().len() == 2).then_some(()));

    let back = |to: &str| stage.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": to}));
    for gone in &deployments[..2] {
        let said = back(gone).failure(409, "conflict");
        assert!(said.contains("was removed: only the newest 2 versions are kept"), "{said}");
    }
    let again = back(&deployments[2]).success()["id"].as_str().unwrap().to_owned();
    let deployment = stage.deployed(&again);
    assert_eq!(super::stage::page_of(&deployment), "version 3");
}

#[test]
fn the_newest_releases_of_a_site_stay() {
    let mut stage = Stage::on_sqlite(&[("LAUNCHWAY_KEEP_IMAGES", "1"), GRACE]);
    let repository = stage.repository("site");
    repository.write("index.html", "1").commit();
    let (application, first) = stage.create_live(&site("site", &repository));
    let first = first["id"].as_str().unwrap().to_owned();
    repository.write("index.html", "2").commit();
    let second = stage.redeploy(&application);
    stage.deployed(&second);
    let releases = |stage: &Stage| {
        let folder = stage.server.data_dir().join("sites").join(&application);
        let names = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect::<Vec<_>>()
    };
    stage.server.restart();
    stage.reconnect();
    until("one release", || (releases(&stage) == [second.clone()]).then_some(()));
    let back = stage.admin.post(&format!("{DEPLOY}/rollback"), &json!({"id": first}));
    back.failure(409, "conflict");
}

#[test]
fn nothing_is_built_when_the_disk_is_nearly_full() {
    let mut stage = Stage::on_sqlite(&[("LAUNCHWAY_MIN_FREE_DISK", "1000000g")]);
    let repository = stage.repository("site");
    repository.write("index.html", "1").commit();
    let (application, first) = stage.create(&site("site", &repository));
    let story = stage.failed(&first);
    assert!(
        story.contains("of free disk space") && story.contains("1024000000 MiB have to be free"),
        "{story}"
    );
    stage.server.terminate();
    stage.server.set("LAUNCHWAY_MIN_FREE_DISK", "1m");
    stage.server.restart();
    stage.reconnect();
    let second = stage.redeploy(application["id"].as_str().unwrap());
    stage.deployed(&second);
}
