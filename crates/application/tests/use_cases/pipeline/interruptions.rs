//! Continuation after an interruption, and deployments that are no longer needed.

use launchway_domain::{
    applications::{Application, BuildPack},
    deployments::{Condition, Deployment, DeploymentState, DiscoveredObject},
    jobs::JobKind,
};
use launchway_testkit::{
    builders::{a_container, a_deployment},
    clock::{NEW_YEAR, moment},
};

use super::{application, carried_out, new, old};
use crate::world::{ADDRESS, State, a_container_of, a_job};

/// Returns [`new`] as an earlier attempt left it: live, with its container.
fn left_in(state: DeploymentState) -> Deployment {
    let mut container = a_container("new");
    container.address = Some(ADDRESS.into());
    a_deployment().numbered(2).in_state(state).with_image().run_by(container).build()
}

/// Simulates an earlier attempt that was lost after its commit as live.
fn was_lost(state: &mut State, left: Deployment) {
    state.application = Some(Application { live: Some(left.id), ..application(|_| {}) });
    let running = Condition::Running { address: ADDRESS.into(), restarts: 0 };
    let others = [&left, &old()].map(|found| a_container_of(found, running, moment(NEW_YEAR)));
    state.found = others.to_vec();
    state.waiting = [a_job(JobKind::Deploy, &left, 2)].into();
    state.deployments = vec![old(), left];
}

#[tokio::test(start_paused = true)]
async fn continuation_switches_traffic_and_retires_the_old_version() {
    let world = carried_out(|state| was_lost(state, left_in(DeploymentState::Deploying))).await;

    assert_eq!(
        world.journal(),
        [
            "switch to 10.0.0.9:8080",
            "commit: prove, deployed, line (Deployed in 0.0 s), entry (launchway deployed the application `web` (production))",
            "keep",
            "containers",
            "commit: succeeded, follow",
            "drain",
            "stop #1",
            "printed",
            "remove #1",
            "commit: record old removed",
        ]
    );
    assert_eq!(world.log(), ["info: Resuming after an interruption"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_was_deployed_is_not_deployed_again() {
    let world = carried_out(|state| was_lost(state, left_in(DeploymentState::Deployed))).await;

    assert!(!world.journal().iter().any(|entry| entry.contains("deployed")), "{:?}", world.journal());
    assert_eq!(world.journal_of("commit: succeeded, follow").len(), 1);
    assert!(world.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_site_that_is_live_already_gets_the_traffic() {
    let left = a_deployment().numbered(2).in_state(DeploymentState::Deploying).build();
    let world = carried_out(|state| {
        was_lost(state, left.clone());
        if let Some(application) = &mut state.application {
            application.blueprint.build_pack = BuildPack::Static;
        }
        state.published = vec![left.id];
        state.found.clear();
    })
    .await;

    assert_eq!(world.journal_of("switch"), ["switch to /sites/#2"]);
    assert_eq!(world.journal_of("commit: succeeded, follow").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_cannot_list_what_else_runs_is_asked_again() {
    let world = carried_out(|state| {
        was_lost(state, left_in(DeploymentState::Deploying));
        state.fault("containers", 1);
    })
    .await;

    assert_eq!(world.journal_of("retry"), ["retry in 10 s (containers does not answer)"]);
    assert_eq!(world.journal_of("commit: prove, deployed").len(), 1, "the version is live already");
    let said = "warn: The remaining steps are retried later: containers does not answer";
    assert_eq!(world.log().last().map(String::as_str), Some(said));
}

#[tokio::test(start_paused = true)]
async fn a_container_of_a_cut_off_command_is_removed() {
    let world = carried_out(|state| {
        was_lost(state, left_in(DeploymentState::Deploying));
        let mut command = state.found[0].clone();
        let DiscoveredObject::Container { id, .. } = &mut command.what else { unreachable!() };
        *id = a_container("command").id;
        state.found.push(command);
    })
    .await;

    assert_eq!(world.journal_of("clear"), ["clear container of #2"]);
    assert_eq!(world.journal_of("remove"), ["remove #1"]);
}

#[tokio::test(start_paused = true)]
async fn what_nobody_waits_for_any_more_is_cancelled() {
    let gone: [fn(&mut State); 3] = [
        |state| state.application = None,
        |state| state.deployments.retain(|deployment| deployment.id != new().id),
        |state| state.waiting.iter_mut().for_each(|claimed| claimed.job.payload.clear()),
    ];
    for arrange in gone {
        let world = carried_out(arrange).await;

        assert_eq!(world.journal(), ["commit: cancelled, follow"]);
    }
}
