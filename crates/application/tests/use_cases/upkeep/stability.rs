//! Noticing live versions that do not stay up.

use std::sync::Arc;

use launchway_domain::{applications::Write, deployments::Condition};
use launchway_testkit::clock::{NEW_YEAR, moment};

use super::{live, look_after, running, wait};
use crate::world::{State, World, a_container_of};

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

/// The marks that were made, by whether the version stays up.
fn marks(world: &World) -> Vec<bool> {
    let stable = Write::SetStable { deployment: live().deployment.id, is_stable: true, at: world.now() };
    let unstable = Write::SetStable { deployment: live().deployment.id, is_stable: false, at: world.now() };
    let (stable, unstable) = (vec![stable.into()], vec![unstable.into()]);
    let of_commit = |commit| {
        if commit == stable { Some(true) } else { (commit == unstable).then_some(false) }
    };
    world.commits().into_iter().filter_map(of_commit).collect()
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
        let said = "error: The container does not stay up: it was started again 5 times";
        assert_eq!(world.log().len(), expected.len());
        assert!(world.log().iter().all(|line| line == said), "{:?}", world.log());
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
    assert_eq!(world.log(), ["error: The container is gone: deploy again to get a new one"]);
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
            let is_mark = matches!(writes, [launchway_domain::store::Write::Application(_)]);
            if is_mark && std::mem::take(&mut left) == 1 { Err(crate::ports::unavailable()) } else { Ok(()) }
        }));
    }

    look_after(&world, wait(10)).await;

    assert_eq!((marks(&world), world.log().len()), (vec![false], 1));
}
