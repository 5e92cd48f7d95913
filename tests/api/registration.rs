//! `POST /api/v1/auth/register`: the first administrator is created exactly once.

use launchway_testkit::server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer};
use serde_json::{Value, json};

use crate::{
    shapes::{expect_moment, expect_user_with_memberships},
    wait::at_once,
};

super::on_both_databases!(
    an_installation_reports_whether_it_has_an_administrator,
    the_first_administrator_is_logged_in_and_has_a_team,
    of_200_registrations_at_the_same_moment_exactly_one_wins,
    registration_stays_closed_after_a_restart,
);

fn an_installation_reports_whether_it_has_an_administrator(server: TestServer) {
    let asked = || server.client().get("/api/v1/auth/is-admin-registered");
    let reported = |registered: bool| {
        json!({
            "data": {"admin_registered": registered}, "message": "Admin registration status",
            "status": "success",
        })
    };
    assert_eq!((asked().status, asked().json()), (200, reported(false)));
    server.admin();
    assert_eq!((asked().status, asked().json()), (200, reported(true)));
}

fn the_first_administrator_is_logged_in_and_has_a_team(server: TestServer) {
    let answer = server.client().post("/api/v1/auth/register", &ada());
    let data = answer.success();
    let mut fields: Vec<_> = data.as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(fields, ["access_token", "expires_at", "token_type", "user"]);
    assert_eq!(data["token_type"], "Bearer");
    expect_moment(&data["expires_at"]);

    let user = &data["user"];
    expect_user_with_memberships(user);
    let organization = &user["organizations"][0];
    let membership = &user["organization_users"][0];
    let expected = json!({
        "id": user["id"], "username": "ada", "email": ADMIN_EMAIL, "avatar": "", "type": "admin",
        "is_verified": false, "two_factor_enabled": false, "two_factor_secret": "", "idp_user_id": "",
        "organizations": [{
            "id": organization["id"], "name": "ada's Team", "description": "", "users": [],
            "created_at": user["created_at"], "updated_at": user["created_at"], "deleted_at": null,
        }],
        "organization_users": [{
            "id": membership["id"], "organization_id": organization["id"], "user_id": user["id"],
            "organization": null, "user": null, "roles": ["admin"], "permissions": every_permission(),
            "created_at": user["created_at"], "updated_at": user["created_at"], "deleted_at": null,
        }],
        "created_at": user["created_at"], "updated_at": user["created_at"], "deleted_at": null,
    });
    assert_eq!(user, &expected);

    let admin = server.client().with_token(data["access_token"].as_str().unwrap());
    assert_eq!(&admin.get("/api/v1/user").success(), user);
}

fn of_200_registrations_at_the_same_moment_exactly_one_wins(server: TestServer) {
    let email = |number: usize| format!("person{number}@example.com");
    let answers = at_once(200, |number| {
        let mut body = ada();
        body["email"] = json!(email(number));
        server.client().post("/api/v1/auth/register", &body)
    });
    let (won, lost): (Vec<_>, Vec<_>) = (0..).zip(&answers).partition(|(_, answer)| answer.status == 200);
    for (_, answer) in &lost {
        answer.failure(403, "registration_closed");
    }
    let [(winner, _)] = won[..] else { panic!("{} registrations won", won.len()) };

    for table in ["users", "organizations", "memberships", "passwords", "sessions", "installation"] {
        let count = server.query(&format!("SELECT CAST(count(*) AS TEXT) AS value FROM {table}"));
        assert_eq!(count, ["1"], "{table}");
    }
    server.log_in(&email(winner), ADMIN_PASSWORD);
    let loser = json!({"email": email((winner + 1) % 200), "password": ADMIN_PASSWORD});
    server.client().post("/api/v1/auth/login", &loser).failure(401, "invalid_credentials");
}

fn registration_stays_closed_after_a_restart(mut server: TestServer) {
    server.admin();
    server.client().post("/api/v1/auth/register", &ada()).failure(403, "registration_closed");
    server.restart();
    server.client().post("/api/v1/auth/register", &ada()).failure(403, "registration_closed");
    let other = json!({"email": "eve@example.com", "username": "eve", "password": ADMIN_PASSWORD});
    server.client().post("/api/v1/auth/register", &other).failure(403, "registration_closed");
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
}

#[test]
fn the_organization_can_be_named() {
    let server = TestServer::on_sqlite();
    let user = registered(&server, json!({"organization": "  Analytical Engines "}));
    assert_eq!(user["organizations"][0]["name"], "Analytical Engines");
}

#[test]
fn an_empty_name_for_the_organization_counts_as_none() {
    let server = TestServer::on_sqlite();
    let user = registered(&server, json!({"organization": "", "setup_token": null}));
    assert_eq!(user["organizations"][0]["name"], "ada's Team");
}

#[test]
fn the_longest_of_everything_is_accepted() {
    let server = TestServer::on_sqlite();
    let password = "pé".repeat(128);
    let user = registered(
        &server,
        json!({"username": "ü".repeat(50), "organization": "ö".repeat(50), "password": password}),
    );
    assert_eq!(user["username"], "ü".repeat(50));
    assert_eq!(user["organizations"][0]["name"], "ö".repeat(50));
    server.log_in(ADMIN_EMAIL, &password);
}

#[test]
fn the_shortest_of_everything_is_accepted() {
    let server = TestServer::on_sqlite();
    let user = registered(&server, json!({"username": "x", "organization": "o", "password": "kQ7!zzpä"}));
    assert_eq!((&user["username"], &user["organizations"][0]["name"]), (&json!("x"), &json!("o")));
    server.log_in(ADMIN_EMAIL, "kQ7!zzpä");
}

#[test]
fn the_team_of_a_long_name_has_a_name_that_fits() {
    let server = TestServer::on_sqlite();
    let user = registered(&server, json!({"username": "u".repeat(50)}));
    assert_eq!(user["organizations"][0]["name"], format!("{}'s Team", "u".repeat(43)));
}

#[test]
fn a_rejected_registration_names_the_field_and_can_be_retried() {
    let server = TestServer::on_sqlite();
    for (field, value) in [
        ("email", json!("not an address")),
        ("email", json!("a@b@c")),
        ("email", json!("")),
        ("email", json!(null)),
        ("email", json!(7)),
        ("email", json!(format!("{}@example.com", "a".repeat(65)))),
        ("password", json!("kQ7!zzp")),
        ("password", json!("p7".repeat(128) + "x")),
        ("password", json!("password123")),
        ("password", json!("aaaaaaaaaaaa")),
        ("password", json!("")),
        ("password", json!(["correct horse battery"])),
        ("username", json!("")),
        ("username", json!("   ")),
        ("username", json!("u".repeat(51))),
        ("username", json!("a\u{7}da")),
        ("organization", json!("o".repeat(51))),
        ("organization", json!("a\nb")),
        ("organization", json!(5)),
        ("setup_token", json!(5)),
    ] {
        let mut body = ada();
        body[field] = value.clone();
        let answer = server.client().post("/api/v1/auth/register", &body);
        let message = answer.failure(400, "validation_failed");
        assert!(message.starts_with(field), "{field}: {message}");
        let repeated = value.as_str().filter(|text| field == "password" && !text.is_empty());
        assert!(!repeated.is_some_and(|secret| message.contains(secret)), "{message}");
    }
    server.admin();
}

#[test]
fn everything_that_is_missing_is_reported_at_once() {
    let server = TestServer::on_sqlite();
    let answer = server.client().post("/api/v1/auth/register", &json!({}));
    assert_eq!(
        answer.failure(400, "validation_failed"),
        "email is required; password is required; username is required"
    );
}

fn ada() -> Value {
    json!({"email": ADMIN_EMAIL, "username": "ada", "password": ADMIN_PASSWORD})
}

/// Returns the user that a registration with these fields creates.
fn registered(server: &TestServer, fields: Value) -> Value {
    let mut body = ada();
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    server.client().post("/api/v1/auth/register", &body).success()["user"].clone()
}

pub(crate) fn every_permission() -> Vec<String> {
    ["user", "organization", "deploy", "extension", "notification", "audit"]
        .iter()
        .flat_map(|resource| {
            ["create", "read", "update", "delete"].map(|action| format!("{resource}:{action}"))
        })
        .collect()
}
