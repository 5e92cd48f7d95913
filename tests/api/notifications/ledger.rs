//! Compares the server's records with the messages of a receiver.

use std::collections::{BTreeMap, BTreeSet};

use launchway_testkit::{
    external::{Message, Request},
    server::TestServer,
};

use super::signatures::is_signed;

/// The records of both sides about the same messages.
pub(super) struct Ledger {
    /// The number of events that were caused.
    pub(super) made: usize,
    /// The ids of the messages that the server has as delivered …
    pub(super) delivered: BTreeSet<String>,
    /// … and those that it has as dead.
    pub(super) dead: BTreeSet<String>,
    /// The number of those that are neither.
    pub(super) open: usize,
    /// The received messages, in order.
    pub(super) received: Vec<Message>,
    /// The signing secrets, by path.
    pub(super) secrets: BTreeMap<String, String>,
}

impl Ledger {
    /// Reads the server's records.
    pub(super) fn new(server: &TestServer, made: usize, received: Vec<Message>) -> Self {
        let id = match server.data_dir().join("launchway.db").exists() {
            true => "lower(hex(event_id))",
            false => "replace(CAST(event_id AS TEXT), '-', '')",
        };
        let of = |state: &str| -> BTreeSet<String> {
            let query = format!(
                "SELECT 'msg_' || {id} AS value FROM deliveries WHERE state = '{state}' ORDER BY event_id"
            );
            server.query(&query).into_iter().collect()
        };
        let open = of("pending").len() + of("sending").len();
        Self { made, delivered: of("delivered"), dead: of("dead"), open, received, secrets: BTreeMap::new() }
    }

    /// Returns the differences; empty if there are none.
    pub(super) fn differences(&self) -> Vec<String> {
        let mut found = Vec::new();
        let (delivered, dead) = (self.delivered.len(), self.dead.len());
        if delivered + dead != self.made {
            found.push(format!("{} were made, {delivered} delivered and {dead} are dead", self.made));
        }
        if self.open > 0 {
            found.push(format!("{} wait for ever", self.open));
        }
        let taken = self.taken();
        for id in self.delivered.difference(&taken) {
            found.push(format!("{id} is lost: nobody took it"));
        }
        let known: BTreeSet<String> = self.delivered.union(&self.dead).cloned().collect();
        let seen: BTreeSet<String> = self.received.iter().map(id).collect();
        for id in seen.difference(&known) {
            found.push(format!("{id} came, and nobody knows of it"));
        }
        let mut bodies: BTreeMap<String, &str> = BTreeMap::new();
        for message in &self.received {
            let body = message.request.body.as_str();
            if *bodies.entry(id(message)).or_insert(body) != body {
                found.push(format!("{} came with different bytes", id(message)));
            }
            if !self.is_valid(&message.request) {
                found.push(format!("{} is not signed", id(message)));
            }
        }
        found
    }

    /// Returns the ids of the messages that the receiver accepted.
    pub(super) fn taken(&self) -> BTreeSet<String> {
        self.received.iter().filter(|message| message.is_taken).map(id).collect()
    }

    fn is_valid(&self, request: &Request) -> bool {
        let path = request.line.split(' ').nth(1).unwrap_or_default();
        self.secrets.get(path).is_some_and(|secret| is_signed(request, secret))
    }
}

fn id(message: &Message) -> String {
    message.request.header("webhook-id").unwrap_or_default().to_owned()
}
