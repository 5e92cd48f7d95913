//! Noticing live versions that do not stay up.

use std::sync::Arc;

use launchway_domain::{
    applications::Write,
    deployments::Condition,
    notifications::{EventKind, Fact, Write::Announce},
    store,
};
use launchway_testkit::{
    builders::parsed,
    clock::{NEW_YEAR, moment},
};

use super::{live, look_after, running, wait};
use crate::{
    announcements::announced,
    world::{State, World, a_container_of},
};

/// The container of [`live`] is so.
fn is(state: &mut State, condition: Condition) {
    state.found = vec![a_container_of(&live().deployment, condition, moment(NEW_YEAR))];
}

fn arranged(condition: Condition) -> Arc<World> {
    World::with(|state| {
        state.live = vec![live()];
        state.last_printed = Some(moment(NEW_YEAR));
        is(state, condition);
    })
}

/// The marks that were made, by whether the version stays up. Whoever marks one that does not has to
/// announce it in the same unit; nobody is told that it does again.
fn marks(world: &World) -> Vec<bool> {
    let mark = |is_stable| {
        let deployment = live().deployment.id;
        store::Write::from(Write::SetStable { deployment, is_stable, at: world.now() })
    };
    let of_commit = |commit: Vec<store::Write>| match &commit[..] {
        [stable] if *stable == mark(true) => Some(true),
        [unstable, store::Write::Notification(Announce(event))] if *unstable == mark(false) => {
            assert_eq!(event.kind, EventKind::DeploymentFailed);
            Some(false)
        }
        other => {
            assert!(!other.contains(&mark(true)) && !other.contains(&mark(false)), "{other:?}");
            None
        }
    };
    world.commits().into_iter().filter_map(of_commit).collect()
}

const GONE: &str = "The container is gone: deploy again to get a new one";
const LOOP: &str = "The container does not stay up: it was started again 5 times";

/// The units that announced something, in a few words.
fn announcements(world: &World) -> Vec<String> {
    world.journal().into_iter().filter(|entry| entry.contains("announce")).collect()
}

/// The unit that says of a version that it broke down, and why.
fn break_down(reason: &str) -> String {
    format!("commit: not stable, announce deployment.failed ({reason})")
}

#[tokio::test(start_paused = true)]
async fn four_restarts_within_ten_minutes_are_borne_and_the_fifth_marks_the_application() {
    for (restarts, expected) in [(4, vec![]), (5, vec![false])] {
        let world = arranged(running(0));

        look_after(&world, async {
            for number in 1..=restarts {
                wait(100).await;
                is(&mut world.state(), running(number));
            }
            wait(55).await;
        })
        .await;

        assert_eq!(marks(&world), expected, "{restarts}");
        assert_eq!(world.log(), expected.iter().map(|_| format!("error: {LOOP}")).collect::<Vec<_>>());
        assert_eq!(announcements(&world), expected.iter().map(|_| break_down(LOOP)).collect::<Vec<_>>());
    }
}

#[tokio::test(start_paused = true)]
async fn restarts_that_are_further_apart_are_borne() {
    let world = arranged(running(0));

    look_after(&world, async {
        for number in 1..=12 {
            wait(151).await;
            is(&mut world.state(), running(number));
        }
        wait(10).await;
    })
    .await;

    assert!(marks(&world).is_empty());
}

#[tokio::test(start_paused = true)]
async fn restarts_from_before_anybody_looked_do_not_count() {
    let world = arranged(running(1000));
    look_after(&world, wait(120)).await;
    assert!(marks(&world).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_loop_is_noticed_while_the_container_stands_still_between_two_starts() {
    let world = arranged(running(0));

    look_after(&world, async {
        wait(10).await;
        is(&mut world.state(), Condition::Exited { code: 1, out_of_memory: false, restarts: 7 });
        wait(3).await;
    })
    .await;

    assert_eq!(marks(&world), [false]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_stays_up_for_a_minute_is_trusted_again() {
    let world = arranged(running(0));

    look_after(&world, async {
        wait(10).await;
        is(&mut world.state(), running(6));
        wait(55).await;
        assert_eq!(marks(&world), [false]);
        wait(60).await;
    })
    .await;

    assert_eq!(marks(&world), [false, true]);
    assert_eq!(world.log()[1..], ["info: The container stays up again"]);
    assert_eq!(world.journal_of("commit: stable"), ["commit: stable"]);
    assert_eq!(announcements(&world).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_is_gone_marks_the_application_once() {
    let world = arranged(running(0));

    look_after(&world, async {
        wait(10).await;
        world.state().found.clear();
        wait(30).await;
    })
    .await;

    assert_eq!(marks(&world), [false]);
    assert_eq!(world.log(), [format!("error: {GONE}")]);
    assert_eq!(announcements(&world), [break_down(GONE)]);
}

#[tokio::test(start_paused = true)]
async fn who_breaks_down_is_announced_with_all_that_is_known_of_it() {
    let world = arranged(running(0));
    {
        let mut state = world.state();
        state.found.clear();
        let version = &mut state.live[0];
        version.application.blueprint.domain = Some(parsed("shop.example.com"));
        version.deployment.commit = Some(parsed(&"5".repeat(40)));
        version.deployment.requested_by = "a push to main on GitLab".to_owned();
    }

    look_after(&world, wait(3)).await;

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
    let expected = announced(1, EventKind::DeploymentFailed, facts);
    let commits = world.commits();
    assert!(commits.iter().flatten().any(|write| *write == expected), "{expected:?} is not in {commits:?}");
}

#[tokio::test(start_paused = true)]
async fn who_breaks_down_again_is_announced_again() {
    let world = arranged(running(0));

    look_after(&world, async {
        wait(10).await;
        is(&mut world.state(), running(6));
        wait(120).await;
        world.state().found.clear();
        wait(30).await;
    })
    .await;

    assert_eq!(marks(&world), [false, true, false]);
    assert_eq!(announcements(&world), [break_down(LOOP), break_down(GONE)]);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_is_gone_because_its_version_was_replaced_is_not_told_of() {
    // The round began with the old version, and the engine is asked when it is gone already.
    let world = arranged(running(0));
    world.state().delay("containers", std::time::Duration::from_millis(400));

    look_after(&world, async {
        wait(2).await;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        {
            let mut state = world.state();
            state.found.clear();
            state.live.clear();
        }
        wait(30).await;
    })
    .await;

    assert!(marks(&world).is_empty());
    assert!(world.log().is_empty(), "{:?}", world.log());
}

#[tokio::test(start_paused = true)]
async fn what_is_stopped_may_stand_still_or_be_gone() {
    let world = arranged(running(0));
    {
        let mut state = world.state();
        state.found.clear();
        state.live[0].application.is_stopped = true;
    }

    look_after(&world, wait(30)).await;

    assert!(marks(&world).is_empty() && world.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn containers_of_which_there_is_no_news_are_looked_at_now_and_then() {
    let world = arranged(running(0));
    world.state().is_quiet = true;

    look_after(&world, wait(61)).await;

    let (looks, rounds) = (world.journal_of("containers").len(), world.journal_of("printed").len());
    assert_eq!((looks, rounds), (6, 24));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_marked_while_the_engine_does_not_answer() {
    let world = arranged(running(0));
    {
        let mut state = world.state();
        state.found.clear();
        state.fault("containers", 100);
    }

    look_after(&world, wait(30)).await;

    assert!(marks(&world).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_cannot_be_kept_is_made_again_and_told_of_once() {
    let world = arranged(running(0));
    {
        let mut state = world.state();
        state.found.clear();
        let mut left = 1;
        state.judge = Some(Box::new(move |writes| {
            let is_mark = matches!(writes, [store::Write::Application(_), ..]);
            if is_mark && std::mem::take(&mut left) == 1 { Err(crate::ports::unavailable()) } else { Ok(()) }
        }));
    }

    look_after(&world, wait(10)).await;

    assert_eq!((marks(&world), world.log().len()), (vec![false], 1));
    assert_eq!(announcements(&world), [break_down(GONE)]);
}
