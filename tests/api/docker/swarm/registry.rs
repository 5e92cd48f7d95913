//! Images of old versions, and of deleted applications, are deleted from the registry.

use std::process::Stdio;

use super::harness::SwarmHarness;
use crate::{
    docker::deployments::harness::{DEPLOY, text},
    wait::until,
};

#[test]
fn images_leave_the_registry_with_their_versions() {
    let settings = [("LAUNCHWAY_KEEP_IMAGES", "1"), ("LAUNCHWAY_ORPHAN_GRACE", "4s")];
    let mut swarm = SwarmHarness::start_with(1, &settings);
    swarm.lab.stop_registry();
    swarm.lab.start_registry_with(false);
    let repository = swarm.repository("web");
    repository.commit_page("one");
    let (id, first) = swarm.harness.create_live(&swarm.spec("web", 1));
    repository.commit_page("two");
    let second = swarm.harness.redeploy(&id);
    swarm.harness.deployed(&second);

    // A registry that deletes nothing keeps nobody from deploying.
    until("a refusal in the log", || {
        swarm.harness.server.log().contains("registry refuses to delete images").then_some(())
    });
    assert_eq!(swarm.lab.tags_of(&id), [text(&first["id"]), second]);
    let doctor = |swarm: &SwarmHarness| {
        let output = swarm.harness.server.command(&["doctor"]).stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    let told = doctor(&swarm);
    assert!(told.contains("REGISTRY_STORAGE_DELETE_ENABLED=true"), "{told}");

    swarm.lab.stop_registry();
    swarm.lab.start_registry();
    repository.commit_page("three");
    let third = swarm.harness.redeploy(&id);
    swarm.harness.deployed(&third);
    until("one tag", || (swarm.lab.tags_of(&id) == [third.clone()]).then_some(()));
    assert_eq!(swarm.page(), Ok("three".to_owned()));
    let told = doctor(&swarm);
    assert!(told.contains("deletes images that are no longer needed"), "{told}");

    // An application can be deleted while the registry is down.
    swarm.lab.stop_registry();
    swarm.harness.admin.delete(&format!("{DEPLOY}?id={id}")).success();
    until("an outage in the log", || {
        swarm.harness.server.log().contains("images could not be deleted from the registry").then_some(())
    });
    swarm.lab.start_registry();
    until("no tag", || swarm.lab.tags_of(&id).is_empty().then_some(()));
}
