//! Members: `/api/v1/organizations/users`.

use launchway_testkit::{
    client::Client,
    people::{accept, join},
    server::TestServer,
};
use serde_json::{Value, json};

super::on_both_databases!(
    members_come_with_roles_permissions_organization_and_user,
    takes_the_organization_from_body_query_or_current_one,
    a_new_address_gets_an_account_and_a_token_that_works_once,
    nobody_is_a_member_twice,
    a_changed_role_counts_on_the_very_next_request,
    a_removed_member_is_refused_on_the_very_next_request,
    the_last_admin_stays_admin_and_stays,
    a_member_may_leave,
    tokens_of_a_removed_member_stay_void_when_they_come_back,
    a_token_grants_no_more_than_it_has_and_sees_no_setup_token,
);

const USERS: &str = "/api/v1/organizations/users";

fn remove(client: &Client, user_id: &str) -> launchway_testkit::client::Answer {
    client.send_json("DELETE", USERS, &json!({"user_id": user_id}))
}

fn members_come_with_roles_permissions_organization_and_user(server: TestServer) {
    let ada = server.admin();
    join(&server, &ada, "grace@example.com", "viewer");
    let answer = ada.get(USERS);
    assert_eq!(answer.message(), "Users fetched successfully");
    let members = answer.success();
    let [first, second] = members.as_array().unwrap().as_slice() else { panic!("{members}") };
    let fields = [
        "created_at",
        "deleted_at",
        "id",
        "organization",
        "organization_id",
        "permissions",
        "roles",
        "updated_at",
        "user",
        "user_id",
    ];
    assert_eq!(first.as_object().unwrap().keys().collect::<Vec<_>>(), fields);
    assert_eq!((&first["roles"], &first["user"]["username"]), (&json!(["admin"]), &json!("ada")));
    assert_eq!(first["permissions"].as_array().unwrap().len(), 24);
    assert_eq!(
        (&second["roles"], &second["user"]["email"]),
        (&json!(["viewer"]), &json!("grace@example.com"))
    );
    let permissions =
        json!(["user:read", "organization:read", "deploy:read", "extension:read", "notification:read"]);
    assert_eq!(second["permissions"], permissions);
    assert_eq!(
        (&second["organization"]["name"], &second["organization"]["users"]),
        (&json!("ada's Team"), &json!([]))
    );
    assert_eq!(
        (&second["user"]["organizations"], &second["user"]["organization_users"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(second["user"]["two_factor_secret"], "");
}

fn takes_the_organization_from_body_query_or_current_one(server: TestServer) {
    let ada = server.admin();
    let second = ada.post("/api/v1/organizations", &json!({"name": "Second"})).success();
    let id = second["id"].as_str().unwrap();
    let name = |members: Value| members[0]["organization"]["name"].clone();
    assert_eq!(name(ada.get(USERS).success()), "ada's Team");
    assert_eq!(name(ada.get(&format!("{USERS}?id={id}")).success()), "Second");
    assert_eq!(name(ada.send_json("GET", USERS, &json!({"id": id})).success()), "Second");
    let first = ada.get("/api/v1/organizations").success()["id"].clone();
    assert_eq!(
        name(ada.send_json("GET", &format!("{USERS}?id={id}"), &json!({"id": first})).success()),
        "ada's Team"
    );
    ada.send_json("GET", USERS, &json!({"id": "42"})).failure(400, "invalid_id");
    ada.send_json("GET", USERS, &json!({"ids": []})).failure(400, "unknown_field");
}

fn a_new_address_gets_an_account_and_a_token_that_works_once(server: TestServer) {
    let ada = server.admin();
    let body = json!({"email": "grace@example.com", "role": "member"});
    let added = ada.post(USERS, &body).success();
    assert_eq!((&added["user"]["username"], &added["user"]["is_verified"]), (&json!("grace"), &json!(false)));
    let login = json!({"email": "Grace@Example.com", "password": "a long passphrase"});
    server.client().post("/api/v1/auth/login", &login).failure(401, "invalid_credentials");
    let setup = |token: &Value| json!({"token": token, "password": "a long passphrase"});
    let redeem = |token: &Value| server.client().post("/api/v1/auth/password/setup", &setup(token));
    redeem(&json!("lwp_guessed")).failure(401, "invalid_credentials");
    redeem(&added["setup_token"]).success();
    redeem(&added["setup_token"]).failure(401, "invalid_credentials");
    let user = server.client().post("/api/v1/auth/login", &login).success()["user"].clone();
    assert_eq!((&user["type"], &user["is_verified"]), (&json!("app_user"), &json!(false)));
}

fn nobody_is_a_member_twice(server: TestServer) {
    let ada = server.admin();
    join(&server, &ada, "grace@example.com", "viewer");
    let again = ada.post(USERS, &json!({"email": "grace@example.com", "role": "admin"}));
    assert_eq!(again.failure(409, "conflict"), "grace@example.com is a member of this organization already");
    let message =
        ada.post(USERS, &json!({"email": "grace", "role": "owner"})).failure(400, "validation_failed");
    assert!(message.contains("email must be") && message.contains("role must be `admin`"), "{message}");
}

fn a_changed_role_counts_on_the_very_next_request(server: TestServer) {
    let ada = server.admin();
    let grace = join(&server, &ada, "grace@example.com", "viewer");
    let client = grace.log_in();
    client.get("/api/v1/audit/logs").failure(403, "forbidden");
    let changed = ada.patch(USERS, &json!({"user_id": grace.id, "role": "member"})).success();
    assert_eq!(changed["roles"], json!(["member"]));
    client.get("/api/v1/audit/logs").success();
    ada.patch(USERS, &json!({"user_id": grace.id, "role": "viewer"})).success();
    client.get("/api/v1/audit/logs").failure(403, "forbidden");
}

fn a_removed_member_is_refused_on_the_very_next_request(server: TestServer) {
    let ada = server.admin();
    let grace = join(&server, &ada, "grace@example.com", "member");
    let client = grace.log_in();
    let token = client.post("/api/v1/auth/tokens", &json!({"name": "ci"})).success();
    let program = server.client().with_token(token["token"].as_str().unwrap());
    client.get(USERS).success();
    program.get(USERS).success();
    remove(&ada, &grace.id).success();
    client.get(USERS).failure(403, "forbidden");
    program.get(USERS).failure(401, "unauthenticated");
    assert_eq!(client.get("/api/v1/user").success()["organizations"], json!([]));
    remove(&ada, &grace.id).failure(404, "not_found");
}

fn the_last_admin_stays_admin_and_stays(server: TestServer) {
    let ada = server.admin();
    let own_id = ada.get("/api/v1/user").success()["id"].as_str().unwrap().to_owned();
    let demote = || ada.patch(USERS, &json!({"user_id": own_id, "role": "member"}));
    demote().failure(409, "conflict");
    remove(&ada, &own_id).failure(409, "conflict");
    let grace = join(&server, &ada, "grace@example.com", "admin");
    demote().success();
    let grace = grace.log_in();
    grace.get("/api/v1/audit/logs").success();
    ada.post(USERS, &json!({"email": "x@example.com", "role": "viewer"})).failure(403, "forbidden");
}

fn a_member_may_leave(server: TestServer) {
    let ada = server.admin();
    let grace = join(&server, &ada, "grace@example.com", "viewer");
    let client = grace.log_in();
    let own_id = ada.get("/api/v1/user").success()["id"].as_str().unwrap().to_owned();
    remove(&client, &own_id).failure(403, "forbidden");
    remove(&client, &grace.id).success();
    client.get(USERS).failure(403, "forbidden");
}

fn tokens_of_a_removed_member_stay_void_when_they_come_back(server: TestServer) {
    let ada = server.admin();
    let grace = join(&server, &ada, "grace@example.com", "member");
    let token = grace.log_in().post("/api/v1/auth/tokens", &json!({"name": "ci"})).success();
    let program = server.client().with_token(token["token"].as_str().unwrap());
    remove(&ada, &grace.id).success();
    let invited = ada.post(USERS, &json!({"email": grace.email, "role": "member"})).success();
    accept(&grace.log_in(), &invited);
    program.get("/api/v1/user").failure(401, "unauthenticated");
    grace.log_in().get(USERS).success();
}

fn a_token_grants_no_more_than_it_has_and_sees_no_setup_token(server: TestServer) {
    let ada = server.admin();
    let program = |permissions: Value| {
        let spec = json!({"name": permissions.to_string().chars().take(40).collect::<String>(), "permissions": permissions});
        let token = ada.post("/api/v1/auth/tokens", &spec).success();
        server.client().with_token(token["token"].as_str().unwrap())
    };
    let narrow = program(json!(["organization:update"]));
    let wide = program(ada.get(USERS).success()[0]["permissions"].clone());
    let grace = json!({"email": "grace@example.com", "role": "admin"});
    narrow.post(USERS, &grace).failure(403, "forbidden");
    let message = wide.post(USERS, &grace).failure(403, "forbidden");
    assert!(message.contains("needs a session"), "{message}");
    let bob = join(&server, &ada, "bob@example.com", "viewer");
    narrow.patch(USERS, &json!({"user_id": bob.id, "role": "admin"})).failure(403, "forbidden");
    wide.patch(USERS, &json!({"user_id": bob.id, "role": "member"})).success();
}
