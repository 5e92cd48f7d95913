//! The caller: profile, name, and memberships.

use launchway_testkit::server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer};
use serde_json::json;

use crate::shapes::{MEMBERSHIP, ORGANIZATION, expect_record, expect_user_with_memberships};

super::on_both_databases!(
    a_new_name_is_kept_and_nothing_else_changes,
    memberships_are_listed_with_their_organizations,
    everyone_sees_themselves,
);

fn a_new_name_is_kept_and_nothing_else_changes(server: TestServer) {
    let admin = server.admin();
    let before = admin.get("/api/v1/user").success();
    expect_user_with_memberships(&before);
    let answer = admin.patch("/api/v1/user/name", &json!({"name": "  Ada Lovelace "}));
    assert_eq!(answer.message(), "Username updated successfully");
    let after = answer.success();
    let mut expected = before.clone();
    expected["username"] = json!("Ada Lovelace");
    expected["updated_at"] = after["updated_at"].clone();
    assert_eq!(after, expected);
    assert!(after["updated_at"].as_str() > before["updated_at"].as_str());
    assert_eq!(admin.get("/api/v1/user").success(), after);
    assert_eq!(admin.get("/api/v1/user/settings").success()["user"], after);
    let elsewhere = server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
    assert_eq!(elsewhere.get("/api/v1/user").success(), after);
}

fn memberships_are_listed_with_their_organizations(server: TestServer) {
    let admin = server.admin();
    let user = admin.get("/api/v1/user").success();
    let answer = admin.get("/api/v1/user/organizations");
    assert_eq!(answer.message(), "User organizations retrieved successfully");
    let memberships = answer.success();
    expect_record(&memberships[0], MEMBERSHIP);
    expect_record(&memberships[0]["organization"], ORGANIZATION);
    let mut expected = user["organization_users"].clone();
    expected[0]["organization"] = user["organizations"][0].clone();
    assert_eq!(memberships, expected);
}

fn everyone_sees_themselves(server: TestServer) {
    let admin = server.admin();
    let other_tenant = server.other_tenant("viewer");
    let grace = server.log_in(other_tenant.email, ADMIN_PASSWORD);
    let user = grace.get("/api/v1/user").success();
    expect_user_with_memberships(&user);
    assert_eq!((&user["username"], &user["type"]), (&json!("grace"), &json!("app_user")));
    assert_eq!(user["organizations"][0]["id"], other_tenant.organization_id);
    assert_eq!(user["organization_users"][0]["roles"], json!(["viewer"]));
    grace.patch("/api/v1/user/name", &json!({"name": "Grace H."})).success();
    grace.patch("/api/v1/user/settings/theme", &json!({"theme": "navy"})).success();
    assert_eq!(admin.get("/api/v1/user").success()["username"], "ada");
    assert_eq!(admin.get("/api/v1/user/settings").success()["theme"], "light");
}

#[test]
fn a_name_has_1_to_50_characters() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for name in ["x", &"ü".repeat(50), "Ada \"the first\" <ada>", "艾达", "a'; DROP TABLE users; --"] {
        let user = admin.patch("/api/v1/user/name", &json!({"username": name})).success();
        assert_eq!(user["username"], name);
    }
    let before = admin.get("/api/v1/user").success();
    for name in
        [json!(""), json!(" \t "), json!("u".repeat(51)), json!("a\nb"), json!(null), json!(1), json!([])]
    {
        let message =
            admin.patch("/api/v1/user/name", &json!({"username": name})).failure(400, "validation_failed");
        assert!(message.starts_with("username "), "{message}");
    }
    assert_eq!(admin.get("/api/v1/user").success(), before);
}
