//! The mail channel: `/api/v1/notification/smtp`, and a real mail server.

use launchway_testkit::{
    external::{Authority, MailServer, MailServerOptions, Safety, TakenMail},
    people::join,
    server::{ADMIN_EMAIL, TestServer},
};
use serde_json::{Value, json};

use super::{DELIVERIES, SMTP, Start, TEST, add, from_both_databases, names, settled};
use crate::shapes::{SMTP_CONFIG, expect_record};

const DOUBLED: &str = "/api/v1/api/v1/notification/smtp";
const PASSWORD: &str = "tr0ub4dor-canary";

from_both_databases!(
    a_mail_server_is_configured_changed_and_deleted,
    mail_goes_to_the_admins_or_to_who_is_named,
    what_a_mail_server_refuses_for_good_is_dead_at_once,
);

fn spec() -> Value {
    json!({
        "host": "smtp.example.com", "username": "launchway", "password": PASSWORD,
        "from_email": "launchway@example.com",
    })
}

fn a_mail_server_is_configured_changed_and_deleted(start: Start) {
    let server = start(&[]);
    let admin = server.admin();
    admin.get(SMTP).failure(404, "not_found");
    admin.put(SMTP, &json!({"port": 25})).failure(404, "not_found");
    admin.delete(SMTP).failure(404, "not_found");

    let created = admin.post(SMTP, &spec());
    assert_eq!(created.message(), "SMTP configuration created successfully");
    let config = created.success();
    expect_record(&config, SMTP_CONFIG);
    for (field, value) in [
        ("host", json!("smtp.example.com")),
        ("port", json!(587)),
        ("username", json!("launchway")),
        ("from_email", json!("launchway@example.com")),
        ("from_name", json!("Launchway")),
        ("to", json!([])),
        ("security", json!("starttls")),
        ("is_active", json!(true)),
    ] {
        assert_eq!(config[field], value, "{field}");
    }
    assert_eq!(admin.get(SMTP).message(), "SMTP configuration retrieved successfully");
    assert_eq!(admin.get(SMTP).success(), config);
    let message = admin.post(SMTP, &spec()).failure(409, "conflict");
    assert!(message.contains("PUT /api/v1/notification/smtp"), "{message}");

    let mut change =
        json!({"security": "tls", "to": ["ops@example.com"], "is_active": false, "from_name": "CI"});
    // A password cannot be redirected to another server without knowing it.
    let message = admin.put(SMTP, &change).failure(400, "validation_failed");
    assert!(message.contains("password"), "{message}");
    change["password"] = spec()["password"].clone();
    let changed = admin.put(SMTP, &change);
    assert_eq!(changed.message(), "SMTP configuration updated successfully");
    let changed = changed.success();
    // The default port of one encryption mode becomes that of the other.
    assert_eq!((&changed["port"], &changed["security"]), (&json!(465), &json!("tls")));
    assert_eq!((&changed["to"], &changed["from_name"]), (&json!(["ops@example.com"]), &json!("CI")));
    assert_eq!((&changed["is_active"], &changed["username"]), (&json!(false), &json!("launchway")));
    assert_eq!((&changed["id"], &changed["created_at"]), (&config["id"], &config["created_at"]));
    for answer in [&created.text, &admin.get(SMTP).text, &changed.to_string()] {
        assert!(!answer.contains(PASSWORD) && !answer.contains("\"password\""), "{answer}");
    }
    deletes(&server, &config["id"]);
}

/// Deletes the channel: by no id, by one in the query, by one in the body, and under both prefixes.
fn deletes(server: &TestServer, first: &Value) {
    let admin = server.log_in(ADMIN_EMAIL, launchway_testkit::server::ADMIN_PASSWORD);
    let done = json!({
        "data": null, "message": "SMTP configuration deleted successfully", "status": "success", "error": "",
    });
    let unknown = "01a1dd03-0000-7000-8000-000000000000";
    admin.delete(&format!("{SMTP}?id={unknown}")).failure(404, "not_found");
    admin.send_json("DELETE", SMTP, &json!({"id": unknown})).failure(404, "not_found");
    admin.delete(&format!("{SMTP}?id=1")).failure(400, "invalid_id");
    admin.send_json("DELETE", SMTP, &json!({"id": "1"})).failure(400, "invalid_id");
    admin.send_json("DELETE", SMTP, &json!({"ids": []})).failure(400, "unknown_field");
    server.client().delete(SMTP).failure(401, "unauthenticated");
    let by_id = |id: &Value| json!({ "id": id });
    let deleted = admin.send_json("DELETE", SMTP, &by_id(first));
    assert_eq!((deleted.status, deleted.json()), (200, done.clone()));
    type Way = fn(&launchway_testkit::client::Client, &str) -> launchway_testkit::client::Answer;
    let ways: [Way; 4] = [
        |admin, _| admin.delete(SMTP),
        |admin, _| admin.delete(DOUBLED),
        |admin, id| admin.delete(&format!("{SMTP}?id={id}")),
        |admin, id| admin.send_json("DELETE", DOUBLED, &json!({ "id": id })),
    ];
    for way in ways {
        let config = admin.post(SMTP, &spec()).success();
        let deleted = way(&admin, config["id"].as_str().unwrap());
        assert_eq!((deleted.status, deleted.json()), (200, done.clone()));
        admin.get(SMTP).failure(404, "not_found");
    }
    admin.delete(DOUBLED).failure(404, "not_found");
}

#[test]
fn what_is_wrong_with_a_mail_server_is_reported() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    assert_eq!(
        admin.post(SMTP, &json!({})).failure(400, "validation_failed"),
        "host is required; from_email is required"
    );
    let recipients =
        |count: usize| (0..count).map(|n| json!(format!("p{n}@example.com"))).collect::<Vec<_>>();
    for (field, value) in [
        ("host", json!("two words")),
        ("host", json!("-x.example.com")),
        ("host", json!("http://smtp.example.com")),
        ("host", json!("a".repeat(64))),
        ("port", json!(0)),
        ("port", json!(65_536)),
        ("security", json!("ssl")),
        ("from_email", json!("nobody")),
        ("from_name", json!("a\nb")),
        ("from_name", json!("x".repeat(101))),
        ("username", json!("x".repeat(256))),
        ("to", json!(["nobody"])),
        ("to", json!(recipients(51))),
    ] {
        let mut wrong = spec();
        wrong[field] = value.clone();
        let message = admin.post(SMTP, &wrong).failure(400, "validation_failed");
        assert!(message.contains(field), "{field} {value}: {message}");
        assert!(!message.contains(PASSWORD), "{message}");
    }
    for alone in ["username", "password"] {
        let mut half = spec();
        half.as_object_mut().unwrap().remove(alone);
        let message = admin.post(SMTP, &half).failure(400, "validation_failed");
        assert_eq!(message, "`username` and `password` go together: give both, or neither");
    }
    // A public address, but not without encryption.
    let mut open = spec();
    (open["security"], open["host"]) = (json!("none"), json!("8.8.8.8"));
    let message = admin.post(SMTP, &open).failure(400, "validation_failed");
    assert!(message.contains("security") && message.contains("without encryption"), "{message}");
    admin.get(SMTP).failure(404, "not_found");
    let mut most = spec();
    (most["to"], most["from_name"]) = (json!(recipients(50)), json!("x".repeat(100)));
    assert_eq!(admin.post(SMTP, &most).success()["to"].as_array().unwrap().len(), 50);
    // An empty list means the admins again.
    assert_eq!(admin.put(SMTP, &json!({"to": []})).success()["to"], json!([]));
}

/// A server that may connect to `mail` without encryption.
fn beside(start: Start, mail: &MailServer) -> TestServer {
    let allowed = format!("127.0.0.1/32:{}", mail.port);
    start(&[("LAUNCHWAY_OUTBOUND_ALLOW", &allowed), ("LAUNCHWAY_NOTIFICATION_RETRIES", "100ms,100ms")])
}

fn at(mail: &MailServer) -> Value {
    json!({"host": "127.0.0.1", "port": mail.port, "security": "none", "from_email": "launchway@example.com"})
}

fn mail_goes_to_the_admins_or_to_who_is_named(start: Start) {
    let mail = MailServer::start(&MailServerOptions::new(Safety::None));
    let server = beside(start, &mail);
    let admin = server.admin();
    join(&server, &admin, "grace@example.com", "admin");
    join(&server, &admin, "viewer@example.com", "viewer");
    admin.post(SMTP, &at(&mail)).success();
    let added = add(&admin, "new@example.com");
    let first = mail.wait_for(1)[0].clone();
    let mut to = first.to.clone();
    to.sort();
    assert_eq!(to, [ADMIN_EMAIL, "grace@example.com"]);
    assert_eq!(first.from, "launchway@example.com");
    assert_eq!(first.header("subject"), Some("[Launchway] new@example.com was added as viewer by ada"));
    assert!(first.text.contains("Organization: ada's Team"), "{}", first.text);

    admin.put(SMTP, &json!({"to": ["ops@example.com", "OPS@example.com", "dev@example.com"]})).success();
    super::remove(&admin, &added);
    let both = mail.wait_for(2);
    let second: &TakenMail = &both[1];
    assert_eq!(second.to, ["ops@example.com", "dev@example.com"]);
    assert_eq!(second.header("subject"), Some("[Launchway] new@example.com was removed by ada"));
    assert_ne!(first.header("message-id"), second.header("message-id"));
    let sent = settled(&admin, "delivered", 2);
    assert!(
        sent.iter().all(|one| one["channel"] == "smtp" && one["attempts"][0]["status"] == 250),
        "{sent:?}"
    );

    // Off means off.
    admin.put(SMTP, &json!({"is_active": false})).success();
    add(&admin, "quiet@example.com");
    admin.put(SMTP, &json!({"is_active": true})).success();
    add(&admin, "loud@example.com");
    let third = mail.wait_for(3)[2].clone();
    assert!(third.header("subject").unwrap().contains("loud@example.com"));
    assert_eq!(admin.get(DELIVERIES).success()["pagination"]["total_count"], 3);
}

fn what_a_mail_server_refuses_for_good_is_dead_at_once(start: Start) {
    let mail = MailServer::start(&MailServerOptions {
        refused_text: Some("554 no thanks"),
        ..MailServerOptions::new(Safety::None)
    });
    let server = beside(start, &mail);
    let admin = server.admin();
    admin.post(SMTP, &at(&mail)).success();
    add(&admin, "new@example.com");
    let dead = &settled(&admin, "dead", 1)[0];
    assert_eq!(dead["attempts"].as_array().unwrap().len(), 1);
    assert_eq!(dead["attempts"][0]["status"], 554);
    assert!(dead["attempts"][0]["error"].as_str().unwrap().contains("no thanks"), "{dead}");
    let tried = admin.post(TEST, &json!({"channel": "smtp"}));
    assert_eq!(tried.message(), "Test message not delivered");
    let tried = tried.success();
    assert_eq!((&tried["delivered"], &tried["status"]), (&json!(false), &json!(554)));
    assert!(mail.taken().is_empty());
}

#[test]
fn mail_logins_are_encrypted_and_the_password_is_not_shown() {
    let authority = Authority::new();
    let identity = authority.vouch_for(&["127.0.0.1"]);
    let mail = MailServer::start(&MailServerOptions {
        login: Some(("launchway".to_owned(), PASSWORD.to_owned())),
        ..MailServerOptions::new(Safety::StartTls(identity))
    });
    let folder = tempfile::tempdir().unwrap();
    let certificates = folder.path().join("authority.pem");
    std::fs::write(&certificates, authority.pem()).unwrap();
    let (allowed, certificates) = (format!("127.0.0.1/32:{}", mail.port), certificates.display().to_string());
    let server = TestServer::configured(&[
        ("LAUNCHWAY_OUTBOUND_ALLOW", &allowed),
        ("SSL_CERT_FILE", &certificates),
        ("LAUNCHWAY_LOG", "trace"),
    ]);
    let admin = server.admin();
    let mut spec = spec();
    (spec["host"], spec["port"]) = (json!("127.0.0.1"), json!(mail.port));
    admin.post(SMTP, &spec).success();
    let tried = admin.post(TEST, &json!({"channel": "smtp"}));
    assert_eq!(tried.message(), "Test message delivered", "{}", tried.text);
    assert_eq!(names(&tried.success()), ["channel", "delivered", "error", "status", "type"]);
    let taken = mail.wait_for(1);
    assert!(taken[0].encrypted && taken[0].login == "launchway");
    assert_eq!(taken[0].to, [ADMIN_EMAIL]);

    admin.put(SMTP, &json!({"password": "another-canary"})).success();
    let refused = admin.post(TEST, &json!({"channel": "smtp"})).success();
    assert_eq!((&refused["delivered"], &refused["status"]), (&json!(false), &json!(535)));
    let everything = [
        refused.to_string(),
        admin.get(SMTP).text,
        admin.get("/api/v1/audit/logs?page_size=100").text,
        server.log(),
        server.query("SELECT password AS value FROM smtp_configs").concat(),
    ];
    for shown in everything {
        assert!(!shown.contains("canary"), "{shown}");
    }
}
