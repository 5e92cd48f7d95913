//! The rows of the audit log.

use diesel::prelude::*;
use launchway_domain::{
    audit::{Action, ChainHead, Entry, Link, LinkHash, Resource},
    clock::Timestamp,
    ids::{AuditEntryId, UserId},
};

use crate::{
    columns::{DbId, DbTs},
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
    chain_id: DbId,
    number: i64,
    #[diesel(deserialize_as = DbId)]
    id: AuditEntryId,
    actor: String,
    actor_id: Option<DbId>,
    #[diesel(deserialize_as = String)]
    action: Action,
    #[diesel(deserialize_as = String)]
    resource: Resource,
    resource_id: String,
    message: String,
    metadata: String,
    request_id: String,
    address: Option<String>,
    #[diesel(deserialize_as = DbTs)]
    at: Timestamp,
    hash: Vec<u8>,
}

impl TryFrom<EntryRow> for Link {
    type Error = QueryError;

    fn try_from(row: EntryRow) -> Result<Self, QueryError> {
        let address = row.address.map(|address| address.parse()).transpose();
        let entry = Entry {
            id: row.id,
            chain: row.chain_id.0.into(),
            actor: row.actor,
            actor_id: row.actor_id.map(UserId::from),
            action: row.action,
            resource: row.resource,
            resource_id: row.resource_id,
            message: row.message,
            metadata: serde_json::from_str(&row.metadata).map_err(QueryError::unreadable)?,
            request_id: row.request_id,
            address: address.map_err(QueryError::unreadable)?,
            at: row.at,
        };
        Ok(Self { number: row.number, entry, hash: stored_hash(&row.hash)? })
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
