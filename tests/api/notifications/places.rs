//! The server connects only to addresses that the operator permits, however they are spelled.

use launchway_testkit::{external::Receiver, server::TestServer};
use serde_json::json;

use super::{SMTP, Start, TEST, WEBHOOK, from_both_databases};

from_both_databases!(no_spelling_of_this_machine_is_reached, accepts_a_host_that_does_not_resolve_now,);

/// This machine, in spellings that try to bypass the check. `§` stands for the port.
const SPELLINGS: [&str; 17] = [
    "http://127.0.0.1:§/",
    "http://127.1:§/",
    "http://127.0.1:§/",
    "http://2130706433:§/",
    "http://0x7f000001:§/",
    "http://0x7f.1:§/",
    "http://0177.0.0.1:§/",
    "http://017700000001:§/",
    "http://127.0.0.1.:§/",
    "http://%31%32%37.0.0.1:§/",
    "http://１２７.０.０.１:§/",
    "http://①②⑦.⓪.⓪.①:§/",
    "http://127。0。0。1:§/",
    "http://[::1]:§/",
    "http://[::ffff:127.0.0.1]:§/",
    "http://[0:0:0:0:0:ffff:7f00:1]:§/",
    "http://localhost:§/",
];

/// Non-public addresses of other machines.
const PRIVATE: [&str; 12] = [
    "http://0.0.0.0/",
    "http://10.0.0.1/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://[fe80::1]/",
    "http://[fd00::1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[2002:7f00:1::]/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
];

fn no_spelling_of_this_machine_is_reached(start: Start) {
    let receiver = Receiver::answering("HTTP/1.1 204 So\r\n\r\n");
    let server = start(&[]);
    let admin = server.admin();
    admin.post(WEBHOOK, &json!({"type": "slack", "webhook_url": "https://hooks.example.com/"})).success();
    let port = receiver.port.to_string();
    for spelling in SPELLINGS.into_iter().chain(PRIVATE) {
        let url = spelling.replace('§', &port);
        for refused in [
            admin.post(WEBHOOK, &json!({"type": "generic", "webhook_url": url})),
            admin.put(WEBHOOK, &json!({"type": "slack", "webhook_url": url})),
        ] {
            let message = refused.failure(400, "validation_failed");
            assert!(
                message.contains("webhook_url") && message.contains("LAUNCHWAY_OUTBOUND_ALLOW"),
                "{url}: {message}"
            );
        }
        admin.post(TEST, &json!({"channel": "generic"})).failure(404, "not_found");
    }
    for host in
        ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "[::1]", "::ffff:127.0.0.1", "localhost", "10.0.0.1"]
    {
        let spec = json!({"host": host, "port": receiver.port, "from_email": "a@example.com"});
        for security in ["starttls", "tls", "none"] {
            let mut spec = spec.clone();
            spec["security"] = json!(security);
            let message = admin.post(SMTP, &spec).failure(400, "validation_failed");
            assert!(message.contains("LAUNCHWAY_OUTBOUND_ALLOW"), "{host}: {message}");
        }
    }
    assert_eq!(admin.get(&format!("{WEBHOOK}/slack")).success()["webhook_url"], "https://hooks.example.com/");
    assert_eq!(receiver.connections(), 0);
}

fn accepts_a_host_that_does_not_resolve_now(start: Start) {
    let receiver = Receiver::answering("HTTP/1.1 204 So\r\n\r\n");
    let server = start(&[]);
    let admin = server.admin();
    admin.post(WEBHOOK, &json!({"type": "generic", "webhook_url": "http://no-such-host.invalid/"})).success();
    admin.post(SMTP, &json!({"host": "mail.invalid", "from_email": "a@example.com"})).success();
    let tried = admin.post(TEST, &json!({"channel": "generic"})).success();
    assert_eq!((&tried["delivered"], &tried["status"]), (&json!(false), &json!(null)));
    assert!(tried["error"].as_str().unwrap().contains("no-such-host.invalid"), "{tried}");
    let tried = admin.post(TEST, &json!({"channel": "smtp"})).success();
    assert_eq!(tried["delivered"], false);
    assert_eq!(receiver.connections(), 0);
}

#[test]
fn nothing_is_sent_to_a_receiver_that_is_no_longer_allowed() {
    let receiver = Receiver::answering("HTTP/1.1 204 So\r\ncontent-length: 0\r\n\r\n");
    let allowed = format!("127.0.0.1/32:{}", receiver.port);
    let mut server = TestServer::configured(&[("LAUNCHWAY_OUTBOUND_ALLOW", &allowed)]);
    let mut admin = server.admin();
    let url = format!("http://127.0.0.1:{}/", receiver.port);
    admin.post(WEBHOOK, &json!({"type": "generic", "webhook_url": url})).success();
    assert_eq!(admin.post(TEST, &json!({"channel": "generic"})).success()["delivered"], true);
    assert_eq!(receiver.connections(), 1);

    server.set("LAUNCHWAY_OUTBOUND_ALLOW", "127.0.0.1/32:9");
    server.set("LAUNCHWAY_NOTIFICATION_RETRIES", "100ms");
    server.restart();
    admin = admin.at(server.url());
    let tried = admin.post(TEST, &json!({"channel": "generic"})).success();
    assert_eq!((&tried["delivered"], &tried["status"]), (&json!(false), &json!(null)));
    assert!(tried["error"].as_str().unwrap().contains("LAUNCHWAY_OUTBOUND_ALLOW"), "{tried}");
    super::add(&admin, "new@example.com");
    let dead = &super::settled(&admin, "dead", 1)[0];
    assert!(dead["reason"].as_str().unwrap().contains("given up after 2 attempts"), "{dead}");
    assert_eq!(receiver.connections(), 1);
}

#[test]
fn what_the_operator_allows_is_reached_by_every_spelling() {
    let receiver = Receiver::answering("HTTP/1.1 204 So\r\ncontent-length: 0\r\n\r\n");
    let port = receiver.port.to_string();
    let allowed = format!("127.0.0.0/8:{port},[::1/128]:{port}");
    let server = TestServer::configured(&[("LAUNCHWAY_OUTBOUND_ALLOW", &allowed)]);
    let admin = server.admin();
    admin.post(WEBHOOK, &json!({"type": "slack", "webhook_url": "https://hooks.example.com/"})).success();
    for (number, spelling) in SPELLINGS.into_iter().enumerate() {
        let url = spelling.replace('§', &port);
        admin.put(WEBHOOK, &json!({"type": "slack", "webhook_url": url})).success();
        let tried = admin.post(TEST, &json!({"channel": "slack"})).success();
        assert_eq!((&tried["delivered"], &tried["status"]), (&json!(true), &json!(204)), "{url}: {tried}");
        assert_eq!(receiver.connections(), number + 1, "{url}");
    }
    // That port and no other.
    let message = admin.put(WEBHOOK, &json!({"type": "slack", "webhook_url": "http://127.0.0.1:9/"}));
    message.failure(400, "validation_failed");
}
