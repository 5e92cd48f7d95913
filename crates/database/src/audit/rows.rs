//! The rows of the audit log.

use std::{collections::BTreeMap, net::IpAddr, str::FromStr};

use diesel::prelude::*;
use launchway_domain::{
    audit::{Action, Chain, ChainHead, Entry, Link, LinkHash, Resource},
    clock::Timestamp,
    ids::UserId,
};

use crate::{
    columns::{DbId, DbTs, Parsed},
    error::QueryError,
    schema::{audit_chains, audit_entries},
    search::lower_case,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = audit_chains)]
pub(super) struct HeadRow {
    chain_id: DbId,
    last_number: i64,
    last_hash: Vec<u8>,
    #[diesel(deserialize_as = DbTs)]
    pub(super) last_at: Timestamp,
}

impl TryFrom<HeadRow> for ChainHead {
    type Error = QueryError;

    fn try_from(row: HeadRow) -> Result<Self, QueryError> {
        Ok(Self { chain: row.chain_id.0.into(), number: row.last_number, hash: stored_hash(&row.last_hash)? })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = audit_entries)]
pub(super) struct EntryRow {
    id: DbId,
    actor: String,
    actor_id: Option<DbId>,
    action: Parsed<Action>,
    resource: Parsed<Resource>,
    resource_id: String,
    message: String,
    metadata: Parsed<Metadata>,
    request_id: String,
    address: Option<Parsed<IpAddr>>,
    at: DbTs,
}

impl EntryRow {
    /// Returns the entry of the chain that is read.
    pub(super) fn entry_of(self, chain: Chain) -> Entry {
        Entry {
            id: self.id.into(),
            chain,
            actor: self.actor,
            actor_id: self.actor_id.map(UserId::from),
            action: self.action.0,
            resource: self.resource.0,
            resource_id: self.resource_id,
            message: self.message,
            metadata: self.metadata.0.0,
            request_id: self.request_id,
            address: self.address.map(|address| address.0),
            at: self.at.0,
        }
    }
}

/// The details of an entry, which are stored as JSON.
pub(super) struct Metadata(BTreeMap<String, String>);

impl FromStr for Metadata {
    type Err = serde_json::Error;

    fn from_str(stored: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(stored).map(Self)
    }
}

/// A link of a chain.
#[derive(Queryable, Selectable)]
#[diesel(table_name = audit_entries)]
pub(super) struct LinkRow {
    number: i64,
    hash: Vec<u8>,
    #[diesel(embed)]
    entry: EntryRow,
}

impl LinkRow {
    /// Returns the link of the chain that is read.
    pub(super) fn link_of(self, chain: Chain) -> Result<Link, QueryError> {
        let Self { number, hash, entry } = self;
        Ok(Link { number, entry: entry.entry_of(chain), hash: stored_hash(&hash)? })
    }
}

/// A row to insert. Columns without a value are NULL, so that a batch has one text.
#[derive(Insertable)]
#[diesel(table_name = audit_entries, treat_none_as_default_value = false)]
pub(super) struct NewEntry {
    chain_id: DbId,
    number: i64,
    id: DbId,
    actor: String,
    actor_key: String,
    actor_id: Option<DbId>,
    action: &'static str,
    resource: &'static str,
    resource_id: String,
    message: String,
    metadata: String,
    request_id: String,
    address: Option<String>,
    at: DbTs,
    hash: Vec<u8>,
    search: String,
}

impl NewEntry {
    pub(super) fn new(number: i64, hash: LinkHash, entry: Entry) -> Self {
        Self {
            search: searchable(&entry),
            actor_key: lower_case(&entry.actor),
            metadata: json(&entry),
            chain_id: DbId(entry.chain.id()),
            number,
            id: entry.id.into(),
            actor: entry.actor,
            actor_id: entry.actor_id.map(DbId::from),
            action: entry.action.as_str(),
            resource: entry.resource.as_str(),
            resource_id: entry.resource_id,
            message: entry.message,
            request_id: entry.request_id,
            address: entry.address.map(|address| address.to_string()),
            at: DbTs(entry.at),
            hash: hash.0.to_vec(),
        }
    }
}

fn json(entry: &Entry) -> String {
    let metadata = entry.metadata.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    serde_json::Value::from_iter(metadata).to_string()
}

fn searchable(entry: &Entry) -> String {
    let resource = [entry.resource.as_str(), &entry.resource_id];
    let mut lines = vec![entry.message.as_str(), &entry.actor];
    lines.extend(resource);
    lines.extend(entry.metadata.values().map(String::as_str));
    // Shown beside the metadata, so it is searched like them.
    let address = entry.address.map(|address| address.to_string()).unwrap_or_default();
    lines.extend([entry.request_id.as_str(), &address]);
    lower_case(&lines.join("\n"))
}

fn stored_hash(bytes: &[u8]) -> Result<LinkHash, QueryError> {
    <[u8; 32]>::try_from(bytes).map(LinkHash).map_err(QueryError::unreadable)
}

#[cfg(test)]
mod tests {
    use diesel::{debug_query, pg::Pg};
    use launchway_testkit::builders::an_entry;

    use super::*;

    /// Returns the statement that inserts `entries`, without its values.
    fn statement(entries: &[&Entry]) -> String {
        let row = |&entry: &&Entry| NewEntry::new(1, LinkHash([0; 32]), entry.clone());
        let rows: Vec<NewEntry> = entries.iter().map(row).collect();
        let insert = diesel::insert_into(audit_entries::table).values(&rows);
        let text = debug_query::<Pg, _>(&insert).to_string();
        text.split(" -- binds").next().unwrap().to_owned()
    }

    #[test]
    fn batches_of_the_same_length_have_one_text() {
        let full = an_entry().build();
        let bare = Entry { actor_id: None, address: None, ..full.clone() };
        let expected = statement(&[&bare, &bare]);
        assert!(!expected.contains("DEFAULT"), "{expected}");
        assert_eq!(statement(&[&bare, &full]), expected);
        assert_eq!(statement(&[&full, &bare]), expected);
    }
}
