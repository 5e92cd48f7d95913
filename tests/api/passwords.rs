//! Changing the password.

use launchway_testkit::{
    client::{Answer, Client},
    server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer},
};
use serde_json::{Value, json};

use crate::{auth::credentials, wait::at_once};

const NEW_PASSWORD: &str = " staple of batteries ";

super::on_both_databases!(
    a_new_password_ends_the_other_sessions_and_keeps_this_one,
    of_two_changes_at_the_same_moment_one_wins,
);

fn a_new_password_ends_the_other_sessions_and_keeps_this_one(server: TestServer) {
    let first = server.admin();
    let this = server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
    let third = server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
    let grace = server.log_in(server.other_tenant("member").email, ADMIN_PASSWORD);
    let answer = change(&this, ADMIN_PASSWORD, NEW_PASSWORD);
    assert_eq!(answer.success(), Value::Null);
    assert_eq!(answer.message(), "Password updated successfully");

    this.get("/api/v1/user").success();
    first.get("/api/v1/user").failure(401, "unauthenticated");
    third.get("/api/v1/user").failure(401, "unauthenticated");
    grace.get("/api/v1/user").success();
    let old = credentials(ADMIN_EMAIL, ADMIN_PASSWORD);
    server.client().post("/api/v1/auth/login", &old).failure(401, "invalid_credentials");
    server.log_in(ADMIN_EMAIL, NEW_PASSWORD);
    // Spaces belong to a password.
    let trimmed = credentials(ADMIN_EMAIL, NEW_PASSWORD.trim());
    server.client().post("/api/v1/auth/login", &trimmed).failure(401, "invalid_credentials");
}

fn of_two_changes_at_the_same_moment_one_wins(server: TestServer) {
    let sessions = [server.admin(), server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD)];
    let passwords = ["first of the two", "second of the two"];
    let answers = at_once(2, |number| change(&sessions[number], ADMIN_PASSWORD, passwords[number]));
    let won: Vec<_> = (0..2).filter(|number| answers[*number].status == 200).collect();
    let [winner] = won[..] else { panic!("{answers:?}") };
    assert_eq!(answers[1 - winner].status, 401, "{answers:?}");
    sessions[winner].get("/api/v1/user").success();
    sessions[1 - winner].get("/api/v1/user").failure(401, "unauthenticated");
    server.log_in(ADMIN_EMAIL, passwords[winner]);
}

#[test]
fn the_present_password_is_needed() {
    let server = TestServer::on_sqlite();
    let (admin, other) = (server.admin(), server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD));
    for wrong in ["not the password", "", NEW_PASSWORD] {
        change(&admin, wrong, NEW_PASSWORD).failure(401, "invalid_credentials");
    }
    let message = admin.patch("/api/v1/user/password", &json!({})).failure(400, "validation_failed");
    assert_eq!(message, "current_password is required; new_password is required");
    other.get("/api/v1/user").success();
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
}

#[test]
fn a_new_password_has_8_to_256_characters_and_is_not_common() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for refused in ["kQ7!zzp", &("p7".repeat(128) + "x"), "Password123", "zzzzzzzzzz", ""] {
        let message = change(&admin, ADMIN_PASSWORD, refused).failure(400, "validation_failed");
        assert!(message.starts_with("new_password must be"), "{message}");
        assert!(refused.is_empty() || !message.contains(refused), "{message}");
    }
    change(&admin, ADMIN_PASSWORD, "kQ7!zzpä").success();
    change(&admin, "kQ7!zzpä", &"p7".repeat(128)).success();
    server.log_in(ADMIN_EMAIL, &"p7".repeat(128));
}

fn change(client: &Client, current: &str, new: &str) -> Answer {
    client.patch("/api/v1/user/password", &json!({"current_password": current, "new_password": new}))
}
