//! Failures of live versions are shown by the API, and notified once.

use launchway_testkit::{docker::docker, external::TestReceiver};
use serde_json::{Value, json};

use super::Live;
use crate::docker::deployments::harness::text;

#[test]
fn a_breakdown_is_one_failure_and_one_recovery() {
    let receiver = TestReceiver::taking();
    let allowed = format!("127.0.0.1/32:{}", receiver.port);
    let live = Live::serving("a page", &[("LAUNCHWAY_OUTBOUND_ALLOW", &allowed)]);
    let channel = json!({"type": "generic", "webhook_url": receiver.url()});
    live.harness.admin.post("/api/v1/notification/webhook", &channel).success();
    let container = live.container();
    assert_eq!((live.status().as_str(), live.reason()), ("running", None));

    docker(&["kill", &container]);
    let [failed, recovered] = next_two(&live, &receiver, 0);
    assert_eq!(failed["data"]["reason"], "the container exited with code 137");
    let data = &failed["data"];
    assert_eq!((&data["application"], &data["host"]), (&json!("web"), &json!(live.host)));
    for data in [data, &recovered["data"]] {
        assert_eq!(
            (&data["application_id"], &data["deployment_id"]),
            (&json!(live.id), &json!(live.deployment))
        );
    }

    // The next one: it runs, and does not pass its check.
    docker(&["exec", &container, "mv", "/www/index.html", "/www/away.html"]);
    live.wait_until("a failed application", || live.status() == "failed");
    let application = live.harness.application(&live.id);
    let detail = &application["status_detail"];
    let reason = text(&detail["reason"]);
    assert!(reason.contains("does not pass its check") && reason.contains("404"), "{reason}");
    assert_eq!(detail["since"], application["status"]["updated_at"]);
    docker(&["exec", &container, "mv", "/www/away.html", "/www/index.html"]);
    let [failed, _] = next_two(&live, &receiver, 2);
    assert_eq!(failed["data"]["reason"], reason.as_str());
    assert_eq!(live.container(), container);
}

/// The two notifications behind the first `known`: a failure and a recovery. Nothing else has come
/// when the application is healthy again.
#[track_caller]
fn next_two(live: &Live, receiver: &TestReceiver, known: usize) -> [Value; 2] {
    let messages = receiver.wait_for(known + 2);
    live.wait_until("a healthy application", || live.is_healthy() && live.is_served("/"));
    let body = |number: usize| -> Value { serde_json::from_str(&messages[number].request.body).unwrap() };
    let bodies = [body(known), body(known + 1)];
    assert_eq!(receiver.messages().len(), known + 2, "{bodies:#?}");
    assert_eq!(
        bodies.each_ref().map(|body| text(&body["type"])),
        ["deployment.failed", "application.recovered"]
    );
    bodies
}
