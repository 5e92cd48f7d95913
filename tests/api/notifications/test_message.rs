//! `POST /notification/test`: sends one message at once, and returns the result.

use launchway_testkit::external::{Reply, TestReceiver};
use serde_json::{Value, json};

use super::{House, Start, TEST, WEBHOOK, body, deliveries, from_both_databases, names};

from_both_databases!(each_channel_can_be_tried);

fn each_channel_can_be_tried(start: Start) {
    let house = House::with(start, TestReceiver::taking(), &[("LAUNCHWAY_NOTIFICATION_TIMEOUT", "3s")]);
    for kind in ["slack", "discord", "generic"] {
        house.admin.post(TEST, &json!({"type": kind})).failure(404, "not_found");
        house.tell(kind);
        let tried = house.admin.post(TEST, &json!({"type": kind}));
        assert_eq!(tried.message(), "Test message delivered");
        let expected = json!({"type": kind, "channel": kind, "delivered": true, "status": 204, "error": ""});
        assert_eq!(tried.success(), expected);
    }
    // The former name works too, and the new one counts if both are sent.
    house.admin.post(TEST, &json!({"channel": "smtp"})).failure(404, "not_found");
    house.admin.post(TEST, &json!({"type": "smtp", "channel": "slack"})).failure(404, "not_found");
    let bodies: Vec<Value> = house.postbox.wait_for(3).iter().map(body).collect();
    assert_eq!(names(&bodies[0]), ["text"]);
    assert_eq!(names(&bodies[1]), ["allowed_mentions", "content"]);
    assert_eq!((&bodies[2]["type"], &bodies[2]["data"]["by"]), (&json!("test"), &json!("ada")));

    house.postbox.answer_by(|_, _| Reply::Full(500, String::new(), "broken".to_owned()));
    let tried = house.admin.post(TEST, &json!({"channel": "slack"}));
    assert_eq!(tried.message(), "Test message not delivered");
    let expected = json!({
        "type": "slack", "channel": "slack", "delivered": false, "status": 500, "error": "the receiver answered 500: broken",
    });
    assert_eq!(tried.success(), expected);
    house.postbox.answer_by(|_, _| Reply::Silence);
    let tried = house.admin.post(TEST, &json!({"channel": "discord"})).success();
    assert_eq!((&tried["delivered"], &tried["status"]), (&json!(false), &Value::Null));
    assert!(!tried["error"].as_str().unwrap().is_empty());
    house.postbox.die();
    let tried = house.admin.post(TEST, &json!({"channel": "generic"})).success();
    assert_eq!((&tried["delivered"], &tried["status"]), (&json!(false), &Value::Null));
    house.postbox.come_back();

    // A disabled channel can be tested, and a response of 410 does not change it.
    house.postbox.answer_by(|_, _| Reply::Status(410));
    assert_eq!(house.admin.post(TEST, &json!({"channel": "generic"})).success()["status"], 410);
    assert_eq!(house.admin.get(&format!("{WEBHOOK}/generic")).success()["is_active"], true);
    house.admin.put(WEBHOOK, &json!({"type": "generic", "is_active": false})).success();
    house.postbox.answer_by(|_, _| Reply::Status(200));
    assert_eq!(house.admin.post(TEST, &json!({"channel": "generic"})).success()["delivered"], true);

    house.admin.post(TEST, &json!({"channel": "smtp"})).failure(404, "not_found");
    house.admin.post(TEST, &json!({"channel": "teams"})).failure(400, "validation_failed");
    assert_eq!(house.admin.post(TEST, &json!({})).failure(400, "validation_failed"), "type is required");
    // None of these is a delivery.
    assert_eq!(deliveries(&house.admin, ""), Vec::<Value>::new());
}

#[test]
fn one_is_tried_at_a_time() {
    let house = House::with(
        launchway_testkit::server::TestServer::configured,
        TestReceiver::answering(|_, _| Reply::Silence),
        &[("LAUNCHWAY_NOTIFICATION_TIMEOUT", "10m")],
    );
    house.tell("slack");
    std::thread::scope(|scope| {
        scope.spawn(|| house.admin.post(TEST, &json!({"channel": "slack"})).success());
        let _one = house.postbox.wait_for(1);
        let refused = house.admin.post(TEST, &json!({"channel": "slack"}));
        refused.failure(429, "rate_limited");
        assert_eq!(refused.headers["retry-after"], "5");
        house.postbox.die();
    });
    house.postbox.come_back();
    house.postbox.answer_by(|_, _| Reply::Status(204));
    assert_eq!(house.admin.post(TEST, &json!({"channel": "slack"})).success()["delivered"], true);
}
