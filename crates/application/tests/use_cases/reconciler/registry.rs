//! Images in the registry of the installation.

use std::sync::Arc;

use launchway_domain::{
    deployments::{Deployment, ImageName, RetentionStatus, StepError},
    ids::DeploymentId,
};
use launchway_testkit::builders::a_deployment;
use uuid::Uuid;

use super::reconcile;
use crate::world::{Registry, World, wait};

/// Longer than the grace period and the following look.
const BEYOND_GRACE: u64 = 155;

/// Returns deployment #1 of the journal.
fn deployment() -> Deployment {
    a_deployment().build()
}

fn image(deployment_id: DeploymentId) -> ImageName {
    ImageName::of(deployment().application_id, deployment_id)
}

/// Returns a world whose registry has the image of [`deployment`] and one of an unknown deployment.
fn world(known: Option<(bool, bool, bool)>) -> Arc<World> {
    World::with(|state| {
        state.deployments = vec![deployment()];
        let images = vec![image(deployment().id), image(Uuid::max().into())];
        state.registry = Some(Registry { images, ..Registry::default() });
        let status = known.map(|(is_live, is_open, is_worth_keeping)| RetentionStatus {
            deployment: deployment().id,
            is_live,
            is_open,
            is_worth_keeping,
        });
        state.retention_status = status.into_iter().collect();
    })
}

fn world_with_an_unneeded_image() -> Arc<World> {
    world(Some((false, false, false)))
}

#[tokio::test(start_paused = true)]
async fn only_an_image_that_no_version_needs_is_deleted() {
    for known in [(false, false, true), (false, true, false), (true, false, false), (false, false, false)] {
        let world = world(Some(known));
        reconcile(&world, async {
            wait(119).await;
            assert!(world.journal_of("delete image").is_empty());
            wait(BEYOND_GRACE - 119).await;
        })
        .await;
        let expected: &[&str] =
            if known == (false, false, false) { &["delete image of #1 beside 1"] } else { &[] };
        assert_eq!(world.journal_of("delete image"), expected, "{known:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_of_an_unknown_deployment_stays() {
    let world = world(None);
    reconcile(&world, wait(10 * BEYOND_GRACE)).await;
    assert!(world.journal_of("delete image").is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_application_is_looked_at_when_it_changes() {
    let world = world(Some((true, false, false)));
    reconcile(&world, async {
        wait(10 * BEYOND_GRACE).await;
        assert_eq!(world.journal_of("list images").len(), 1);
        {
            let mut state = world.state();
            state.retention_status[0].is_live = false;
            let changed = deployment().application_id;
            state.registry.as_mut().unwrap().changed = vec![changed];
        }
        wait(30 + BEYOND_GRACE).await;
        assert_eq!(world.journal_of("delete image"), ["delete image of #1 beside 1"]);
        let looks = world.journal_of("list images").len();
        wait(10 * BEYOND_GRACE).await;
        assert_eq!(world.journal_of("list images").len(), looks);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_needed_again_stays() {
    let world = world_with_an_unneeded_image();
    reconcile(&world, async {
        wait(60).await;
        world.state().retention_status[0].is_open = true;
        wait(BEYOND_GRACE).await;
    })
    .await;
    assert!(world.journal_of("delete image").is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_image_with_the_digest_of_another_one_stays() {
    let world = world_with_an_unneeded_image();
    world.state().registry.as_mut().unwrap().shared = vec![image(deployment().id)];
    reconcile(&world, wait(10 * BEYOND_GRACE)).await;
    assert_eq!(world.journal_of("delete image").len(), 1, "it is not tried again");
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_is_down_is_asked_again() {
    let world = world_with_an_unneeded_image();
    world.state().fault("list images", 1);
    world.state().fault("delete image", 1);
    reconcile(&world, wait(60 + BEYOND_GRACE)).await;
    assert_eq!(world.journal_of("delete image"), ["delete image of #1 beside 1"; 2]);
    assert_eq!(world.state().registry.as_ref().unwrap().images.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_registry_that_refuses_is_asked_again_after_an_hour() {
    let world = world_with_an_unneeded_image();
    let refusal = StepError::Rejected("deletion is not enabled".to_owned());
    world.state().failures.insert("delete image", [refusal].into());
    reconcile(&world, async {
        wait(3600).await;
        assert_eq!(world.journal_of("delete image").len(), 1);
        wait(BEYOND_GRACE + 30).await;
    })
    .await;
    assert_eq!(world.journal_of("delete image").len(), 2);
}
