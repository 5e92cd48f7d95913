//! Collection of the output of containers.

use chrono::TimeDelta;
use launchway_domain::{
    clock::Timestamp,
    deployments::{LiveVersion, PrintedLine},
    logs::Level,
};
use launchway_testkit::{
    builders::{a_container, a_log_line},
    clock::{NEW_YEAR, moment},
};

use crate::{
    applications::sealed_for,
    reconciler::{live, running},
    world::{State, World, a_container_of, look_after, wait},
};

fn at(seconds: i64) -> Timestamp {
    moment(NEW_YEAR) + TimeDelta::seconds(seconds)
}

fn prints(state: &mut State, seconds: i64, text: &str) {
    let line = PrintedLine { at: at(seconds), text: text.as_bytes().to_vec() };
    state.printed.entry(a_container("web").id).or_default().push(line);
}

/// A world in which [`live`] runs.
fn arranged(arrange: impl FnOnce(&mut State)) -> std::sync::Arc<World> {
    World::with(|state| {
        state.live = vec![live()];
        state.found = vec![a_container_of(&live().deployment, running(0), moment(NEW_YEAR))];
        arrange(state);
    })
}

#[tokio::test(start_paused = true)]
async fn each_line_is_kept_once_at_its_own_moment() {
    let world = arranged(|state| {
        prints(state, 1, "one");
        prints(state, 2, "two");
    });

    look_after(&world, async {
        wait(10).await;
        prints(&mut world.state(), 3, "three");
        wait(10).await;
    })
    .await;

    let line = |seconds, text: &str| {
        let line = a_log_line().of(&live().deployment).at_level(Level::Runtime);
        line.saying(text).at(at(seconds)).new_line()
    };
    assert_eq!(world.state().batches, [vec![line(1, "one"), line(2, "two")], vec![line(3, "three")]]);
}

#[tokio::test(start_paused = true)]
async fn what_is_in_the_log_already_is_not_collected_again() {
    let world = arranged(|state| {
        prints(state, 1, "one");
        prints(state, 2, "two");
        state.last_printed = Some(at(1));
    });

    look_after(&world, wait(10)).await;

    assert_eq!(world.log(), ["runtime: two"]);
}

#[tokio::test(start_paused = true)]
async fn what_another_server_collects_meanwhile_is_not_stored_twice() {
    let world = arranged(|state| {
        prints(state, 1, "one");
        prints(state, 2, "two");
        state.printed_elsewhere = Some(at(1));
    });

    look_after(&world, wait(10)).await;

    assert_eq!(world.log(), ["runtime: two"]);
}

#[tokio::test(start_paused = true)]
async fn secrets_are_masked_and_what_is_empty_is_left_out() {
    let world = arranged(|state| {
        prints(state, 1, "\u{1b}[31mpassword: open-sesame");
        prints(state, 2, "");
        prints(state, 3, "50 %\r100 %");
    });

    look_after(&world, wait(10)).await;

    assert_eq!(world.log(), ["runtime: password: [secret]", "runtime: 50 % 100 %"]);
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_was_replaced_is_masked_as_before() {
    let world = arranged(|state| {
        let LiveVersion { application, .. } = &mut state.live[0];
        let kept = r#"[{"PASSWORD":"shut-sesame"},["open-sesame"]]"#;
        application.secrets.environment_variables = sealed_for(application.id, "environment_variables", kept);
        prints(state, 1, "started with open-sesame");
        prints(state, 2, "shut-sesame");
    });

    look_after(&world, wait(10)).await;

    assert_eq!(world.log(), ["runtime: started with [secret]", "runtime: [secret]"]);
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_is_new_is_masked_from_then_on() {
    let world = arranged(|state| prints(state, 1, "shut-sesame"));

    look_after(&world, async {
        wait(10).await;
        {
            let mut state = world.state();
            let LiveVersion { application, .. } = &mut state.live[0];
            let sealed = sealed_for(application.id, "environment_variables", r#"{"PASSWORD":"shut-sesame"}"#);
            application.secrets.environment_variables = sealed;
            application.updated_at = at(5);
            prints(&mut state, 6, "shut-sesame");
        }
        wait(10).await;
    })
    .await;

    assert_eq!(world.log(), ["runtime: shut-sesame", "runtime: [secret]"]);
}

#[tokio::test(start_paused = true)]
async fn lines_that_could_not_be_kept_are_collected_again() {
    let world = arranged(|state| {
        prints(state, 1, "one");
        state.failing_appends = 1;
    });

    look_after(&world, wait(10)).await;

    assert_eq!(world.log(), ["runtime: one"]);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_does_not_answer_is_asked_again() {
    let world = arranged(|state| {
        prints(state, 1, "one");
        state.fault("printed", 1);
    });

    look_after(&world, wait(10)).await;

    assert_eq!(world.log(), ["runtime: one"]);
}

#[tokio::test(start_paused = true)]
async fn a_container_that_floods_is_taken_in_portions() {
    let world = arranged(|state| (1..=5001).for_each(|number| prints(state, number, "again")));

    look_after(&world, wait(10)).await;

    let sizes: Vec<usize> = world.state().batches.iter().map(Vec::len).collect();
    assert_eq!(sizes, [5000, 1]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_collected_from_what_is_stopped_or_is_a_site() {
    let world = arranged(|state| {
        prints(state, 1, "one");
        let mut stopped = live();
        stopped.application.is_stopped = true;
        let mut site = live();
        site.deployment.container = None;
        state.live = vec![stopped, site];
        state.found.clear();
    });

    look_after(&world, wait(10)).await;

    assert!(world.journal_of("printed").is_empty() && world.log().is_empty());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_collected_while_the_engine_is_away() {
    let world = arranged(|_| {});

    look_after(&world, async {
        wait(10).await;
        {
            let mut state = world.state();
            state.is_away = true;
            prints(&mut state, 1, "one");
        }
        wait(10).await;
        let asked = world.journal_of("printed").len();
        wait(60).await;
        assert_eq!(world.journal_of("printed").len(), asked, "an engine that is away is not asked");
        world.state().is_away = false;
        wait(10).await;
    })
    .await;

    assert_eq!(world.log(), ["runtime: one"]);
}
