//! Removing what no record accounts for.

use chrono::TimeDelta;
use launchway_domain::{
    clock::Timestamp,
    deployments::{ContainerRecord, Deployment, Found, FoundObject, ImageName, LiveVersion, Standing},
};
use launchway_testkit::{
    builders::{a_container, a_deployment},
    clock::{NEW_YEAR, moment},
};

use super::{look_after, running, wait};
use crate::world::{World, a_container_of};

/// #1 in the journal.
fn deployment() -> Deployment {
    a_deployment().build()
}

fn container(created_at: Timestamp) -> Found {
    a_container_of(&deployment(), running(0), created_at)
}

fn image() -> Found {
    let name = ImageName::of(deployment().application_id, deployment().id);
    Found { what: FoundObject::Image(name), ..container(moment(NEW_YEAR)) }
}

/// [`deployment`] as the live version, by the container that [`container`] finds.
fn live_version() -> LiveVersion {
    let FoundObject::Container { id, .. } = container(moment(NEW_YEAR)).what else { unreachable!() };
    a_deployment().run_by(ContainerRecord { id, ..a_container("web") }).live()
}

/// What is removed of `found` when the records say `standing`.
async fn removed(found: &[&Found], standing: Option<Standing>) -> Vec<String> {
    let world = World::with(|state| {
        state.deployments = vec![deployment()];
        state.found = found.iter().map(|found| (*found).clone()).collect();
        state.live =
            standing.filter(|standing| standing.is_live).map(|_| live_version()).into_iter().collect();
        state.last_printed = Some(moment(NEW_YEAR));
        state.standing = standing.into_iter().collect();
    });
    look_after(&world, wait(1)).await;
    world.journal_of("clear")
}

#[tokio::test(start_paused = true)]
async fn a_container_stays_if_it_is_live_or_open_and_an_image_if_it_is_open_or_worth_keeping() {
    let old = container(moment(NEW_YEAR) - TimeDelta::hours(1));
    for is_live in [false, true] {
        for is_open in [false, true] {
            for is_worth_keeping in [false, true] {
                let standing = Standing { deployment: deployment().id, is_live, is_open, is_worth_keeping };

                let goes = removed(&[&image(), &old], Some(standing)).await;

                let mut expected = Vec::new();
                if !is_live && !is_open {
                    expected.push("clear container of #1");
                }
                if !is_open && !is_worth_keeping {
                    expected.push("clear image of #1");
                }
                assert_eq!(goes, expected, "{standing:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_container_that_no_record_knows_stays_while_somebody_may_be_about_to_record_it() {
    let aged = |age: TimeDelta| container(moment(NEW_YEAR) - age);

    let young = aged(TimeDelta::minutes(2) - TimeDelta::microseconds(1));
    assert!(removed(&[&young], None).await.is_empty());
    assert_eq!(removed(&[&aged(TimeDelta::minutes(2))], None).await, ["clear container of #1"]);
}

#[tokio::test(start_paused = true)]
async fn a_young_container_of_a_deployment_that_is_over_goes_all_the_same() {
    let over =
        Standing { deployment: deployment().id, is_live: false, is_open: false, is_worth_keeping: true };

    assert_eq!(removed(&[&container(moment(NEW_YEAR))], Some(over)).await, ["clear container of #1"]);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_no_record_knows_goes() {
    assert_eq!(removed(&[&image()], None).await, ["clear image of #1"]);
}

#[tokio::test(start_paused = true)]
async fn one_leftover_that_cannot_be_removed_does_not_keep_the_others() {
    let old = container(moment(NEW_YEAR) - TimeDelta::hours(1));
    let world = World::with(|state| {
        state.deployments = vec![deployment()];
        state.found = vec![old, image()];
        state.fault("clear", 1);
    });

    look_after(&world, wait(1)).await;

    assert_eq!(world.journal_of("clear"), ["clear container of #1", "clear image of #1"]);
}

#[tokio::test(start_paused = true)]
async fn leftovers_are_looked_for_every_minute_whether_or_not_the_engine_answers() {
    let world = World::with(|state| {
        state.deployments = vec![deployment()];
        state.found = vec![image()];
        state.fault("everything", 1);
    });

    look_after(&world, wait(61)).await;

    assert_eq!(world.journal_of("clear"), ["clear image of #1"]);
}

#[tokio::test(start_paused = true)]
async fn a_container_of_the_live_deployment_that_is_not_the_live_one_goes_once_nobody_can_be_using_it() {
    let other = |age: TimeDelta| {
        let found = container(moment(NEW_YEAR) - age);
        let FoundObject::Container { condition, created_at, .. } = found.what else { unreachable!() };
        let id = a_container("a command's").id;
        Found { what: FoundObject::Container { id, condition, created_at, service: None }, ..found }
    };
    let standing =
        Standing { deployment: deployment().id, is_live: true, is_open: false, is_worth_keeping: true };
    assert!(removed(&[&other(TimeDelta::minutes(1))], Some(standing)).await.is_empty());
    assert_eq!(removed(&[&other(TimeDelta::minutes(2))], Some(standing)).await, ["clear container of #1"]);
}

#[tokio::test(start_paused = true)]
async fn a_release_of_a_site_stays_if_it_is_live_open_or_worth_keeping_and_goes_otherwise() {
    for is_live in [false, true] {
        for is_open in [false, true] {
            for is_worth_keeping in [false, true] {
                let world = World::with(|state| {
                    state.deployments = vec![deployment()];
                    state.published = vec![deployment().id];
                    state.standing =
                        vec![Standing { deployment: deployment().id, is_live, is_open, is_worth_keeping }];
                });

                look_after(&world, wait(1)).await;

                let is_wanted = is_live || is_open || is_worth_keeping;
                let expected: &[&str] = if is_wanted { &[] } else { &["withdraw the site of #1"] };
                assert_eq!(
                    world.journal_of("withdraw the site"),
                    expected,
                    "{is_live} {is_open} {is_worth_keeping}"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_that_no_record_accounts_for_goes() {
    let world = World::with(|state| {
        state.deployments = vec![deployment()];
        state.published = vec![deployment().id];
    });
    look_after(&world, wait(1)).await;
    assert_eq!(world.journal_of("withdraw the site"), ["withdraw the site of #1"]);
}
