//! Invitations: users with an account become members by their own consent.

use launchway_testkit::{
    client::{Answer, Client},
    people::{Person, accept, join},
    server::TestServer,
};
use serde_json::{Value, json};

super::on_both_databases!(
    no_role_counts_before_the_invitation_is_accepted,
    who_holds_an_account_of_another_organization_gets_no_role,
    a_setup_token_proves_no_address,
    a_verified_account_accepts_without_a_token,
    an_invitation_is_declined_or_withdrawn,
    an_invitation_expires_after_seven_days,
    inviting_again_replaces_the_invitation,
    an_invitation_ends_with_the_role_of_its_admin,
    a_program_does_not_accept,
    the_invitations_of_an_organization_are_for_its_admins,
    every_step_is_in_the_audit_log,
);

const USERS: &str = "/api/v1/organizations/users";
const SENT: &str = "/api/v1/organizations/invitations";
const OWN: &str = "/api/v1/user/invitations";
const SETUP: &str = "/api/v1/auth/password/setup";

/// Two organizations: that of ada, and another one whose admin is eve.
struct World {
    ada: Client,
    eve: Client,
}

impl World {
    fn new(server: &TestServer) -> Self {
        let ada = server.admin();
        let other = ada.post("/api/v1/organizations", &json!({"name": "Elsewhere"})).success();
        let elsewhere = ada.with_header("x-organization-id", other["id"].as_str().unwrap());
        let eve = join(server, &elsewhere, "eve@example.com", "admin").log_in();
        Self { ada, eve }
    }

    /// Invites, as ada, a user whose account was created for eve's organization.
    fn invited(&self, server: &TestServer, role: &str) -> (Person, Value) {
        let grace = join(server, &self.eve, "grace@example.com", "viewer");
        (grace, self.invite("grace@example.com", role))
    }

    fn invite(&self, email: &str, role: &str) -> Value {
        self.ada.post(USERS, &json!({"email": email, "role": role})).success()
    }
}

fn answer(client: &Client, invitation: &Value, verb: &str, token: &Value) -> Answer {
    let path = format!("{OWN}/{}/{verb}", invitation["id"].as_str().unwrap());
    let body = if verb == "accept" { json!({"token": token}) } else { json!({}) };
    client.post(&path, &body)
}

fn organizations(client: &Client) -> Vec<String> {
    let memberships = client.get("/api/v1/user/organizations").success();
    let memberships = memberships.as_array().unwrap().iter();
    memberships.map(|one| one["organization"]["name"].as_str().unwrap().to_owned()).collect()
}

fn withdraw(admin: &Client, user_id: &Value) -> Answer {
    admin.send_json("DELETE", USERS, &json!({"user_id": user_id}))
}

fn no_role_counts_before_the_invitation_is_accepted(server: TestServer) {
    let world = World::new(&server);
    let (grace, invited) = world.invited(&server, "admin");
    // The shape is that of a member, without permissions, and it says what it is.
    assert_eq!((&invited["status"], &invited["roles"]), (&json!("invited"), &json!(["admin"])));
    assert_eq!((&invited["permissions"], &invited["user_id"]), (&json!([]), &json!(grace.id)));
    assert_eq!(invited["user"]["is_verified"], false);
    assert_eq!(invited["organization"]["name"], "ada's Team");
    let client = grace.log_in();
    assert_eq!(organizations(&client), ["Elsewhere"]);
    let inside = client.with_header("x-organization-id", invited["organization_id"].as_str().unwrap());
    inside.get(USERS).failure(403, "forbidden");
    assert_eq!(world.ada.get(USERS).success().as_array().unwrap().len(), 1);

    let own = client.get(OWN).success();
    let [one] = own.as_array().unwrap().as_slice() else { panic!("{own}") };
    assert_eq!(
        (&one["id"], &one["role"], &one["invited_by"]),
        (&invited["id"], &json!("admin"), &json!("ada"))
    );
    assert_eq!((&one["needs_token"], &one["organization"]["name"]), (&json!(true), &json!("ada's Team")));
    assert_eq!(one["expires_at"], invited["expires_at"]);
    assert_eq!(world.ada.get(SENT).success(), own);

    let member = answer(&client, &invited, "accept", &invited["setup_token"]).success();
    assert_eq!(
        (&member["roles"], &member["user"]["email"]),
        (&json!(["admin"]), &json!("grace@example.com"))
    );
    assert_eq!(organizations(&client), ["Elsewhere", "ada's Team"]);
    inside.get("/api/v1/audit/logs").success();
    assert_eq!(client.get(OWN).success(), json!([]));
    answer(&client, &invited, "accept", &invited["setup_token"]).failure(404, "not_found");
    let again = world.ada.post(USERS, &json!({"email": grace.email, "role": "viewer"}));
    assert_eq!(again.failure(409, "conflict"), "grace@example.com is a member of this organization already");
}

/// The admin of one organization creates an account with another person's address. When another
/// organization adds that address, the account must not get access.
fn who_holds_an_account_of_another_organization_gets_no_role(server: TestServer) {
    let world = World::new(&server);
    // Eve redeems the token herself.
    let victim = join(&server, &world.eve, "victim@a.example.com", "viewer");
    let mallory = victim.log_in();
    let invited = world.invite("victim@a.example.com", "admin");
    assert_eq!(invited["user"]["is_verified"], false);
    let seen = mallory.get(OWN).success();
    assert_eq!(seen[0]["id"], invited["id"]);
    assert!(!seen.to_string().contains(invited["setup_token"].as_str().unwrap()), "{seen}");
    for guess in [json!(null), json!(""), json!("lwv_guessed"), json!("lwp_guessed")] {
        answer(&mallory, &invited, "accept", &guess).failure(401, "invalid_credentials");
    }
    // Neither does the token of an invitation to her own organization help, nor a new account's.
    let second = world.eve.post("/api/v1/organizations", &json!({"name": "Third"})).success();
    let third = world.eve.with_header("x-organization-id", second["id"].as_str().unwrap());
    let own = third.post(USERS, &json!({"email": "victim@a.example.com", "role": "admin"})).success();
    answer(&mallory, &invited, "accept", &own["setup_token"]).failure(401, "invalid_credentials");
    let setup = json!({"token": invited["setup_token"], "password": "a long passphrase"});
    server.client().post(SETUP, &setup).failure(401, "invalid_credentials");
    assert_eq!(organizations(&mallory), ["Elsewhere"]);
    let inside = mallory.with_header("x-organization-id", invited["organization_id"].as_str().unwrap());
    inside.get(USERS).failure(403, "forbidden");
    assert_eq!(world.ada.get(USERS).success().as_array().unwrap().len(), 1);
    // Whoever ada hands the token to, and who holds the account, gets in.
    accept(&mallory, &invited);
    assert_eq!(organizations(&mallory), ["Elsewhere", "ada's Team"]);
}

fn a_setup_token_proves_no_address(server: TestServer) {
    let world = World::new(&server);
    assert_eq!(world.ada.get("/api/v1/user").success()["is_verified"], false);
    let (grace, invited) = world.invited(&server, "viewer");
    let client = grace.log_in();
    assert_eq!(client.get("/api/v1/user").success()["is_verified"], false);
    accept(&client, &invited);
    assert_eq!(client.get("/api/v1/user").success()["is_verified"], false);
}

fn a_verified_account_accepts_without_a_token(server: TestServer) {
    let world = World::new(&server);
    let grace = join(&server, &world.eve, "grace@example.com", "viewer");
    server.execute("UPDATE users SET is_verified = (1 = 1) WHERE email = 'grace@example.com'");
    let invited = world.invite("grace@example.com", "member");
    assert!(invited.get("setup_token").is_none(), "{invited}");
    assert_eq!(invited["user"]["is_verified"], true);
    let client = grace.log_in();
    assert_eq!(client.get(OWN).success()[0]["needs_token"], false);
    answer(&client, &invited, "accept", &json!(null)).success();
    assert_eq!(organizations(&client), ["Elsewhere", "ada's Team"]);
}

fn an_invitation_is_declined_or_withdrawn(server: TestServer) {
    let world = World::new(&server);
    let (grace, invited) = world.invited(&server, "member");
    let client = grace.log_in();
    // Another user has no such invitation.
    answer(&world.eve, &invited, "accept", &invited["setup_token"]).failure(404, "not_found");
    answer(&world.eve, &invited, "decline", &json!(null)).failure(404, "not_found");
    answer(&client, &invited, "decline", &json!(null)).success();
    answer(&client, &invited, "accept", &invited["setup_token"]).failure(404, "not_found");
    assert_eq!(world.ada.get(SENT).success(), json!([]));

    let invited = world.invite("grace@example.com", "member");
    withdraw(&world.eve, &invited["user_id"]).success();
    let client = grace.log_in();
    assert_eq!(client.get(OWN).success().as_array().unwrap().len(), 1, "eve removed her own member");
    withdraw(&world.eve, &invited["user_id"]).failure(404, "not_found");
    withdraw(&world.ada, &invited["user_id"]).success();
    withdraw(&world.ada, &invited["user_id"]).failure(404, "not_found");
    answer(&client, &invited, "accept", &invited["setup_token"]).failure(404, "not_found");
    assert_eq!(client.get(OWN).success(), json!([]));
}

fn an_invitation_expires_after_seven_days(server: TestServer) {
    let world = World::new(&server);
    let (grace, invited) = world.invited(&server, "member");
    let moment = |field: &str| {
        chrono::DateTime::parse_from_rfc3339(invited[field].as_str().unwrap()).unwrap().timestamp_micros()
    };
    assert_eq!(moment("expires_at") - moment("created_at"), 7 * 24 * 60 * 60 * 1_000_000);
    let client = grace.log_in();
    let end = |seconds: i64| {
        let at = chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now())
            + chrono::TimeDelta::seconds(seconds);
        let value = match server.is_on_sqlite() {
            true => at.timestamp_micros().to_string(),
            false => format!("'{}'", at.to_rfc3339()),
        };
        server.execute(&format!("UPDATE invitations SET expires_at = {value}"));
    };
    end(-1);
    assert_eq!((client.get(OWN).success(), world.ada.get(SENT).success()), (json!([]), json!([])));
    answer(&client, &invited, "accept", &invited["setup_token"]).failure(404, "not_found");
    withdraw(&world.ada, &invited["user_id"]).failure(404, "not_found");
    end(60);
    accept(&client, &invited);
    assert_eq!(organizations(&client), ["Elsewhere", "ada's Team"]);
}

fn inviting_again_replaces_the_invitation(server: TestServer) {
    let world = World::new(&server);
    let (grace, first) = world.invited(&server, "admin");
    let second = world.invite("GRACE@example.com", "viewer");
    let client = grace.log_in();
    assert_eq!(client.get(OWN).success().as_array().unwrap().len(), 1);
    answer(&client, &first, "accept", &first["setup_token"]).failure(404, "not_found");
    answer(&client, &second, "accept", &first["setup_token"]).failure(401, "invalid_credentials");
    let member = answer(&client, &second, "accept", &second["setup_token"]).success();
    assert_eq!(member["roles"], json!(["viewer"]));
}

/// An admin who was removed cannot come back by an invitation of their own.
fn an_invitation_ends_with_the_role_of_its_admin(server: TestServer) {
    let world = World::new(&server);
    let bob = join(&server, &world.ada, "bob@example.com", "admin");
    let grace = join(&server, &world.eve, "grace@example.com", "viewer").log_in();
    let spec = json!({"email": "grace@example.com", "role": "admin"});
    let invited = bob.log_in().post(USERS, &spec).success();
    assert_eq!(grace.get(OWN).success()[0]["invited_by"], "bob");
    withdraw(&world.ada, &json!(bob.id)).success();
    assert_eq!(grace.get(OWN).success(), json!([]));
    answer(&grace, &invited, "accept", &invited["setup_token"]).failure(404, "not_found");
}

fn a_program_does_not_accept(server: TestServer) {
    let world = World::new(&server);
    let (grace, invited) = world.invited(&server, "member");
    let token = grace.log_in().post("/api/v1/auth/tokens", &json!({"name": "ci"})).success();
    let program = server.client().with_token(token["token"].as_str().unwrap());
    program.get(OWN).success();
    answer(&program, &invited, "accept", &invited["setup_token"]).failure(403, "forbidden");
    answer(&program, &invited, "decline", &json!(null)).failure(403, "forbidden");
    // And a program of an admin does not get to see the token.
    let token = world.ada.post("/api/v1/auth/tokens", &json!({"name": "ci"})).success();
    let program = server.client().with_token(token["token"].as_str().unwrap());
    let spec = json!({"email": "grace@example.com", "role": "viewer"});
    assert!(program.post(USERS, &spec).failure(403, "forbidden").contains("needs a session"));
}

fn the_invitations_of_an_organization_are_for_its_admins(server: TestServer) {
    let world = World::new(&server);
    let (_, invited) = world.invited(&server, "member");
    let viewer = join(&server, &world.ada, "viewer@example.com", "viewer").log_in();
    viewer.get(SENT).failure(403, "forbidden");
    withdraw(&viewer, &invited["user_id"]).failure(403, "forbidden");
    assert_eq!(world.eve.get(SENT).success(), json!([]));
    let path = format!("{OWN}/none/accept");
    viewer.post(&path, &json!({})).failure(400, "invalid_id");
    viewer.post(&path, &json!({"role": "admin"})).failure(400, "unknown_field");
}

fn every_step_is_in_the_audit_log(server: TestServer) {
    let world = World::new(&server);
    let (grace, invited) = world.invited(&server, "member");
    let client = grace.log_in();
    answer(&client, &invited, "decline", &json!(null)).success();
    let invited = world.invite("grace@example.com", "viewer");
    withdraw(&world.ada, &invited["user_id"]).success();
    accept(&client, &world.invite("grace@example.com", "viewer"));
    let activities = world.ada.get("/api/v1/audit/logs?page_size=6").success()["activities"].clone();
    let entries: Vec<&str> =
        activities.as_array().unwrap().iter().rev().map(|one| one["message"].as_str().unwrap()).collect();
    assert_eq!(
        entries,
        [
            "ada invited grace@example.com as member",
            "grace declined the invitation",
            "ada invited grace@example.com as viewer",
            "ada withdrew the invitation of grace@example.com",
            "ada invited grace@example.com as viewer",
            "grace accepted the invitation as viewer",
        ]
    );
    let elsewhere = world.eve.get("/api/v1/audit/logs?page_size=100").text;
    assert!(!elsewhere.contains("invitation"), "{elsewhere}");
}
