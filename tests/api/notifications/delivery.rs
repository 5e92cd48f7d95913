//! Deliveries are retried until they succeed or are dead; the API reports their state.

use std::time::Duration;

use launchway_testkit::{
    external::{Message, Reply, TestReceiver},
    people::join,
    server::TestServer,
};
use serde_json::{Value, json};

use super::{
    DELIVERIES, Fixture, Start, WEBHOOK, add, add_channel, body, deliveries, from_both_databases, names,
    refusing, remove, settled, text,
};
use crate::{
    shapes::{DELIVERY, expect_fields, expect_moment},
    wait::until,
};

from_both_databases!(
    a_message_is_tried_again_until_it_is_taken,
    after_the_last_attempt_it_is_dead_and_can_be_sent_again,
    a_receiver_is_left_alone_for_as_long_as_it_asks,
    a_receiver_that_is_gone_is_not_asked_again,
    what_waits_for_a_channel_ends_with_it,
    what_waits_ends_with_its_organization,
    what_became_of_messages_is_listed,
    a_slow_receiver_holds_up_nobody_else,
);

fn ids(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.request.header("webhook-id").unwrap().to_owned()).collect()
}

fn a_message_is_tried_again_until_it_is_taken(start: Start) {
    let fixture = Fixture::with(start, TestReceiver::answering(refusing(2, 503)), &[]);
    fixture.add_channel("generic");
    add(&fixture.admin, "grace@example.com");
    let delivered = &settled(&fixture.admin, "delivered", 1)[0];
    expect_fields(delivered, DELIVERY);
    assert_eq!(delivered["event"], "member.added");
    assert_eq!((&delivered["reason"], &delivered["next_attempt_at"]), (&json!(""), &Value::Null));
    expect_moment(&delivered["completed_at"]);
    let attempts = delivered["attempts"].as_array().unwrap();
    let reported: Vec<_> = attempts.iter().map(|attempt| (&attempt["number"], &attempt["status"])).collect();
    assert_eq!(reported, [(&json!(1), &json!(503)), (&json!(2), &json!(503)), (&json!(3), &json!(204))]);
    for attempt in attempts {
        assert_eq!(names(attempt), ["duration_ms", "error", "number", "status", "timestamp"]);
        expect_moment(&attempt["timestamp"]);
    }
    assert_eq!(attempts[0]["error"], "the receiver answered 503");
    assert_eq!(attempts[2]["error"], "");
    let messages = fixture.receiver.messages();
    assert_eq!(messages.len(), 3);
    // The same message each time, to the byte.
    assert!(ids(&messages).iter().all(|id| *id == ids(&messages)[0]));
    assert!(messages.iter().all(|message| message.request.body == messages[0].request.body));
    let event = text(&delivered["event_id"]).replace('-', "");
    assert_eq!(ids(&messages)[0], format!("msg_{event}"));
}

fn after_the_last_attempt_it_is_dead_and_can_be_sent_again(start: Start) {
    let fixture = Fixture::with(
        start,
        TestReceiver::answering(|_, _| Reply::Full(500, String::new(), "oh no\nnot again".to_owned())),
        &[],
    );
    fixture.add_channel("generic");
    add(&fixture.admin, "grace@example.com");
    let dead = settled(&fixture.admin, "dead", 1)[0].clone();
    assert_eq!(dead["attempts"].as_array().unwrap().len(), 3);
    assert_eq!(dead["reason"], "given up after 3 attempts");
    assert_eq!(dead["attempts"][2]["error"], "the receiver answered 500: oh no not again");
    expect_moment(&dead["completed_at"]);
    let replay = format!("{DELIVERIES}/{}/replay", text(&dead["id"]));

    fixture.receiver.answer_by(|_, _| Reply::Status(204));
    let again = fixture.admin.post(&replay, &json!({}));
    assert_eq!(again.message(), "Delivery queued for replay");
    let again = again.success();
    expect_fields(&again, DELIVERY);
    assert_eq!((&again["id"], &again["reason"]), (&dead["id"], &json!("")));
    let delivered = settled(&fixture.admin, "delivered", 1)[0].clone();
    let numbers: Vec<_> =
        delivered["attempts"].as_array().unwrap().iter().map(|one| one["number"].as_i64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    let messages = fixture.receiver.messages();
    assert!(ids(&messages).iter().all(|id| *id == ids(&messages)[0]));

    let message = fixture.admin.post(&replay, &json!({})).failure(409, "conflict");
    assert_eq!(message, "this delivery is delivered: only a dead delivery can be replayed");
    let unknown = format!("{DELIVERIES}/01a1dd03-0000-7000-8000-000000000000/replay");
    fixture.admin.post(&unknown, &json!({})).failure(404, "not_found");
    fixture.admin.post(&format!("{DELIVERIES}/1/replay"), &json!({})).failure(400, "invalid_id");
    let person = join(&fixture.server, &fixture.admin, "viewer@example.com", "viewer").log_in();
    person.post(&replay, &json!({})).failure(403, "forbidden");
}

fn a_receiver_is_left_alone_for_as_long_as_it_asks(start: Start) {
    let answer = |number, _: &launchway_testkit::external::Request| match number {
        0 => Reply::Full(429, "retry-after: 3\r\n".to_owned(), String::new()),
        _ => Reply::Status(204),
    };
    let fixture = Fixture::with(start, TestReceiver::answering(answer), &[]);
    fixture.add_channel("generic");
    add(&fixture.admin, "grace@example.com");
    let delivered = &settled(&fixture.admin, "delivered", 1)[0];
    let moment = |attempt: &Value| {
        chrono::DateTime::parse_from_rfc3339(attempt["timestamp"].as_str().unwrap()).unwrap()
    };
    let attempts = delivered["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), &attempts[0]["status"]), (2, &json!(429)));
    // Longer than the schedule, whose longest wait is 120 ms.
    let waited = moment(&attempts[1]) - moment(&attempts[0]);
    assert!(waited >= chrono::TimeDelta::seconds(3), "{waited}");
    // A day at most, which a test cannot wait for.
    fixture
        .receiver
        .answer_by(|_, _| Reply::Full(503, "retry-after: 99999999\r\n".to_owned(), String::new()));
    add(&fixture.admin, "heidi@example.com");
    let waiting = until("an attempt", || {
        let found = deliveries(&fixture.admin, "&state=pending");
        found.into_iter().find(|one| !one["attempts"].as_array().unwrap().is_empty())
    });
    let next = chrono::DateTime::parse_from_rfc3339(waiting["next_attempt_at"].as_str().unwrap()).unwrap();
    let wait = next - moment(&waiting["attempts"][0]);
    assert!(wait > chrono::TimeDelta::hours(23) && wait < chrono::TimeDelta::hours(25), "{wait}");
}

fn a_receiver_that_is_gone_is_not_asked_again(start: Start) {
    let fixture = Fixture::with(
        start,
        TestReceiver::answering(refusing(1, 503)),
        &[("LAUNCHWAY_NOTIFICATION_RETRIES", "1h")],
    );
    fixture.add_channel("generic");
    add(&fixture.admin, "waits@example.com");
    until("a first attempt", || {
        let waiting = deliveries(&fixture.admin, "&state=pending");
        (waiting.first()?["attempts"].as_array()?.len() == 1).then_some(())
    });
    fixture.receiver.answer_by(|_, _| Reply::Status(410));
    let unlucky = add(&fixture.admin, "unlucky@example.com");
    let dead = settled(&fixture.admin, "dead", 2);
    for one in &dead {
        let reason = text(&one["reason"]);
        assert!(reason.contains("no longer accepts messages") || reason.contains("switched off"), "{reason}");
    }
    let config = fixture.admin.get(&format!("{WEBHOOK}/generic")).success();
    assert_eq!(config["is_active"], false);
    // The channel is switched off: nothing more is sent, and a replay reports why.
    remove(&fixture.admin, &unlucky);
    assert_eq!(deliveries(&fixture.admin, "").len(), 2);
    let replay = format!("{DELIVERIES}/{}/replay", text(&dead[0]["id"]));
    let message = fixture.admin.post(&replay, &json!({})).failure(409, "conflict");
    assert_eq!(message, "no active generic channel is configured: configure it or enable it");
    fixture.admin.put(WEBHOOK, &json!({"type": "generic", "is_active": true})).success();
    fixture.receiver.answer_by(|_, _| Reply::Status(204));
    fixture.admin.post(&replay, &json!({})).success();
    until("the message after all", || {
        (deliveries(&fixture.admin, "&state=delivered").len() == 1).then_some(())
    });
}

fn what_waits_for_a_channel_ends_with_it(start: Start) {
    let fixture = Fixture::with(
        start,
        TestReceiver::answering(|_, _| Reply::Status(503)),
        &[("LAUNCHWAY_NOTIFICATION_RETRIES", "1h")],
    );
    fixture.add_channel("generic");
    fixture.add_channel("slack");
    add(&fixture.admin, "grace@example.com");
    until("first attempts", || {
        let waiting = deliveries(&fixture.admin, "&state=pending");
        let tried = waiting.iter().filter(|one| one["attempts"].as_array().unwrap().len() == 1);
        (tried.count() == 2).then_some(())
    });
    fixture.admin.put(WEBHOOK, &json!({"type": "generic", "is_active": false})).success();
    fixture.admin.delete(&format!("{WEBHOOK}/slack")).success();
    settled(&fixture.admin, "dead", 2);
    for former in ["channel", "state"] {
        let name = if former == "state" { "status" } else { "type" };
        let value = if former == "state" { "dead" } else { "generic" };
        let found = deliveries(&fixture.admin, &format!("&{name}={value}"));
        assert_eq!(found, deliveries(&fixture.admin, &format!("&{former}={value}")));
        assert!(found.iter().all(|one| one[name] == value));
    }
    let reason = |channel: &str| text(&deliveries(&fixture.admin, &format!("&type={channel}"))[0]["reason"]);
    assert_eq!(reason("generic"), "the channel was switched off");
    assert_eq!(reason("slack"), "the channel was removed");
    // A channel that is enabled again gets only later events.
    fixture.receiver.answer_by(|_, _| Reply::Status(204));
    fixture.admin.put(WEBHOOK, &json!({"type": "generic", "is_active": true})).success();
    add(&fixture.admin, "heidi@example.com");
    until("the next message", || (deliveries(&fixture.admin, "&state=delivered").len() == 1).then_some(()));
    assert_eq!(deliveries(&fixture.admin, "&state=dead").len(), 2);
}

fn what_waits_ends_with_its_organization(start: Start) {
    let fixture = Fixture::with(
        start,
        TestReceiver::answering(|_, _| Reply::Status(503)),
        &[("LAUNCHWAY_NOTIFICATION_RETRIES", "1h")],
    );
    let other = fixture.admin.post("/api/v1/organizations", &json!({"name": "Elsewhere"})).success();
    let id = text(&other["id"]);
    let elsewhere = fixture.admin.with_header("x-organization-id", &id);
    add_channel(&elsewhere, "generic", &fixture.receiver.url());
    add(&elsewhere, "grace@example.com");
    until("a first attempt", || {
        let waiting = deliveries(&elsewhere, "&state=pending");
        (waiting.first()?["attempts"].as_array()?.len() == 1).then_some(())
    });
    fixture.admin.delete(&format!("/api/v1/organizations?id={id}")).success();
    let over = "SELECT state || ': ' || reason AS value FROM deliveries";
    assert_eq!(fixture.server.query(over), ["dead: the organization was deleted"]);
    // Nothing is left that could be sent.
    let left = "SELECT kind AS value FROM webhook_configs";
    assert_eq!(fixture.server.query(left), Vec::<String>::new());
}

fn what_became_of_messages_is_listed(start: Start) {
    let fixture = Fixture::with(
        start,
        TestReceiver::answering(|_, request| match request.body.contains("unlucky") {
            true => Reply::Full(500, String::new(), "an inner secret".to_owned()),
            false => Reply::Status(204),
        }),
        &[],
    );
    fixture.add_channel("generic");
    fixture.add_channel("slack");
    add(&fixture.admin, "lucky@example.com");
    add(&fixture.admin, "unlucky@example.com");
    until("the end of all", || {
        let all = deliveries(&fixture.admin, "");
        let is_over = |one: &Value| one["status"] == "delivered" || one["status"] == "dead";
        (all.len() == 4 && all.iter().all(is_over)).then_some(())
    });
    for (query, count) in [
        ("", 4),
        ("&state=delivered", 2),
        ("&state=dead", 2),
        ("&state=pending", 0),
        ("&channel=slack", 2),
        ("&channel=smtp", 0),
        ("&channel=slack&state=dead", 1),
    ] {
        assert_eq!(deliveries(&fixture.admin, query).len(), count, "{query}");
    }
    let all = deliveries(&fixture.admin, "");
    assert!(all.windows(2).all(|two| text(&two[0]["created_at"]) >= text(&two[1]["created_at"])));
    let page = fixture.admin.get(&format!("{DELIVERIES}?page=2&pageSize=3"));
    assert_eq!(page.message(), "Deliveries retrieved successfully");
    let page = page.success();
    assert_eq!(names(&page), ["deliveries", "pagination"]);
    assert_eq!(page["deliveries"], json!([all[3]]));
    assert_eq!(page["pagination"]["total_count"], 4);
    for wrong in ["state=lost", "channel=teams", "page=0", "page_size=x"] {
        fixture.admin.get(&format!("{DELIVERIES}?{wrong}")).failure(400, "validation_failed");
    }
    // The receiver's response is shown only to those who may change the channel.
    assert!(
        text(&deliveries(&fixture.admin, "&state=dead")[0]["attempts"][0]["error"]).contains("inner secret")
    );
    for role in ["member", "viewer"] {
        let person = join(&fixture.server, &fixture.admin, &format!("{role}@example.com"), role).log_in();
        let list = person.get(&format!("{DELIVERIES}?status=dead"));
        assert_eq!(list.success()["deliveries"].as_array().unwrap().len(), 2, "{role}");
        assert!(!list.text.contains("inner secret"), "{role} sees {}", list.text);
        assert!(list.text.contains("failed: only admins can see the reason"));
        assert_eq!(list.success()["deliveries"][0]["reason"], "given up after 3 attempts");
    }
}

fn a_slow_receiver_holds_up_nobody_else(start: Start) {
    let slow = TestReceiver::answering(|_, _| Reply::Silence);
    let quick = TestReceiver::taking();
    let allowed = format!("{},{}", super::allowing(&slow), super::allowing(&quick));
    let server = start(&[("LAUNCHWAY_OUTBOUND_ALLOW", &allowed), ("LAUNCHWAY_NOTIFICATION_TIMEOUT", "10m")]);
    let admin = server.admin();
    add_channel(&admin, "generic", &slow.url());
    let other = admin.post("/api/v1/organizations", &json!({"name": "Elsewhere"})).success();
    let elsewhere = admin.with_header("x-organization-id", other["id"].as_str().unwrap());
    add_channel(&elsewhere, "generic", &quick.url());
    for number in 0..40 {
        add(&admin, &format!("slow{number}@example.com"));
    }
    let _two = slow.wait_for(2);
    for number in 0..20 {
        add(&elsewhere, &format!("quick{number}@example.com"));
    }
    settled(&elsewhere, "delivered", 20);
    // Two at a time, and both still wait for the silent receiver.
    assert_eq!((slow.connections(), quick.taken()), (2, 20));
    assert_eq!(deliveries(&admin, "&state=sending").len(), 2);
    assert_eq!(deliveries(&admin, "&state=pending").len(), 38);
}

#[test]
fn deliveries_time_out_and_do_not_follow_redirects() {
    let elsewhere = TestReceiver::taking();
    let target = elsewhere.url();
    let receiver = TestReceiver::answering(move |number, _| match number {
        0 => Reply::Silence,
        1 => Reply::Full(302, format!("location: {target}\r\n"), String::new()),
        _ => Reply::Status(204),
    });
    let allowed = format!("{},{}", super::allowing(&receiver), super::allowing(&elsewhere));
    let fixture = Fixture::with(
        TestServer::configured,
        receiver,
        &[("LAUNCHWAY_OUTBOUND_ALLOW", &allowed), ("LAUNCHWAY_NOTIFICATION_TIMEOUT", "2s")],
    );
    fixture.add_channel("generic");
    add(&fixture.admin, "grace@example.com");
    let delivered = settled(&fixture.admin, "delivered", 1)[0].clone();
    let attempts = delivered["attempts"].as_array().unwrap();
    let statuses: Vec<_> = attempts.iter().map(|attempt| attempt["status"].clone()).collect();
    assert_eq!(statuses, [Value::Null, json!(302), json!(204)]);
    let took = Duration::from_millis(attempts[0]["duration_ms"].as_u64().unwrap());
    assert!(took >= Duration::from_secs(2), "{took:?}");
    assert_eq!(elsewhere.connections(), 0);
    assert_eq!(body(&fixture.receiver.messages()[2])["type"], "member.added");
}
