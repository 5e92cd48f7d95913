//! Forks: their owners and their lifecycle.

use launchway_testkit::{people::join, server::TestServer};
use serde_json::{Value, json};

use super::{EXTENSIONS, definition, forked, text};

super::on_both_databases!(
    a_copy_says_what_it_is_a_copy_of,
    a_fork_of_a_fork_conflicts,
    a_fork_is_invisible_elsewhere,
    only_forks_are_deleted,
);

fn a_copy_says_what_it_is_a_copy_of(server: TestServer) {
    let admin = server.admin();
    let source = admin.get(&format!("{EXTENSIONS}/by-extension-id/hello-note")).success();
    for body in [json!({}), json!({"yaml_content": ""}), json!({"yaml_content": null})] {
        let fork = admin.post(&format!("{EXTENSIONS}/hello-note/fork"), &body).success();
        let key = text(&fork["extension_id"]);
        let suffix = key.strip_prefix("hello-note-fork-").unwrap();
        assert!(
            suffix.len() == 8 && suffix.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()),
            "{key}"
        );
        assert_eq!(
            (&fork["parent_extension_id"], &fork["name"]),
            (&json!("hello-note"), &json!("Hello note (Fork)"))
        );
        assert_eq!((&fork["is_verified"], &fork["author"]), (&json!(false), &source["author"]));
        for field in [
            "yaml_content",
            "content_hash",
            "parsed_content",
            "category",
            "extension_type",
            "version",
            "icon",
        ] {
            assert_eq!(fork[field], source[field], "{field}");
        }
        assert_eq!((&fork["validation_status"], &fork["validation_errors"]), (&json!("valid"), &json!("[]")));
        let shown = admin.get(&format!("{EXTENSIONS}/by-extension-id/{key}"));
        assert_eq!((shown.message(), shown.success()), ("Extension retrieved successfully".to_owned(), fork));
    }
}

fn a_fork_of_a_fork_conflicts(server: TestServer) {
    let admin = server.admin();
    let fork =
        text(&admin.post(&format!("{EXTENSIONS}/hello-note/fork"), &json!({})).success()["extension_id"]);
    admin.post(&format!("{EXTENSIONS}/{fork}/fork"), &json!({})).failure(409, "conflict");
    admin.post(&format!("{EXTENSIONS}/nothing/fork"), &json!({})).failure(404, "not_found");
    admin.post(&format!("{EXTENSIONS}/Not-A-Key/fork"), &json!({})).failure(404, "not_found");
    admin.post(&format!("{EXTENSIONS}/hello-note/fork"), &json!({"yaml": "x"})).failure(400, "unknown_field");
}

fn a_fork_is_invisible_elsewhere(server: TestServer) {
    let admin = server.admin();
    let steps = json!([{"name": "A", "type": "file", "properties": {"action": "mkdir", "dest": "a"}}]);
    let key = forked(&admin, &definition(&json!({}), &steps, &json!([])));
    let elsewhere = admin.post("/api/v1/organizations", &json!({"name": "Elsewhere"})).success();
    let elsewhere = admin.with_header("x-organization-id", elsewhere["id"].as_str().unwrap());
    let stranger = join(&server, &elsewhere, "eve@example.com", "admin").log_in();
    for client in [&elsewhere, &stranger] {
        let missing = client.get(&format!("{EXTENSIONS}/by-extension-id/nothing"));
        let foreign = client.get(&format!("{EXTENSIONS}/by-extension-id/{key}"));
        assert_eq!((foreign.status, &foreign.text), (missing.status, &missing.text));
        client.post(&format!("{EXTENSIONS}/{key}/run"), &json!({})).failure(404, "not_found");
        client.delete(&format!("{EXTENSIONS}/{key}")).failure(404, "not_found");
        let found = client.get(&format!("{EXTENSIONS}?search={key}")).success();
        assert_eq!(found["pagination"]["total_count"], 0);
    }
    let id = super::started(&admin, &key, &json!({}));
    super::end_of(&admin, &id);
    for path in [format!("{EXTENSIONS}/execution/{id}"), format!("{EXTENSIONS}/execution/{id}/logs")] {
        stranger.get(&path).failure(404, "not_found");
    }
    stranger.post(&format!("{EXTENSIONS}/execution/{id}/cancel"), &json!({})).failure(404, "not_found");
}

fn only_forks_are_deleted(server: TestServer) {
    let admin = server.admin();
    let fork =
        text(&admin.post(&format!("{EXTENSIONS}/hello-note/fork"), &json!({})).success()["extension_id"]);
    let deleted = admin.delete(&format!("{EXTENSIONS}/{fork}"));
    assert_eq!(deleted.message(), "Extension deleted successfully");
    assert_ne!(deleted.success()["deleted_at"], Value::Null);
    admin.get(&format!("{EXTENSIONS}/by-extension-id/{fork}")).failure(404, "not_found");
    admin.delete(&format!("{EXTENSIONS}/{fork}")).failure(404, "not_found");
    admin.delete(&format!("{EXTENSIONS}/hello-note")).failure(409, "conflict");
    admin.get(&format!("{EXTENSIONS}/by-extension-id/hello-note")).success();
}
