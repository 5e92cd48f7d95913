//! Concurrent changes of one application.

use launchway_testkit::{client::Client, server::TestServer, wait::at_once};
use serde_json::{Value, json};

const DEPLOY: &str = "/api/v1/deploy/application";

super::on_both_databases!(
    who_change_different_fields_at_once_lose_nothing,
    who_knows_an_older_version_gets_a_conflict,
    there_are_between_1_and_100_replicas,
    only_single_containers_have_several_replicas,
    watch_paths_are_up_to_100_patterns_of_up_to_255_bytes,
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

fn there_are_between_1_and_100_replicas(server: TestServer) {
    let admin = server.admin();
    let spec = |name: &str, replicas: Value| {
        json!({"name": name, "repository": "registry.example.com/web:1", "port": 8080,
            "environment": "production", "build_pack": "image", "replicas": replicas})
    };
    for replicas in [json!(0), json!(101), json!(-1), json!(1.5), json!("three")] {
        let refused = admin.post(DEPLOY, &spec("web", replicas.clone())).failure(400, "validation_failed");
        assert!(refused.contains("replicas"), "{replicas}: {refused}");
    }
    for (name, replicas) in [("one", 1), ("most", 100)] {
        let made = admin.post(DEPLOY, &spec(name, json!(replicas))).success();
        assert_eq!(made["replicas"], replicas);
    }
    let mut spec = spec("web", json!(1));
    spec.as_object_mut().unwrap().remove("replicas");
    let made = admin.post(DEPLOY, &spec).success();
    assert_eq!(made["replicas"], 1, "that is the default");
    let id = made["id"].as_str().unwrap();
    let change = |replicas: Value| admin.put(&format!("{DEPLOY}?id={id}"), &json!({"replicas": replicas}));
    change(json!(0)).failure(400, "validation_failed");
    change(json!(101)).failure(400, "validation_failed");
    let changed = change(json!(3)).success();
    assert_eq!(changed["replicas"], 3);
    assert_eq!(changed["deployments"].as_array().unwrap().len(), 1, "nothing is deployed again");
    let entries = admin.get("/api/v1/audit/logs").success().to_string();
    assert!(entries.contains("replicas"), "{entries}");
    assert_eq!(change(json!(1)).success()["replicas"], 1);
}

fn only_single_containers_have_several_replicas(server: TestServer) {
    let admin = server.admin();
    for pack in ["static", "docker-compose"] {
        let spec = json!({"name": "web", "repository": "https://git.example.com/web.git", "branch": "main",
            "port": 8080, "environment": "production", "build_pack": pack, "replicas": 2});
        let refused = admin.post(DEPLOY, &spec).failure(400, "validation_failed");
        assert!(refused.contains(&format!("replicas must be 1 for build pack `{pack}`")), "{refused}");
    }
    let id = an_application(&admin)["id"].as_str().unwrap().to_owned();
    let refused = admin.put(&format!("{DEPLOY}?id={id}"), &json!({"replicas": 2}));
    refused.failure(400, "validation_failed");
}

fn watch_paths_are_up_to_100_patterns_of_up_to_255_bytes(server: TestServer) {
    let admin = server.admin();
    let made = an_application(&admin);
    assert_eq!(made["watch_paths"], json!([]));
    let path = format!("{DEPLOY}?id={}&redeploy=false", made["id"].as_str().unwrap());
    let change = |patterns: Value| admin.put(&path, &json!({"watch_paths": patterns}));
    let longest = json!(vec!["x".repeat(255); 100]);
    assert_eq!(change(longest.clone()).success()["watch_paths"], longest);
    for patterns in [
        json!(vec!["x"; 101]),
        json!(["x".repeat(256)]),
        json!([""]),
        json!(["a\nb"]),
        json!(["# comment"]),
        json!(["!docs/"]),
        json!("apps/"),
        json!([1]),
    ] {
        let message = change(patterns.clone()).failure(400, "validation_failed");
        assert!(message.contains("watch_paths"), "{patterns}: {message}");
    }
    let entry = &admin.get("/api/v1/audit/logs?resource_type=application").success()["activities"][0];
    assert!(entry["metadata"]["watch_paths"].as_str().unwrap().starts_with("xxx"), "{entry}");
    assert_eq!(change(json!([])).success()["watch_paths"], json!([]));
    let image = json!({"name": "proxy", "repository": "nginx:1", "port": 80, "environment": "production",
        "build_pack": "image", "watch_paths": ["a"]});
    assert!(
        admin.post(DEPLOY, &image).failure(400, "validation_failed").contains("watch_paths must be absent")
    );
}
