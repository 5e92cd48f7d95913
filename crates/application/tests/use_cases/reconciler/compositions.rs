//! Compositions: the sidecars of the container that gets the traffic.

use std::sync::Arc;

use chrono::TimeDelta;
use launchway_domain::deployments::{
    Condition, ContainerState, DiscoveredObject, DiscoveredResource, ImageName, LiveVersion, RetentionStatus,
};
use launchway_testkit::{
    builders::{a_container, parsed},
    clock::{NEW_YEAR, moment},
};

use super::{calls, exit, reconcile, running};
use crate::world::{State, World, a_container_of, wait};

/// Returns [`super::live`] as a composition.
pub(crate) fn live() -> LiveVersion {
    let mut live = super::live();
    let (application, deployment) = (live.application.id, live.deployment.id);
    live.deployment.image = Some(ImageName::of_service(application, deployment, &parsed("web")));
    live
}

/// Returns the container that gets the traffic, as the service "web".
pub(crate) fn web() -> DiscoveredResource {
    named(a_container_of(&live().deployment, running(0), moment(NEW_YEAR) - TimeDelta::hours(1)), "web")
}

/// Returns a sidecar of the same attempt.
pub(crate) fn beside(service: &str, condition: Condition) -> DiscoveredResource {
    let mut found = named(web(), service);
    let DiscoveredObject::Container { id, condition: its, .. } = &mut found.what else { unreachable!() };
    (*id, *its) = (a_container(service).id, condition);
    found
}

fn named(mut found: DiscoveredResource, name: &str) -> DiscoveredResource {
    let DiscoveredObject::Container { service, .. } = &mut found.what else { unreachable!() };
    *service = Some(parsed(name));
    found
}

fn network() -> DiscoveredResource {
    DiscoveredResource { what: DiscoveredObject::Network("launchway-x-1".to_owned()), ..web() }
}

/// Returns a world in which [`live`] runs, configured by `arrange`.
pub(crate) fn composed(arrange: impl FnOnce(&mut State)) -> Arc<World> {
    World::with(|state| {
        state.live = vec![live()];
        state.application = Some(live().application);
        state.deployments = vec![live().deployment];
        state.last_printed = Some(moment(NEW_YEAR) - TimeDelta::hours(1));
        state.found = vec![web(), beside("db", running(0)), network()];
        let deployment = live().deployment.id;
        state.retention_status =
            vec![RetentionStatus { deployment, is_live: true, is_open: false, is_worth_keeping: true }];
        arrange(state);
    })
}

const DOWN: Condition = Condition::Exited(exit(1));

/// Runs the reconciler, and a job on the composition as soon as one is enqueued.
async fn reconcile_with_a_job(world: &Arc<World>) {
    reconcile(world, async {
        wait(3).await;
        world.state().busy = vec![live().application.id.into()];
        wait(60).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_down_leads_to_one_job() {
    let world = composed(|state| state.found = vec![web(), beside("db", DOWN), network()]);

    reconcile_with_a_job(&world).await;

    assert_eq!(calls(&world), ["commit: enqueue reconcile"]);
    assert_eq!(world.log(), ["warn: A sidecar service is not running"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_may_end_leads_to_nothing() {
    let world = composed(|state| {
        let mut migration = beside("migration", Condition::Exited(exit(0)));
        let DiscoveredObject::Container { stays_up, .. } = &mut migration.what else { unreachable!() };
        *stays_up = false;
        let restarting = beside("cache", Condition::Restarting(exit(1)));
        state.found = vec![web(), migration, restarting, network()];
    });

    reconcile(&world, wait(60)).await;

    assert!(calls(&world).is_empty() && world.log().is_empty(), "{:?}", calls(&world));
}

#[tokio::test(start_paused = true)]
async fn a_composition_that_is_down_leads_to_one_job() {
    for (condition, state) in
        [(DOWN, "exited"), (Condition::Paused, "exited"), (Condition::Created, "created")]
    {
        let world = composed(|world| {
            world.found = vec![web(), beside("db", running(0))];
            let DiscoveredObject::Container { condition: its, .. } = &mut world.found[0].what else {
                unreachable!()
            };
            *its = condition;
        });

        reconcile_with_a_job(&world).await;

        let recorded = format!("commit: record web {state}");
        let made: Vec<String> = calls(&world).into_iter().filter(|call| !call.contains("broken")).collect();
        assert_eq!(made, [recorded.as_str(), "switch to nowhere: absent", "commit: enqueue reconcile"]);
        assert!(world.journal_of("resume").is_empty(), "two databases may share its volumes");
    }
}

#[tokio::test(start_paused = true)]
async fn a_composition_left_stopped_for_a_lost_deployment_comes_back() {
    let world = composed(|state| {
        state.found = vec![web(), beside("db", DOWN)];
        let DiscoveredObject::Container { condition, .. } = &mut state.found[0].what else { unreachable!() };
        *condition = DOWN;
        for deployment in [&mut state.deployments[0], &mut state.live[0].deployment] {
            deployment.container.as_mut().unwrap().state = ContainerState::Exited;
        }
    });

    reconcile_with_a_job(&world).await;

    assert_eq!(world.journal_of("commit: enqueue"), ["commit: enqueue reconcile"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_done_to_a_composition_while_a_job_runs() {
    for condition in [DOWN, Condition::Paused, Condition::Detached] {
        let world = composed(|state| {
            state.found = vec![web(), beside("db", condition)];
            let DiscoveredObject::Container { condition: its, .. } = &mut state.found[0].what else {
                unreachable!()
            };
            *its = condition;
            state.busy = vec![live().application.id.into()];
        });

        reconcile(&world, wait(60)).await;

        assert!(calls(&world).is_empty() && world.log().is_empty(), "{:?}", calls(&world));
    }
}

#[tokio::test(start_paused = true)]
async fn a_service_that_does_not_stay_up_is_logged_once() {
    let world = composed(|_| {});

    reconcile(&world, async {
        for number in 1..=7 {
            wait(10).await;
            world.state().found = vec![web(), beside("db", running(number))];
        }
        wait(10).await;
    })
    .await;

    let said = "warn: The service `db` keeps restarting: 5 restarts";
    assert_eq!(world.log(), [said]);
    assert!(calls(&world).is_empty(), "the application is not marked: {:?}", calls(&world));
}

#[tokio::test(start_paused = true)]
async fn services_and_their_network_stay_with_the_live_version() {
    let world = composed(|_| {});
    reconcile(&world, wait(10 * 60)).await;
    assert!(calls(&world).is_empty(), "{:?}", calls(&world));
}

#[tokio::test(start_paused = true)]
async fn services_of_another_attempt_go_with_their_network() {
    let world = composed(|state| {
        let of_another_attempt = |mut found: DiscoveredResource| {
            found.owner.attempt += 1;
            found
        };
        state.found.extend([beside("cache", running(0)), network()].map(of_another_attempt));
    });

    reconcile(&world, wait(125)).await;

    assert_eq!(
        calls(&world),
        [
            "drain",
            "stop attempt 2 of #1",
            "printed",
            "remove attempt 2 of #1",
            "clear container of #1",
            "clear network of #1"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn services_of_a_version_that_is_not_live_go_with_their_network() {
    let world = composed(|state| {
        state.live.clear();
        let deployment = live().deployment.id;
        state.retention_status =
            vec![RetentionStatus { deployment, is_live: false, is_open: false, is_worth_keeping: true }];
    });

    reconcile(&world, wait(125)).await;

    let gone = ["clear container of #1", "clear container of #1", "clear network of #1"];
    assert_eq!(world.journal_of("clear"), gone);
    assert_eq!(world.journal_of("stop"), ["stop #1", "stop attempt 1 of #1"]);
}
