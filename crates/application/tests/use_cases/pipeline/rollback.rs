//! Rollback to an earlier version.

use launchway_domain::{
    applications::BuildPack,
    deployments::{Deployment, DeploymentState},
    jobs::JobKind,
};
use launchway_testkit::builders::a_deployment;

use super::{application, carried_out, old};
use crate::world::{State, a_job};

/// Returns an earlier deployment of a site: #3 in the journal.
fn site() -> Deployment {
    a_deployment().numbered(3).in_state(DeploymentState::Deployed).made_of('3').build()
}

/// Returns a rollback to `earlier`.
fn back_to(number: u32, earlier: &Deployment) -> Deployment {
    a_deployment().numbered(number).back_to(earlier.id).build()
}

/// Enqueues the job of `deployment`, and no other.
fn new(state: &mut State, deployment: &Deployment) {
    state.waiting = [a_job(JobKind::Deploy, deployment, 1)].into();
}

fn a_site(state: &mut State) {
    state.application = Some(application(|blueprint| {
        blueprint.build_pack = BuildPack::Static;
        blueprint.health_check_path = None;
    }));
}

#[tokio::test(start_paused = true)]
async fn rollback_reuses_the_image_without_a_build() {
    let earlier = a_deployment().numbered(3).in_state(DeploymentState::Deployed).made_of('3').with_image();
    let (earlier, back) = (earlier.clone().build(), back_to(2, &earlier.build()));
    let world = carried_out(|state| {
        state.deployments = vec![old(), back.clone(), earlier];
        new(state, &back);
    })
    .await;

    assert_eq!(
        world.journal()[..4],
        ["commit: prove, deploying", "commit: prove, commit 3333333", "reuse #3", "commit: prove, image",]
    );
    assert_eq!(world.journal_of("commit: succeeded, follow").len(), 1);
    assert!(world.log()[0].starts_with("info: Rolling back to deployment "));
}

#[tokio::test(start_paused = true)]
async fn the_files_of_the_earlier_one_are_served_again() {
    let back = back_to(2, &site());
    let world = carried_out(|state| {
        a_site(state);
        state.deployments = vec![old(), back.clone(), site()];
        state.published = vec![site().id];
        new(state, &back);
    })
    .await;

    assert_eq!(world.journal_of("switch"), ["switch to /sites/#3"]);
    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_goes_back_to_one_that_went_back_gets_the_same_files() {
    let back = back_to(4, &site());
    let again = back_to(2, &back);
    let world = carried_out(|state| {
        a_site(state);
        state.deployments = vec![old(), again.clone(), site(), back];
        state.published = vec![site().id];
        new(state, &again);
    })
    .await;

    assert_eq!(world.journal_of("switch"), ["switch to /sites/#3"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_cannot_be_gone_back_to() {
    let back = back_to(2, &site());
    for deployments in [vec![old(), back.clone()], vec![old(), back.clone(), site()]] {
        let world = carried_out(|state| {
            a_site(state);
            state.deployments = deployments;
            new(state, &back);
        })
        .await;

        let end = "commit: failed (the image or the files of that deployment no longer exist), follow";
        assert_eq!(world.journal_of(end).len(), 1, "{:?}", world.journal());
        assert!(!world.journal().iter().any(|entry| entry.contains("go live")));
    }
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_gone_fails_the_deployment() {
    let earlier = a_deployment().numbered(3).in_state(DeploymentState::Deployed).with_image().build();
    let back = back_to(2, &earlier);
    let world = carried_out(|state| {
        state.deployments = vec![old(), back.clone(), earlier];
        new(state, &back);
        state.refuse("reuse", "the image is gone");
    })
    .await;

    assert_eq!(world.journal_of("commit: failed (the image is gone), follow").len(), 1);
}
