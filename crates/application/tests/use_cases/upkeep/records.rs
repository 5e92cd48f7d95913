//! Keeping the records of live containers true.

use std::{net::IpAddr, sync::Arc};

use launchway_domain::deployments::{Condition, ContainerRecord, ContainerState, Write};
use launchway_testkit::{
    builders::a_container,
    clock::{NEW_YEAR, moment},
};

use super::{live, look_after, running, wait};
use crate::world::{FOR_EVER, World, a_container_of};

fn arranged(condition: Option<Condition>) -> Arc<World> {
    World::with(|state| {
        state.live = vec![live()];
        state.application = Some(live().application);
        state.deployments = vec![live().deployment];
        state.last_printed = Some(moment(NEW_YEAR));
        let found =
            condition.map(|condition| a_container_of(&live().deployment, condition, moment(NEW_YEAR)));
        state.found = found.into_iter().collect();
    })
}

/// How the container of [`live`] was recorded first.
async fn recorded(condition: Option<Condition>) -> Option<(ContainerState, Option<IpAddr>)> {
    let world = arranged(condition);
    look_after(&world, wait(3)).await;
    let is_so = |state, address| {
        let container = ContainerRecord { state, address, ..a_container("web") };
        let write = Write::RecordContainer { id: live().deployment.id, container, at: world.now() };
        world.commits().contains(&vec![write.into()])
    };
    let moved = IpAddr::from([10, 0, 0, 8]);
    [(ContainerState::Running, Some(moved)), (ContainerState::Exited, None), (ContainerState::Removed, None)]
        .into_iter()
        .find(|(state, address)| is_so(*state, *address))
}

#[tokio::test(start_paused = true)]
async fn a_container_that_is_as_it_was_recorded_is_not_recorded_again() {
    let world = arranged(Some(running(0)));
    look_after(&world, wait(30)).await;
    assert!(world.log().is_empty(), "{:?}", world.log());
    assert_eq!(recorded(Some(running(0))).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_container_with_another_address_is_recorded_gets_the_traffic_and_is_told_of() {
    let moved = Condition::Running { address: [10, 0, 0, 8].into(), restarts: 0 };
    assert_eq!(recorded(Some(moved)).await, Some((ContainerState::Running, Some([10, 0, 0, 8].into()))));
    let world = arranged(Some(moved));
    look_after(&world, wait(3)).await;
    assert_eq!(world.log().first().unwrap(), "info: Live again at http://10.0.0.8:8080");
    assert!(world.journal().iter().any(|call| call == "switch to 10.0.0.8:8080"), "{:?}", world.journal());
}

#[tokio::test(start_paused = true)]
async fn a_container_that_stands_still_or_is_gone_is_recorded_so() {
    let exited = Condition::Exited { code: 1, out_of_memory: false, restarts: 1 };
    assert_eq!(recorded(Some(exited)).await, Some((ContainerState::Exited, None)));
    assert_eq!(recorded(None).await, Some((ContainerState::Removed, None)));
}

#[tokio::test(start_paused = true)]
async fn traffic_is_led_away_from_a_container_that_does_not_run() {
    let exited = Condition::Exited { code: 1, out_of_memory: false, restarts: 1 };
    for condition in [Some(exited), None] {
        let world = arranged(condition);
        look_after(&world, wait(3)).await;
        assert_eq!(world.journal_of("switch").first().unwrap(), "switch to nowhere: absent");
    }
}

#[tokio::test(start_paused = true)]
async fn at_the_start_records_are_corrected_before_traffic_is_led_by_them() {
    let moved = Condition::Running { address: [10, 0, 0, 8].into(), restarts: 0 };
    let world = arranged(Some(moved));

    world.upkeep().begin().await.unwrap();

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
async fn a_start_does_not_wait_for_an_engine_that_does_not_answer() {
    for is_slow in [true, false] {
        let world = arranged(Some(running(0)));
        if is_slow {
            world.state().delay("containers", FOR_EVER);
        } else {
            world.state().fault("containers", 1);
        }
        let start = tokio::time::Instant::now();

        world.upkeep().begin().await.unwrap();

        assert!(start.elapsed().as_secs() <= 5);
        assert_eq!(world.state().routes.len(), 1);
    }
}
