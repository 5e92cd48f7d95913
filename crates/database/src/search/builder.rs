//! Extends the index in the background.

use std::time::{Duration, Instant};

use diesel::{dsl::exists, prelude::*, sql_types::Bool};
use launchway_domain::store::StoreError;
use tokio::time;

use super::{
    blocks::{ROWS, first_whole_block, numbers_of},
    index::{Kind, MARK, Owner},
    posting_list::Builder,
};
use crate::{
    Database, audit,
    columns::DbId,
    connection::AnyConnection,
    dialect::{each_backend, insert_in_chunks},
    error::QueryError,
    logs,
    schema::{applications, audit_chains, log_heads, search_indexes, search_postings},
    statement::{StatementCache as _, literal},
};

/// The bytes of text above which a block is not indexed but always scanned: an index of such long lines would take
/// more memory than is reasonable.
const MOST_TEXT: usize = 4 << 20;
/// The rows that are read at once.
const ROWS_AT_ONCE: i64 = 512;
/// The pause after a block, in multiples of the time that it took, so that requests are hardly slowed down.
const PAUSE_FACTOR: u32 = 19;
/// The time between two searches for blocks to index.
const IDLE_PAUSE: Duration = Duration::from_secs(5);
/// The same after an error.
const ERROR_PAUSE: Duration = Duration::from_secs(60);

/// A block that is complete and not indexed.
#[derive(Debug, Clone, Copy)]
struct DueBlock {
    owner: Owner,
    /// `None` if the log has no index yet.
    block: Option<i64>,
}

impl Database {
    /// Extends the index of texts while `is_leader` returns true, until the future is dropped. After each block it pauses
    /// nineteen times as long as that took.
    pub async fn run_search_index(&self, is_leader: impl Fn() -> bool) {
        loop {
            if !is_leader() {
                time::sleep(IDLE_PAUSE).await;
                continue;
            }
            let begun = Instant::now();
            let pause = match self.extend_search_index().await {
                Ok(true) => begun.elapsed() * PAUSE_FACTOR,
                Ok(false) => IDLE_PAUSE.max(begun.elapsed() * 5 * PAUSE_FACTOR),
                Err(error) => {
                    tracing::warn!(%error, "search index could not be extended");
                    ERROR_PAUSE
                }
            };
            time::sleep(pause).await;
        }
    }

    /// Indexes one block. Returns false if all complete blocks are indexed.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    pub async fn extend_search_index(&self) -> Result<bool, StoreError> {
        let Some(DueBlock { owner, block }) = self.read_uncounted(next_due).await? else { return Ok(false) };
        let Some(block) = block else {
            self.write(move |connection| begin(connection, owner)).await?;
            return Ok(true);
        };
        let postings = self.read_uncounted(move |connection| build(connection, owner, block)).await?;
        self.write(move |connection| store(connection, owner, block, &postings)).await?;
        Ok(true)
    }
}

fn next_due(connection: &mut AnyConnection) -> Result<Option<DueBlock>, QueryError> {
    let chain: Option<(DbId, Option<i64>)> = audit_chains::table
        .left_join(
            search_indexes::table.on(search_indexes::owner_id
                .eq(audit_chains::chain_id)
                .and(search_indexes::kind.eq(Kind::Audit.as_str()))),
        )
        .filter(literal::<Bool>(
            "audit_chains.last_number >= (COALESCE(search_indexes.next_block, 0) + 1) * 4096",
        ))
        .select((audit_chains::chain_id, search_indexes::next_block.nullable()))
        .first(connection)
        .optional()?;
    if let Some((chain, block)) = chain {
        return Ok(Some(DueBlock { owner: Owner { kind: Kind::Audit, id: chain.0 }, block }));
    }
    // Not a join: most logs are shorter than a block, and nothing else is looked up for them.
    let is_there = exists(
        applications::table
            .filter(applications::id.eq(log_heads::application_id))
            .filter(applications::deleted_at.is_null()),
    );
    let log: Option<(DbId, Option<i64>)> = log_heads::table
        .left_join(
            search_indexes::table.on(search_indexes::owner_id
                .eq(log_heads::application_id)
                .and(search_indexes::kind.eq(Kind::Log.as_str()))),
        )
        .filter(log_heads::last_number.ge(log_heads::first_number + (ROWS - 1)))
        .filter(is_there)
        .filter(literal::<Bool>(
            "log_heads.last_number
             >= (COALESCE(search_indexes.next_block, (log_heads.first_number + 4094) / 4096) + 1) * 4096",
        ))
        .select((log_heads::application_id, search_indexes::next_block.nullable()))
        .first(connection)
        .optional()?;
    Ok(log
        .map(|(application, block)| DueBlock { owner: Owner { kind: Kind::Log, id: application.0 }, block }))
}

/// Creates an empty index. Lines that are deleted later are deleted from it too.
fn begin(connection: &mut AnyConnection, owner: Owner) -> Result<(), QueryError> {
    let id = DbId(owner.id);
    let next_block = match owner.kind {
        Kind::Audit => 0,
        Kind::Log => {
            let head = log_heads::table.find(id).select(log_heads::first_number);
            let first: Option<i64> = match connection {
                AnyConnection::Sqlite(sqlite) => head.first(sqlite).optional()?,
                // Whoever deletes lines holds this lock.
                AnyConnection::Postgres(postgres) => head.for_update().first(postgres).optional()?,
            };
            first_whole_block(first.unwrap_or(1))
        }
    };
    let row = (
        search_indexes::kind.eq(owner.kind.as_str()),
        search_indexes::owner_id.eq(id),
        search_indexes::next_block.eq(next_block),
    );
    each_backend!(connection, backend => diesel::insert_into(search_indexes::table)
        .values(row)
        .on_conflict((search_indexes::kind, search_indexes::owner_id))
        .do_nothing()
        .execute(backend))?;
    Ok(())
}

#[derive(Insertable)]
#[diesel(table_name = search_postings)]
struct NewPostings {
    kind: &'static str,
    owner_id: DbId,
    block: i64,
    bucket: i32,
    postings: Vec<u8>,
}

/// Reads the texts of a block, and returns its rows of the index; none if the texts are too long.
fn build(
    connection: &mut AnyConnection,
    owner: Owner,
    block: i64,
) -> Result<Vec<(i32, Vec<u8>)>, QueryError> {
    let numbers = numbers_of(block);
    let (mut builder, mut bytes) = (Builder::default(), 0);
    for first in numbers.clone().step_by(ROWS_AT_ONCE as usize) {
        let part = first..=first + ROWS_AT_ONCE - 1;
        let texts: Vec<(i64, String)> = match owner.kind {
            Kind::Audit => audit::texts(connection, DbId(owner.id), part)?,
            Kind::Log => logs::texts(connection, DbId(owner.id), part)?,
        };
        for (number, text) in texts {
            bytes += text.len();
            builder.add(number - numbers.start(), &text);
        }
        if bytes > MOST_TEXT {
            return Ok(Vec::new());
        }
    }
    let mut buckets = vec![(MARK, Vec::new())];
    buckets.extend(builder.finish()?.into_iter().map(|(bucket, postings)| (i32::from(bucket), postings)));
    Ok(buckets)
}

/// Stores a block, unless another server has stored it or one of its rows was deleted meanwhile.
fn store(
    connection: &mut AnyConnection,
    owner: Owner,
    block: i64,
    postings: &[(i32, Vec<u8>)],
) -> Result<(), QueryError> {
    let (kind, owner_id) = (owner.kind.as_str(), DbId(owner.id));
    let index = search_indexes::table.find((kind, owner_id)).filter(search_indexes::next_block.eq(block));
    let moved =
        diesel::update(index).set(search_indexes::next_block.eq(block + 1)).cached().execute(connection)?;
    if moved == 0 {
        return Ok(());
    }
    let row = |(bucket, postings): &(i32, Vec<u8>)| NewPostings {
        kind,
        owner_id,
        block,
        bucket: *bucket,
        postings: postings.clone(),
    };
    let rows: Vec<NewPostings> = postings.iter().map(row).collect();
    insert_in_chunks!(connection, search_postings::table, &rows);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_name_the_size_of_a_block() {
        assert_eq!(ROWS, 4096);
        assert_eq!(ROWS % ROWS_AT_ONCE, 0);
    }
}
