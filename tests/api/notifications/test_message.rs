//! `POST /notification/test`: sends one message at once, and returns the result.

use launchway_testkit::external::{Reply, TestReceiver};
use serde_json::{Value, json};

use super::{Fixture, Start, TEST, WEBHOOK, body, deliveries, from_both_databases, names};

from_both_databases!(each_channel_can_be_tried);

fn each_channel_can_be_tried(start: Start) {
    let fixture = Fixture::with(start, TestReceiver::taking(), &[("LAUNCHWAY_NOTIFICATION_TIMEOUT", "3s")]);
    for kind in ["slack", "discord", "generic"] {
        fixture.admin.post(TEST, &json!({"type": kind})).failure(404, "not_found");
        fixture.add_channel(kind);
        let tried = fixture.admin.post(TEST, &json!({"type": kind}));
        assert_eq!(tried.message(), "Test message delivered");
        let expected = json!({"type": kind, "channel": kind, "delivered": true, "status": 204, "error": ""});
        assert_eq!(tried.success(), expected);
    }
    // The former name works too, and the new one counts if both are sent.
    fixture.admin.post(TEST, &json!({"channel": "smtp"})).failure(404, "not_found");
    fixture.admin.post(TEST, &json!({"type": "smtp", "channel": "slack"})).failure(404, "not_found");
    let bodies: Vec<Value> = fixture.receiver.wait_for(3).iter().map(body).collect();
    assert_eq!(names(&bodies[0]), ["text"]);
    assert_eq!(names(&bodies[1]), ["allowed_mentions", "content"]);
    assert_eq!((&bodies[2]["type"], &bodies[2]["data"]["by"]), (&json!("test"), &json!("ada")));

    fixture.receiver.answer_by(|_, _| Reply::Full(500, String::new(), "broken".to_owned()));
    let tried = fixture.admin.post(TEST, &json!({"channel": "slack"}));
    assert_eq!(tried.message(), "Test message not delivered");
    let expected = json!({
        "type": "slack", "channel": "slack", "delivered": false, "status": 500, "error": "the receiver answered 500: broken",
    });
    assert_eq!(tried.success(), expected);
    fixture.receiver.answer_by(|_, _| Reply::Silence);
    let tried = fixture.admin.post(TEST, &json!({"channel": "discord"})).success();
    assert_eq!((&tried["delivered"], &tried["status"]), (&json!(false), &Value::Null));
    assert!(!tried["error"].as_str().unwrap().is_empty());
    fixture.receiver.die();
    let tried = fixture.admin.post(TEST, &json!({"channel": "generic"})).success();
    assert_eq!((&tried["delivered"], &tried["status"]), (&json!(false), &Value::Null));
    fixture.receiver.come_back();

    // A disabled channel can be tested, and a response of 410 does not change it.
    fixture.receiver.answer_by(|_, _| Reply::Status(410));
    assert_eq!(fixture.admin.post(TEST, &json!({"channel": "generic"})).success()["status"], 410);
    assert_eq!(fixture.admin.get(&format!("{WEBHOOK}/generic")).success()["is_active"], true);
    fixture.admin.put(WEBHOOK, &json!({"type": "generic", "is_active": false})).success();
    fixture.receiver.answer_by(|_, _| Reply::Status(200));
    assert_eq!(fixture.admin.post(TEST, &json!({"channel": "generic"})).success()["delivered"], true);

    fixture.admin.post(TEST, &json!({"channel": "smtp"})).failure(404, "not_found");
    fixture.admin.post(TEST, &json!({"channel": "teams"})).failure(400, "validation_failed");
    assert_eq!(fixture.admin.post(TEST, &json!({})).failure(400, "validation_failed"), "type is required");
    // None of these is a delivery.
    assert_eq!(deliveries(&fixture.admin, ""), Vec::<Value>::new());
}

#[test]
fn one_is_tried_at_a_time() {
    let fixture = Fixture::with(
        launchway_testkit::server::TestServer::configured,
        TestReceiver::answering(|_, _| Reply::Silence),
        &[("LAUNCHWAY_NOTIFICATION_TIMEOUT", "10m")],
    );
    fixture.add_channel("slack");
    std::thread::scope(|scope| {
        scope.spawn(|| fixture.admin.post(TEST, &json!({"channel": "slack"})).success());
        let _one = fixture.receiver.wait_for(1);
        let refused = fixture.admin.post(TEST, &json!({"channel": "slack"}));
        refused.failure(429, "rate_limited");
        assert_eq!(refused.headers["retry-after"], "5");
        fixture.receiver.die();
    });
    fixture.receiver.come_back();
    fixture.receiver.answer_by(|_, _| Reply::Status(204));
    assert_eq!(fixture.admin.post(TEST, &json!({"channel": "slack"})).success()["delivered"], true);
}
