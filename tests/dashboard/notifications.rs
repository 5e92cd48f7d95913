//! Channels and deliveries by the forms of the dashboard.

use launchway_testkit::{
    client::Client,
    external::{Reply, Request, TestReceiver},
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
    wait::until,
};
use serde_json::json;

use crate::requests::Visitor;

/// A server that may send to the receiver, its administrator, and their session of the dashboard.
fn harness(receiver: &TestReceiver) -> (TestServer, Client, Visitor) {
    let allowed = format!("127.0.0.1/32:{}", receiver.port);
    let server = TestServer::configured(&[
        ("LAUNCHWAY_OUTBOUND_ALLOW", &allowed),
        ("LAUNCHWAY_NOTIFICATION_RETRIES", "100ms"),
    ]);
    let admin = server.admin();
    let visitor = Visitor::log_in(&server, ADMIN_EMAIL, ADMIN_PASSWORD);
    (server, admin, visitor)
}

/// Answers as a receiver that is out of order.
fn broken(_number: usize, _request: &Request) -> Reply {
    Reply::Full(500, String::new(), "oh no".to_owned())
}

#[test]
fn a_channel_is_set_up_tested_switched_and_deleted() {
    let receiver = TestReceiver::taking();
    let (_server, _admin, visitor) = harness(&receiver);
    assert!(visitor.get("/notifications").text.contains("Nothing was sent yet."));
    let channel = [("channel", "generic")];
    assert_eq!(visitor.send("/notifications/test", &channel).status, 404);
    let refused = visitor.send("/notifications/webhook", &[("type", "generic"), ("webhook_url", "ftp://x")]);
    assert!(refused.status == 400 && refused.text.contains("value=\"ftp://x\""), "{}", refused.text);
    let saved =
        visitor.send("/notifications/webhook", &[("type", "generic"), ("webhook_url", &receiver.url())]);
    assert_eq!(saved.headers["location"], "/dashboard/notifications?done=saved");

    let tested = visitor.send("/notifications/test", &channel);
    assert_eq!(tested.headers["location"], "/dashboard/notifications?done=tested");
    assert_eq!(receiver.taken(), 1);
    receiver.answer_by(broken);
    until("a place for another test", || {
        let tested = visitor.send("/notifications/test", &channel);
        let expected = "the test message by generic was not delivered: the receiver answered 500: oh no";
        tested.text.contains(expected).then_some(())
    });

    let secret = visitor.send("/notifications/secret", &channel);
    assert!(secret.status == 200 && secret.text.contains("<pre>whsec_"), "{}", secret.text);
    visitor.send("/notifications/switch", &channel);
    assert!(visitor.get("/notifications").text.contains("disabled"));
    visitor.send("/notifications/switch", &[("channel", "generic"), ("is_active", "yes")]);
    assert!(visitor.get("/notifications").text.contains("active"));
    let deleted = visitor.send("/notifications/delete", &channel);
    assert_eq!(deleted.headers["location"], "/dashboard/notifications?done=channel-deleted");
}

#[test]
fn a_dead_delivery_is_replayed() {
    let receiver = TestReceiver::answering(broken);
    let (_server, admin, visitor) = harness(&receiver);
    visitor.send("/notifications/webhook", &[("type", "slack"), ("webhook_url", &receiver.url())]);
    let member = json!({"email": "grace@example.com", "role": "viewer"});
    admin.post("/api/v1/organizations/users", &member).success();
    let page = until("the dead delivery", || {
        let page = visitor.get("/notifications?status=dead").text;
        page.contains("notifications/replay").then_some(page)
    });
    assert!(page.contains("member.added") && page.contains("the receiver answered 500: oh no"), "{page}");
    let id = page.split("name=\"id\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    receiver.answer_by(|_, _| Reply::Status(204));
    let replayed = visitor.send("/notifications/replay", &[("id", id)]);
    assert_eq!(replayed.headers["location"], "/dashboard/notifications?done=replayed");
    until("the delivery", || (receiver.taken() > 0).then_some(()));
    assert_eq!(visitor.send("/notifications/replay", &[("id", "nonsense")]).status, 404);
}

#[test]
fn the_mail_server_keeps_its_password() {
    let receiver = TestReceiver::taking();
    let (_server, admin, visitor) = harness(&receiver);
    let form = [
        ("host", "127.0.0.1"),
        ("security", "tls"),
        ("port", "99999"),
        ("username", "ada"),
        ("password", "a secret of the mail server"),
        ("from_email", "launchway@example.com"),
        ("to", "ops@example.com, dev@example.com"),
    ];
    let refused = visitor.send("/notifications/smtp", &form);
    assert!(refused.status == 400 && refused.text.contains("port must be"), "{}", refused.text);
    assert!(!refused.text.contains("a secret of the mail server"), "{}", refused.text);
    let port = receiver.port.to_string();
    let mut form = form.to_vec();
    form[2].1 = &port;
    let saved = visitor.send("/notifications/smtp", &form);
    assert_eq!(saved.status, 303, "{}", saved.text);
    form[4].1 = "";
    form[6].1 = "";
    assert_eq!(visitor.send("/notifications/smtp", &form).status, 303);
    let page = visitor.get("/notifications").text;
    assert!(page.contains("to the admins of the organization") && !page.contains("a secret"), "{page}");
    assert_eq!(admin.get("/api/v1/notification/smtp").success()["to"], json!([]));
}

#[test]
fn the_deploy_key_is_replaced_by_admins_only() {
    let receiver = TestReceiver::taking();
    let (server, admin, visitor) = harness(&receiver);
    let first = visitor.get("/organization/deploy-key").text;
    assert!(first.contains("ssh-ed25519 "), "{first}");
    assert_eq!(visitor.get("/organization/deploy-key").text, first);
    assert_eq!(visitor.send("/organization/deploy-key", &[]).status, 303);
    assert_ne!(visitor.get("/organization/deploy-key").text, first);
    let added =
        admin.post("/api/v1/organizations/users", &json!({"email": "grace@example.com", "role": "viewer"}));
    let setup = json!({"token": added.success()["setup_token"], "password": "a viewer reads along"});
    server.client().post("/api/v1/auth/password/setup", &setup).success();
    let viewer = Visitor::log_in(&server, "grace@example.com", "a viewer reads along");
    assert!(!viewer.get("/organization/deploy-key").text.contains("Replace the key"));
    assert_eq!(viewer.send("/organization/deploy-key", &[]).status, 403);
}
