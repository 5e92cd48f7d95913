//! Cancelled runs.

use launchway_testkit::server::TestServer;
use serde_json::json;

use super::{EXTENSIONS, command, definition, end_of, execution, folder, forked, printed, started, steps_of};

super::with_programs!(
    a_run_in_flight_is_ended_and_taken_back,
    a_run_that_waits_is_cancelled_at_once,
    a_run_that_has_finished_cannot_be_cancelled,
);

fn a_run_in_flight_is_ended_and_taken_back(server: TestServer) {
    let (admin, (_kept, notes)) = (server.admin(), folder());
    let yaml = definition(
        &json!({"notes": {"type": "string"}}),
        &json!([
            command("One", "echo one > {{ notes }}/one", "rm {{ notes }}/one"),
            command(
                "Wait",
                "echo waiting; sleep 300 & echo $! > {{ notes }}/child; wait",
                "echo back > {{ notes }}/back"
            ),
            command("Never", "echo never > {{ notes }}/never", ""),
        ]),
        &json!([]),
    );
    let id = started(&admin, &forked(&admin, &yaml), &json!({"notes": notes}));
    printed(&admin, &id, "waiting");
    let running = execution(&admin, &id);
    assert_eq!((&running["status"], &running["steps"][1]["status"]), (&json!("running"), &json!("running")));
    let child = std::fs::read_to_string(format!("{notes}/child")).unwrap();

    admin.post(&format!("{EXTENSIONS}/execution/{id}/cancel"), &json!({})).success();
    let done = end_of(&admin, &id);

    assert_eq!((&done["status"], &done["error_message"]), (&json!("cancelled"), &json!("")));
    let states: Vec<_> = steps_of(&done).into_iter().map(|(_, state, _)| state).collect();
    assert_eq!(states, ["completed", "cancelled", "cancelled"]);
    let is_there = |name: &str| std::path::Path::new(&notes).join(name).exists();
    assert_eq!((is_there("one"), is_there("back"), is_there("never")), (false, true, false));
    let child = format!("/proc/{}", child.trim());
    crate::wait::until("the end of the child", || (!std::path::Path::new(&child).exists()).then_some(()));
}

fn a_run_that_waits_is_cancelled_at_once(server: TestServer) {
    let admin = server.admin();
    let yaml = definition(&json!({}), &json!([command("Wait", "echo waiting; sleep 300", "")]), &json!([]));
    let key = forked(&admin, &yaml);
    let first = started(&admin, &key, &json!({}));
    printed(&admin, &first, "waiting");
    // Runs of the same extension wait for each other.
    let second = started(&admin, &key, &json!({}));
    assert_eq!(execution(&admin, &second)["status"], "pending");
    let cancelled = admin.post(&format!("{EXTENSIONS}/execution/{second}/cancel"), &json!({})).success();
    assert_eq!(
        (&cancelled["status"], &cancelled["steps"][0]["status"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    admin.post(&format!("{EXTENSIONS}/execution/{first}/cancel"), &json!({})).success();
    assert_eq!(end_of(&admin, &first)["status"], "cancelled");
}

fn a_run_that_has_finished_cannot_be_cancelled(server: TestServer) {
    let admin = server.admin();
    let id = started(&admin, "hello-note", &json!({}));
    end_of(&admin, &id);
    let refused = admin.post(&format!("{EXTENSIONS}/execution/{id}/cancel"), &json!({}));
    refused.failure(409, "conflict");
    assert_eq!(refused.message(), "the execution is completed already");
}
