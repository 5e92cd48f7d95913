//! Services beside the one that gets the traffic.

use chrono::TimeDelta;
use launchway_domain::{
    deployments::{Condition, ContainerState, Found, FoundObject, ImageName, PrintedLine, Standing},
    jobs::{JobKind, JobState},
};
use launchway_testkit::{
    builders::{a_container, parsed},
    clock::{NEW_YEAR, moment},
};

use super::{live, look_after, running, wait};
use crate::world::{State, World, a_container_of, a_job};

/// The container that gets the traffic, as the service "web".
fn web() -> Found {
    named(a_container_of(&live().deployment, running(0), moment(NEW_YEAR) - TimeDelta::hours(1)), "web")
}

/// One of the same attempt.
fn beside(service: &str, condition: Condition) -> Found {
    let mut found = named(web(), service);
    let FoundObject::Container { id, condition: its, .. } = &mut found.what else { unreachable!() };
    (*id, *its) = (a_container(service).id, condition);
    found
}

fn named(mut found: Found, name: &str) -> Found {
    let FoundObject::Container { service, .. } = &mut found.what else { unreachable!() };
    *service = Some(parsed(name));
    found
}

fn network() -> Found {
    Found { what: FoundObject::Network("launchway-x-1".to_owned()), ..web() }
}

fn arranged(arrange: impl FnOnce(&mut State)) -> std::sync::Arc<World> {
    World::with(|state| {
        state.live = vec![live()];
        state.deployments = vec![live().deployment];
        state.last_printed = Some(moment(NEW_YEAR) - TimeDelta::hours(1));
        state.found = vec![web(), beside("db", running(0)), network()];
        let deployment = live().deployment.id;
        state.standing = vec![Standing { deployment, is_live: true, is_open: false, is_worth_keeping: true }];
        arrange(state);
    })
}

fn prints(state: &mut State, service: &str, seconds_ago: i64, text: &str) {
    let at = moment(NEW_YEAR) - TimeDelta::seconds(seconds_ago);
    let line = PrintedLine { at, text: text.as_bytes().to_vec() };
    state.printed.entry(a_container(service).id).or_default().push(line);
}

#[tokio::test(start_paused = true)]
async fn what_they_print_is_collected_behind_their_names_in_the_order_of_time() {
    let world = arranged(|state| {
        prints(state, "web", 3, "asking");
        prints(state, "db", 2, "answering");
        prints(state, "web", 1, "answered");
    });

    look_after(&world, async {
        wait(10).await;
        prints(&mut world.state(), "db", 0, "only now");
        wait(10).await;
    })
    .await;

    assert_eq!(
        world.log(),
        ["runtime: asking", "runtime: db | answering", "runtime: answered"],
        "what is printed at this very moment waits until nothing older can follow"
    );
    assert_eq!(world.state().batches.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_that_floods_holds_the_lines_of_the_others_back_to_its_own_moment() {
    let world = arranged(|state| {
        (0..5001).for_each(|number| prints(state, "db", 10_000 - number, "again"));
        prints(state, "web", 1, "quiet");
    });
    world.state().last_printed = None;

    look_after(&world, wait(10)).await;

    let sizes: Vec<usize> = world.state().batches.iter().map(Vec::len).collect();
    assert_eq!(sizes, [5000, 2]);
    assert_eq!(world.log().last().map(String::as_str), Some("runtime: quiet"));
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_stay_up_is_told_of_and_the_application_is_not_marked() {
    let world = arranged(|_| {});

    look_after(&world, async {
        for number in 1..=7 {
            wait(10).await;
            world.state().found = vec![web(), beside("db", running(number))];
        }
        wait(10).await;
    })
    .await;

    let said = "warn: The service `db` does not stay up: it was started again 5 times";
    assert_eq!(world.log(), [said]);
    assert!(!world.journal().iter().any(|entry| entry.contains("stable")), "{:?}", world.journal());
}

#[tokio::test(start_paused = true)]
async fn they_and_their_network_stay_with_the_live_version() {
    let world = arranged(|_| {});
    look_after(&world, wait(1)).await;
    assert!(world.journal_of("clear").is_empty(), "{:?}", world.journal());
}

#[tokio::test(start_paused = true)]
async fn those_of_another_attempt_or_of_a_version_that_is_over_go_with_their_network() {
    let world = arranged(|state| {
        let of_another_attempt = |mut found: Found| {
            found.owner.attempt += 1;
            found
        };
        state.found = vec![web(), network()];
        state.found.extend([beside("db", running(0)), network()].map(of_another_attempt));
    });
    look_after(&world, wait(1)).await;
    assert_eq!(world.journal_of("clear"), ["clear container of #1", "clear network of #1"]);

    let world = arranged(|state| {
        state.live.clear();
        let deployment = live().deployment.id;
        state.standing =
            vec![Standing { deployment, is_live: false, is_open: false, is_worth_keeping: true }];
    });
    look_after(&world, wait(1)).await;
    let gone = ["clear container of #1", "clear container of #1", "clear network of #1"];
    assert_eq!(world.journal_of("clear"), gone);
}

#[tokio::test(start_paused = true)]
async fn services_that_were_stopped_for_a_version_that_is_lost_for_good_are_started_again() {
    for (state_of_the_job, is_stopped, expected) in [
        (JobState::Failed, false, vec!["commit: enqueue restart"]),
        (JobState::Cancelled, false, vec!["commit: enqueue restart"]),
        (JobState::Queued, false, vec![]),
        (JobState::Failed, true, vec![]),
    ] {
        let world = arranged(|state| {
            for version in &mut state.live {
                version.application.is_stopped = is_stopped;
                let deployment = &mut version.deployment;
                let (application, id) = (deployment.application_id, deployment.id);
                deployment.image = Some(ImageName::of_service(application, id, &parsed("web")));
                deployment.container.as_mut().unwrap().state = ContainerState::Exited;
            }
            let mut lost = a_job(JobKind::Deploy, &live().deployment, 3);
            lost.job.state = state_of_the_job;
            state.waiting.push_back(lost);
        });

        world.upkeep().begin().await.unwrap();

        assert_eq!(world.journal_of("commit: enqueue"), expected, "{state_of_the_job:?}");
    }
}
