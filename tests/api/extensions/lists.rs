//! Listing and searching the catalog.

use launchway_testkit::server::TestServer;
use serde_json::{Value, json};

use super::{EXTENSIONS, end_of, started, text};
use crate::shapes::{EXECUTION, EXTENSION, expect_fields};

super::on_both_databases!(
    the_catalog_is_there_from_the_beginning_and_can_be_searched,
    pages_have_the_usual_limits,
    a_restart_changes_nothing,
    runs_are_listed_newest_first,
);

fn the_catalog_is_there_from_the_beginning_and_can_be_searched(server: TestServer) {
    let admin = server.admin();
    let all = admin.get(&format!("{EXTENSIONS}?page_size=100"));
    assert_eq!(all.message(), "Extensions retrieved successfully");
    let all = all.success();
    let entries = all["extensions"].as_array().unwrap();
    assert!(entries.len() >= 20, "{}", entries.len());
    for entry in entries {
        expect_fields(entry, EXTENSION);
        assert_eq!(
            (&entry["validation_status"], &entry["validation_errors"]),
            (&json!("valid"), &json!("[]")),
            "{entry}"
        );
        assert_eq!(entry["parent_extension_id"], "");
        serde_json::from_str::<Value>(entry["parsed_content"].as_str().unwrap()).unwrap();
    }
    let names: Vec<String> = entries.iter().map(|entry| text(&entry["name"]).to_lowercase()).collect();
    assert!(names.is_sorted(), "{names:?}");

    let found = |query: &str| {
        admin.get(&format!("{EXTENSIONS}?page_size=100&{query}")).success()["extensions"]
            .as_array()
            .unwrap()
            .clone()
    };
    assert!(found("search=HELLO-note").iter().any(|entry| entry["extension_id"] == "hello-note"));
    assert!(found("search=%25").is_empty());
    let databases = found("category=Database");
    assert!(!databases.is_empty() && databases.iter().all(|entry| entry["category"] == "Database"));
    let runs = found("type=run");
    assert!(!runs.is_empty() && runs.iter().all(|entry| entry["extension_type"] == "run"));
    assert!(runs.len() < entries.len());

    let categories = admin.get(&format!("{EXTENSIONS}/categories")).success();
    assert_eq!(categories.as_array().unwrap().len(), 15);
    assert_eq!(
        (&categories[0], &categories[3], &categories[14]),
        (&json!("Security"), &json!("Web Server"), &json!("Other"))
    );
}

fn pages_have_the_usual_limits(server: TestServer) {
    let admin = server.admin();
    let page = admin.get(EXTENSIONS).success();
    assert_eq!(page["extensions"].as_array().unwrap().len(), 10);
    assert_eq!(
        (&page["pagination"]["current_page"], &page["pagination"]["has_next"]),
        (&json!(1), &json!(true))
    );
    let second = admin.get(&format!("{EXTENSIONS}?page=2&pageSize=10")).success();
    assert_ne!(second["extensions"][0]["id"], page["extensions"][0]["id"]);
    for query in ["page=0", "page_size=0", "page=x", "category=Fun", "type=play"] {
        admin.get(&format!("{EXTENSIONS}?{query}")).failure(400, "validation_failed");
    }
    let clamped = admin.get(&format!("{EXTENSIONS}?page_size=1000")).success();
    assert_eq!(clamped["pagination"]["page_size"], 100);
}

fn a_restart_changes_nothing(mut server: TestServer) {
    let admin = server.admin();
    let fork = admin.post(&format!("{EXTENSIONS}/hello-note/fork"), &json!({})).success();
    let before = admin.get(&format!("{EXTENSIONS}?page_size=100")).success();
    server.restart();
    let admin = admin.at(server.url());
    assert_eq!(admin.get(&format!("{EXTENSIONS}?page_size=100")).success(), before);
    let key = text(&fork["extension_id"]);
    assert_eq!(admin.get(&format!("{EXTENSIONS}/by-extension-id/{key}")).success(), fork);

    // An outdated entry is updated, and keeps its id.
    let entry = admin.get(&format!("{EXTENSIONS}/by-extension-id/hello-note")).success();
    server.execute("UPDATE extensions SET content_hash = 'x', description = 'old'");
    server.restart();
    let admin = admin.at(server.url());
    let now = admin.get(&format!("{EXTENSIONS}/by-extension-id/hello-note")).success();
    assert_eq!(
        (&now["id"], &now["created_at"], &now["description"]),
        (&entry["id"], &entry["created_at"], &entry["description"])
    );
    let forked = admin.get(&format!("{EXTENSIONS}/by-extension-id/{key}")).success();
    assert_eq!(forked["description"], "old");
}

fn runs_are_listed_newest_first(server: TestServer) {
    let admin = server.admin();
    let ids: Vec<String> = (0..3)
        .map(|_| {
            let id = started(&admin, "hello-note", &json!({}));
            end_of(&admin, &id);
            id
        })
        .collect();
    let list =
        admin.get(&format!("{EXTENSIONS}/by-extension-id/hello-note/executions?page_size=2")).success();
    let listed = list["executions"].as_array().unwrap();
    assert_eq!((&listed[0]["id"], &listed[1]["id"]), (&json!(ids[2]), &json!(ids[1])));
    assert_eq!(list["pagination"]["total_count"], 3);
    expect_fields(&listed[0], EXECUTION);
    assert_eq!((&listed[0]["extension"], &listed[0]["steps"]), (&Value::Null, &json!([])));
    admin.get(&format!("{EXTENSIONS}/by-extension-id/nothing/executions")).failure(404, "not_found");
    admin.get(&format!("{EXTENSIONS}/execution/nonsense")).failure(400, "invalid_id");
    admin
        .get(&format!("{EXTENSIONS}/execution/01980000-0000-7000-8000-0000000000ff"))
        .failure(404, "not_found");
}
