//! Notifications about members, logins and runs of extensions, in the format of each channel.

use launchway_testkit::{
    client::Client,
    people::join,
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::{Value, json};

use super::{
    DELIVERIES, Fixture, Start, add, body, deliveries, from_both_databases, names, only, remove, text,
};
use crate::shapes::expect_id;

from_both_databases!(
    members_who_come_and_go_are_announced,
    a_login_from_a_new_device_is_announced_once,
    a_run_of_an_extension_is_announced_when_it_has_finished,
    slack_and_discord_get_words,
    what_is_refused_is_not_announced,
    a_channel_of_another_organization_hears_nothing,
);

fn members_who_come_and_go_are_announced(start: Start) {
    let fixture = Fixture::new(start);
    fixture.add_channel("generic");
    let id = add(&fixture.admin, "grace@example.com");
    let added = only(&fixture.receiver.wait_for(1), "member.added");
    assert_eq!(names(&added), ["data", "timestamp", "type"]);
    let organization = fixture.admin.get("/api/v1/organizations").success();
    assert_eq!(
        added["data"],
        json!({
            "organization": "ada's Team", "organization_id": organization["id"], "email": "grace@example.com",
            "user_id": id, "role": "viewer", "by": "ada",
        })
    );
    remove(&fixture.admin, &id);
    let removed = only(&fixture.receiver.wait_for(2), "member.removed");
    assert_eq!(removed["data"]["user_id"], id.as_str());
    assert_eq!(
        (&removed["data"]["email"], &removed["data"]["by"]),
        (&json!("grace@example.com"), &json!("ada"))
    );
    // A change of role is neither.
    let again = add(&fixture.admin, "grace@example.com");
    fixture.admin.patch(super::MEMBERS, &json!({"user_id": again, "role": "member"})).success();
    let _all = fixture.receiver.wait_for(3);
    assert_eq!(fixture.admin.get(DELIVERIES).success()["pagination"]["total_count"], 3);
}

fn a_login_from_a_new_device_is_announced_once(start: Start) {
    let fixture = Fixture::new(start);
    join(&fixture.server, &fixture.admin, "grace@example.com", "viewer");
    fixture.add_channel("generic");
    let log_in = |email: &str, password: &str, agent: &str| {
        let client = fixture.server.client().with_header("user-agent", agent);
        client.post("/api/v1/auth/login", &json!({"email": email, "password": password})).success();
    };
    log_in(ADMIN_EMAIL, ADMIN_PASSWORD, "Lynx/2.9");
    let message = only(&fixture.receiver.wait_for(1), "login.new_device");
    assert_eq!(message["data"]["user"], "ada");
    assert_eq!(message["data"]["email"], ADMIN_EMAIL);
    assert_eq!(
        (&message["data"]["address"], &message["data"]["user_agent"]),
        (&json!("127.0.0.1"), &json!("Lynx/2.9"))
    );
    expect_id(&message["data"]["user_id"]);
    // The same again is nothing new; another one is, and so is the same one of another user.
    log_in(ADMIN_EMAIL, ADMIN_PASSWORD, "Lynx/2.9");
    log_in(ADMIN_EMAIL, ADMIN_PASSWORD, "curl/8");
    log_in("grace@example.com", "a password of their own", "Lynx/2.9");
    log_in("grace@example.com", "a password of their own", "Lynx/2.9");
    let agents: Vec<(String, String)> = fixture
        .receiver
        .wait_for(3)
        .iter()
        .map(body)
        .map(|body| (text(&body["data"]["email"]), text(&body["data"]["user_agent"])))
        .collect();
    for expected in [(ADMIN_EMAIL, "Lynx/2.9"), (ADMIN_EMAIL, "curl/8"), ("grace@example.com", "Lynx/2.9")] {
        let (email, agent) = (expected.0.to_owned(), expected.1.to_owned());
        assert!(agents.contains(&(email, agent)), "{expected:?} in {agents:?}");
    }
    assert_eq!(fixture.admin.get(DELIVERIES).success()["pagination"]["total_count"], 3);
    // A failed login is not a login.
    let wrong = json!({"email": ADMIN_EMAIL, "password": "not the right one"});
    let stranger = fixture.server.client().with_header("user-agent", "evil/1");
    stranger.post("/api/v1/auth/login", &wrong).failure(401, "invalid_credentials");
    // Not seen for 90 days is new.
    fixture.server.execute(&format!(
        "UPDATE sessions SET extended_at = {} WHERE user_agent = 'curl/8'",
        before_90_days(&fixture.server)
    ));
    log_in(ADMIN_EMAIL, ADMIN_PASSWORD, "curl/8");
    let last = body(&fixture.receiver.wait_for(4)[3]);
    assert_eq!(last["data"]["user_agent"], "curl/8");
    assert_eq!(fixture.admin.get(DELIVERIES).success()["pagination"]["total_count"], 4);
}

fn before_90_days(server: &TestServer) -> &'static str {
    match server.data_dir().join("launchway.db").exists() {
        true => "extended_at - 90 * 86400 * 1000000",
        false => "extended_at - INTERVAL '90 days'",
    }
}

fn a_run_of_an_extension_is_announced_when_it_has_finished(start: Start) {
    let fixture = Fixture::new(start);
    fixture.add_channel("generic");
    let (key, id) = run(&fixture.admin, "action: mkdir, dest: a");
    let done = only(&fixture.receiver.wait_for(1), "extension.completed");
    let data = &done["data"];
    assert_eq!((&data["extension_id"], &data["execution_id"]), (&json!(key), &json!(id)));
    assert_eq!(data["requested_by"], "ada");
    assert!(data["duration_seconds"].is_number(), "{data}");
    for absent in ["last_lines", "reason", "exit_code"] {
        assert!(data.get(absent).is_none(), "{data}");
    }

    let (_, id) = run(&fixture.admin, "action: copy, src: missing, dest: b");
    let failed = only(&fixture.receiver.wait_for(2), "extension.failed");
    let data = &failed["data"];
    assert_eq!(data["execution_id"], id.as_str());
    assert!(!text(&data["reason"]).is_empty());
    assert!(!data["last_lines"].as_array().unwrap().is_empty(), "{data}");
}

/// Runs an extension that has one step on files; returns its key and the id of the run.
fn run(admin: &Client, properties: &str) -> (String, String) {
    let yaml = format!(
        "metadata: {{id: x, name: X, description: x, author: x, icon: x, category: Other, type: run}}\n\
         execution: {{run: [{{name: A, type: file, properties: {{{properties}}}}}]}}"
    );
    let fork = admin.post("/api/v1/extensions/hello-note/fork", &json!({"yaml_content": yaml})).success();
    let key = text(&fork["extension_id"]);
    let run = admin.post(&format!("/api/v1/extensions/{key}/run"), &json!({})).success();
    (key, text(&run["id"]))
}

fn slack_and_discord_get_words(start: Start) {
    let fixture = Fixture::new(start);
    fixture.add_channel("slack");
    add(&fixture.admin, "grace@example.com");
    let slack = body(&fixture.receiver.wait_for(1)[0]);
    assert_eq!(
        slack,
        json!({"text": "*grace@example.com was added as viewer by ada*\nOrganization: ada's Team"})
    );
    fixture.admin.delete(&format!("{}/slack", super::WEBHOOK)).success();
    fixture.add_channel("discord");
    fixture.admin.patch("/api/v1/user/name", &json!({"name": "@everyone *x*"})).success();
    add(&fixture.admin, "heidi@example.com");
    let discord = body(&fixture.receiver.wait_for(2)[1]);
    assert_eq!(names(&discord), ["allowed_mentions", "content"]);
    assert_eq!(discord["allowed_mentions"], json!({"parse": []}));
    let content = text(&discord["content"]);
    assert!(
        content.starts_with("**heidi\\@example.com was added as viewer by \\@everyone \\*x\\***"),
        "{content}"
    );
}

fn what_is_refused_is_not_announced(start: Start) {
    let fixture = Fixture::new(start);
    fixture.add_channel("generic");
    add(&fixture.admin, "grace@example.com");
    let again = json!({"email": "grace@example.com", "role": "viewer"});
    fixture.admin.post(super::MEMBERS, &again).failure(409, "conflict");
    fixture
        .admin
        .post(super::MEMBERS, &json!({"email": "x", "role": "viewer"}))
        .failure(400, "validation_failed");
    let own = fixture.admin.get("/api/v1/user").success()["id"].clone();
    let last = fixture.admin.send_json("DELETE", super::MEMBERS, &json!({"user_id": own}));
    last.failure(409, "conflict");
    let _one = fixture.receiver.wait_for(1);
    assert_eq!(deliveries(&fixture.admin, "").len(), 1);
}

fn a_channel_of_another_organization_hears_nothing(start: Start) {
    let fixture = Fixture::new(start);
    let other = fixture.admin.post("/api/v1/organizations", &json!({"name": "Elsewhere"})).success();
    let elsewhere = fixture.admin.with_header("x-organization-id", other["id"].as_str().unwrap());
    super::add_channel(&elsewhere, "generic", &fixture.receiver.url());
    add(&fixture.admin, "grace@example.com");
    add(&elsewhere, "heidi@example.com");
    let message = only(&fixture.receiver.wait_for(1), "member.added");
    assert_eq!(
        (&message["data"]["organization"], &message["data"]["email"]),
        (&json!("Elsewhere"), &json!("heidi@example.com"))
    );
    assert_eq!(deliveries(&fixture.admin, ""), Vec::<Value>::new());
    let seen = deliveries(&elsewhere, "");
    assert_eq!(seen.len(), 1);
    // Resources of others are not found.
    let path = format!("{DELIVERIES}/{}/replay", text(&seen[0]["id"]));
    fixture.admin.post(&path, &json!({})).failure(404, "not_found");
}
