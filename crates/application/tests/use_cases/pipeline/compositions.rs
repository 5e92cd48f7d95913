//! Versions with several services, and the downtime that volumes need.

use launchway_domain::{
    applications::BuildPack,
    deployments::{Condition, ContainerState, Deployment, DeploymentState, Exit, ImageName},
    jobs::{Heartbeat, JobKind},
};
use launchway_testkit::{
    builders::{a_container, a_deployment, parsed},
    clock::{NEW_YEAR, moment},
};

use super::{application, carried_out, new, old};
use crate::world::{ADDRESS, FOR_EVER, State, a_container_of, a_job};

/// Returns the previous version as a composition: #1 in the journal.
fn old_services() -> Deployment {
    let mut old = old();
    old.image = Some(ImageName::of_service(old.application_id, old.id, &parsed("web")));
    old
}

/// Returns the previous version while it is stopped for a recreate.
fn old_to_recreate() -> Deployment {
    let mut old = old_services();
    if let Some(container) = &mut old.container {
        container.state = ContainerState::Exited;
    }
    old
}

fn composed(state: &mut State) {
    state.application = Some(application(|blueprint| blueprint.build_pack = BuildPack::DockerCompose));
    state.deployments = vec![old_services(), new()];
}

fn with_a_volume(state: &mut State) {
    composed(state);
    state.shared_volumes = vec!["data".to_owned()];
}

const STANDS_STILL: Condition = Condition::Exited(Exit { code: 0, out_of_memory: false, restarts: 0 });
const GAP: &str = "warn: With downtime: the live version is stopped before this one starts, because both use the volume `data`";
const BACK: &str = "info: The new version did not go live: this one runs again at http://10.0.0.9:8080";

#[tokio::test(start_paused = true)]
async fn services_start_beside_the_old_version_until_the_switch() {
    let world = carried_out(composed).await;

    assert_eq!(
        world.journal()[4..],
        [
            "commit: prove, building",
            "compose Dockerfile beside #1",
            "discard #2",
            "commit: prove, deploying image",
            "start services on 8080 with PASSWORD",
            "commit: prove, container running",
            "commit: prove, go live, line (Live at http://10.0.0.9:8080)",
            "keep",
            "switch to 10.0.0.9:8080",
            "commit: prove, deployed, line (Deployed in 0.0 s), entry (launchway deployed the application `web` (production))",
            "commit: succeeded, follow",
            "drain",
            "stop #1",
            "containers",
            "printed",
            "remove #1",
            "commit: record old removed",
        ]
    );
    assert_eq!(
        world.log(),
        [
            "info: Fetching commit abcdef0 of main",
            "info: Reading the compose file",
            "warn: `ports` are not published",
            "info: Traffic is routed to the service `web`",
            "info: Starting the services",
            "info: Waiting for http://10.0.0.9:8080/up",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn shared_volume_stops_the_old_version_first() {
    let world = carried_out(with_a_volume).await;

    let journal = world.journal();
    let gap = journal.iter().position(|entry| entry == "commit: prove, record old exited").unwrap();
    assert_eq!(
        journal[gap..gap + 6],
        [
            "commit: prove, record old exited",
            "switch to nowhere: absent",
            "drain",
            "stop #1",
            "start services on 8080 with PASSWORD",
            "commit: prove, container running",
        ]
    );
    assert!(world.log().contains(&GAP.to_owned()), "{:?}", world.log());
    assert!(world.journal_of("restart").is_empty());
    assert_eq!(world.journal_of("commit: succeeded, follow").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn stopped_version_is_neither_stopped_again_nor_restored() {
    let world = carried_out(|state| {
        with_a_volume(state);
        state.application.iter_mut().for_each(|application| application.is_stopped = true);
        state.deployments = vec![old_to_recreate(), new()];
        state.condition = Some(STANDS_STILL);
        state.refuse("start services", "no such file");
    })
    .await;

    assert!(world.journal_of("stop").is_empty() && world.journal_of("restart").is_empty());
    assert!(!world.log().contains(&GAP.to_owned()));
}

#[tokio::test(start_paused = true)]
async fn commands_run_beside_the_services_that_they_may_need() {
    let world = carried_out(|state| {
        composed(state);
        if let Some(application) = &mut state.application {
            application.blueprint.pre_run_command = Some(parsed("migrate"));
            application.blueprint.post_run_command = Some(parsed("warm up"));
        }
    })
    .await;

    let steps = ["run", "start", "switch", "stop"];
    let order = world.journal().into_iter().filter(|entry| steps.iter().any(|step| entry.starts_with(step)));
    assert_eq!(
        order.collect::<Vec<_>>(),
        [
            "start sidecars",
            "run beside migrate",
            "start services on 8080 with PASSWORD",
            "switch to 10.0.0.9:8080",
            "run beside warm up",
            "stop #1",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn rejected_step_fails_the_deployment_and_keeps_the_old_version() {
    for step in ["compose", "start sidecars", "run beside", "start services"] {
        let world = carried_out(|state| {
            composed(state);
            if let Some(application) = &mut state.application {
                application.blueprint.pre_run_command = Some(parsed("migrate"));
            }
            state.refuse(step, "not allowed");
        })
        .await;

        assert_eq!(world.journal_of("commit: failed").len(), 1, "{step}: {:?}", world.journal());
        let touched = |entry: &String| entry.contains("go live") || entry.contains("stop #1");
        assert!(!world.journal().iter().any(touched), "{step}");
        if step != "compose" {
            assert_eq!(world.journal_of("remove #2").len(), 1, "{step}");
        }
    }
}

/// Stops the previous version from the recreate on, in the records too.
fn is_recreated(state: &mut State) {
    with_a_volume(state);
    state.deployments = vec![old_to_recreate(), new()];
    // Before the recreate it runs.
    state.condition = None;
}

#[tokio::test(start_paused = true)]
async fn failure_during_recreate_removes_the_new_version_first() {
    for step in ["start services", "start sidecars", "run beside"] {
        let world = carried_out(|state| {
            is_recreated(state);
            if let Some(application) = &mut state.application {
                application.blueprint.pre_run_command = Some(parsed("migrate"));
            }
            state.condition = Some(STANDS_STILL);
            state.refuse(step, "no such file");
        })
        .await;

        let journal = world.journal();
        let failed = journal.iter().rposition(|entry| entry.starts_with(step)).unwrap();
        assert_eq!(
            journal[failed + 1..failed + 7],
            [
                "remove #2",
                "containers",
                "condition",
                "restart",
                "commit: record new running",
                "switch to 10.0.0.9:8080",
            ],
            "{step}"
        );
        assert!(world.log().contains(&BACK.to_owned()), "{:?}", world.log());
        assert_eq!(world.journal_of("commit: failed").len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn unhealthy_version_during_recreate_restores_the_old_one() {
    let world = carried_out(|state| {
        is_recreated(state);
        state.illness = Some("connection refused".to_owned());
        state.condition = Some(STANDS_STILL);
    })
    .await;

    let journal = world.journal();
    let removed = journal.iter().rposition(|entry| entry == "remove #2").unwrap();
    assert_eq!(journal[removed + 1..removed + 4], ["containers", "condition", "restart"]);
    assert_eq!(world.journal_of("commit: failed (the container exited").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn fault_during_recreate_restores_the_old_version_and_retries() {
    let world = carried_out(|state| {
        is_recreated(state);
        state.condition = Some(STANDS_STILL);
        state.fault("start services", 1);
    })
    .await;

    assert_eq!(world.journal_of("retry"), ["retry in 5 s (start services does not answer)"]);
    let journal = world.journal();
    let restarted = journal.iter().rposition(|entry| entry == "restart").unwrap();
    assert!(restarted < journal.iter().position(|entry| entry.starts_with("retry")).unwrap());
}

#[tokio::test(start_paused = true)]
async fn who_cancels_during_the_downtime_gets_the_old_version() {
    let world = carried_out(|state| {
        is_recreated(state);
        state.condition = Some(STANDS_STILL);
        state.delay("start services", FOR_EVER);
        state.heartbeats.extend((0..100).map(|_| Ok(Heartbeat::CancelRequested)));
    })
    .await;

    let journal = world.journal();
    let behind: Vec<&str> =
        journal.iter().skip_while(|entry| *entry != "heartbeat").map(String::as_str).collect();
    assert_eq!(
        behind,
        [
            "heartbeat",
            "discard #2",
            "remove #2",
            "containers",
            "condition",
            "restart",
            "commit: record new running",
            "switch to 10.0.0.9:8080",
            "commit: cancelled, follow",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn attempt_after_one_lost_in_a_recreate_restores_first() {
    let world = carried_out(|state| {
        is_recreated(state);
        state.condition = Some(STANDS_STILL);
        state.waiting = [a_job(JobKind::Deploy, &new(), 2)].into();
    })
    .await;

    assert_eq!(
        world.journal()[..8],
        [
            "discard #2",
            "remove #2",
            "containers",
            "condition",
            "restart",
            "commit: record new running",
            "switch to 10.0.0.9:8080",
            "commit: prove, cloning",
        ]
    );
    assert_eq!(world.journal_of("commit: succeeded, follow").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn failed_restore_is_logged_and_a_running_version_is_kept() {
    let world = carried_out(|state| {
        is_recreated(state);
        state.condition = Some(STANDS_STILL);
        state.refuse("restart", "the volume is gone");
    })
    .await;
    let said =
        "error: This version was stopped for a new one, and cannot be started again: the volume is gone";
    assert!(world.log().contains(&said.to_owned()), "{:?}", world.log());
    assert_eq!(world.journal_of("commit: succeeded").len(), 1, "the new version is what is wanted");

    let world = carried_out(is_recreated).await;
    assert!(world.journal_of("restart").is_empty());
    assert_eq!(world.journal()[1..4], ["condition", "commit: record old running", "switch to 10.0.0.9:8080"]);
}

#[tokio::test(start_paused = true)]
async fn a_single_stopped_container_is_none_of_this() {
    let world = carried_out(|state| {
        let mut still = old_to_recreate();
        still.image = old().image;
        state.deployments = vec![still, new()];
        state.condition = Some(STANDS_STILL);
        state.refuse("build", "no such file");
    })
    .await;

    assert!(world.journal_of("restart").is_empty() && world.journal_of("condition").is_empty());
}

#[tokio::test(start_paused = true)]
async fn rollback_uses_the_services_of_the_earlier_deployment() {
    let earlier = a_deployment().numbered(3).in_state(DeploymentState::Deployed).made_of('3').with_image();
    let earlier = earlier.build();
    let back = a_deployment().numbered(2).back_to(earlier.id).build();
    let world = carried_out(|state| {
        composed(state);
        state.composed = vec![earlier.id];
        state.deployments = vec![old_services(), back.clone(), earlier];
        state.waiting = [a_job(JobKind::Deploy, &back, 1)].into();
    })
    .await;

    assert_eq!(
        world.journal()[..5],
        [
            "commit: prove, deploying",
            "commit: prove, commit 3333333",
            "recall #3",
            "commit: prove, image",
            "start services on 8080 with PASSWORD",
        ]
    );
    assert_eq!(world.journal_of("commit: succeeded, follow").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn continuation_keeps_the_live_services() {
    let mut container = a_container("new");
    container.address = Some(ADDRESS.into());
    let left = a_deployment().numbered(2).in_state(DeploymentState::Deploying).with_image().run_by(container);
    let left = left.build();
    let world = carried_out(|state| {
        composed(state);
        if let Some(application) = &mut state.application {
            application.live = Some(left.id);
        }
        let running = Condition::Running { address: ADDRESS.into(), restarts: 0 };
        let web = a_container_of(&left, running, moment(NEW_YEAR));
        let mut beside = web.clone();
        let launchway_domain::deployments::DiscoveredObject::Container { id, service, .. } = &mut beside.what
        else {
            unreachable!()
        };
        (*id, *service) = (a_container("db").id, Some(parsed("db")));
        state.found = vec![web, beside];
        state.waiting = [a_job(JobKind::Deploy, &left, 2)].into();
        state.deployments = vec![left];
    })
    .await;

    assert!(world.journal_of("clear").is_empty() && world.journal_of("remove").is_empty());
    assert_eq!(world.journal_of("commit: succeeded").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn removes_lost_services_before_their_volumes_are_used() {
    let lost = a_deployment().numbered(3).in_state(DeploymentState::Failed).build();
    let running = Condition::Running { address: ADDRESS.into(), restarts: 0 };
    let world = carried_out(|state| {
        with_a_volume(state);
        state.deployments = vec![old_services(), new(), lost.clone()];
        state.found = [&old_services(), &new(), &lost]
            .map(|whose| a_container_of(whose, running, moment(NEW_YEAR)))
            .to_vec();
    })
    .await;

    let journal = world.journal();
    let place = |entry: &str| journal.iter().position(|other| other.starts_with(entry)).unwrap();
    assert!(place("remove #3") < place("start services"), "{journal:?}");
    assert!(place("start services") < place("remove #1"), "the live version is none of these");
}
