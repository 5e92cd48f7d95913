//! Backoff between attempts at starting a container, and their limit.

use launchway_domain::deployments::Condition;

use super::{announcements, exit, find, reconcile, running, world};
use crate::world::wait;

const MINUTES: u64 = 60;

#[tokio::test(start_paused = true)]
async fn a_container_that_stays_down_is_resumed_ten_times() {
    let world = world(Condition::Exited(exit(1)));
    world.state().stays_down = true;

    reconcile(&world, async {
        wait(20).await;
        let first = world.journal_of("resume").len();
        assert!((3..=5).contains(&first), "pauses grow: {first} attempts within 20 s");
        wait(20 * MINUTES).await;
        assert_eq!(world.journal_of("resume").len(), 10);
        wait(60 * MINUTES).await;
    })
    .await;

    assert_eq!(world.journal_of("resume").len(), 10);
    assert_eq!(announcements(&world).len(), 1, "{:?}", announcements(&world));
    let log = world.log();
    let last = "warn: The container exited with code 1: restarting it: this is the last attempt";
    assert_eq!((log.len(), log.last().map(String::as_str)), (11, Some(last)), "{log:?}");
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_the_engine_is_logged_and_tried_again() {
    let world = world(Condition::Exited(exit(1)));
    world.state().fault("resume", 2);

    reconcile(&world, wait(30)).await;

    assert_eq!(world.journal_of("resume").len(), 3);
    let said = "warn: The container could not be started: resume does not answer";
    assert_eq!(world.log().iter().filter(|line| *line == said).count(), 2, "{:?}", world.log());
    assert_eq!(announcements(&world).len(), 2, "it broke down once and recovered once");
}

#[tokio::test(start_paused = true)]
async fn attempts_begin_anew_after_an_outage_of_the_engine() {
    let world = world(Condition::Exited(exit(1)));
    world.state().stays_down = true;

    reconcile(&world, async {
        wait(20 * MINUTES).await;
        assert_eq!(world.journal_of("resume").len(), 10);
        world.state().is_away = true;
        wait(30).await;
        world.state().is_away = false;
        wait(20 * MINUTES).await;
    })
    .await;

    assert_eq!(world.journal_of("resume").len(), 20);
}

#[tokio::test(start_paused = true)]
async fn attempts_begin_anew_once_a_version_has_served_again() {
    let world = world(Condition::Exited(exit(1)));
    world.state().stays_down = true;

    reconcile(&world, async {
        wait(20 * MINUTES).await;
        find(&mut world.state(), running(0));
        wait(10).await;
        find(&mut world.state(), Condition::Exited(exit(2)));
        wait(3).await;
    })
    .await;

    assert_eq!(world.journal_of("resume").len(), 11);
    assert_eq!(announcements(&world).len(), 3, "{:?}", announcements(&world));
}

#[tokio::test(start_paused = true)]
async fn another_version_has_attempts_of_its_own() {
    let world = world(Condition::Exited(exit(1)));
    world.state().stays_down = true;

    reconcile(&world, async {
        wait(20 * MINUTES).await;
        let versions = std::mem::take(&mut world.state().live);
        wait(10).await;
        world.state().live = versions;
        wait(20 * MINUTES).await;
    })
    .await;

    assert_eq!(world.journal_of("resume").len(), 20, "nothing is remembered of what is not live");
}

#[tokio::test(start_paused = true)]
async fn one_attempt_at_a_container_is_made_at_a_time() {
    let world = world(Condition::Paused);
    world.state().delay("resume", std::time::Duration::from_secs(5 * MINUTES));

    reconcile(&world, wait(4 * MINUTES)).await;

    assert_eq!(world.journal_of("resume").len(), 1);
}
