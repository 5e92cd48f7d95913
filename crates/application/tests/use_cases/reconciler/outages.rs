//! Outages of the engine.

use std::time::Duration;

use chrono::TimeDelta;
use launchway_domain::deployments::{Condition, RetentionStatus};
use launchway_testkit::builders::a_deployment;
use tokio::time::Instant;

use super::{announcements, calls, exit, find, live, reconcile, running, world};
use crate::world::{AWAY, FOR_EVER, World, a_container_of, wait};

#[tokio::test(start_paused = true)]
async fn an_outage_keeps_its_beginning_until_the_engine_answers() {
    let world = world(running(0));
    let began = world.now();

    reconcile(&world, async {
        wait(10).await;
        assert_eq!(world.engine.outage(), None);
        world.state().is_away = true;
        wait(10).await;
        world.clock.advance(TimeDelta::seconds(60));
        wait(60).await;
        let outage = world.engine.outage().unwrap();
        assert_eq!((outage.since, outage.reason.as_str()), (began, AWAY));
        let mut wake = world.wake.listen();
        world.state().is_away = false;
        wake.wait_timeout(Duration::from_secs(60)).await;
        assert_eq!(world.engine.outage(), None, "whoever waits for the engine is woken");
    })
    .await;

    assert!(calls(&world).is_empty() && world.log().is_empty(), "{:?}", world.log());
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_hangs_is_away_after_ten_seconds() {
    let world = world(running(0));
    world.state().delay("containers", FOR_EVER);

    reconcile(&world, async {
        wait(11).await;
        assert_eq!(world.engine.outage(), None);
        wait(2).await;
    })
    .await;

    let outage = world.engine.outage().unwrap();
    assert_eq!(outage.reason, "the Docker engine did not answer within 10 s");
}

#[tokio::test(start_paused = true)]
async fn nobody_is_marked_while_the_engine_is_away() {
    let world = world(running(0));

    reconcile(&world, async {
        wait(10).await;
        {
            let mut state = world.state();
            state.found.clear();
            state.is_away = true;
        }
        wait(10 * 60).await;
    })
    .await;

    assert!(calls(&world).is_empty() && world.log().is_empty(), "{:?}", calls(&world));
}

#[tokio::test(start_paused = true)]
async fn a_version_is_checked_at_its_address_during_an_outage() {
    let world = world(running(0));

    reconcile(&world, async {
        wait(10).await;
        world.state().is_away = true;
        wait(10).await;
        world.state().illness = Some("connection refused".to_owned());
        wait(60).await;
    })
    .await;

    assert_eq!(announcements(&world).len(), 1, "{:?}", calls(&world));
    let said = "error: The application is unhealthy: the container does not pass its check: connection \
                refused";
    assert_eq!(world.log(), [said]);
}

#[tokio::test(start_paused = true)]
async fn no_orphan_is_removed_while_the_engine_is_away() {
    let old = a_deployment().numbered(2).build();
    let retention_status =
        RetentionStatus { deployment: old.id, is_live: false, is_open: false, is_worth_keeping: false };
    let world = world(running(0));
    {
        let mut state = world.state();
        let orphan = a_container_of(&old, running(0), state.last_printed.unwrap());
        state.found.push(orphan);
        state.deployments.push(old);
        state.retention_status = vec![retention_status];
    }

    reconcile(&world, async {
        wait(60).await;
        world.state().is_away = true;
        wait(10 * 60).await;
        assert!(calls(&world).is_empty(), "{:?}", calls(&world));
        world.state().is_away = false;
        wait(60).await;
    })
    .await;

    assert_eq!(world.journal_of("clear"), ["clear container of #2"]);
}

#[tokio::test(start_paused = true)]
async fn what_changed_during_an_outage_is_followed_behind_it() {
    let world = world(running(0));

    reconcile(&world, async {
        world.state().is_away = true;
        wait(60).await;
        {
            let mut state = world.state();
            find(&mut state, Condition::Exited(exit(255)));
            state.is_away = false;
        }
        wait(20).await;
    })
    .await;

    assert_eq!(world.journal_of("resume"), ["resume #1"]);
    assert_eq!(announcements(&world).len(), 2, "{:?}", announcements(&world));
}

#[tokio::test(start_paused = true)]
async fn a_start_does_not_wait_for_an_engine_that_does_not_answer() {
    for arrange in [
        (|world: &World| world.state().delay("containers", FOR_EVER)) as fn(&World),
        |world| world.state().fault("containers", 1),
        |world| world.state().is_away = true,
    ] {
        let world = world(running(0));
        arrange(&world);
        let start = Instant::now();

        world.begin().await.unwrap();

        assert!(start.elapsed() <= Duration::from_secs(5), "{:?}", start.elapsed());
        assert!(world.engine.outage().is_some());
        assert_eq!(world.state().routes.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn live_versions_are_known_during_an_outage() {
    let world = world(running(0));
    world.state().is_away = true;
    let reconciler = world.reconciler();
    reconciler.begin().await;
    let snapshot = reconciler.snapshot().borrow().clone();
    assert_eq!(*snapshot.live, [live()]);
}
