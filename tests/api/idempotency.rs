//! Repeated requests: authorized as of now, and with what the caller may see now.

use launchway_testkit::{
    client::Client,
    people::{Person, join},
    server::TestServer,
};
use serde_json::{Value, json};

super::on_both_databases!(
    a_repeated_request_is_refused_after_a_demotion,
    a_repeated_request_shows_what_a_token_may_see,
    a_repeated_request_is_refused_after_a_removal,
    a_repeated_request_shows_no_organization_after_a_removal,
);

const USERS: &str = "/api/v1/organizations/users";
const DEPLOY: &str = "/api/v1/deploy/application";
const SECRET: &str = "s3cr3t-of-the-shop";

fn spec() -> Value {
    json!({
        "name": "shop", "repository": "registry.example/shop", "port": 8080, "environment": "production",
        "build_pack": "image", "environment_variables": {"API_KEY": SECRET}, "build_variables": {"TOKEN": SECRET},
    })
}

/// Adds the admin grace, who has created an application with an idempotency key.
fn grace(server: &TestServer, ada: &Client) -> (Client, Person) {
    let person = join(server, ada, "grace@example.com", "admin");
    let grace = person.log_in().with_header("idempotency-key", "once");
    let first = grace.post(DEPLOY, &spec());
    assert!(first.success()["environment_variables"].as_str().unwrap().contains(SECRET));
    assert_eq!(grace.post(DEPLOY, &spec()).text, first.text);
    (grace, person)
}

/// A client with an API token of a user, and the key of their request.
fn program(server: &TestServer, owner: &Client, permissions: &[&str]) -> Client {
    let spec = json!({"name": permissions.join(" "), "permissions": permissions});
    let token = owner.post("/api/v1/auth/tokens", &spec).success();
    server.client().with_token(token["token"].as_str().unwrap()).with_header("idempotency-key", "once")
}

fn a_repeated_request_is_refused_after_a_demotion(server: TestServer) {
    let ada = server.admin();
    let (grace, person) = grace(&server, &ada);
    let give = |role: &str| ada.patch(USERS, &json!({"user_id": person.id, "role": role})).success();
    let keyed = |path: &str, body: &Value| grace.with_header("idempotency-key", "other").post(path, body);
    let hook = json!({"type": "slack", "webhook_url": "https://hooks.example.com/services/x"});
    keyed("/api/v1/notification/webhook", &hook).success();
    give("viewer");
    let refused = grace.post(DEPLOY, &spec());
    refused.failure(403, "forbidden");
    assert!(!refused.text.contains(SECRET), "{}", refused.text);
    keyed("/api/v1/notification/webhook", &hook).failure(403, "forbidden");

    // With the role the answer comes back.
    give("admin");
    assert!(
        grace.post(DEPLOY, &spec()).success()["environment_variables"].as_str().unwrap().contains(SECRET)
    );
}

fn a_repeated_request_shows_what_a_token_may_see(server: TestServer) {
    let (grace, _) = grace(&server, &server.admin());
    program(&server, &grace, &["deploy:read", "deploy:update"])
        .post(DEPLOY, &spec())
        .failure(403, "forbidden");
    for permissions in [&["deploy:create"][..], &["deploy:create", "deploy:read"]] {
        let answer = program(&server, &grace, permissions).post(DEPLOY, &spec());
        let shown = answer.success();
        assert_eq!(
            (&shown["environment_variables"], &shown["build_variables"]),
            (&json!("{}"), &json!("{}"))
        );
        assert!(shown["name"] == "shop" && !answer.text.contains(SECRET), "{}", answer.text);
    }
    let answer =
        program(&server, &grace, &["deploy:create", "deploy:read", "deploy:update"]).post(DEPLOY, &spec());
    assert!(answer.success()["environment_variables"].as_str().unwrap().contains(SECRET));
    assert_eq!(server.query("SELECT name AS value FROM applications").len(), 1);
}

fn a_repeated_request_is_refused_after_a_removal(server: TestServer) {
    let ada = server.admin();
    let (grace, person) = grace(&server, &ada);
    let program = program(&server, &grace, &["deploy:create", "deploy:read"]);
    let organization = ada.get("/api/v1/organizations").success()["id"].clone();
    ada.send_json("DELETE", USERS, &json!({"user_id": person.id})).success();
    grace.post(DEPLOY, &spec()).failure(403, "forbidden");
    grace
        .with_header("x-organization-id", organization.as_str().unwrap())
        .post(DEPLOY, &spec())
        .failure(403, "forbidden");
    program.post(DEPLOY, &spec()).failure(401, "unauthenticated");
}

fn a_repeated_request_shows_no_organization_after_a_removal(server: TestServer) {
    let ada = server.admin();
    let keyed = ada.with_header("idempotency-key", "once");
    let spec = json!({"name": "Second", "description": "of two"});
    let first = keyed.post("/api/v1/organizations", &spec).success();
    assert_eq!(keyed.post("/api/v1/organizations", &spec).success(), first);
    let inside = ada.with_header("x-organization-id", first["id"].as_str().unwrap());
    let bob = join(&server, &inside, "bob@example.com", "admin").log_in();
    let ada_id = ada.get("/api/v1/user").success()["id"].clone();
    bob.send_json("DELETE", USERS, &json!({"user_id": ada_id})).success();
    let refused = keyed.post("/api/v1/organizations", &spec);
    refused.failure(404, "not_found");
    assert!(!refused.text.contains("of two"), "{}", refused.text);
}
