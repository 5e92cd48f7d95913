//! The records of live containers follow the engine.

use std::net::IpAddr;

use launchway_domain::deployments::{Condition, ContainerRecord, ContainerState, Write};
use launchway_testkit::builders::a_container;

use super::{exit, find, live, reconcile, running, running_at, world};
use crate::world::wait;

/// Returns the first record of the container of [`live`] in `condition`.
async fn recorded(condition: Option<Condition>) -> Option<(ContainerState, Option<IpAddr>)> {
    let world = world(condition);
    world.state().stays_down = true;
    reconcile(&world, wait(3)).await;
    let commit = world.commits().into_iter().next()?;
    let [launchway_domain::store::Write::Deployment(Write::RecordContainer { id, container, at })] =
        &commit[..]
    else {
        panic!("{commit:?}")
    };
    let ContainerRecord { state, address, .. } = container.clone();
    assert_eq!((*id, *at), (live().deployment.id, world.now()));
    assert_eq!(*container, ContainerRecord { state, address, ..a_container("web") });
    Some((state, address))
}

#[tokio::test(start_paused = true)]
async fn a_container_keeps_its_address_while_it_is_down() {
    let here = Some(IpAddr::from([10, 0, 0, 7]));
    for (condition, state) in [
        (Some(Condition::Exited(exit(1))), ContainerState::Exited),
        (Some(Condition::Restarting(exit(1))), ContainerState::Exited),
        (Some(Condition::Paused), ContainerState::Exited),
        (Some(Condition::Detached), ContainerState::Exited),
        (Some(Condition::Created), ContainerState::Created),
        (None, ContainerState::Removed),
    ] {
        assert_eq!(recorded(condition).await, Some((state, here)), "{condition:?}");
    }
    assert_eq!(recorded(Some(running(0))).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_container_is_recorded_where_it_is() {
    let there = [10, 0, 0, 8];
    assert_eq!(
        recorded(Some(running_at(there, 0))).await,
        Some((ContainerState::Running, Some(there.into())))
    );
}

#[tokio::test(start_paused = true)]
async fn no_traffic_is_routed_to_a_container_that_is_down() {
    for condition in [Some(Condition::Exited(exit(1))), Some(Condition::Paused), None] {
        let world = world(condition);
        world.state().stays_down = true;

        reconcile(&world, wait(60)).await;

        assert_eq!(world.journal_of("switch"), ["switch to nowhere: absent"], "{condition:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_written_is_written_at_the_next_look() {
    let world = world(running_at([10, 0, 0, 8], 0));
    let mut left = 1;
    world.state().judge = Some(Box::new(move |_| match std::mem::take(&mut left) {
        1 => Err(crate::ports::unavailable()),
        _ => Ok(()),
    }));

    reconcile(&world, wait(10)).await;

    assert_eq!(world.journal_of("commit"), ["commit: record web running"]);
    assert_eq!(world.journal_of("switch"), ["switch to 10.0.0.8:8080"]);
}

#[tokio::test(start_paused = true)]
async fn records_are_corrected_before_the_first_route() {
    let world = world(running_at([10, 0, 0, 8], 0));

    world.begin().await.unwrap();

    assert_eq!(
        world.journal(),
        [
            "rescue",
            "commit: follow all, follow runs",
            "containers",
            "commit: record web running",
            "switch to 10.0.0.8:8080"
        ]
    );
    assert_eq!(world.state().routes.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_version_replaced_during_a_look_is_not_marked() {
    // The scan began with the old version, and the engine is queried after its removal.
    let world = world(running(0));
    world.state().delay("containers", std::time::Duration::from_millis(400));

    reconcile(&world, async {
        wait(2).await;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        {
            let mut state = world.state();
            state.found.clear();
            state.live.clear();
            state.judge = Some(Box::new(|writes| match format!("{writes:?}").contains("SetHealth") {
                true => Err(launchway_domain::store::StoreError::Stale),
                false => Ok(()),
            }));
        }
        wait(30).await;
    })
    .await;

    assert!(!world.log().iter().any(|line| line.starts_with("error")), "{:?}", world.log());
}

#[tokio::test(start_paused = true)]
async fn the_engine_is_looked_at_every_ten_seconds_without_news() {
    let world = world(running(0));
    world.state().is_quiet = true;
    reconcile(&world, wait(61)).await;
    let looks = world.journal_of("containers").len();
    assert!((5..=7).contains(&looks), "{looks} looks within a minute");
}

#[tokio::test(start_paused = true)]
async fn news_of_the_engine_is_looked_at_at_once() {
    let world = world(running(0));

    reconcile(&world, async {
        wait(10).await;
        find(&mut world.state(), running_at([10, 0, 0, 8], 0));
        wait(3).await;
    })
    .await;

    assert_eq!(world.journal_of("switch"), ["switch to 10.0.0.8:8080"]);
}
