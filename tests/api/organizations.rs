//! Organizations: `/api/v1/organizations`.

use launchway_testkit::{client::Client, people::join, server::TestServer};
use serde_json::{Value, json};

super::on_both_databases!(
    a_new_organization_has_its_maker_as_admin,
    a_name_that_differs_only_in_case_is_taken,
    limits_a_name_to_50_and_a_description_to_100_characters,
    returns_the_current_or_the_requested_organization,
    what_is_given_changes_and_the_rest_stays,
    a_deleted_organization_is_gone_and_its_name_is_free,
    foreign_and_missing_organizations_get_the_same_response,
);

const NOBODYS: &str = "01a1dd03-0000-7000-8000-000000000000";

fn id(value: &Value) -> &str {
    value["id"].as_str().unwrap()
}

fn in_organization(client: &Client, organization: &Value) -> Client {
    client.with_header("x-organization-id", id(organization))
}

fn a_new_organization_has_its_maker_as_admin(server: TestServer) {
    let ada = server.admin();
    let answer =
        ada.post("/api/v1/organizations", &json!({"name": " Analytical ", "description": "Engines"}));
    assert_eq!(answer.message(), "Organization created successfully");
    let made = answer.success();
    let fields = ["created_at", "deleted_at", "description", "id", "name", "updated_at", "users"];
    assert_eq!(made.as_object().unwrap().keys().collect::<Vec<_>>(), fields);
    assert_eq!((&made["name"], &made["description"]), (&json!("Analytical"), &json!("Engines")));
    let [user] = made["users"].as_array().unwrap().as_slice() else { panic!("{made}") };
    assert_eq!(user["username"], "ada");
    assert_eq!(user["organizations"], json!([]));
    let [membership] = user["organization_users"].as_array().unwrap().as_slice() else { panic!("{user}") };
    assert_eq!((&membership["roles"], &membership["organization_id"]), (&json!(["admin"]), &made["id"]));
    assert_eq!((&membership["organization"], &membership["user"]), (&Value::Null, &Value::Null));
    assert_eq!(in_organization(&ada, &made).get("/api/v1/organizations").success(), made);
}

fn a_name_that_differs_only_in_case_is_taken(server: TestServer) {
    let ada = server.admin();
    ada.post("/api/v1/organizations", &json!({"name": "Müller"})).success();
    let taken = ada.post("/api/v1/organizations", &json!({"name": "MÜLLER"}));
    assert_eq!(taken.failure(409, "conflict"), "an organization named `MÜLLER` exists already");
    let renamed = ada.put("/api/v1/organizations", &json!({"name": "müller"}));
    assert_eq!(renamed.failure(409, "conflict"), "an organization named `müller` exists already");
}

fn limits_a_name_to_50_and_a_description_to_100_characters(server: TestServer) {
    let ada = server.admin();
    let make = |name: usize, description: usize| {
        let body = json!({"name": "ü".repeat(name), "description": "ü".repeat(description)});
        ada.post("/api/v1/organizations", &body)
    };
    make(50, 100).success();
    let message = make(51, 101).failure(400, "validation_failed");
    assert!(
        message.starts_with("name must be 1 to 50") && message.contains("; description must be"),
        "{message}"
    );
    make(0, 0).failure(400, "validation_failed");
}

fn returns_the_current_or_the_requested_organization(server: TestServer) {
    let ada = server.admin();
    let first = ada.get("/api/v1/organizations").success();
    assert_eq!(first["name"], "ada's Team");
    let second = ada.post("/api/v1/organizations", &json!({"name": "Second"})).success();
    let answer = ada.get(&format!("/api/v1/organizations?id={}", id(&second)));
    assert_eq!(answer.message(), "Organization fetched successfully");
    assert_eq!(answer.success(), second);
    assert_eq!(in_organization(&ada, &second).get("/api/v1/organizations").success(), second);
    ada.get("/api/v1/organizations?id=42").failure(400, "invalid_id");
}

fn what_is_given_changes_and_the_rest_stays(server: TestServer) {
    let ada = server.admin();
    let changed = ada.put("/api/v1/organizations", &json!({"description": "Ours"})).success();
    assert_eq!((&changed["name"], &changed["description"]), (&json!("ada's Team"), &json!("Ours")));
    let renamed = ada.put("/api/v1/organizations", &json!({"name": "Lovelace"})).success();
    assert_eq!((&renamed["name"], &renamed["description"]), (&json!("Lovelace"), &json!("Ours")));
    assert_eq!(ada.put("/api/v1/organizations", &json!({})).success(), renamed);
    assert_eq!(ada.get("/api/v1/user").success()["organizations"][0]["name"], "Lovelace");
}

fn a_deleted_organization_is_gone_and_its_name_is_free(server: TestServer) {
    let ada = server.admin();
    let made = ada.post("/api/v1/organizations", &json!({"name": "Short-lived"})).success();
    let grace = join(&server, &in_organization(&ada, &made), "grace@example.com", "member").log_in();
    ada.delete("/api/v1/organizations").failure(400, "validation_failed");
    ada.delete(&format!("/api/v1/organizations?id={}", id(&made))).success();
    in_organization(&ada, &made).get("/api/v1/organizations").failure(403, "forbidden");
    ada.get(&format!("/api/v1/organizations?id={}", id(&made))).failure(404, "not_found");
    grace.get("/api/v1/organizations").failure(403, "forbidden");
    assert_eq!(grace.get("/api/v1/user").success()["organizations"], json!([]));
    ada.post("/api/v1/organizations", &json!({"name": "Short-lived"})).success();
}

fn foreign_and_missing_organizations_get_the_same_response(server: TestServer) {
    let ada = server.admin();
    let first = ada.get("/api/v1/organizations").success();
    let second = ada.post("/api/v1/organizations", &json!({"name": "Second"})).success();
    let eve = join(&server, &in_organization(&ada, &second), "eve@example.com", "admin").log_in();
    let bob = join(&server, &ada, "bob@example.com", "viewer");
    let token = ada.post("/api/v1/auth/tokens", &json!({"name": "ci"})).success();
    let spec = json!({
        "name": "site", "repository": "https://git.example.com/site.git", "branch": "main", "port": 80,
        "environment": "production", "build_pack": "static",
    });
    let site = ada.post("/api/v1/deploy/application", &spec).success();
    let ask = |organization: &str, user: &str, token: &str, application: &str| {
        let by_id = format!("/api/v1/organizations?id={organization}");
        let users = "/api/v1/organizations/users";
        vec![
            eve.get(&by_id),
            eve.delete(&by_id),
            eve.get(&format!("{users}?id={organization}")),
            eve.send_json("GET", users, &json!({"id": organization})),
            eve.patch(users, &json!({"user_id": user, "role": "viewer"})),
            eve.send_json("DELETE", users, &json!({"user_id": user})),
            eve.delete(&format!("/api/v1/auth/tokens/{token}")),
            eve.get(&format!("/api/v1/deploy/application/webhook-secret?id={application}")),
            eve.send("POST", &format!("/api/v1/deploy/application/webhook-secret?id={application}"), None),
            eve.with_header("x-organization-id", organization).get("/api/v1/user"),
            eve.with_header("x-organization-id", organization).get("/api/v1/audit/logs"),
        ]
    };
    let foreign = ask(id(&first), &bob.id, id(&token), id(&site));
    let missing = ask(NOBODYS, NOBODYS, NOBODYS, NOBODYS);
    for (foreign, missing) in foreign.iter().zip(&missing) {
        assert!(matches!(foreign.status, 403 | 404), "{foreign:?}");
        assert_eq!((foreign.status, &foreign.text), (missing.status, &missing.text));
    }
    assert_eq!(ada.get("/api/v1/organizations").success()["users"].as_array().unwrap().len(), 2);
}
