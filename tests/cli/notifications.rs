//! Notification channels and deliveries.

use launchway_testkit::{external::TestReceiver, server::TestServer, wait::until};
use serde_json::json;

use crate::person::Person;

#[test]
fn messages_are_tried_listed_and_sent_again() {
    let receiver = TestReceiver::taking();
    let allowed = format!("127.0.0.1/32:{}", receiver.port);
    let server = TestServer::configured(&[
        ("LAUNCHWAY_OUTBOUND_ALLOW", &allowed),
        ("LAUNCHWAY_NOTIFICATION_RETRIES", "50ms"),
    ]);
    let admin = server.admin();
    let ada = Person::ada(&server);
    assert_eq!(ada.runs(&["notifications", "list"]).succeeded(), "No notification channels\n");
    ada.runs(&["notifications", "test", "generic"]).failed(4);

    let spec = json!({"type": "generic", "webhook_url": receiver.url()});
    admin.post("/api/v1/notification/webhook", &spec).success();
    let listed = ada.runs(&["notifications", "list"]);
    assert!(listed.succeeded().lines().any(|line| line.starts_with("generic  yes")), "{listed}");
    let configs = ada.runs(&["notifications", "list", "--output", "json"]).json();
    assert_eq!(configs["generic"]["webhook_url"], receiver.url());
    ada.runs(&["notifications", "test", "generic"]).succeeded();
    ada.runs(&["notifications", "test", "pigeon"]).failed(2);

    receiver.die();
    let failed = ada.runs(&["notifications", "test", "generic"]);
    assert!(failed.failed(1).contains("was not delivered"), "{failed}");
    ada.runs(&["members", "add", "grace@example.com", "--role", "viewer"]).succeeded();
    let dead = until("a dead message", || {
        let listed = ada.runs(&["notifications", "deliveries", "--state", "dead", "--output", "json"]).json();
        listed["deliveries"][0]["id"].as_str().map(str::to_owned)
    });
    let shown = ada.runs(&["notifications", "deliveries", "--channel", "generic"]);
    assert!(shown.succeeded().contains("member.added"), "{shown}");
    receiver.come_back();
    ada.runs(&["notifications", "replay", &dead]).succeeded();
    assert!(!receiver.wait_for(2).is_empty());
    ada.runs(&["notifications", "replay", "0190b2c4-0000-7000-8000-00000000000a"]).failed(4);
}
