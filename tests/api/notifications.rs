//! Outbound notifications: `/api/v1/notification/…`, and deliveries to real receivers.

mod configs;
mod delivery;
mod docker;
mod event_kinds;
mod ledger;
mod mail;
mod outages;
mod places;
mod signatures;
mod ten_thousand;
mod test_message;
mod upgrade;

use launchway_testkit::{
    client::Client,
    external::{Message, Reply, Request, TestReceiver},
    server::TestServer,
};
use serde_json::{Value, json};

use crate::wait::until;

const WEBHOOK: &str = "/api/v1/notification/webhook";
const SMTP: &str = "/api/v1/notification/smtp";
const TEST: &str = "/api/v1/notification/test";
const DELIVERIES: &str = "/api/v1/notification/deliveries";
const MEMBERS: &str = "/api/v1/organizations/users";

/// Starts a server on one of the databases, with settings.
type Start = fn(&[(&str, &str)]) -> TestServer;

/// Generates a test of each function on each database: `on_sqlite::name` and `on_postgres::name`.
macro_rules! from_both_databases {
    ($($name:ident),* $(,)?) => {
        mod on_sqlite {
            $(#[test] fn $name() { super::$name(launchway_testkit::server::TestServer::configured); })*
        }
        mod on_postgres {
            $(#[test] fn $name() { super::$name(launchway_testkit::server::TestServer::configured_on_postgres); })*
        }
    };
}
use from_both_databases;

/// A server, its administrator, and a receiver that the operator allows.
struct Fixture {
    server: TestServer,
    admin: Client,
    receiver: TestReceiver,
}

impl Fixture {
    /// With a receiver that accepts everything.
    fn new(start: Start) -> Self {
        Self::with(start, TestReceiver::taking(), &[])
    }

    /// With that receiver, which is not configured yet, and more settings.
    fn with(start: Start, receiver: TestReceiver, settings: &[(&str, &str)]) -> Self {
        let allowed = allowing(&receiver);
        let mut all = vec![
            ("LAUNCHWAY_OUTBOUND_ALLOW", allowed.as_str()),
            ("LAUNCHWAY_NOTIFICATION_RETRIES", "100ms,100ms"),
        ];
        all.extend_from_slice(settings);
        let server = start(&all);
        let admin = server.admin();
        Self { server, admin, receiver }
    }

    /// Configures the receiver as a channel of that kind.
    fn add_channel(&self, kind: &str) {
        add_channel(&self.admin, kind, &self.receiver.url());
    }

    /// Restarts the server, and points the client to it.
    fn restart(&mut self) {
        self.server.restart();
        self.admin = self.admin.at(self.server.url());
    }
}

/// The setting that allows only this receiver.
fn allowing(receiver: &TestReceiver) -> String {
    format!("127.0.0.1/32:{}", receiver.port)
}

/// Configures `url` as a channel of that kind.
fn add_channel(admin: &Client, kind: &str, url: &str) {
    admin.post(WEBHOOK, &json!({"type": kind, "webhook_url": url})).success();
}

/// Adds a user to the caller's organization, which sends a notification, and returns their id.
fn add(admin: &Client, email: &str) -> String {
    text(&admin.post(MEMBERS, &json!({"email": email, "role": "viewer"})).success()["user_id"])
}

/// Removes the user from it, which sends a notification too.
fn remove(admin: &Client, user: &str) {
    admin.send_json("DELETE", MEMBERS, &json!({"user_id": user})).success();
}

/// Returns the deliveries of the caller's organization, newest first.
fn deliveries(client: &Client, query: &str) -> Vec<Value> {
    let page = client.get(&format!("{DELIVERIES}?page_size=100{query}")).success();
    page["deliveries"].as_array().unwrap().clone()
}

/// Waits until the organization has that many deliveries in a state, and none is pending.
#[track_caller]
fn settled(client: &Client, state: &str, count: usize) -> Vec<Value> {
    until(&format!("{count} deliveries that are {state}"), || {
        let all = deliveries(client, "");
        let is_over = |one: &Value| one["status"] == "delivered" || one["status"] == "dead";
        let found: Vec<Value> = all.iter().filter(|one| one["status"] == state).cloned().collect();
        (all.iter().all(is_over) && found.len() == count).then_some(found)
    })
}

/// The body of a message.
fn body(message: &Message) -> Value {
    serde_json::from_str(&message.request.body).unwrap()
}

/// Returns the only message of that type.
#[track_caller]
fn only(messages: &[Message], kind: &str) -> Value {
    let bodies: Vec<Value> = messages.iter().map(body).collect();
    let mut found = bodies.iter().filter(|body| body["type"] == kind);
    let one = found.next().unwrap_or_else(|| panic!("no {kind} in {bodies:#?}"));
    assert!(found.next().is_none(), "{kind} came several times: {bodies:#?}");
    one.clone()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// Returns the names of the fields of an object, in order.
fn names(value: &Value) -> Vec<String> {
    let mut names: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
    names.sort();
    names
}

/// Rejects the first messages with a status, and accepts the others.
fn refusing(count: usize, status: u16) -> impl Fn(usize, &Request) -> Reply + Send + Sync + 'static {
    move |number, _| Reply::Status(if number < count { status } else { 204 })
}
