//! Restarts: beside the container that serves where that is possible, else in its place.

use std::{net::IpAddr, sync::Arc, time::Duration};

use launchway_domain::{
    applications::{Application, Write as ApplicationWrite},
    audit::{Action, Resource},
    deployments::{
        Condition, ContainerRecord, ContainerState, Deployment, DeploymentState, Exit, ImageName, Write,
    },
    jobs::{JobKind, Outcome, Write as JobWrite},
};
use launchway_testkit::{
    builders::{a_container, a_deployment, an_entry, parsed},
    clock::{NEW_YEAR, moment},
};

use super::{application, carried_out, live, next};
use crate::{
    applications::scope,
    audit_log::audited,
    world::{ADDRESS, FOR_EVER, State, World, a_container_of, a_job},
};

const RESTARTED: &str =
    "commit: succeeded, follow, not stopped, entry (launchway restarted the application `web` (production))";

fn running() -> Condition {
    Condition::Running { address: [10, 0, 0, 7].into(), restarts: 0 }
}

/// Makes the container of [`live`] serve, as that of the first attempt.
fn serves(state: &mut State) {
    state.found = vec![a_container_of(&live(), running(), moment(NEW_YEAR))];
}

async fn restarted(arrange: impl FnOnce(&mut State)) -> Arc<World> {
    carried_out(JobKind::Restart, |state| {
        serves(state);
        arrange(state);
    })
    .await
}

fn failed(reason: &str) -> String {
    format!(
        "commit: failed ({reason}), follow, entry (launchway failed to restart the application `web` (production))"
    )
}

#[tokio::test(start_paused = true)]
async fn a_new_container_serves_before_the_old_one_is_retired() {
    let world = restarted(|_| {}).await;

    assert_eq!(
        world.journal(),
        [
            "containers",
            "start on 8080 with PASSWORD",
            "commit: prove, replace by new running",
            "switch to 10.0.0.9:8080",
            "keep",
            RESTARTED,
            "drain",
            "stop attempt 1 of #1",
            "printed",
            "remove attempt 1 of #1",
        ]
    );
    let log = [
        "info: Restarting",
        "info: Starting the container",
        "info: Running at http://10.0.0.9:8080",
        "info: Restarted",
    ];
    assert_eq!(world.log(), log);
    let state = world.state();
    assert_eq!(state.started.iter().map(|plan| plan.owner.attempt).collect::<Vec<_>>(), [2]);
    assert_eq!(state.probed.iter().map(ToString::to_string).collect::<Vec<_>>(), ["10.0.0.9:8080"]);
}

#[tokio::test(start_paused = true)]
async fn the_new_container_is_recorded_by_who_has_the_job() {
    let world = restarted(|_| {}).await;

    let (at, lease) = (world.now(), a_job(JobKind::Restart, &next(), 1).lease);
    let container = ContainerRecord {
        id: a_container("new").id,
        name: "new".to_owned(),
        state: ContainerState::Running,
        address: Some(IpAddr::from(ADDRESS)),
        port: a_container("web").port,
    };
    let (id, application_id) = (application().id, Some(application().id));
    let entry = an_entry()
        .by_launchway()
        .of(Action::Update, Resource::Deployment, live().id)
        .with_message("restarted the application `web` (production)")
        .with("application_id", id);
    assert_eq!(
        world.commits(),
        [
            vec![
                JobWrite::Prove(lease).into(),
                Write::ReplaceContainer { id: live().id, container, further_copies: vec![], at }.into()
            ],
            vec![
                JobWrite::Settle { lease, outcome: Outcome::Succeeded, at }.into(),
                Write::FollowJobs { application: application_id, at }.into(),
                ApplicationWrite::SetStopped { scope: scope(), id, is_stopped: false, at }.into(),
                audited(1, entry),
            ],
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_new_container_gets_no_address_that_a_route_names() {
    let world = restarted(|state| {
        state.live = vec![a_deployment().run_by(a_container("web")).live()];
    })
    .await;
    assert_eq!(world.state().started[0].reserved, [IpAddr::from([10, 0, 0, 7])]);
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_fails_its_check_leaves_the_old_one_alone() {
    let world = restarted(|state| {
        state.illnesses.insert(ADDRESS.into(), "status 503".to_owned());
    })
    .await;

    let journal: Vec<_> = world
        .journal()
        .into_iter()
        .filter(|entry| !["condition", "heartbeat"].contains(&entry.as_str()))
        .collect();
    assert_eq!(
        journal,
        [
            "containers",
            "start on 8080 with PASSWORD",
            "tail logs",
            "remove attempt 2 of #1",
            &failed("not healthy within 60 s: status 503"),
        ]
    );
    let said = "error: Restart failed: not healthy within 60 s: status 503";
    assert_eq!(world.log().last().map(String::as_str), Some(said));
    let recorded = world.state().deployments[0].container.clone();
    assert_eq!(recorded, live().container, "the record names the one that serves");
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_exits_says_its_last_lines() {
    let world = restarted(|state| {
        state.illness = Some("connection refused".to_owned());
        state.condition = Some(Condition::Exited(Exit { code: 1, out_of_memory: false, restarts: 0 }));
    })
    .await;

    let reason = "the container exited with code 1 before it was healthy";
    assert_eq!(world.journal().last(), Some(&failed(reason)));
    assert!(world.log().contains(&"info: The container log is empty".to_owned()), "{:?}", world.log());
}

#[tokio::test(start_paused = true)]
async fn an_image_that_is_gone_fails_the_restart_alone() {
    let world = restarted(|state| state.refuse("start", "the image is gone")).await;

    assert_eq!(
        world.journal(),
        ["containers", "start on 8080 with PASSWORD", "remove attempt 2 of #1", &failed("the image is gone")]
    );
}

#[tokio::test(start_paused = true)]
async fn a_container_that_is_recorded_is_never_removed() {
    for (call, entry) in [("switch", "switch to 10.0.0.9:8080"), ("keep", "keep")] {
        let world = restarted(|state| state.fault(call, 1)).await;

        let journal = world.journal();
        let retried = format!("retry in 5 s ({call} does not answer)");
        assert_eq!(journal[journal.len() - 3..], [entry, &retried, "commit: follow"], "{journal:?}");
        assert!(world.journal_of("remove").is_empty() && world.journal_of("stop").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn who_lost_the_job_removes_and_switches_nothing() {
    let world = restarted(|state| {
        state.judge = Some(Box::new(|writes| match format!("{writes:?}").contains("ReplaceContainer") {
            true => Err(launchway_domain::store::StoreError::Stale),
            false => Ok(()),
        }));
    })
    .await;

    assert_eq!(world.journal(), ["containers", "start on 8080 with PASSWORD"]);
}

#[tokio::test(start_paused = true)]
async fn a_stopped_application_is_routed_once_it_counts_as_running() {
    let world = restarted(|state| {
        state.application = Some(Application { is_stopped: true, ..application() });
        let mut stopped = live();
        stopped.container.as_mut().unwrap().state = ContainerState::Exited;
        state.deployments[0] = stopped;
    })
    .await;

    assert_eq!(
        world.journal(),
        [
            "containers",
            "start on 8080 with PASSWORD",
            "commit: prove, replace by new running",
            "keep",
            RESTARTED,
            "switch to 10.0.0.9:8080",
            "drain",
            "stop attempt 1 of #1",
            "printed",
            "remove attempt 1 of #1",
        ]
    );
    let is_stopped = world.state().application.as_ref().map(|application| application.is_stopped);
    assert_eq!(is_stopped, Some(false));
}

#[tokio::test(start_paused = true)]
async fn a_stopped_site_is_routed_once_it_counts_as_running() {
    let site = a_deployment().in_state(DeploymentState::Deployed).build();
    let world = carried_out(JobKind::Restart, |state| {
        state.application = Some(Application { is_stopped: true, live: Some(site.id), ..application() });
        state.deployments = vec![site.clone(), next()];
        state.published = vec![site.id];
    })
    .await;

    assert_eq!(world.journal(), [RESTARTED, "switch to /sites/#1"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_without_a_container_gets_its_first_attempt() {
    let world = restarted(|state| state.found.clear()).await;

    assert_eq!(world.state().started[0].owner.attempt, 1);
    assert_eq!(world.journal().last().map(String::as_str), Some(RESTARTED), "nothing is retired");
}

#[tokio::test(start_paused = true)]
async fn a_site_is_restarted_by_routing_to_its_files() {
    let site = a_deployment().in_state(DeploymentState::Deployed).build();
    let back = a_deployment().numbered(3).in_state(DeploymentState::Deployed).back_to(site.id).build();
    for live in [site.clone(), back.clone()] {
        let world = carried_out(JobKind::Restart, |state| {
            state.application = Some(Application { live: Some(live.id), ..application() });
            state.deployments = vec![site.clone(), next(), back.clone()];
            state.published = vec![site.id];
        })
        .await;

        assert_eq!(world.journal(), ["switch to /sites/#1", RESTARTED]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_site_whose_files_are_gone_cannot_be_restarted() {
    let site = a_deployment().in_state(DeploymentState::Deployed).build();
    let world = carried_out(JobKind::Restart, |state| state.deployments = vec![site, next()]).await;
    assert_eq!(world.journal(), [failed("the published files no longer exist")]);
}

/// Makes [`live`] a composition, which its application remembers.
fn composed(state: &mut State) {
    let image = ImageName::of_service(live().application_id, live().id, &parsed("web"));
    state.deployments = vec![Deployment { image: Some(image), ..live() }, next()];
    state.composed = vec![live().id];
}

#[tokio::test(start_paused = true)]
async fn a_composition_without_volumes_is_restarted_beside_itself() {
    let world = restarted(composed).await;

    assert_eq!(
        world.journal(),
        [
            "recall #1",
            "containers",
            "start services on 8080 with PASSWORD",
            "commit: prove, replace by new running",
            "switch to 10.0.0.9:8080",
            "keep",
            RESTARTED,
            "drain",
            "stop attempt 1 of #1",
            "containers",
            "printed",
            "remove attempt 1 of #1",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_composition_with_volumes_is_restarted_in_place() {
    let world = restarted(|state| {
        composed(state);
        state.shared_volumes = vec!["data".to_owned()];
    })
    .await;

    assert_eq!(
        world.journal(),
        [
            "recall #1",
            "containers",
            "restart",
            "commit: prove, replace by new running",
            "switch to 10.0.0.9:8080",
            RESTARTED,
        ]
    );
    let said = "warn: With downtime: two versions of its services cannot share volumes".to_owned();
    assert!(world.log().contains(&said), "{:?}", world.log());
}

#[tokio::test(start_paused = true)]
async fn a_composition_that_cannot_be_restarted_is_recreated() {
    let world = restarted(|state| {
        composed(state);
        state.shared_volumes = vec!["data".to_owned()];
        state.refuse("restart", "the container is gone");
    })
    .await;

    let journal = world.journal();
    let place = |entry: &str| journal.iter().position(|other| other == entry).unwrap();
    assert!(place("remove #1") < place("start services on 8080 with PASSWORD"), "{journal:?}");
    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_restart_may_be_interrupted_while_the_copy_starts() {
    let world = super::world(JobKind::Restart, |state| {
        serves(state);
        state.delay("start", FOR_EVER);
    });
    let (worker, (stop, stopped)) = (world.worker(), tokio::sync::watch::channel(false));
    tokio::join!(worker.run(stopped), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stop.send_replace(true);
    });

    let journal = ["containers", "start on 8080 with PASSWORD", "release attempt 1", "commit: follow"];
    assert_eq!(world.journal(), journal);
}
