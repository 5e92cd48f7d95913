//! Reconcile jobs: they decide again under the lease, and restore a version.

use std::sync::Arc;

use launchway_domain::{
    applications::Application,
    deployments::{Condition, Deployment, Exit, ImageName},
    jobs::JobKind,
};
use launchway_testkit::{
    builders::{a_deployment, parsed},
    clock::{NEW_YEAR, moment},
};

use super::{application, carried_out, live, next};
use crate::world::{State, World, a_container_of};

const RUNNING: Condition = running();
const DOWN: Condition = Condition::Exited(Exit { code: 1, out_of_memory: false, restarts: 0 });

const fn running() -> Condition {
    Condition::Running { address: std::net::IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 7)), restarts: 0 }
}

/// Runs a reconcile job while the container of [`live`] is in `condition`.
async fn reconciled(condition: Option<Condition>, arrange: impl FnOnce(&mut State)) -> Arc<World> {
    carried_out(JobKind::Reconcile, |state| {
        let found = condition.map(|condition| a_container_of(&live(), condition, moment(NEW_YEAR)));
        state.found.extend(found);
        arrange(state);
    })
    .await
}

fn composed(state: &mut State) {
    let image = ImageName::of_service(live().application_id, live().id, &parsed("web"));
    state.deployments = vec![Deployment { image: Some(image), ..live() }, next()];
    state.composed = vec![live().id];
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_up_again_is_left_alone() {
    for condition in [RUNNING, Condition::Restarting(Exit { code: 1, out_of_memory: false, restarts: 1 })] {
        let world = reconciled(Some(condition), |_| {}).await;
        assert_eq!(world.journal(), ["containers", "commit: succeeded, follow"], "{condition:?}");
        assert!(world.log().is_empty(), "{:?}", world.log());
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_down_is_resumed_checked_and_routed() {
    for condition in [DOWN, Condition::Paused, Condition::Created, Condition::Detached] {
        let world = reconciled(Some(condition), |_| {}).await;

        assert_eq!(
            world.journal(),
            [
                "containers",
                "resume #1",
                "commit: prove, replace by web running",
                "switch to 10.0.0.7:8080",
                "commit: succeeded, follow",
            ],
            "{condition:?}"
        );
        assert_eq!(world.log(), ["info: Running at http://10.0.0.7:8080"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_removed_container_is_recreated_from_its_image() {
    let world = reconciled(None, |state| {
        // Left by an earlier attempt.
        let mut left = a_container_of(&a_deployment().build(), RUNNING, moment(NEW_YEAR));
        left.owner.attempt = 4;
        state.found.push(left);
    })
    .await;

    assert_eq!(
        world.journal(),
        [
            "containers",
            "containers",
            "start on 8080 with PASSWORD",
            "commit: prove, replace by new running",
            "switch to 10.0.0.9:8080",
            "keep",
            "commit: succeeded, follow",
        ]
    );
    let log = [
        "info: Recreating the container from its image",
        "info: Starting the container",
        "info: Running at http://10.0.0.9:8080",
    ];
    assert_eq!(world.log(), log);
    let plan = world.state().started[0].clone();
    assert_eq!((Some(plan.image), plan.owner.attempt), (live().image, 5), "the attempt is a new one");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_cannot_be_resumed_is_recreated() {
    let world = reconciled(Some(DOWN), |state| state.refuse("resume", "its network is gone")).await;

    assert_eq!(
        world.journal(),
        [
            "containers",
            "resume #1",
            "containers",
            "start on 8080 with PASSWORD",
            "commit: prove, replace by new running",
            "switch to 10.0.0.9:8080",
            "keep",
            "commit: succeeded, follow",
            "drain",
            "stop attempt 1 of #1",
            "printed",
            "remove attempt 1 of #1",
        ]
    );
    assert_eq!(world.log()[0], "warn: The container cannot be started: its network is gone");
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_gone_fails_the_version_with_a_sentence() {
    let world = reconciled(None, |state| state.refuse("start", "the image is gone")).await;

    assert_eq!(
        world.journal()[2..],
        [
            "start on 8080 with PASSWORD",
            "remove attempt 1 of #1",
            "commit: broken (the image is gone)",
            "commit: failed (the image is gone), follow",
        ]
    );
    let said = "error: Recovery failed: the image is gone";
    assert_eq!(world.log().last().map(String::as_str), Some(said));
}

#[tokio::test(start_paused = true)]
async fn a_version_replaced_meanwhile_is_not_marked() {
    let world = reconciled(None, |state| {
        state.refuse("start", "the image is gone");
        state.judge = Some(Box::new(|writes| match format!("{writes:?}").contains("SetHealth") {
            true => Err(launchway_domain::store::StoreError::Stale),
            false => Ok(()),
        }));
    })
    .await;

    let end = "commit: failed (the image is gone), follow";
    assert_eq!(world.journal().last().map(String::as_str), Some(end));
}

#[tokio::test(start_paused = true)]
async fn a_container_that_runs_although_stopped_is_stopped() {
    for condition in [RUNNING, Condition::Paused, Condition::Detached] {
        let world = reconciled(Some(condition), |state| {
            state.application = Some(Application { is_stopped: true, ..application() });
        })
        .await;

        assert_eq!(
            world.journal(),
            [
                "containers",
                "stop #1",
                "printed",
                "commit: prove, record web exited",
                "commit: succeeded, follow"
            ],
            "{condition:?}"
        );
        assert_eq!(world.log(), ["warn: Stopping the container: the application is stopped"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stopped_application_stays_down() {
    let world = reconciled(Some(DOWN), |state| {
        state.application = Some(Application { is_stopped: true, ..application() });
    })
    .await;
    assert_eq!(world.journal(), ["containers", "commit: succeeded, follow"]);
}

#[tokio::test(start_paused = true)]
async fn a_composition_is_resumed_once_nothing_else_uses_its_volumes() {
    let world = reconciled(Some(DOWN), |state| {
        composed(state);
        state.found.push(a_container_of(&next(), RUNNING, moment(NEW_YEAR)));
    })
    .await;

    assert_eq!(
        world.journal(),
        [
            "containers",
            "containers",
            "remove #2",
            "resume #1",
            "commit: prove, replace by web running",
            "switch to 10.0.0.7:8080",
            "commit: succeeded, follow",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_removed_composition_is_recreated_alone() {
    let world = reconciled(None, composed).await;

    assert_eq!(
        world.journal(),
        [
            "containers",
            "remove #1",
            "containers",
            "start services on 8080 with PASSWORD",
            "commit: prove, replace by new running",
            "switch to 10.0.0.9:8080",
            "keep",
            "commit: succeeded, follow",
        ]
    );
}
