//! The organization of a request, and callers without access to it.

use launchway_testkit::server::{ADMIN_PASSWORD, TestServer};
use serde_json::json;

use crate::shapes::expect_user_with_memberships;

const UNKNOWN: &str = "01980000-0000-7000-8000-0000000000ff";

super::on_both_databases!(
    foreign_and_missing_organizations_are_rejected_alike,
    the_own_organization_can_be_named,
);

fn foreign_and_missing_organizations_are_rejected_alike(server: TestServer) {
    let admin = server.admin();
    let foreign = server.other_tenant("admin").organization_id;
    for path in [
        "/api/v1/user",
        "/api/v1/user/settings",
        "/api/v1/user/organizations",
        "/api/v1/auth/tokens",
        "/api/v1/notification/deliveries",
        "/api/v1/notification/webhook/slack",
        "/api/v1/notification/smtp",
    ] {
        let refused = admin.with_header("x-organization-id", foreign).get(path);
        refused.failure(403, "forbidden");
        let unknown = admin.with_header("x-organization-id", UNKNOWN).get(path);
        assert_eq!((unknown.status, &unknown.text), (refused.status, &refused.text), "{path}");
    }
}

fn the_own_organization_can_be_named(server: TestServer) {
    let admin = server.admin();
    let user = admin.get("/api/v1/user").success();
    let own = user["organizations"][0]["id"].as_str().unwrap();
    for spelling in [own.to_owned(), own.to_uppercase()] {
        assert_eq!(admin.with_header("x-organization-id", &spelling).get("/api/v1/user").success(), user);
    }
}

#[test]
fn an_organization_that_is_no_uuid_is_refused_as_such() {
    let server = TestServer::on_sqlite();
    let admin = server.admin();
    for id in ["", "1", "ada's Team", "null", "01980000-0000-7000-8000", "' OR 1=1", "../../etc"] {
        admin.with_header("x-organization-id", id).get("/api/v1/user").failure(400, "invalid_id");
    }
}

#[test]
fn who_has_no_token_learns_nothing_about_organizations() {
    let server = TestServer::on_sqlite();
    let organization = server.admin().get("/api/v1/user").success()["organizations"][0]["id"].clone();
    for id in [organization.as_str().unwrap(), UNKNOWN] {
        let stranger = server.client().with_header("x-organization-id", id);
        stranger.get("/api/v1/user").failure(401, "unauthenticated");
        stranger.with_token("lws_guessed").get("/api/v1/auth/tokens").failure(401, "unauthenticated");
    }
}

/// PostgreSQL is changed directly, as an offline command does, and the server sees it with the next
/// request.
#[test]
fn a_removed_member_is_out_at_once_on_postgres() {
    let server = TestServer::on_postgres();
    server.admin();
    let other_tenant = server.other_tenant("member");
    let grace = server.log_in(other_tenant.email, ADMIN_PASSWORD);
    let token = grace.post("/api/v1/auth/tokens", &json!({"name": "ci"})).success();
    let program = server.client().with_token(token["token"].as_str().unwrap());
    let inside = |client: &launchway_testkit::client::Client| {
        client.with_header("x-organization-id", other_tenant.organization_id)
    };
    inside(&grace).get("/api/v1/user").success();
    program.get("/api/v1/user").success();

    server.execute("UPDATE memberships SET role = 'viewer' WHERE role = 'member'");
    let user = grace.get("/api/v1/user").success();
    assert_eq!(user["organization_users"][0]["roles"], json!(["viewer"]));

    server.execute("UPDATE memberships SET deleted_at = created_at WHERE role = 'viewer'");
    inside(&grace).get("/api/v1/user").failure(403, "forbidden");
    program.get("/api/v1/user").failure(401, "unauthenticated");
    // Operations on the caller work without an organization.
    let user = grace.get("/api/v1/user").success();
    expect_user_with_memberships(&user);
    assert_eq!((&user["organizations"], &user["organization_users"]), (&json!([]), &json!([])));
    grace.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})).success();
}
