//! Reads the audit log from the database.
//!
//! **Invariant:** within a chain, numbers are contiguous from 1 to the head's, and timestamps rise with the
//! numbers. So every page and every period is a range of numbers, and costs the same wherever it is.
//!
//! **Invariant:** entries are only appended. Triggers of the schema reject updates and deletions.

mod rows;
mod writes;

use std::ops::RangeInclusive;

use async_trait::async_trait;
use diesel::{
    dsl::{exists, max, not},
    prelude::*,
};
use launchway_domain::{
    audit::{AuditRepository, Chain, ChainHead, Entry, Filter, Link, LinkHash},
    organizations::Scope,
    page::{Page, PageRequest},
    store::StoreError,
};

use self::rows::{EntryRow, HeadRow, LinkRow};
pub(super) use self::writes::append;
use super::{
    Database, ROWS_OF_A_POINT_READ,
    columns::{DbId, DbTs},
    connection::{AnyConnection, MultiBackend},
    dialect::each_backend,
    error::QueryError,
    schema::{audit_chains, audit_entries},
    search::{
        containing,
        counts::CountCache,
        index::{Kind, Owner},
        lower_case,
        page::{Matches, Search},
    },
    statement::ListComparison as _,
};

#[async_trait]
impl AuditRepository for Database {
    async fn page(
        &self,
        scope: Scope,
        filter: &Filter,
        page: PageRequest,
    ) -> Result<Page<Entry>, StoreError> {
        let (filter, cache) = (filter.clone(), self.shared.search_counts.clone());
        let chain = Chain::Organization(scope.id());
        if filter == Filter::default()
            && page.size() <= ROWS_OF_A_POINT_READ
            && let Some(page) = self.read_point(move |connection| newest_of(connection, chain, page)).await?
        {
            return Ok(page);
        }
        self.read(move |connection| page_of(connection, chain, &filter, page, &cache)).await
    }

    async fn heads(&self) -> Result<Vec<ChainHead>, StoreError> {
        self.read(|connection| {
            let rows: Vec<HeadRow> = audit_chains::table
                .order(audit_chains::chain_id)
                .select(HeadRow::as_select())
                .load(connection)?;
            let mut heads = rows.into_iter().map(ChainHead::try_from).collect::<Result<Vec<_>, _>>()?;
            heads.extend(lost_heads(connection)?);
            Ok(heads)
        })
        .await
    }

    async fn links(&self, chain: Chain, after: i64, limit: i64) -> Result<Vec<Link>, StoreError> {
        self.read(move |connection| {
            let rows: Vec<LinkRow> = audit_entries::table
                .filter(audit_entries::chain_id.eq(DbId(chain.id())))
                .filter(audit_entries::number.gt(after))
                .order(audit_entries::number)
                .limit(limit)
                .select(LinkRow::as_select())
                .load(connection)?;
            rows.into_iter().map(|row| row.link_of(chain)).collect()
        })
        .await
    }
}

/// The ends of chains whose heads were deleted. Their hash is the one that chains begin with, which no
/// chain ends with, so none of them passes verification.
fn lost_heads(connection: &mut AnyConnection) -> Result<Vec<ChainHead>, QueryError> {
    let lost: Vec<(DbId, Option<i64>)> = audit_entries::table
        .filter(not(exists(audit_chains::table.filter(audit_chains::chain_id.eq(audit_entries::chain_id)))))
        .group_by(audit_entries::chain_id)
        .select((audit_entries::chain_id, max(audit_entries::number)))
        .load(connection)?;
    let head = |(id, number): (DbId, Option<i64>)| ChainHead {
        chain: id.0.into(),
        number: number.unwrap_or_default(),
        hash: LinkHash::ROOT,
    };
    Ok(lost.into_iter().map(head).collect())
}

/// Returns a page of all entries by one query; `None` if it is empty.
fn newest_of(
    connection: &mut AnyConnection,
    chain: Chain,
    page: PageRequest,
) -> Result<Option<Page<Entry>>, QueryError> {
    let oldest = audit_chains::last_number - page.offset().saturating_add(page.size() - 1);
    let rows: Vec<(EntryRow, i64)> = each_backend!(connection, backend => audit_entries::table
        .inner_join(audit_chains::table.on(audit_chains::chain_id.eq(audit_entries::chain_id)))
        .filter(audit_chains::chain_id.eq(DbId(chain.id())))
        .filter(audit_entries::number.between(oldest, audit_chains::last_number - page.offset()))
        .order(audit_entries::number.desc())
        .select((EntryRow::as_select(), audit_chains::last_number))
        .load(backend))?;
    let Some((_, total)) = rows.first() else { return Ok(None) };
    let total = *total;
    let items = rows.into_iter().map(|(row, _)| row.entry_of(chain)).collect();
    Ok(Some(Page { items, request: page, total }))
}

fn page_of(
    connection: &mut AnyConnection,
    chain: Chain,
    filter: &Filter,
    page: PageRequest,
    cache: &CountCache,
) -> Result<Page<Entry>, QueryError> {
    if holds_nul(filter) {
        return Ok(Page { items: Vec::new(), request: page, total: 0 });
    }
    // Read once: entries that are appended meanwhile are not part of this page.
    let numbers = numbers_between(connection, chain, filter)?;
    let (rows, total) = if filters_by_time_only(filter) {
        let total = (numbers.end() - numbers.start() + 1).max(0);
        let newest = numbers.end().saturating_sub(page.offset());
        let oldest = newest.saturating_sub(page.size() - 1).max(*numbers.start());
        (newest_first(connection, numbered(chain, oldest..=newest, filter))?, total)
    } else if let Some(term) = &filter.search {
        let others = Filter { search: None, ..filter.clone() };
        let key = Filter { from: None, to: None, ..filter.clone() };
        let asked = (format!("{key:?}"), term.as_str(), filters_by_time_only(&others));
        let owner = Owner { kind: Kind::Audit, id: chain.id() };
        Search::new(&Matching { chain, filter }, owner, asked, cache).page(connection, &numbers, page)?
    } else {
        let total = numbered(chain, numbers.clone(), filter).count().get_result(connection)?;
        let entries = numbered(chain, numbers, filter).limit(page.size()).offset(page.offset());
        (newest_first(connection, entries)?, total)
    };
    let items = rows.into_iter().map(|row| row.entry_of(chain)).collect();
    Ok(Page { items, request: page, total })
}

fn filters_by_time_only(filter: &Filter) -> bool {
    let Filter { search, resource, action, actor, from: _, to: _ } = filter;
    search.is_none() && resource.is_none() && action.is_none() && actor.is_none()
}

/// PostgreSQL does not even compare a text that contains NUL, and no entry contains one.
fn holds_nul(filter: &Filter) -> bool {
    [&filter.search, &filter.actor].into_iter().flatten().any(|text| text.contains('\0'))
}

/// Returns the numbers of the entries of a period, as an empty range if there are none.
fn numbers_between(
    connection: &mut AnyConnection,
    chain: Chain,
    filter: &Filter,
) -> Result<RangeInclusive<i64>, QueryError> {
    let chain_id = DbId(chain.id());
    let of_chain =
        || audit_entries::table.filter(audit_entries::chain_id.eq(chain_id)).select(audit_entries::number);
    let first = match filter.from {
        None => Some(1),
        Some(from) => of_chain()
            .filter(audit_entries::at.ge(DbTs(from)))
            .order(audit_entries::at.asc())
            .first(connection)
            .optional()?,
    };
    let last = match filter.to {
        None => audit_chains::table
            .find(chain_id)
            .select(audit_chains::last_number)
            .first(connection)
            .optional()?,
        Some(to) => of_chain()
            .filter(audit_entries::at.le(DbTs(to)))
            .order(audit_entries::at.desc())
            .first(connection)
            .optional()?,
    };
    Ok(first.unwrap_or(i64::MAX)..=last.unwrap_or_default())
}

/// The entries with these numbers that pass the filter.
fn numbered(
    chain: Chain,
    numbers: RangeInclusive<i64>,
    filter: &Filter,
) -> audit_entries::BoxedQuery<'static, MultiBackend> {
    matching(chain, filter).filter(audit_entries::number.between(*numbers.start(), *numbers.end()))
}

/// The entries that pass the filter, whatever their time.
fn matching(chain: Chain, filter: &Filter) -> audit_entries::BoxedQuery<'static, MultiBackend> {
    let mut entries = audit_entries::table.filter(audit_entries::chain_id.eq(DbId(chain.id()))).into_boxed();
    if let Some(action) = filter.action {
        entries = entries.filter(audit_entries::action.eq(action.as_str()));
    }
    if let Some(resource) = filter.resource {
        entries = entries.filter(audit_entries::resource.eq(resource.as_str()));
    }
    if let Some(actor) = &filter.actor {
        entries = entries.filter(audit_entries::actor_key.eq(lower_case(actor)));
    }
    if let Some(search) = &filter.search {
        entries = entries.filter(audit_entries::search.like(containing(search)).escape('\\'));
    }
    entries
}

fn newest_first(
    connection: &mut AnyConnection,
    entries: audit_entries::BoxedQuery<'static, MultiBackend>,
) -> Result<Vec<EntryRow>, QueryError> {
    Ok(entries.order(audit_entries::number.desc()).select(EntryRow::as_select()).load(connection)?)
}

/// The entries of a chain that pass a filter.
struct Matching<'a> {
    chain: Chain,
    filter: &'a Filter,
}

impl Matches for Matching<'_> {
    type Row = EntryRow;

    fn count(&self, connection: &mut AnyConnection, numbers: RangeInclusive<i64>) -> Result<i64, QueryError> {
        Ok(numbered(self.chain, numbers, self.filter).count().get_result(connection)?)
    }

    fn among(&self, connection: &mut AnyConnection, numbers: &[i64]) -> Result<Vec<i64>, QueryError> {
        let entries =
            matching(self.chain, self.filter).filter(audit_entries::number.one_of(numbers.to_vec()));
        Ok(entries.select(audit_entries::number).load(connection)?)
    }

    fn rows(&self, connection: &mut AnyConnection, numbers: &[i64]) -> Result<Vec<EntryRow>, QueryError> {
        let entries = matching(self.chain, &Filter::default());
        newest_first(connection, entries.filter(audit_entries::number.one_of(numbers.to_vec())))
    }

    fn newest(
        &self,
        connection: &mut AnyConnection,
        numbers: RangeInclusive<i64>,
        limit: i64,
        offset: i64,
    ) -> Result<Vec<EntryRow>, QueryError> {
        newest_first(connection, numbered(self.chain, numbers, self.filter).limit(limit).offset(offset))
    }
}

/// Returns the numbers and the searched texts of entries.
pub(super) fn texts(
    connection: &mut AnyConnection,
    chain: DbId,
    numbers: RangeInclusive<i64>,
) -> Result<Vec<(i64, String)>, QueryError> {
    Ok(audit_entries::table
        .filter(audit_entries::chain_id.eq(chain))
        .filter(audit_entries::number.between(*numbers.start(), *numbers.end()))
        .select((audit_entries::number, audit_entries::search))
        .load(connection)?)
}
