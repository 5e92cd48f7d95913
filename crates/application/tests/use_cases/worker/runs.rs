//! Runs of extensions: success, rollback, and continuation after a lost worker.

use std::{sync::Arc, time::Duration};

use launchway_domain::{
    extensions::ExecutionState::{self, Completed, Failed, Pending, Running},
    jobs::{ClaimedJob, Heartbeat, JobKind},
};
use launchway_testkit::ids::id_of;

use super::next;
use crate::{
    extensions::{DATABASE, HELLO, a_run, an_entry},
    world::{FOR_EVER, State, World, a_job},
};

const NAMES: [&str; 3] = ["Make folder", "Write greeting", "Check file"];

fn job(attempt: i32) -> ClaimedJob {
    let mut claimed = a_job(JobKind::RunExtension, &next(), attempt);
    claimed.job.payload = id_of("execution").to_string();
    claimed
}

/// Executes a run of the greeting, and returns the world.
async fn carried_out(states: [ExecutionState; 3], arrange: impl FnOnce(&mut State)) -> Arc<World> {
    let steps: Vec<_> = NAMES.into_iter().zip(states).collect();
    let detail = a_run(an_entry(HELLO).await, r#"{"who":"ada","token":"hunter2"}"#, &steps);
    let world = World::with(|state| {
        state.execution = Some(detail);
        state.waiting.push_back(job(1));
        arrange(state);
    });
    world.worker().drain().await;
    world
}

/// Returns the journal without the audit entries.
fn story(world: &World) -> Vec<String> {
    let reported = |entry: String| entry.split(", entry (").next().unwrap_or_default().to_owned();
    world.journal().into_iter().filter(|entry| entry != "heartbeat").map(reported).collect()
}

#[tokio::test(start_paused = true)]
async fn runs_and_records_every_step_in_order() {
    let world =
        carried_out([Pending; 3], |state| state.print("perform 2", &["hello ", "hunter2\nend"])).await;

    assert_eq!(
        story(&world),
        [
            "commit: prove, begin on machine",
            "begin",
            "commit: prove, begin 1",
            "perform 1 File",
            "commit: prove, end 1 completed 0",
            "commit: prove, begin 2",
            r#"perform 2 echo "${LAUNCHWAY_VARIABLE_who}""#,
            "commit: prove, end 2 completed 0",
            "commit: prove, begin 3",
            "perform 3 test -s hi",
            "commit: prove, end 3 completed 0",
            "finish",
            "commit: succeeded, finish completed 0 ()",
        ]
    );
    assert_eq!(
        world.run_log(),
        [
            "info: Step 1 of 3: Make folder",
            "info: Step 2 of 3: Write greeting",
            "runtime: hello [secret]",
            "runtime: end",
            "info: Step 3 of 3: Check file",
            "info: Completed",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_avoids_the_addresses_that_routes_use() {
    let world = carried_out([Pending; 3], |state| state.live = vec![crate::reconciler::live()]).await;

    let container = crate::reconciler::live().deployment.container;
    let address = container.and_then(|container| container.address);
    assert!(address.is_some());
    assert_eq!(world.state().reserved, address.into_iter().collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn failed_step_reverts_earlier_steps_in_reverse_order() {
    let world = carried_out([Pending; 3], |state| state.exit_codes.extend([(3, 7)])).await;

    assert_eq!(
        story(&world)[10..],
        [
            "commit: prove, end 3 failed 7",
            "revert 2",
            "revert 1",
            "discard",
            "commit: failed (step 3 `Check file` failed: it ended with exit code 7), \
             finish failed 7 (step 3 `Check file` failed: it ended with exit code 7)",
        ]
    );
    assert!(world.run_log().contains(&"info: Reverting step 2: Write greeting".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_step_that_takes_too_long_is_ended_and_taken_back_too() {
    let world = carried_out([Pending; 3], |state| state.delay("perform 2", FOR_EVER)).await;

    let story = story(&world);
    assert_eq!(
        story[7..story.len() - 1],
        ["commit: prove, end 2 failed 0", "revert 2", "revert 1", "discard"]
    );
    assert!(
        story
            .last()
            .unwrap()
            .ends_with("finish failed 0 (step 2 `Write greeting` failed: timed out after 10 seconds)")
    );
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_undone_is_reported_and_holds_up_nothing() {
    let world = carried_out([Pending; 3], |state| {
        state.exit_codes.insert(3, 1);
        state.refuse("revert", "it is gone");
    })
    .await;

    assert!(world.run_log().contains(&"warn: Step 2 could not be reverted: it is gone".to_owned()));
    assert_eq!(world.journal_of("revert"), ["revert 2", "revert 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_nobody_wants_ends_its_step_and_is_taken_back() {
    let world = carried_out([Pending; 3], |state| {
        state.delay("perform 1", FOR_EVER);
        state.heartbeats.extend([Ok(Heartbeat::CancelRequested), Ok(Heartbeat::CancelRequested)]);
        state.delay("revert", Duration::from_secs(5));
    })
    .await;

    let story = story(&world);
    assert_eq!(
        story[4..],
        [
            "commit: prove, end 1 cancelled 0",
            "revert 1",
            "discard",
            "commit: cancelled, finish cancelled 0 ()"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_lost_is_taken_back_and_has_failed() {
    let world = carried_out([Completed, Running, Pending], |_| {}).await;

    assert_eq!(
        story(&world),
        [
            "revert 2",
            "revert 1",
            "discard",
            "commit: failed (Launchway was stopped while it ran), finish failed 0 (Launchway was stopped while it ran)",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_lost_behind_its_last_step_is_completed() {
    let world = carried_out([Completed; 3], |_| {}).await;
    assert_eq!(story(&world), ["finish", "commit: succeeded, finish completed 0 ()"]);
}

#[tokio::test(start_paused = true)]
async fn a_command_that_failed_says_itself_what_is_left_of_it() {
    let world = carried_out([Completed, Failed, Pending], |_| {}).await;
    assert_eq!(world.journal_of("revert"), ["revert 1"]);
}

#[tokio::test(start_paused = true)]
async fn unavailable_engine_fails_the_run_without_retry() {
    let world = carried_out([Pending; 3], |state| state.fault("perform 1", 1)).await;
    assert!(world.journal_of("retry").is_empty());
    let story = story(&world);
    assert_eq!(story[5..7], ["revert 1", "discard"]);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_led_to_the_container_of_the_run_and_back() {
    let detail = a_run(
        an_entry(DATABASE).await,
        r#"{"domain":"db.example"}"#,
        &[("Start", Pending), ("Name", Pending)],
    );
    let world = World::with(|state| {
        state.execution = Some(detail.clone());
        state.waiting.push_back(job(1));
    });
    world.worker().drain().await;
    assert_eq!(world.journal_of("commit: prove, lead"), ["commit: prove, lead db.example to 10.0.0.9:80"]);
    assert_eq!(world.state().routes.len(), 1);

    let lost =
        a_run(detail.extension, r#"{"domain":"db.example"}"#, &[("Start", Completed), ("Name", Running)]);
    let world = World::with(|state| {
        state.execution = Some(lost);
        state.waiting.push_back(job(2));
    });
    world.worker().drain().await;
    assert_eq!(world.journal_of("commit: prove, lead"), ["commit: prove, lead db.example nowhere"]);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_could_not_be_led_anew_leads_where_it_led() {
    let steps = [("Start", Pending), ("Name", Pending)];
    let detail = a_run(an_entry(DATABASE).await, r#"{"domain":"db.example"}"#, &steps);
    let world = World::with(|state| {
        state.execution = Some(detail);
        state.waiting.push_back(job(1));
        state.refuse("container", "it does not run");
    });
    world.worker().drain().await;
    assert_eq!(world.journal_of("revert"), ["revert 1"]);
    assert!(world.journal_of("commit: prove, lead").is_empty(), "{:?}", world.journal());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_opened_any_more_ends_as_failed() {
    let world = carried_out([Pending; 3], |state| {
        let execution = &mut state.execution.as_mut().unwrap().execution;
        execution.sealed_values.0 = "nonsense".to_owned();
    })
    .await;
    assert_eq!(
        story(&world),
        [
            "commit: failed (its variables cannot be decrypted), finish failed 0 (its variables cannot be decrypted)"
        ]
    );
}
