//! The audit log: `GET /api/v1/audit/logs`, and its verification.

use diesel::{Connection as _, SqliteConnection, connection::SimpleConnection as _};
use launchway_testkit::{client::Client, people::join, server::TestServer};
use serde_json::{Value, json};

super::on_both_databases!(
    every_change_leaves_an_entry_that_a_person_can_read,
    an_activity_has_the_documented_fields,
    pages_are_stable_and_totals_right,
    filters_narrow_the_audit_log,
    an_organization_sees_its_own_audit_log_only,
    secrets_are_not_in_the_audit_log,
    an_application_change_is_audited_without_its_secrets,
    a_complete_audit_log_passes_the_check,
);

const LOGS: &str = "/api/v1/audit/logs";

fn activities(client: &Client, query: &str) -> Vec<Value> {
    client.get(&format!("{LOGS}?page_size=100&{query}")).success()["activities"].as_array().unwrap().clone()
}

fn messages(client: &Client, query: &str) -> Vec<String> {
    activities(client, query)
        .iter()
        .map(|activity| activity["message"].as_str().unwrap().to_owned())
        .collect()
}

fn every_change_leaves_an_entry_that_a_person_can_read(server: TestServer) {
    let ada = server.admin();
    ada.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})).success();
    ada.patch("/api/v1/user/settings/font", &json!({"font_family": "inter", "font_size": 18})).success();
    ada.patch("/api/v1/user/name", &json!({"name": "Ada"})).success();
    let token = ada.post("/api/v1/auth/tokens", &json!({"name": "ci"})).success();
    ada.delete(&format!("/api/v1/auth/tokens/{}", token["id"].as_str().unwrap())).success();
    ada.post("/api/v1/auth/two-factor/setup", &json!({})).success();
    ada.put("/api/v1/organizations", &json!({"description": "Ours"})).success();
    let grace = join(&server, &ada, "grace@example.com", "viewer");
    grace.log_in().post("/api/v1/auth/logout", &json!({})).success();
    ada.patch("/api/v1/organizations/users", &json!({"user_id": grace.id, "role": "member"})).success();
    ada.send_json("DELETE", "/api/v1/organizations/users", &json!({"user_id": grace.id})).success();
    let spec = json!({
        "name": "site", "repository": "git@git.example.com:site.git", "branch": "main", "port": 80,
        "environment": "production", "build_pack": "static",
    });
    let site = ada.post("/api/v1/deploy/application", &spec).success();
    let secret = format!("/api/v1/deploy/application/webhook-secret?id={}", site["id"].as_str().unwrap());
    ada.get(&secret).success();
    ada.get(&secret).success();
    ada.send("POST", &secret, None).success();
    let mut reported = messages(&ada, "");
    reported.reverse();
    assert_eq!(
        reported,
        [
            "ada registered ada@example.com as the first administrator",
            "ada created the organization `ada's Team`",
            "ada changed theme to `dark`",
            "ada changed font_family to `inter` and font_size to `18`",
            "ada changed their username to `Ada`",
            "Ada issued the API token `ci`",
            "Ada revoked an API token",
            "Ada started the two-factor setup",
            "Ada changed the organization",
            "Ada added grace@example.com as viewer",
            "grace set their first password",
            "grace logged in",
            "grace logged out",
            "Ada changed the role of grace@example.com to member",
            "Ada removed grace@example.com",
            "Ada created the application `site` (production)",
            "Ada created the webhook secret of git.example.com/site",
            "Ada read the webhook secret of git.example.com/site",
            "Ada replaced the webhook secret of git.example.com/site",
        ]
    );
}

fn an_activity_has_the_documented_fields(server: TestServer) {
    let ada = server.admin().with_header("x-request-id", "trace-me-42");
    ada.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})).success();
    let user = ada.get("/api/v1/user").success();
    let answer = ada.get(&format!("{LOGS}?page_size=1"));
    assert_eq!(answer.message(), "Activities retrieved successfully");
    let data = answer.success();
    let activity = &data["activities"][0];
    let fields = [
        "action",
        "action_color",
        "actor",
        "id",
        "message",
        "metadata",
        "resource",
        "resource_id",
        "timestamp",
    ];
    assert_eq!(activity.as_object().unwrap().keys().collect::<Vec<_>>(), fields);
    assert_eq!((&activity["action"], &activity["action_color"]), (&json!("update"), &json!("blue")));
    assert_eq!((&activity["actor"], &activity["resource"]), (&json!("ada"), &json!("user")));
    assert_eq!(activity["resource_id"], user["id"]);
    let metadata = json!({
        "theme": "dark", "request_id": "trace-me-42", "address": "127.0.0.1", "actor_id": user["id"],
    });
    assert_eq!(activity["metadata"], metadata);
    let pagination = json!({"current_page": 1, "page_size": 1, "total_count": 3, "total_pages": 3, "has_next": true, "has_prev": false});
    assert_eq!(data["pagination"], pagination);
}

fn pages_are_stable_and_totals_right(server: TestServer) {
    let ada = server.admin();
    for number in 0..23 {
        ada.patch("/api/v1/user/settings/theme", &json!({"theme": format!("t{number}")})).success();
    }
    let page = |query: &str| ada.get(&format!("{LOGS}?{query}")).success();
    let first = page("");
    assert_eq!(first["activities"].as_array().unwrap().len(), 10);
    assert_eq!(
        (&first["pagination"]["total_count"], &first["pagination"]["total_pages"]),
        (&json!(25), &json!(3))
    );
    let walked: Vec<Value> = (1..=3)
        .flat_map(|number| page(&format!("page={number}"))["activities"].as_array().unwrap().clone())
        .collect();
    assert_eq!(walked, activities(&ada, ""));
    let times: Vec<&str> = walked.iter().map(|activity| activity["timestamp"].as_str().unwrap()).collect();
    assert!(times.is_sorted_by(|newer, older| newer > older), "{times:?}");
    let beyond = page("page=4");
    assert_eq!((&beyond["activities"], &beyond["pagination"]["has_next"]), (&json!([]), &json!(false)));
    assert_eq!(page("pageSize=7")["activities"].as_array().unwrap().len(), 7);
    assert_eq!(page("page_size=101")["pagination"]["page_size"], 100);
    assert_eq!(page("page=9223372036854775807")["activities"], json!([]));
    for query in
        ["page=0", "page=-1", "page_size=0", "page=one", "page_size=", "from=yesterday", "action=look"]
    {
        let answer = ada.get(&format!("{LOGS}?{query}"));
        if query == "page_size=" {
            answer.success()
        } else {
            answer.failure(400, "validation_failed").into()
        };
    }
    let message = ada.get(&format!("{LOGS}?page=x&from=y&action=z")).failure(400, "validation_failed");
    assert_eq!(message.matches("; ").count(), 2, "{message}");
    let message = ada.get(&format!("{LOGS}?page=0&page_size=0")).failure(400, "validation_failed");
    assert_eq!(message, "page must be at least 1, got 0; page_size must be at least 1, got 0");
}

fn filters_narrow_the_audit_log(server: TestServer) {
    let ada = server.admin();
    let grace = join(&server, &ada, "grace@example.com", "member").log_in();
    grace.patch("/api/v1/user/settings/theme", &json!({"theme": "100_percent"})).success();
    ada.patch("/api/v1/user/settings/language", &json!({"language": "de"})).success();
    ada.patch("/api/v1/user/name", &json!({"name": "Ädä"})).success();
    ada.patch("/api/v1/user/settings/theme", &json!({"theme": "plain"})).success();
    let found = |query: &str| messages(&ada, query);
    assert_eq!(found("search=CHANGED%20LANGUAGE"), ["ada changed language to `de`"]);
    assert_eq!(found("search=100_p"), ["grace changed theme to `100_percent`"]);
    assert!(found("search=100%25p").is_empty() && found("search=100%5C_").is_empty());
    assert_eq!(found("search=%C3%84D%C3%84%20CHANGED"), ["Ädä changed theme to `plain`"]);
    assert_eq!(found("actor=%C3%A4D%C3%A4"), ["Ädä changed theme to `plain`"]);
    assert_eq!(found("action=access"), ["grace logged in"]);
    assert_eq!(found("resource_type=organization"), ["ada created the organization `ada's Team`"]);
    assert_eq!(found("resource_type=user&action=create").len(), 2);
    let all = activities(&ada, "");
    let moment = |at: usize| all[at]["timestamp"].as_str().unwrap();
    assert_eq!(found(&format!("from={}&to={}", moment(2), moment(1))).len(), 2);
    let total =
        ada.get(&format!("{LOGS}?action=update&page_size=1")).success()["pagination"]["total_count"].clone();
    assert_eq!(total, found("action=update").len());
    ada.get(&format!("{LOGS}?search={}", "x".repeat(200))).success();
    let message = ada.get(&format!("{LOGS}?search={}", "x".repeat(201))).failure(400, "validation_failed");
    assert!(message.starts_with("search must be at most 200 characters"), "{message}");
}

fn an_organization_sees_its_own_audit_log_only(server: TestServer) {
    let ada = server.admin();
    let second = ada.post("/api/v1/organizations", &json!({"name": "Second"})).success();
    let elsewhere = ada.with_header("x-organization-id", second["id"].as_str().unwrap());
    elsewhere.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})).success();
    assert_eq!(
        messages(&elsewhere, ""),
        ["ada changed theme to `dark`", "ada created the organization `Second`"]
    );
    assert_eq!(messages(&ada, "").len(), 2);
    assert!(messages(&ada, "search=dark").is_empty());
}

fn secrets_are_not_in_the_audit_log(server: TestServer) {
    let ada = server.admin();
    let token = ada.post("/api/v1/auth/tokens", &json!({"name": "ci"})).success();
    let change = json!({"current_password": "correct horse battery", "new_password": "another passphrase"});
    ada.patch("/api/v1/user/password", &change).success();
    let audit_log = ada.get(&format!("{LOGS}?page_size=100")).text;
    assert!(audit_log.contains("[changed]"));
    for secret in ["correct horse battery", "another passphrase", token["token"].as_str().unwrap()] {
        assert!(!audit_log.contains(secret), "{secret}");
    }
}

fn an_application_change_is_audited_without_its_secrets(server: TestServer) {
    let ada = server.admin();
    let spec = json!({
        "name": "shop", "repository": "https://git.example.com/shop.git", "branch": "main", "port": 8080,
        "environment": "production", "build_pack": "dockerfile",
    });
    let made = ada.post("/api/v1/deploy/application", &spec).success();
    let id = made["id"].as_str().unwrap();
    let change = json!({
        "repository": "https://ada:ghp_token@git.example.com/store.git", "branch": "next", "port": 9000,
        "labels": ["blue", "big"], "pre_run_command": "migrate --key hunter2",
        "environment_variables": {"PASSWORD": "hunter3"},
    });
    ada.put(&format!("/api/v1/deploy/application?id={id}&redeploy=false"), &change).success();
    let entries = activities(&ada, "resource_type=application&action=update")[0]["metadata"].clone();
    for (field, value) in [
        ("repository", "https://git.example.com/store.git"),
        ("branch", "next"),
        ("port", "9000"),
        ("labels", "blue, big"),
        ("pre_run_command", "[changed]"),
        ("environment_variables", "[changed]"),
    ] {
        assert_eq!(entries[field], value, "{field}");
    }
    let audit_log = ada.get(&format!("{LOGS}?page_size=100")).text;
    assert!(!audit_log.contains("hunter") && !audit_log.contains("ghp_token"), "{audit_log}");
}

fn a_complete_audit_log_passes_the_check(server: TestServer) {
    let ada = server.admin();
    ada.post("/api/v1/organizations", &json!({"name": "Second"})).success();
    let output = server.command(&["audit", "verify"]).output().unwrap();
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{report}");
    assert_eq!(report.lines().filter(|line| line.starts_with("ok ")).count(), 2, "{report}");
}

#[test]
fn a_changed_or_removed_entry_is_found() {
    for tampering in [
        "UPDATE audit_entries SET message = 'nothing happened' WHERE number = 2",
        "DELETE FROM audit_entries WHERE number = 2",
        "DELETE FROM audit_entries WHERE number = 3",
        "UPDATE audit_entries SET action = 'unheard of' WHERE number = 2",
        "DELETE FROM audit_chains",
        "UPDATE audit_chains SET last_number = 2, last_hash = (SELECT hash FROM audit_entries WHERE number = 2)",
    ] {
        let mut server = TestServer::on_sqlite();
        server.admin().patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})).success();
        server.terminate();
        let path = server.data_dir().join("launchway.db");
        let mut database = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
        if !tampering.contains("audit_chains") {
            database.batch_execute(tampering).expect_err("the audit log is append-only");
        }
        let unguarded =
            "DROP TRIGGER audit_entries_only_grow_on_update; DROP TRIGGER audit_entries_only_grow_on_delete;";
        database.batch_execute(&format!("{unguarded} {tampering}")).unwrap();
        let output = server.command(&["audit", "verify"]).output().unwrap();
        let report = String::from_utf8(output.stdout).unwrap();
        assert!(!output.status.success() && report.contains("BROKEN"), "{tampering}: {report}");
    }
}
