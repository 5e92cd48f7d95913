//! Appends to the audit log in the database.

use chrono::TimeDelta;
use diesel::prelude::*;
use launchway_domain::{
    audit::{Chain, ChainHead, Entry, Link, LinkHash, Write},
    clock::Timestamp,
};

use super::rows::HeadRow;
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::each_backend,
    error::QueryError,
    schema::{audit_chains, audit_entries},
    search::lower_case,
};

/// Applies one change.
pub(crate) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    let Write::Append(entry) = write;
    let (head, last_at) = hold_head(connection, entry.chain)?;
    let at = entry.at.max(last_at + TimeDelta::microseconds(1));
    let entry = Entry { at, ..entry.clone() };
    let number = head.number + 1;
    let link = Link { number, hash: head.hash.next(number, &entry), entry };
    insert(connection, &link)?;
    diesel::update(audit_chains::table.find(DbId(link.entry.chain.id())))
        .set((
            audit_chains::last_number.eq(number),
            audit_chains::last_hash.eq(link.hash.0.as_slice()),
            audit_chains::last_at.eq(DbTs(at)),
        ))
        .execute(connection)?;
    Ok(())
}

/// Returns the head of a chain, which is created if necessary. On PostgreSQL no other transaction appends
/// to the chain until this one ends.
fn hold_head(connection: &mut AnyConnection, chain: Chain) -> Result<(ChainHead, Timestamp), QueryError> {
    let row = match held_row(connection, chain)? {
        Some(row) => row,
        None => {
            begin(connection, chain)?;
            held_row(connection, chain)?.ok_or(diesel::NotFound)?
        }
    };
    let last_at = row.last_at;
    Ok((row.try_into()?, last_at))
}

fn held_row(connection: &mut AnyConnection, chain: Chain) -> Result<Option<HeadRow>, QueryError> {
    let head = audit_chains::table.find(DbId(chain.id()));
    let row = match connection {
        AnyConnection::Sqlite(sqlite) => head.select(HeadRow::as_select()).get_result(sqlite),
        AnyConnection::Postgres(postgres) => {
            head.select(HeadRow::as_select()).for_update().get_result(postgres)
        }
    };
    Ok(row.optional()?)
}

/// Creates the head of an empty chain, unless another transaction has just done so.
fn begin(connection: &mut AnyConnection, chain: Chain) -> Result<(), QueryError> {
    let head = (
        audit_chains::chain_id.eq(DbId(chain.id())),
        audit_chains::last_number.eq(0),
        audit_chains::last_hash.eq(LinkHash::ROOT.0.as_slice()),
        audit_chains::last_at.eq(DbTs(Timestamp::UNIX_EPOCH)),
    );
    each_backend!(connection, backend => diesel::insert_into(audit_chains::table)
        .values(head)
        .on_conflict(audit_chains::chain_id)
        .do_nothing()
        .execute(backend))?;
    Ok(())
}

fn insert(connection: &mut AnyConnection, link: &Link) -> Result<(), QueryError> {
    let entry = &link.entry;
    diesel::insert_into(audit_entries::table)
        .values((
            audit_entries::chain_id.eq(DbId(entry.chain.id())),
            audit_entries::number.eq(link.number),
            audit_entries::id.eq(DbId::from(entry.id)),
            audit_entries::actor.eq(&entry.actor),
            audit_entries::actor_key.eq(lower_case(&entry.actor)),
            audit_entries::actor_id.eq(entry.actor_id.map(DbId::from)),
            audit_entries::action.eq(entry.action.as_str()),
            audit_entries::resource.eq(entry.resource.as_str()),
            audit_entries::resource_id.eq(&entry.resource_id),
            audit_entries::message.eq(&entry.message),
            audit_entries::metadata.eq(json(entry)),
            audit_entries::request_id.eq(&entry.request_id),
            audit_entries::address.eq(entry.address.map(|address| address.to_string())),
            audit_entries::at.eq(DbTs(entry.at)),
            audit_entries::hash.eq(link.hash.0.as_slice()),
            audit_entries::search.eq(searchable(entry)),
        ))
        .execute(connection)?;
    Ok(())
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
