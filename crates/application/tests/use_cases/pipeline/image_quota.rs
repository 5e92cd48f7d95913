//! The bytes of images: recorded when they are known, and limited.

use launchway_domain::{
    applications::BuildPack,
    deployments::{DeploymentState, DiscoveredObject, DiscoveredResource, ImageName, ImageRecord},
    jobs::JobKind,
};
use launchway_testkit::{
    builders::a_deployment,
    clock::{NEW_YEAR, moment},
};

use super::{application, carried_out, new, old};
use crate::world::{State, a_container_of, a_job, an_image_size};

const SIZE: u64 = 5 << 20;

/// The image of [`new`], as the engine has it after a build.
fn built(state: &mut State) {
    let container = a_container_of(&new(), launchway_domain::deployments::Condition::Gone, moment(NEW_YEAR));
    let name = ImageName::of(new().application_id, new().id);
    state.found = vec![DiscoveredResource {
        what: DiscoveredObject::Image { name, size: an_image_size() },
        ..container
    }];
}

#[tokio::test(start_paused = true)]
async fn an_image_that_fits_is_recorded() {
    let world = carried_out(|state| {
        built(state);
        (state.image_bytes, state.image_limit) = (SIZE, 2 * SIZE);
    })
    .await;

    assert_eq!(world.state().images, [ImageRecord { deployment: new().id, image: an_image_size() }]);
    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
    assert!(world.journal_of("clear image").is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_image_beyond_the_quota_is_removed_and_never_started() {
    let world = carried_out(|state| {
        built(state);
        (state.image_bytes, state.image_limit) = (SIZE, 2 * SIZE - 1);
    })
    .await;

    assert_eq!(world.journal_of("clear"), ["clear image of #2"]);
    assert!(world.journal_of("start").is_empty());
    let reason = "the quota `image_bytes` of this organization is reached: 5.0 MiB of 9.9 MiB are in use, and 5.0 MiB more would be needed";
    let end = format!(
        "commit: failed ({reason}), follow, entry (launchway failed to deploy the application `web` (production))"
    );
    assert_eq!(world.journal().last(), Some(&end));
    assert_eq!(world.state().images, []);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_built_where_no_byte_is_left() {
    let world = carried_out(|state| (state.image_bytes, state.image_limit) = (SIZE, SIZE)).await;

    assert!(world.journal_of("build").is_empty() && world.journal_of("head").is_empty());
    assert_eq!(world.journal_of("commit: failed (the quota `image_bytes`").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_site_and_a_rollback_need_no_room() {
    let site = carried_out(|state| {
        state.application = Some(application(|blueprint| {
            blueprint.build_pack = BuildPack::Static;
            blueprint.health_check_path = None;
        }));
        (state.image_bytes, state.image_limit) = (2 * SIZE, SIZE);
    })
    .await;
    assert_eq!(site.journal_of("commit: succeeded").len(), 1);
    assert_eq!(site.state().images, []);

    let earlier = a_deployment().numbered(3).in_state(DeploymentState::Deployed).made_of('3').with_image();
    let back = a_deployment().numbered(2).back_to(earlier.clone().build().id).build();
    let world = carried_out(|state| {
        state.deployments = vec![old(), back.clone(), earlier.build()];
        state.waiting = [a_job(JobKind::Deploy, &back, 1)].into();
        (state.image_bytes, state.image_limit) = (2 * SIZE, SIZE);
    })
    .await;
    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
    assert_eq!(world.state().images.len(), 1);
}
