//! Orphans: resources of deployments that are no longer needed.

use std::sync::Arc;

use launchway_application::reconciler::{UnknownObjects, find_unknown};
use launchway_domain::deployments::{
    ContainerRecord, Deployment, DiscoveredObject, DiscoveredResource, ImageName, ImageRecord, LiveVersion,
    RetentionStatus, StepError,
};
use launchway_testkit::{
    builders::{a_container, a_deployment},
    clock::{NEW_YEAR, moment},
};

use super::{calls, reconcile, running};
use crate::world::{AWAY, World, a_container_of, an_image_size, wait};

/// Longer than the grace period and the following search.
const BEYOND_GRACE: u64 = 125;

/// Returns deployment #1 of the journal.
fn deployment() -> Deployment {
    a_deployment().build()
}

fn container() -> DiscoveredResource {
    a_container_of(&deployment(), running(0), moment(NEW_YEAR))
}

/// Returns another container of [`deployment`], in which a command ran.
fn of_a_command() -> DiscoveredResource {
    let found = container();
    let DiscoveredObject::Container { condition, created_at, .. } = found.what else { unreachable!() };
    let id = a_container("a command's").id;
    let what =
        DiscoveredObject::Container { id, condition, created_at, port: None, service: None, stays_up: true };
    DiscoveredResource { what, ..found }
}

fn image() -> DiscoveredResource {
    let name = ImageName::of(deployment().application_id, deployment().id);
    DiscoveredResource { what: DiscoveredObject::Image { name, size: an_image_size() }, ..container() }
}

/// Returns [`deployment`] as the live version, with the container of [`container`].
fn live_version() -> LiveVersion {
    let DiscoveredObject::Container { id, .. } = container().what else { unreachable!() };
    let mut live = a_deployment().run_by(ContainerRecord { id, ..a_container("web") }).live();
    live.application.status.state = launchway_domain::applications::ApplicationState::Running;
    live
}

fn retention_status(is_live: bool, is_open: bool, is_worth_keeping: bool) -> RetentionStatus {
    RetentionStatus { deployment: deployment().id, is_live, is_open, is_worth_keeping }
}

/// Returns the status of a deployment that is no longer needed.
fn unwanted() -> RetentionStatus {
    retention_status(false, false, false)
}

/// Returns a world with `found`, whose recorded status is `retention_status`.
fn world(found: &[DiscoveredResource], retention_status: Option<RetentionStatus>) -> Arc<World> {
    World::with(|state| {
        state.deployments = vec![deployment()];
        state.found = found.to_vec();
        if retention_status.is_some_and(|retention_status| retention_status.is_live) {
            state.live = vec![live_version()];
        }
        state.last_printed = Some(moment(NEW_YEAR));
        state.retention_status = retention_status.into_iter().collect();
    })
}

/// Removes orphans of `found` with the recorded status `retention_status` after the grace period; returns the
/// removed ones.
async fn removed(found: &[DiscoveredResource], retention_status: Option<RetentionStatus>) -> Vec<String> {
    let world = world(found, retention_status);
    reconcile(&world, wait(BEYOND_GRACE)).await;
    world.journal_of("clear")
}

async fn unknown(world: &World) -> Result<UnknownObjects, StepError> {
    find_unknown(world, world, world).await
}

#[tokio::test(start_paused = true)]
async fn only_what_no_version_or_open_deployment_wants_goes() {
    for is_live in [false, true] {
        for is_open in [false, true] {
            for is_worth_keeping in [false, true] {
                let retention_status = retention_status(is_live, is_open, is_worth_keeping);

                let goes = removed(&[image(), container()], Some(retention_status)).await;

                let mut expected = Vec::new();
                if !is_live && !is_open {
                    expected.push("clear container of #1");
                }
                if !is_open && !is_worth_keeping {
                    expected.push("clear image of #1");
                }
                assert_eq!(goes, expected, "{retention_status:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_orphan_goes_two_minutes_after_it_was_first_seen() {
    let world = world(&[container(), image()], Some(unwanted()));

    reconcile(&world, async {
        wait(119).await;
        assert!(calls(&world).is_empty(), "{:?}", calls(&world));
        wait(2).await;
    })
    .await;

    assert_eq!(
        calls(&world),
        ["drain", "stop attempt 1 of #1", "remove #1", "clear container of #1", "clear image of #1"]
    );
}

#[tokio::test(start_paused = true)]
async fn the_records_of_images_follow_the_engine() {
    let kept = world(&[image()], Some(retention_status(true, false, true)));
    reconcile(&kept, wait(1)).await;
    let record = ImageRecord { deployment: deployment().id, image: an_image_size() };
    assert_eq!(kept.state().images, std::slice::from_ref(&record));

    let removed = world(&[image()], Some(unwanted()));
    removed.state().images = vec![record];
    reconcile(&removed, wait(BEYOND_GRACE)).await;
    assert_eq!(removed.state().images, []);
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_is_wanted_again_has_a_new_grace_period() {
    let world = world(&[image()], Some(unwanted()));

    reconcile(&world, async {
        wait(80).await;
        world.state().retention_status = vec![retention_status(false, false, true)];
        wait(30).await;
        world.state().retention_status = vec![unwanted()];
        wait(100).await;
        assert!(calls(&world).is_empty(), "{:?}", calls(&world));
        wait(60).await;
    })
    .await;

    assert_eq!(calls(&world), ["clear image of #1"]);
}

#[tokio::test(start_paused = true)]
async fn what_no_record_knows_stays_for_ever() {
    let network =
        DiscoveredResource { what: DiscoveredObject::Network("launchway-x-1".to_owned()), ..container() };
    let world = world(&[container(), image(), network.clone()], None);
    world.state().published = vec![deployment().id];

    reconcile(&world, wait(24 * 60 * 60)).await;

    assert!(calls(&world).is_empty(), "{:?}", calls(&world));
    let application = launchway_testkit::ids::id_of("application").into();
    let releases = vec![(application, deployment().id)];
    let expected = UnknownObjects { objects: vec![container(), image(), network], releases };
    assert_eq!(unknown(&world).await, Ok(expected));
}

#[tokio::test(start_paused = true)]
async fn what_the_records_know_is_not_reported_as_unknown() {
    let world = world(&[container(), image()], Some(unwanted()));
    world.state().published = vec![deployment().id];
    assert_eq!(unknown(&world).await, Ok(UnknownObjects::default()));
}

#[tokio::test(start_paused = true)]
async fn unknown_objects_cannot_be_listed_without_an_engine() {
    let world = world(&[container()], None);
    world.state().is_away = true;
    assert_eq!(unknown(&world).await, Err(StepError::Unavailable(AWAY.to_owned())));
}

#[tokio::test(start_paused = true)]
async fn an_orphan_that_cannot_be_removed_keeps_no_other() {
    let world = world(&[container(), image()], Some(unwanted()));
    world.state().fault("stop", 1);

    reconcile(&world, async {
        wait(BEYOND_GRACE).await;
        assert_eq!(world.journal_of("clear"), ["clear image of #1"]);
        wait(30).await;
    })
    .await;

    assert_eq!(world.journal_of("clear container"), ["clear container of #1"], "it is tried again");
}

#[tokio::test(start_paused = true)]
async fn orphans_are_looked_for_again_behind_a_fault() {
    let world = world(&[image()], Some(unwanted()));
    world.state().fault("everything", 1);
    reconcile(&world, wait(30 + BEYOND_GRACE)).await;
    assert_eq!(world.journal_of("clear"), ["clear image of #1"]);
}

#[tokio::test(start_paused = true)]
async fn another_container_of_the_live_deployment_goes_alone() {
    let world = world(&[container(), of_a_command()], Some(retention_status(true, false, true)));

    reconcile(&world, wait(BEYOND_GRACE)).await;

    // The other resources of its attempt belong to the live version.
    assert_eq!(calls(&world), ["clear container of #1"]);
}

#[tokio::test(start_paused = true)]
async fn a_known_release_goes_when_nobody_wants_it() {
    for is_live in [false, true] {
        for is_open in [false, true] {
            for is_worth_keeping in [false, true] {
                let world = World::with(|state| {
                    state.deployments = vec![deployment()];
                    state.published = vec![deployment().id];
                    state.retention_status = vec![retention_status(is_live, is_open, is_worth_keeping)];
                });

                reconcile(&world, async {
                    wait(119).await;
                    assert!(world.journal_of("withdraw the site").is_empty());
                    wait(2).await;
                })
                .await;

                let is_wanted = is_live || is_open || is_worth_keeping;
                let expected: &[&str] = if is_wanted { &[] } else { &["withdraw the site of #1"] };
                assert_eq!(world.journal_of("withdraw the site"), expected, "{is_live} {is_open}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_retirement_is_resumed_at_once() {
    let previous = a_deployment().run_by(a_container("web")).build();
    let world = World::with(|state| {
        state.deployments = vec![previous.clone()];
        state.unretired = vec![previous];
        state.last_printed = Some(moment(NEW_YEAR));
    });

    reconcile(&world, wait(1)).await;

    let journal = world.journal();
    let place = |call: &str| journal.iter().position(|entry| entry.starts_with(call));
    assert!(place("drain") < place("stop #1") && place("stop #1") < place("remove #1"), "{journal:?}");
    assert!(place("remove #1") < place("commit: record web removed"), "{journal:?}");
    assert!(place("commit: record web removed").is_some(), "{journal:?}");
}
