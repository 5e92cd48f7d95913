//! Servers that are killed in the middle of a run.

use launchway_testkit::server::TestServer;
use serde_json::{Value, json};

use super::{EXTENSIONS, command, definition, end_of, folder, forked, printed, started, steps_of, text};

super::with_programs!(
    a_run_is_reverted_and_failed_after_the_server_was_killed,
    a_stopped_server_does_too,
    a_run_that_was_to_be_cancelled_is_taken_back_after_a_kill,
    a_run_that_had_not_begun_is_made_after_a_kill,
);

/// A run that waits in its second step.
fn waiting() -> String {
    definition(
        &json!({"notes": {"type": "string"}}),
        &json!([
            command("One", "echo one >> {{ notes }}/story", "echo back one >> {{ notes }}/story"),
            command("Wait", "echo waiting; sleep 300", "echo back wait >> {{ notes }}/story"),
        ]),
        &json!([]),
    )
}

fn expect_taken_back(done: &Value, notes: &str) {
    assert_eq!(done["status"], "failed", "{done}");
    assert_eq!(done["error_message"], "Launchway was stopped while it ran");
    let states: Vec<_> = steps_of(done).into_iter().map(|(_, state, _)| state).collect();
    assert_eq!(states, ["completed", "failed"]);
    let story = std::fs::read_to_string(format!("{notes}/story")).unwrap();
    assert_eq!(story, "one\nback wait\nback one\n");
}

fn a_run_is_reverted_and_failed_after_the_server_was_killed(mut server: TestServer) {
    let (admin, (_kept, notes)) = (server.admin(), folder());
    let id = started(&admin, &forked(&admin, &waiting()), &json!({"notes": notes}));
    printed(&admin, &id, "waiting");
    let before = admin.get(&format!("{EXTENSIONS}/execution/{id}/logs")).success();
    server.kill();
    server.restart();
    let admin = admin.at(server.url());
    expect_taken_back(&end_of(&admin, &id), &notes);
    // No line that was seen is lost.
    let after = admin.get(&format!("{EXTENSIONS}/execution/{id}/logs")).success();
    let lines = |logs: &Value| {
        logs["logs"].as_array().unwrap().iter().map(|line| text(&line["log"])).collect::<Vec<_>>()
    };
    assert_eq!(lines(&after)[..lines(&before).len()], lines(&before));
}

fn a_stopped_server_does_too(mut server: TestServer) {
    let (admin, (_kept, notes)) = (server.admin(), folder());
    let id = started(&admin, &forked(&admin, &waiting()), &json!({"notes": notes}));
    printed(&admin, &id, "waiting");
    server.terminate();
    server.restart();
    expect_taken_back(&end_of(&admin.at(server.url()), &id), &notes);
}

fn a_run_that_was_to_be_cancelled_is_taken_back_after_a_kill(mut server: TestServer) {
    let (admin, (_kept, notes)) = (server.admin(), folder());
    let yaml = waiting().replace("echo back wait", "sleep 20; echo back wait");
    let id = started(&admin, &forked(&admin, &yaml), &json!({"notes": notes}));
    printed(&admin, &id, "waiting");
    admin.post(&format!("{EXTENSIONS}/execution/{id}/cancel"), &json!({})).success();
    printed(&admin, &id, "Reverting step 2");
    server.kill();
    let story = std::fs::read_to_string(format!("{notes}/story")).unwrap();
    assert_eq!(story, "one\n");
    server.restart();
    let done = end_of(&admin.at(server.url()), &id);
    assert_eq!(done["status"], "failed");
    let story = std::fs::read_to_string(format!("{notes}/story")).unwrap();
    assert_eq!(story, "one\nback wait\nback one\n");
}

fn a_run_that_had_not_begun_is_made_after_a_kill(mut server: TestServer) {
    let (admin, (_kept, notes)) = (server.admin(), folder());
    let key = forked(&admin, &waiting());
    let first = started(&admin, &key, &json!({"notes": notes}));
    printed(&admin, &first, "waiting");
    let quick = definition(&json!({}), &json!([command("Quick", "true", "")]), &json!([]));
    let waits = started(&admin, &key, &json!({"notes": notes}));
    let other = started(&admin, &forked(&admin, &quick), &json!({}));
    assert_eq!(end_of(&admin, &other)["status"], "completed");
    server.kill();
    server.restart();
    let admin = admin.at(server.url());
    assert_eq!(end_of(&admin, &first)["status"], "failed");
    printed(&admin, &waits, "waiting");
    admin.post(&format!("{EXTENSIONS}/execution/{waits}/cancel"), &json!({})).success();
    assert_eq!(end_of(&admin, &waits)["status"], "cancelled");
}
