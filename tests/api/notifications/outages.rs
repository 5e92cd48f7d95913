//! Deliveries survive crashes of the server and of the receiver.

use launchway_testkit::external::{Reply, TestReceiver};

use super::{Fixture, Start, add, deliveries, from_both_databases, settled};
use crate::wait::until;

from_both_databases!(
    a_message_that_nobody_was_there_for_arrives_after_a_kill,
    a_server_that_is_killed_while_it_sends_sends_again,
    what_was_delivered_stays_so_over_restarts,
);

fn a_message_that_nobody_was_there_for_arrives_after_a_kill(start: Start) {
    let mut fixture = Fixture::with(
        start,
        TestReceiver::taking(),
        &[("LAUNCHWAY_NOTIFICATION_RETRIES", "1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s,1s")],
    );
    fixture.add_channel("generic");
    fixture.receiver.die();
    for number in 0..5 {
        add(&fixture.admin, &format!("person{number}@example.com"));
    }
    let kept = deliveries(&fixture.admin, "");
    assert_eq!(kept.len(), 5);
    fixture.server.kill();
    fixture.receiver.come_back();
    fixture.restart();
    let delivered = settled(&fixture.admin, "delivered", 5);
    let mut expected: Vec<String> = kept.iter().map(message_id).collect();
    expected.sort();
    let mut came: Vec<String> = fixture.receiver.messages().iter().map(id_of).collect();
    came.sort();
    assert_eq!(came, expected);
    let mut ids: Vec<String> = delivered.iter().map(message_id).collect();
    ids.sort();
    assert_eq!(ids, expected);
}

fn a_server_that_is_killed_while_it_sends_sends_again(start: Start) {
    let mut fixture = Fixture::with(start, TestReceiver::answering(|_, _| Reply::Silence), &[]);
    fixture.add_channel("generic");
    add(&fixture.admin, "grace@example.com");
    let first = fixture.receiver.wait_for(1)[0].clone();
    // The lease of the killed server is long; the next server does not wait for it.
    fixture.server.kill();
    fixture.receiver.answer_by(|_, _| Reply::Status(204));
    fixture.restart();
    let delivered = settled(&fixture.admin, "delivered", 1);
    let second = fixture.receiver.messages()[1].clone();
    assert_eq!((id_of(&second), &second.request.body), (id_of(&first), &first.request.body));
    // The interrupted attempt is not recorded.
    assert_eq!(delivered[0]["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(delivered[0]["attempts"][0]["number"], 2);
}

fn what_was_delivered_stays_so_over_restarts(start: Start) {
    let mut fixture = Fixture::new(start);
    fixture.add_channel("generic");
    add(&fixture.admin, "grace@example.com");
    let before = settled(&fixture.admin, "delivered", 1);
    for _ in 0..3 {
        fixture.restart();
    }
    assert!(fixture.server.terminate().success());
    fixture.restart();
    add(&fixture.admin, "heidi@example.com");
    until("the next message", || (fixture.receiver.taken() == 2).then_some(()));
    let after = settled(&fixture.admin, "delivered", 2);
    assert_eq!(after[1], before[0]);
    assert_eq!(fixture.receiver.messages().len(), 2);
}

fn message_id(delivery: &serde_json::Value) -> String {
    format!("msg_{}", super::text(&delivery["event_id"]).replace('-', ""))
}

fn id_of(message: &launchway_testkit::external::Message) -> String {
    message.request.header("webhook-id").unwrap().to_owned()
}
