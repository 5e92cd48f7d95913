//! Every kind of caller of an organization.

use std::time::{Duration, Instant};

use launchway_testkit::{
    client::{Answer, Client},
    people::{Person, join},
    server::TestServer,
};
use serde_json::json;

use super::Request;

/// A kind of caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Nobody,
    ExpiredToken,
    /// The admin of another organization, who names this one.
    ForeignAdmin,
    Viewer,
    Member,
    Admin,
    RemovedMember,
}

impl Who {
    pub(crate) const ALL: [Self; 7] = [
        Self::Nobody,
        Self::ExpiredToken,
        Self::ForeignAdmin,
        Self::Viewer,
        Self::Member,
        Self::Admin,
        Self::RemovedMember,
    ];
}

pub(crate) struct Callers {
    nobody: Client,
    expired: Client,
    people: Vec<(Who, Person, Client)>,
    organization: String,
}

impl Callers {
    pub(crate) fn new(server: &TestServer) -> Self {
        let ada = server.admin();
        let organization = ada.get("/api/v1/organizations").success()["id"].as_str().unwrap().to_owned();
        let expired = expired_token(server, &ada);

        let other = ada.post("/api/v1/organizations", &json!({"name": "Elsewhere"})).success();
        let elsewhere = ada.with_header("x-organization-id", other["id"].as_str().unwrap());
        let foreign = join(server, &elsewhere, "eve@example.com", "admin");
        let people = [
            (Who::Viewer, "viewer"),
            (Who::Member, "member"),
            (Who::Admin, "admin"),
            (Who::RemovedMember, "admin"),
        ];
        let people =
            people.map(|(who, role)| (who, join(server, &ada, &format!("{who:?}@example.com"), role)));
        let people: Vec<_> = people
            .into_iter()
            .chain([(Who::ForeignAdmin, foreign)])
            .map(|(who, person)| (who, person.clone(), person.log_in()))
            .collect();
        let removed = &people.iter().find(|(who, ..)| *who == Who::RemovedMember).unwrap().1.id;
        ada.send_json("DELETE", "/api/v1/organizations/users", &json!({"user_id": removed})).success();
        Self { nobody: server.client(), expired, people, organization }
    }

    pub(crate) fn organization(&self) -> &str {
        &self.organization
    }

    /// Sends the request of a caller.
    pub(crate) fn send(&self, who: Who, request: &Request) -> Answer {
        let client = match who {
            Who::Nobody => self.nobody.clone(),
            Who::ExpiredToken => self.expired.clone(),
            Who::ForeignAdmin => {
                self.client(who, request).with_header("x-organization-id", &self.organization)
            }
            _ => self.client(who, request),
        };
        client.send(&request.method, &request.path, request.body.as_deref())
    }

    fn client(&self, who: Who, request: &Request) -> Client {
        let (_, person, client) = self.people.iter().find(|(other, ..)| *other == who).unwrap();
        // The logout uses a session that nothing else needs.
        if request.path.ends_with("/logout") { person.log_in() } else { client.clone() }
    }
}

/// Returns a client with an expired API token of the admin.
fn expired_token(server: &TestServer, admin: &Client) -> Client {
    let soon = chrono::DateTime::<chrono::Utc>::from(std::time::SystemTime::now())
        + chrono::TimeDelta::milliseconds(700);
    let token = admin.post("/api/v1/auth/tokens", &json!({"name": "short", "expires_at": soon.to_rfc3339()}));
    let client = server.client().with_token(token.success()["token"].as_str().unwrap());
    client.get("/api/v1/user").success();
    let deadline = Instant::now() + Duration::from_secs(10);
    while client.get("/api/v1/user").status == 200 {
        assert!(Instant::now() < deadline, "the token does not expire");
        std::thread::sleep(Duration::from_millis(50));
    }
    client
}
