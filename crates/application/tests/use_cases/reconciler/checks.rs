//! Health checks of live versions.

use launchway_domain::{applications::ApplicationState, deployments::Condition};
use launchway_testkit::builders::parsed;

use super::{RECOVERED, announcements, broken, calls, exit, find, live, reconcile, running, world};
use crate::world::wait;

const UNWELL: &str = "the container does not pass its check: status 503";

#[tokio::test(start_paused = true)]
async fn three_failed_checks_break_a_version_down_and_one_heals() {
    let world = world(running(0));

    reconcile(&world, async {
        wait(10).await;
        world.state().illness = Some("status 503".to_owned());
        wait(60).await;
        assert_eq!(calls(&world), [broken(UNWELL)]);
        world.state().illness = None;
        wait(60).await;
    })
    .await;

    assert_eq!(calls(&world), [broken(UNWELL), RECOVERED.to_owned()]);
    assert_eq!(
        world.log(),
        [
            format!("error: The application is unhealthy: {UNWELL}"),
            "info: The application is healthy again".to_owned()
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn two_failed_checks_are_tolerated() {
    let world = world(running(0));

    reconcile(&world, async {
        wait(10).await;
        // The check after a passed one runs 15 s later, the next one 2 s after it.
        world.state().illness = Some("status 503".to_owned());
        let before = world.state().probed.len();
        while world.state().probed.len() < before + 2 {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        world.state().illness = None;
        wait(60).await;
    })
    .await;

    assert!(calls(&world).is_empty() && world.log().is_empty(), "{:?}", calls(&world));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_passes_is_checked_every_15_seconds() {
    let world = world(running(0));
    reconcile(&world, wait(5 * 60)).await;
    let checks = world.state().probed.len();
    assert!((17..=20).contains(&checks), "{checks} checks within 5 minutes");
}

#[tokio::test(start_paused = true)]
async fn a_version_that_was_never_seen_to_pass_may_be_starting() {
    let world = world(running(0));
    world.state().illness = Some("status 503".to_owned());

    reconcile(&world, async {
        wait(55).await;
        assert!(calls(&world).is_empty() && world.log().is_empty(), "{:?}", calls(&world));
        wait(10).await;
        assert_eq!(calls(&world), [broken(UNWELL)]);
        wait(5 * 60).await;
        world.state().illness = None;
        wait(10).await;
    })
    .await;

    assert_eq!(calls(&world), [broken(UNWELL), RECOVERED.to_owned()]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_starts_in_time_is_not_marked() {
    let world = world(running(0));
    world.state().illness = Some("status 503".to_owned());

    reconcile(&world, async {
        wait(50).await;
        world.state().illness = None;
        wait(60).await;
    })
    .await;

    assert!(calls(&world).is_empty() && world.log().is_empty(), "{:?}", calls(&world));
}

#[tokio::test(start_paused = true)]
async fn a_check_of_another_path_begins_anew() {
    let world = world(running(0));

    reconcile(&world, async {
        wait(10).await;
        {
            let mut state = world.state();
            state.live[0].application.blueprint.health_check_path = Some(parsed("/missing"));
            state.illness = Some("status 404".to_owned());
        }
        wait(5 * 60).await;
    })
    .await;

    assert!(calls(&world).is_empty(), "it says nothing about what served before: {:?}", calls(&world));
}

#[tokio::test(start_paused = true)]
async fn a_version_without_a_recorded_reason_gets_one() {
    let world = world(Condition::Exited(exit(1)));
    {
        let mut state = world.state();
        state.live[0].application.status.state = ApplicationState::Failed;
        state.stays_down = true;
    }

    reconcile(&world, wait(30)).await;

    let written = "commit: broken (the container exited with code 1)";
    assert_eq!(world.journal_of("commit: broken"), [written], "it was announced when it was marked");
    assert!(announcements(&world).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_recorded_reason_stays_while_the_container_is_down() {
    let world = world(None);
    {
        let mut state = world.state();
        let version = &mut state.live[0];
        version.application.status.state = ApplicationState::Failed;
        version.deployment.breakdown = Some("the image is gone".to_owned());
        state.busy.clear();
    }

    reconcile(&world, wait(60)).await;

    assert!(world.journal_of("commit: broken").is_empty(), "{:?}", calls(&world));
    let breakdown = world.state().live[0].deployment.breakdown.clone();
    assert_eq!(breakdown.as_deref(), Some("the image is gone"));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_a_job_works_on_is_not_marked() {
    let world = world(running(0));

    reconcile(&world, async {
        wait(10).await;
        {
            let mut state = world.state();
            state.busy = vec![live().application.id.into()];
            state.illness = Some("status 503".to_owned());
            find(&mut state, Condition::Exited(exit(0)));
            state.stays_down = true;
        }
        wait(60).await;
    })
    .await;

    assert!(announcements(&world).is_empty(), "{:?}", announcements(&world));
}
