//! Concurrent changes of one application.

use launchway_testkit::{client::Client, server::TestServer, wait::at_once};
use serde_json::{Value, json};

const DEPLOY: &str = "/api/v1/deploy/application";

super::on_both_databases!(
    who_change_different_fields_at_once_lose_nothing,
    who_knows_an_older_version_gets_a_conflict,
);

/// Creates an application, whose deployments fail here.
fn an_application(admin: &Client) -> Value {
    let spec = json!({"name": "web", "repository": "https://git.example.com/web.git", "branch": "main",
        "port": 8080, "environment": "production", "build_pack": "static"});
    admin.post(DEPLOY, &spec).success()
}

fn who_change_different_fields_at_once_lose_nothing(server: TestServer) {
    let admin = server.admin();
    let id = an_application(&admin)["id"].as_str().unwrap().to_owned();
    let changes = [
        json!({"port": 9000}),
        json!({"branch": "next"}),
        json!({"labels": ["blue"]}),
        json!({"environment_variables": {"A": "1"}}),
    ];
    let answers = at_once(changes.len(), |number| {
        admin.put(&format!("{DEPLOY}?id={id}&redeploy=false"), &changes[number])
    });
    for answer in answers {
        answer.success();
    }
    let after = admin.get(&format!("{DEPLOY}?id={id}")).success();
    assert_eq!((&after["port"], &after["branch"]), (&json!(9000), &json!("next")));
    assert_eq!(
        (&after["labels"], &after["environment_variables"]),
        (&json!(["blue"]), &json!(r#"{"A":"1"}"#))
    );
}

fn who_knows_an_older_version_gets_a_conflict(server: TestServer) {
    let admin = server.admin();
    let made = an_application(&admin);
    let id = made["id"].as_str().unwrap();
    let change = |since: &str, port: u16| {
        admin.put(&format!("{DEPLOY}?id={id}&redeploy=false&unchanged_since={since}"), &json!({"port": port}))
    };
    // Its first deployment changes it in the background, so that only a fresh read is current.
    let changed = launchway_testkit::wait::until("a moment of rest", || {
        let known = admin.get(&format!("{DEPLOY}?id={id}")).success();
        let answer = change(known["updated_at"].as_str().unwrap(), 9000);
        (answer.status == 200).then(|| answer.success())
    });
    assert_eq!(changed["port"], 9000);
    let stale = change("2020-01-01T00:00:00.000000Z", 9001).failure(409, "conflict");
    assert!(stale.contains("changed in the meantime"), "{stale}");
    change("yesterday", 9002).failure(400, "validation_failed");
    assert_eq!(admin.get(&format!("{DEPLOY}?id={id}")).success()["port"], 9000);
}
