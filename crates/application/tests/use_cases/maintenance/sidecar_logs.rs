//! Output of sidecars.

use chrono::TimeDelta;
use launchway_domain::deployments::PrintedLine;
use launchway_testkit::{
    builders::a_container,
    clock::{NEW_YEAR, moment},
};

use crate::{
    reconciler::compositions::composed,
    world::{State, look_after, wait},
};

fn prints(state: &mut State, service: &str, seconds_ago: i64, text: &str) {
    let at = moment(NEW_YEAR) - TimeDelta::seconds(seconds_ago);
    let line = PrintedLine { at, text: text.as_bytes().to_vec() };
    state.printed.entry(a_container(service).id).or_default().push(line);
}

#[tokio::test(start_paused = true)]
async fn output_is_collected_behind_the_name_in_the_order_of_time() {
    let world = composed(|state| {
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
async fn a_flood_holds_the_lines_of_others_back_to_its_own_moment() {
    let world = composed(|state| {
        (0..5001).for_each(|number| prints(state, "db", 10_000 - number, "again"));
        prints(state, "web", 1, "quiet");
    });
    world.state().last_printed = None;

    look_after(&world, wait(10)).await;

    let sizes: Vec<usize> = world.state().batches.iter().map(Vec::len).collect();
    assert_eq!(sizes, [5000, 2]);
    assert_eq!(world.log().last().map(String::as_str), Some("runtime: quiet"));
}
