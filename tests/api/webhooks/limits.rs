//! Limits of the size and content of a delivery.

use launchway_testkit::{client::Answer, server::TestServer};
use serde_json::{Value, json};

use super::{
    Followed,
    code_hosts::{Delivery, Host, send},
    deliveries::handled,
};

const LARGEST: usize = 5 * 1024 * 1024;

/// Pads the push to that many bytes.
fn of_size(push: &Delivery, bytes: usize) -> Delivery {
    let mut payload: Value = serde_json::from_str(&push.body).unwrap();
    payload["padding"] = json!("");
    let length = payload.to_string().len();
    payload["padding"] = json!("x".repeat(bytes - length));
    let body = payload.to_string();
    assert_eq!(body.len(), bytes);
    Delivery { body, ..push.clone() }
}

fn chunked(server: &TestServer, delivery: &Delivery, secret: &str) -> Answer {
    let mut connection = server.connect();
    connection.send("POST /api/v1/webhook HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n");
    for (name, value) in delivery.headers(secret) {
        connection.send(format!("{name}: {value}\r\n"));
    }
    connection.send("\r\n");
    for chunk in delivery.body.as_bytes().chunks(256 * 1024 - 7) {
        connection.send(format!("{:x}\r\n", chunk.len())).send(chunk).send("\r\n");
    }
    connection.send("0\r\n\r\n");
    connection.answer()
}

#[test]
fn a_delivery_of_5_mebibytes_is_read_and_one_byte_more_is_not() {
    let followed = Followed::by(TestServer::on_sqlite(), Host::GitHub);
    let push = followed.host.push("main", "A change");
    let (largest, too_large) = (of_size(&push, LARGEST), of_size(&push, LARGEST + 1));
    chunked(&followed.server, &too_large, &followed.secret).failure(413, "payload_too_large");
    assert_eq!(handled(&largest.send(&followed.client(), &followed.secret)), "Webhook handled successfully");
    let again = handled(&chunked(&followed.server, &largest, &followed.secret));
    assert_eq!(again, "Duplicate delivery ignored");

    // Before it is sent.
    for length in [LARGEST + 1, 1_000_000_000] {
        let mut connection = followed.server.connect();
        connection.send(format!(
            "POST /api/v1/webhook HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n"
        ));
        let message = connection.answer().failure(413, "payload_too_large");
        assert!(message.contains("5242880"), "{message}");
    }
    assert_eq!(followed.pushes(), 1);
}

#[test]
fn limits_concurrent_large_deliveries_but_not_small_ones() {
    let followed = Followed::by(TestServer::on_sqlite(), Host::GitHub);
    let push = followed.host.push("main", "A change");
    let begin = || {
        let mut connection = followed.server.connect();
        connection
            .send("POST /api/v1/webhook HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n{");
        connection
    };
    let slow: Vec<_> = (0..8).map(|_| begin()).collect();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(handled(&push.send(&followed.client(), &followed.secret)), "Webhook handled successfully");
    let large = of_size(&push, 1_000_000);
    let answer = large.send(&followed.client(), &followed.secret);
    answer.failure(429, "rate_limited");
    assert_eq!(answer.headers["retry-after"], "1");
    drop(slow);
    // Slots are free as soon as their holders disconnect.
    assert_eq!(handled(&large.send(&followed.client(), &followed.secret)), "Duplicate delivery ignored");
}

#[test]
fn a_signed_delivery_may_say_whatever_it_likes() {
    let followed = Followed::by(TestServer::on_sqlite(), Host::GitHub);
    let push = followed.host.push("main", "A change");
    let mut payload: Value = serde_json::from_str(&push.body).unwrap();
    payload["unknown"] = json!({"deep": [[[[[[{"a": null}]]]]]], "nul": "\0"});
    let odd = Delivery { body: payload.to_string(), ..push.clone() };
    let client =
        followed.client().with_header("content-type", "text/plain").with_header("idempotency-key", "x");
    assert_eq!(handled(&odd.send(&client, &followed.secret)), "Webhook handled successfully");

    for (payload, message) in [
        (json!({"ref": null}), "Ignored push without a change"),
        (json!({"ref": "refs/heads/\u{0}\n`"}), "Ignored branch `\\0\\n`"),
        (json!({"ref": "refs/heads/".to_owned() + &"b".repeat(5000)}), "Ignored branch `bbbb"),
        (json!({"ref": "refs/heads/main", "after": "--upload-pack=x"}), "Webhook handled successfully"),
        (json!({"ref": "refs/heads/main", "after": "\u{0}"}), "Webhook handled successfully"),
        (json!({"ref": ["refs/heads/main"]}), "Ignored push without a change"),
    ] {
        let mut payload = payload;
        payload["repository"] = json!({"clone_url": "https://github.com/ada/engine.git"});
        let odd =
            Delivery { body: payload.to_string(), ..push.called(&payload.to_string().len().to_string()) };
        let answer = handled(&odd.send(&followed.client(), &followed.secret));
        assert!(answer.starts_with(message) && answer.len() < 300, "{payload}: {answer}");
    }
}

#[test]
fn hostile_bodies_cost_little_and_break_nothing() {
    let followed = Followed::by(TestServer::on_sqlite(), Host::GitHub);
    let headers = followed.host.push("main", "").headers(&followed.secret);
    let bodies = [
        "[".repeat(LARGEST),
        format!("{{\"a\":{}", "[".repeat(LARGEST - 5)),
        format!("{{\"repository\":{}", "{\"links\":".repeat(500_000)),
        "payload=".to_owned() + &"%".repeat(LARGEST - 8),
        "&".repeat(LARGEST),
        format!("{{\"repository\":{{\"clone_url\":\"https://{}\"}}}}", "a".repeat(LARGEST - 60)),
    ];
    for body in bodies {
        send(&followed.client(), &headers, &body).failure(401, "invalid_signature");
    }
    followed.client().get("/health").success();
}
