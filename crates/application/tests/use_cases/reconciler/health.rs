//! Unstable live versions.

use launchway_domain::{
    applications::Write,
    deployments::{Condition, Exit},
    notifications::{EventKind, Fact, Write::Announce},
    store,
};
use launchway_testkit::builders::parsed;

use super::{RECOVERED, announcements, broken, find, live, reconcile, running, world};
use crate::{
    announcements::announced,
    world::{World, wait},
};

/// Returns the recorded health, in order. A commit that records a change of health announces it too.
fn marks(world: &World) -> Vec<bool> {
    let of_commit = |commit: Vec<store::Write>| match &commit[..] {
        [store::Write::Application(Write::SetHealth { deployment, health, at }), more @ ..] => {
            assert_eq!((*deployment, *at), (live().deployment.id, world.now()));
            let is_healthy = health.reason().is_none();
            if more.is_empty() {
                assert!(!is_healthy, "only a reason is replaced without an announcement");
                return None;
            }
            let kind = if is_healthy { EventKind::ApplicationRecovered } else { EventKind::DeploymentFailed };
            assert!(
                matches!(more, [store::Write::Notification(Announce(event))] if event.kind == kind),
                "{more:?}"
            );
            Some(is_healthy)
        }
        _ => None,
    };
    world.commits().into_iter().filter_map(of_commit).collect()
}

const GONE: &str = "the container was removed";
const LOOP: &str = "the container keeps restarting: 5 restarts within 10 minutes";

#[tokio::test(start_paused = true)]
async fn the_fifth_restart_within_ten_minutes_is_a_break_down() {
    for (restarts, expected) in [(4, vec![]), (5, vec![false])] {
        let world = world(running(0));

        reconcile(&world, async {
            for number in 1..=restarts {
                wait(90).await;
                find(&mut world.state(), running(number));
            }
            wait(30).await;
        })
        .await;

        assert_eq!(marks(&world), expected, "{restarts}");
        assert_eq!(
            world.log(),
            expected
                .iter()
                .map(|_| format!("error: The application is unhealthy: {LOOP}"))
                .collect::<Vec<_>>()
        );
        assert_eq!(announcements(&world), expected.iter().map(|_| broken(LOOP)).collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn restarts_that_are_further_apart_are_tolerated() {
    let world = world(running(0));

    reconcile(&world, async {
        for number in 1..=12 {
            wait(151).await;
            find(&mut world.state(), running(number));
        }
        wait(10).await;
    })
    .await;

    assert!(marks(&world).is_empty());
}

#[tokio::test(start_paused = true)]
async fn restarts_from_before_the_first_look_do_not_count() {
    let world = world(running(1000));
    reconcile(&world, wait(120)).await;
    assert!(marks(&world).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_is_noticed_between_two_starts() {
    let world = world(running(0));

    reconcile(&world, async {
        wait(10).await;
        let exit = Exit { code: 1, out_of_memory: false, restarts: 7 };
        find(&mut world.state(), Condition::Restarting(exit));
        wait(3).await;
    })
    .await;

    assert_eq!(marks(&world), [false]);
    assert_eq!(announcements(&world), [broken("the container keeps restarting: it exited with code 1")]);
}

#[tokio::test(start_paused = true)]
async fn a_crash_loop_is_one_break_down() {
    let world = world(running(0));

    reconcile(&world, async {
        wait(10).await;
        for restarts in 1..=20 {
            let exit = Exit { code: 1, out_of_memory: false, restarts };
            find(&mut world.state(), Condition::Restarting(exit));
            wait(10).await;
            find(&mut world.state(), running(restarts));
            wait(5).await;
        }
        assert_eq!(marks(&world), [false], "{:?}", announcements(&world));
        wait(120).await;
    })
    .await;

    assert_eq!(marks(&world), [false, true]);
    assert_eq!(announcements(&world).last().map(String::as_str), Some(RECOVERED));
    let errors: Vec<_> = world.log().into_iter().filter(|line| line.starts_with("error")).collect();
    let reasons = ["the container keeps restarting: it exited with code 1", LOOP];
    assert_eq!(errors, reasons.map(|reason| format!("error: The application is unhealthy: {reason}")));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_stays_up_for_a_minute_is_trusted_again() {
    let world = world(running(0));

    reconcile(&world, async {
        wait(10).await;
        find(&mut world.state(), running(6));
        wait(55).await;
        assert_eq!(marks(&world), [false]);
        wait(60).await;
    })
    .await;

    assert_eq!(marks(&world), [false, true]);
    assert_eq!(world.log()[1..], ["info: The application is healthy again"]);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_is_removed_breaks_a_version_down_once() {
    let world = world(running(0));

    reconcile(&world, async {
        wait(10).await;
        world.state().found.clear();
        wait(30).await;
    })
    .await;

    assert_eq!(announcements(&world), [broken(GONE)]);
}

#[tokio::test(start_paused = true)]
async fn a_break_down_is_announced_with_its_facts() {
    let world = world(running(0));
    {
        let mut state = world.state();
        state.found.clear();
        let version = &mut state.live[0];
        version.application.blueprint.domain = Some(parsed("shop.example.com"));
        version.deployment.commit = Some(parsed(&"5".repeat(40)));
        version.deployment.requested_by = "a push to main on GitLab".to_owned();
    }

    reconcile(&world, wait(3)).await;

    let (application, deployment) = (live().application.id.to_string(), live().deployment.id.to_string());
    let facts = [
        (Fact::Application, "web"),
        (Fact::ApplicationId, application.as_str()),
        (Fact::Environment, "production"),
        (Fact::Host, "shop.example.com"),
        (Fact::DeploymentId, deployment.as_str()),
        (Fact::Commit, "5555555555555555555555555555555555555555"),
        (Fact::RequestedBy, "a push to main on GitLab"),
        (Fact::Reason, GONE),
    ];
    let expected = announced(2, EventKind::DeploymentFailed, facts);
    let commits = world.commits();
    assert!(commits.iter().flatten().any(|write| *write == expected), "{expected:?} is not in {commits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_second_break_down_is_announced_again() {
    let world = world(running(0));

    reconcile(&world, async {
        wait(10).await;
        find(&mut world.state(), running(6));
        wait(120).await;
        world.state().found.clear();
        wait(30).await;
    })
    .await;

    assert_eq!(announcements(&world), [broken(LOOP), RECOVERED.to_owned(), broken(GONE)]);
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_cannot_be_stored_is_made_again_and_logged_once() {
    let world = world(running(0));
    {
        let mut state = world.state();
        state.found.clear();
        let mut left = 1;
        state.judge = Some(Box::new(move |writes| {
            let is_mark = matches!(writes, [store::Write::Application(_), ..]);
            if is_mark && std::mem::take(&mut left) == 1 { Err(crate::ports::unavailable()) } else { Ok(()) }
        }));
    }

    reconcile(&world, wait(10)).await;

    let errors: Vec<_> = world.log().into_iter().filter(|line| line.starts_with("error")).collect();
    assert_eq!(errors, [format!("error: The application is unhealthy: {GONE}")]);
    assert_eq!(announcements(&world), [broken(GONE)]);
}
