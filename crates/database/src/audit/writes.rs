//! Appends to the audit log in the database.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use diesel::prelude::*;
use launchway_domain::{
    audit::{Chain, ChainHead, Entry, LinkHash},
    clock::Timestamp,
};
use uuid::Uuid;

use super::rows::{HeadRow, NewEntry};
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::{each_backend, insert_in_chunks},
    error::QueryError,
    schema::{audit_chains, audit_entries},
    statement::StatementCache as _,
};

/// Appends entries to their chains, each in the order of `entries`.
pub(crate) fn append(connection: &mut AnyConnection, entries: &[&Entry]) -> Result<(), QueryError> {
    // In the order of ids, so that two transactions do not wait for each other.
    let mut chains: BTreeMap<Uuid, Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        chains.entry(entry.chain.id()).or_default().push(entry);
    }
    chains.into_iter().try_for_each(|(chain, entries)| append_to(connection, chain.into(), &entries))
}

fn append_to(connection: &mut AnyConnection, chain: Chain, entries: &[&Entry]) -> Result<(), QueryError> {
    let (mut head, mut last_at) = hold_head(connection, chain)?;
    let mut rows = Vec::with_capacity(entries.len());
    for &entry in entries {
        last_at = entry.at.max(last_at + TimeDelta::microseconds(1));
        head.number += 1;
        let entry = Entry { at: last_at, ..entry.clone() };
        head.hash = head.hash.next(head.number, &entry);
        rows.push(NewEntry::new(head.number, head.hash, entry));
    }
    insert_in_chunks!(connection, audit_entries::table, rows);
    diesel::update(audit_chains::table.find(DbId(chain.id())))
        .set((
            audit_chains::last_number.eq(head.number),
            audit_chains::last_hash.eq(head.hash.0.as_slice()),
            audit_chains::last_at.eq(DbTs(last_at)),
        ))
        .cached()
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
