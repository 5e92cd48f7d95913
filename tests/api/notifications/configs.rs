//! Webhook channels: `/api/v1/notification/webhook`.

use launchway_testkit::{people::join, server::TestServer};
use serde_json::{Value, json};

use super::{SMTP, Start, WEBHOOK, from_both_databases, names};
use crate::{
    shapes::{WEBHOOK_CONFIG, expect_id, expect_record},
    wait::at_once,
};

const SLACK: &str = "https://hooks.example.com/services/T000/B000/secret";

from_both_databases!(
    a_webhook_is_created_shown_changed_and_deleted,
    there_is_one_of_each_type,
    an_address_is_shown_in_full_only_to_who_may_change_it,
    of_many_who_create_the_same_at_once_one_does,
    a_request_with_a_key_is_carried_out_once,
);

fn a_request_with_a_key_is_carried_out_once(start: Start) {
    let server = start(&[]);
    let admin = server.admin();
    let keyed = admin.with_header("idempotency-key", "first");
    let slack = json!({"type": "slack", "webhook_url": SLACK});
    let first = keyed.post(WEBHOOK, &slack);
    assert_eq!((first.status, &first.json()["error"]), (200, &json!("")));
    assert_eq!(keyed.post(WEBHOOK, &slack).json(), first.json());
    keyed.post(WEBHOOK, &json!({"type": "discord", "webhook_url": SLACK})).failure(409, "conflict");
    admin.post(WEBHOOK, &slack).failure(409, "conflict");

    let mail = json!({"host": "smtp.example.com", "from_email": "launchway@example.com"});
    let first = keyed.post(SMTP, &mail);
    assert_eq!(first.status, 200);
    assert_eq!(keyed.post(SMTP, &mail).json(), first.json());
    admin.post(SMTP, &mail).failure(409, "conflict");
}

fn a_webhook_is_created_shown_changed_and_deleted(start: Start) {
    let server = start(&[]);
    let admin = server.admin();
    let missing = admin.put(WEBHOOK, &json!({"type": "slack", "is_active": false}));
    assert_eq!(missing.failure(404, "not_found"), "the webhook configuration was not found");

    let created = admin.post(WEBHOOK, &json!({"type": "slack", "webhook_url": SLACK}));
    let expected = json!({
        "data": null, "message": "Webhook config created successfully", "status": "success", "error": "",
    });
    assert_eq!((created.status, created.json()), (200, expected));

    let shown = admin.get(&format!("{WEBHOOK}/slack"));
    assert_eq!(shown.message(), "Webhook config retrieved successfully");
    let shown = shown.success();
    expect_record(&shown, WEBHOOK_CONFIG);
    let user = admin.get("/api/v1/user").success();
    assert_eq!(shown["user_id"], user["id"]);
    assert_eq!(shown["organization_id"], user["organizations"][0]["id"]);
    assert_eq!((&shown["webhook_url"], &shown["type"]), (&json!(SLACK), &json!("slack")));
    assert_eq!(shown["is_active"], true);

    let off = admin.put(WEBHOOK, &json!({"type": "slack", "is_active": false}));
    assert_eq!(off.message(), "Webhook config updated successfully");
    let off = off.success();
    expect_record(&off, WEBHOOK_CONFIG);
    assert_eq!((&off["is_active"], &off["webhook_url"]), (&json!(false), &json!(SLACK)));
    assert_eq!((&off["id"], &off["created_at"]), (&shown["id"], &shown["created_at"]));
    let moved = json!({"type": "slack", "webhook_url": "https://hooks.example.com/other"});
    let moved = admin.put(WEBHOOK, &moved).success();
    assert_eq!(
        (&moved["is_active"], &moved["webhook_url"]),
        (&json!(false), &json!("https://hooks.example.com/other"))
    );
    assert_eq!(admin.get(&format!("{WEBHOOK}/slack")).success(), moved);
    // Nothing to change is no change.
    let same = admin.put(WEBHOOK, &json!({"type": "slack"})).success();
    assert_eq!((&same["is_active"], &same["webhook_url"]), (&moved["is_active"], &moved["webhook_url"]));

    let deleted = admin.delete(&format!("{WEBHOOK}/slack"));
    assert_eq!(deleted.message(), "Webhook config deleted successfully");
    assert_eq!(deleted.success(), Value::Null);
    for gone in [admin.get(&format!("{WEBHOOK}/slack")), admin.delete(&format!("{WEBHOOK}/slack"))] {
        gone.failure(404, "not_found");
    }
}

fn there_is_one_of_each_type(start: Start) {
    let server = start(&[]);
    let admin = server.admin();
    for (kind, path) in
        [("slack", WEBHOOK), ("discord", "/api/v1/api/v1/notification/webhook"), ("generic", WEBHOOK)]
    {
        let spec = json!({"type": kind, "webhook_url": SLACK, "is_active": false});
        let created = admin.post(path, &spec);
        created.success();
        assert_eq!(names(&created.json()), ["data", "error", "message", "status"]);
        let message = admin.post(path, &spec).failure(409, "conflict");
        assert!(message.contains(kind) && message.contains("PUT /api/v1/notification/webhook"), "{message}");
        assert_eq!(admin.get(&format!("{WEBHOOK}/{kind}")).success()["is_active"], false);
    }
    // Another organization has its own.
    let other = admin.post("/api/v1/organizations", &json!({"name": "Elsewhere"})).success();
    let elsewhere = admin.with_header("x-organization-id", other["id"].as_str().unwrap());
    elsewhere.get(&format!("{WEBHOOK}/slack")).failure(404, "not_found");
    elsewhere.post(WEBHOOK, &json!({"type": "slack", "webhook_url": SLACK})).success();
    admin.delete(&format!("{WEBHOOK}/slack")).success();
    elsewhere.get(&format!("{WEBHOOK}/slack")).success();
}

fn an_address_is_shown_in_full_only_to_who_may_change_it(start: Start) {
    let server = start(&[]);
    let admin = server.admin();
    admin.post(WEBHOOK, &json!({"type": "slack", "webhook_url": SLACK})).success();
    assert_eq!(admin.get(&format!("{WEBHOOK}/slack")).success()["webhook_url"], SLACK);
    for role in ["member", "viewer"] {
        let person = join(&server, &admin, &format!("{role}@example.com"), role).log_in();
        let shown = person.get(&format!("{WEBHOOK}/slack"));
        assert_eq!(shown.success()["webhook_url"], "https://hooks.example.com/***", "{role}");
        assert!(!shown.text.contains("secret"), "{role}");
        person.put(WEBHOOK, &json!({"type": "slack"})).failure(403, "forbidden");
    }
    // A token of an admin that may only read is not shown it either.
    let token = json!({"name": "reader", "permissions": ["notification:read"]});
    let token = admin.post("/api/v1/auth/tokens", &token).success();
    let reader = server.client().with_token(token["token"].as_str().unwrap());
    let shown = reader.get(&format!("{WEBHOOK}/slack")).success();
    assert_eq!(shown["webhook_url"], "https://hooks.example.com/***");
}

fn of_many_who_create_the_same_at_once_one_does(start: Start) {
    let server = start(&[]);
    let admin = server.admin();
    let spec = json!({"type": "generic", "webhook_url": SLACK});
    let mail = json!({"host": "smtp.example.com", "from_email": "launchway@example.com"});
    for (path, spec) in [(WEBHOOK, spec), (SMTP, mail)] {
        let mut statuses: Vec<u16> =
            at_once(8, |_| admin.post(path, &spec)).iter().map(|answer| answer.status).collect();
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409], "{path}");
    }
    let count = |table: &str| server.query(&format!("SELECT CAST(COUNT(*) AS TEXT) AS value FROM {table}"));
    assert_eq!(count("webhook_configs"), ["1"]);
    assert_eq!(count("signing_secrets"), ["0"]);
    assert_eq!(count("smtp_configs"), ["1"]);
}

#[test]
fn what_is_wrong_with_a_webhook_is_reported() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    let nobody = server.client().post(WEBHOOK, &json!({"type": "slack", "webhook_url": SLACK}));
    nobody.failure(401, "unauthenticated");
    assert_eq!(
        admin.post(WEBHOOK, &json!({})).failure(400, "validation_failed"),
        "type is required; webhook_url is required"
    );
    assert_eq!(admin.put(WEBHOOK, &json!({})).failure(400, "validation_failed"), "type is required");
    for kind in ["teams", "SLACK", "smtp", "slack "] {
        let spec = json!({"type": kind, "webhook_url": SLACK});
        let message = admin.post(WEBHOOK, &spec).failure(400, "validation_failed");
        assert!(message.starts_with("type must be `slack`, `discord` or `generic`"), "{message}");
    }
    admin.post(WEBHOOK, &json!({"type": "slack", "webhook_url": SLACK})).success();
    for path in ["teams", "smtp", "SLACK", "%00", "slack%20x"] {
        admin.get(&format!("{WEBHOOK}/{path}")).failure(400, "validation_failed");
        admin.delete(&format!("{WEBHOOK}/{path}")).failure(400, "validation_failed");
    }
    let rule = "webhook_url must be an `http://` or `https://` URL of at most 2048 characters, without a user \
                and a password";
    let long = format!("https://example.com/{}", "x".repeat(2048 - 19));
    for url in [
        "example.com",
        "ftp://example.com/",
        "file:///etc/passwd",
        "https://ada@example.com/",
        "https://ada:hunter2@example.com/",
        "https://example.com:0/",
        &long,
    ] {
        for answer in [
            admin.post(WEBHOOK, &json!({"type": "generic", "webhook_url": url})),
            admin.put(WEBHOOK, &json!({"type": "slack", "webhook_url": url})),
        ] {
            // Nothing of it is repeated: it may hold a secret.
            assert_eq!(answer.failure(400, "validation_failed"), rule, "{url}");
        }
    }
    let longest = &long[..2048];
    admin.post(WEBHOOK, &json!({"type": "generic", "webhook_url": longest})).success();
    assert_eq!(admin.get(&format!("{WEBHOOK}/generic")).success()["webhook_url"], longest);
    for wrong in [json!("yes"), json!(1)] {
        let message = admin.put(WEBHOOK, &json!({"type": "slack", "is_active": wrong}));
        assert!(message.failure(400, "validation_failed").starts_with("is_active must be"));
    }
    admin.put(WEBHOOK, &json!({"type": "slack", "id": "x"})).failure(400, "unknown_field");
}

#[test]
fn every_change_is_in_the_audit_log_without_the_address() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    admin.post(WEBHOOK, &json!({"type": "generic", "webhook_url": SLACK})).success();
    admin.put(WEBHOOK, &json!({"type": "generic", "webhook_url": SLACK, "is_active": false})).success();
    let secret = admin.post(&format!("{WEBHOOK}/generic/secret"), &json!({}));
    assert_eq!(secret.message(), "Signing secret replaced successfully");
    let secret = secret.success();
    assert_eq!(names(&secret), ["secret"]);
    admin.delete(&format!("{WEBHOOK}/generic")).success();
    let audit_log = admin.get("/api/v1/audit/logs?resource_type=notification");
    let entries = audit_log.success();
    let entries = entries["activities"].as_array().unwrap();
    let actions: Vec<&str> = entries.iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["delete", "update", "update", "create"]);
    entries.iter().for_each(|entry| expect_id(&entry["id"]));
    assert!(!audit_log.text.contains("/services/T000"), "{}", audit_log.text);
    assert!(!audit_log.text.contains(secret["secret"].as_str().unwrap()));
    // Without a receiver of one's own there is nothing to sign.
    admin.post(&format!("{WEBHOOK}/generic/secret"), &json!({})).failure(404, "not_found");
}
