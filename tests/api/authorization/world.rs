//! An organization, and every kind of caller.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use launchway_testkit::{
    client::{Answer, Client},
    people::{Person, join},
    server::TestServer,
};
use serde_json::json;

use super::Row;
use crate::wait::until;

/// A caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Nobody,
    ExpiredToken,
    ForeignAdmin,
    Viewer,
    Member,
    Admin,
    RemovedMember,
}

impl Who {
    /// All callers, in the order of the table's columns. The admin is followed only by a caller who needs
    /// no organization.
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

pub(crate) struct World {
    /// The user who created everything, and can create more of it.
    ada: Client,
    nobody: Client,
    expired: Client,
    people: Vec<(Who, Person, Client)>,
    organization: String,
    bystander: String,
    /// An application without a live deployment: this machine has no engine.
    application: String,
    deployment: String,
    cancelled: String,
    fork: String,
    execution: String,
    /// An application from a repository that is unreachable.
    from_git: String,
    unique: Cell<u32>,
}

impl World {
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
        let bystander = join(server, &ada, "bystander@example.com", "viewer").id;

        let cancelled = made(&ada, "given up").1;
        ada.post("/api/v1/deploy/application/cancel-deployment", &json!({"id": cancelled})).success();
        let (application, deployment) = made(&ada, "shop");
        let wish = json!({
            "name": "site", "repository": "https://git.example.com/site.git", "branch": "main", "port": 80,
            "environment": "production", "build_pack": "static",
        });
        let from_git =
            ada.post("/api/v1/deploy/application", &wish).success()["id"].as_str().unwrap().to_owned();
        until("the end of the cancelled deployment", || {
            let path = format!("/api/v1/deploy/application/deployments/{cancelled}");
            (ada.get(&path).success()["status"]["status"] == "cancelled").then_some(())
        });
        let (fork, execution) = run(&ada);
        let receiver =
            json!({"type": "generic", "webhook_url": "https://hooks.example.com/", "is_active": false});
        ada.post("/api/v1/notification/webhook", &receiver).success();
        Self {
            ada,
            nobody: server.client(),
            expired,
            people,
            organization,
            bystander,
            application,
            deployment,
            cancelled,
            fork,
            execution,
            from_git,
            unique: Cell::new(0),
        }
    }

    /// Sends the request of the row.
    pub(crate) fn ask(&self, who: Who, row: &Row) -> Answer {
        let client = match who {
            Who::Nobody => self.nobody.clone(),
            Who::ExpiredToken => self.expired.clone(),
            Who::ForeignAdmin => self.client(who, row).with_header("x-organization-id", &self.organization),
            _ => self.client(who, row),
        };
        if row.operation == "DELETE /api/v1/organizations" {
            self.delete_applications();
        }
        let method = row.operation.split(' ').next().unwrap();
        let body = self.filled(row.body);
        client.send(method, &self.filled(row.request), (!body.is_empty()).then_some(&*body))
    }

    fn client(&self, who: Who, row: &Row) -> Client {
        let (_, person, client) = self.people.iter().find(|(other, ..)| *other == who).unwrap();
        // The logout uses a session that nothing else needs.
        if row.operation.ends_with("/logout") { person.log_in() } else { client.clone() }
    }

    /// Deletes the applications: an organization that has some cannot be deleted.
    fn delete_applications(&self) {
        let inside = self.ada.with_header("x-organization-id", &self.organization);
        let list = inside.get("/api/v1/deploy/applications?page_size=100");
        if list.status != 200 {
            return;
        }
        for application in list.success()["applications"].as_array().unwrap() {
            let id = application["id"].as_str().unwrap();
            inside.delete(&format!("/api/v1/deploy/application?id={id}")).success();
        }
    }

    fn filled(&self, template: &str) -> String {
        self.unique.set(self.unique.get() + 1);
        let unique = format!("unique-{}", self.unique.get());
        let mut filled = template.to_owned();
        // Deleted resources are created anew for each caller.
        if filled.contains("{waiting}") {
            filled = filled.replace("{waiting}", &made(&self.ada, &unique).1);
        }
        if filled.contains("{spare}") {
            filled = filled.replace("{spare}", &made(&self.ada, &unique).0);
        }
        filled
            .replace("{unique}", &unique)
            .replace("{organization}", &self.organization)
            .replace("{bystander}", &self.bystander)
            .replace("{application}", &self.application)
            .replace("{deployment}", &self.deployment)
            .replace("{cancelled}", &self.cancelled)
            .replace("{fork}", &self.fork)
            .replace("{execution}", &self.execution)
            .replace("{from_git}", &self.from_git)
            .replace("{nothing}", "01a1dd03-0000-7000-8000-000000000000")
    }
}

/// Returns the ids of a new application and its deployment, which waits for an engine.
fn made(admin: &Client, name: &str) -> (String, String) {
    let wish = json!({
        "name": name, "repository": "registry.example/shop", "port": 80, "environment": "staging",
        "build_pack": "image",
    });
    let application = admin.post("/api/v1/deploy/application", &wish).success();
    let id = |id: &serde_json::Value| id.as_str().unwrap().to_owned();
    (id(&application["id"]), id(&application["deployments"][0]["id"]))
}

/// Returns the key of a fork that only creates a folder, and the id of a finished run of it.
fn run(admin: &Client) -> (String, String) {
    let yaml = "metadata: {id: x, name: X, description: x, author: x, icon: x, category: Other, type: run}\n\
                execution: {run: [{name: A, type: file, properties: {action: mkdir, dest: a}}]}";
    let fork = admin.post("/api/v1/extensions/hello-note/fork", &json!({"yaml_content": yaml})).success();
    let fork = fork["extension_id"].as_str().unwrap().to_owned();
    let execution = admin.post(&format!("/api/v1/extensions/{fork}/run"), &json!({})).success();
    let execution = execution["id"].as_str().unwrap().to_owned();
    until("the end of a run", || {
        let now = admin.get(&format!("/api/v1/extensions/execution/{execution}")).success();
        (now["status"] == "completed").then_some(())
    });
    (fork, execution)
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
