//! The stored index.

use std::collections::BTreeMap;

use diesel::prelude::*;
use uuid::Uuid;

use super::{
    blocks::first_whole_block,
    posting_list::{Rows, rows_of},
    trigrams::Trigram,
};
use crate::{
    columns::DbId,
    connection::AnyConnection,
    error::QueryError,
    schema::{search_indexes, search_postings},
    statement::{ListComparison as _, StatementCache as _},
};

/// The bucket that every indexed block has.
pub(super) const MARK: i32 = -1;
/// The blocks per statement.
const BLOCKS_A_STATEMENT: usize = 64;

/// A kind of log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Audit,
    Log,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::Log => "log",
        }
    }
}

/// A log: the chain of an audit log, or the log of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) kind: Kind,
    pub(crate) id: Uuid,
}

/// Returns the rows of each indexed block that have all these trigrams. A block that is not indexed, or whose index is
/// damaged, is not returned: it is scanned.
pub(super) fn rows_with(
    connection: &mut AnyConnection,
    owner: Owner,
    blocks: &[i64],
    trigrams: &[Trigram],
) -> Result<BTreeMap<i64, Rows>, QueryError> {
    let mut found = BTreeMap::new();
    if trigrams.is_empty() {
        return Ok(found);
    }
    let mut buckets: Vec<i32> = trigrams.iter().map(|trigram| trigram.bucket().into()).collect();
    buckets.push(MARK);
    buckets.sort_unstable();
    buckets.dedup();
    for blocks in blocks.chunks(BLOCKS_A_STATEMENT) {
        // One statement, so that a block is seen either with all its buckets or with none.
        let stored: Vec<(i64, i32, Vec<u8>)> = search_postings::table
            .filter(search_postings::kind.eq(owner.kind.as_str()))
            .filter(search_postings::owner_id.eq(DbId(owner.id)))
            .filter(search_postings::block.one_of(blocks.to_vec()))
            .filter(search_postings::bucket.one_of(buckets.clone()))
            .select((search_postings::block, search_postings::bucket, search_postings::postings))
            .load(connection)?;
        let mut of_block: BTreeMap<i64, BTreeMap<i32, Vec<u8>>> = BTreeMap::new();
        for (block, bucket, postings) in stored {
            of_block.entry(block).or_default().insert(bucket, postings);
        }
        for (block, buckets) in of_block {
            if !buckets.contains_key(&MARK) {
                continue;
            }
            match intersection(trigrams, &buckets) {
                Ok(rows) => drop(found.insert(block, rows)),
                Err(error) => {
                    tracing::warn!(kind = owner.kind.as_str(), owner.id = %owner.id, block, %error, "search index is damaged");
                }
            }
        }
    }
    Ok(found)
}

fn intersection(trigrams: &[Trigram], buckets: &BTreeMap<i32, Vec<u8>>) -> Result<Rows, QueryError> {
    let mut rows: Option<Rows> = None;
    for trigram in trigrams {
        let Some(bucket) = buckets.get(&trigram.bucket().into()) else { return Ok(Rows::NONE) };
        let further = rows_of(*trigram, bucket)?;
        match &mut rows {
            None => rows = Some(further),
            Some(rows) => rows.intersect(&further),
        }
    }
    Ok(rows.unwrap_or(Rows::NONE))
}

/// Deletes the blocks of an application's log that have a line before the line `first`.
pub(crate) fn forget_lines_before(
    connection: &mut AnyConnection,
    application: DbId,
    first: i64,
) -> Result<(), QueryError> {
    let (kind, kept) = (Kind::Log.as_str(), first_whole_block(first));
    // Waits for a transaction that stores a block, and prevents one from storing what is deleted here.
    diesel::update(
        search_indexes::table.find((kind, application)).filter(search_indexes::next_block.lt(kept)),
    )
    .set(search_indexes::next_block.eq(kept))
    .cached()
    .execute(connection)?;
    let blocks = search_postings::table
        .filter(search_postings::kind.eq(kind))
        .filter(search_postings::owner_id.eq(application))
        .filter(search_postings::block.lt(kept));
    diesel::delete(blocks).execute(connection)?;
    Ok(())
}
