//! Reads logs from the database.
//!
//! **Invariant:** the kept lines of an application are numbered contiguously from its head's first number
//! to its last, and so are those of a deployment by their own numbers. So every page is a range of numbers,
//! and costs the same however long the log is and wherever the page is.

mod append;
mod estimates;
mod rows;
mod search;
mod trim;
mod usage;

use std::{ops::RangeInclusive, sync::Arc};

use async_trait::async_trait;
use diesel::{dsl, prelude::*, sql_types::Text};
use launchway_domain::{
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId},
    logs::{LogFilter, LogLine, LogReader, LogSink, NewLine},
    organizations::Scope,
    page::{Page, PageRequest},
    store::StoreError,
};

use self::{
    append::{Limits, append_within},
    rows::LineRow,
};
pub(super) use self::{
    append::{append, hold},
    estimates::Estimates,
    search::texts,
};
use super::{
    Database, ROWS_OF_A_POINT_READ,
    columns::{DbId, DbTs},
    connection::{AnyConnection, MultiBackend},
    dialect::each_backend,
    error::QueryError,
    schema::{application_logs, applications, deployment_log_heads, log_heads},
    search::{containing, counts::CountCache},
    statement::{Literal, literal},
};

#[async_trait]
impl LogSink for Database {
    async fn append(&self, lines: Vec<NewLine>) -> Result<(), StoreError> {
        if lines.is_empty() {
            return Ok(());
        }
        let limits = self.limits();
        self.write(move |connection| append_within(connection, &lines, &limits)).await
    }

    async fn append_printed(
        &self,
        deployment: DeploymentId,
        after: Option<Timestamp>,
        lines: Vec<NewLine>,
    ) -> Result<(), StoreError> {
        // A SQLite file has one server.
        if lines.is_empty() || self.shared.writer.is_some() {
            return self.append(lines).await;
        }
        let limits = self.limits();
        self.write(move |connection| {
            append::require_last_printed(connection, deployment, after, &lines)?;
            append_within(connection, &lines, &limits)
        })
        .await
    }

    async fn trim(&self, keep: i64) -> Result<usize, StoreError> {
        self.write(move |connection| trim::trim(connection, keep)).await
    }
}

impl Database {
    fn limits(&self) -> Limits {
        Limits { bytes: self.log_limits, estimates: Arc::clone(&self.shared.log_estimates) }
    }
}

#[async_trait]
impl LogReader for Database {
    async fn page(
        &self,
        scope: Scope,
        application: ApplicationId,
        filter: &LogFilter,
        page: PageRequest,
    ) -> Result<Option<Page<LogLine>>, StoreError> {
        let (filter, cache) = (filter.clone(), self.shared.search_counts.clone());
        let is_by_number = filters_by_deployment_only(&filter) && page.size() <= ROWS_OF_A_POINT_READ;
        let query = move |connection: &mut AnyConnection| {
            let whole = NumberRange::whole(connection, scope, application, filter.deployment)?;
            whole.map(|whole| page_of(connection, whole, &filter, page, &cache)).transpose()
        };
        if is_by_number { self.read_point(query).await } else { self.read(query).await }
    }

    async fn after(
        &self,
        scope: Scope,
        application: ApplicationId,
        filter: &LogFilter,
        after: i64,
        limit: i64,
    ) -> Result<Option<Vec<LogLine>>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| {
            if !is_there(connection, scope, application)? {
                return Ok(None);
            }
            lines_after(connection, application, &filter, after, limit).map(Some)
        })
        .await
    }

    async fn last_printed(&self, deployment: DeploymentId) -> Result<Option<Timestamp>, StoreError> {
        self.read_point(move |connection| {
            let printed: Option<Option<DbTs>> = deployment_log_heads::table
                .inner_join(applications::table.on(applications::id.eq(deployment_log_heads::application_id)))
                .filter(deployment_log_heads::deployment_id.eq(DbId::from(deployment)))
                .filter(applications::deleted_at.is_null())
                .select(deployment_log_heads::last_printed_at)
                .first(connection)
                .optional()?;
            Ok(printed.flatten().map(Timestamp::from))
        })
        .await
    }
}

fn is_there(
    connection: &mut AnyConnection,
    scope: Scope,
    application: ApplicationId,
) -> Result<bool, QueryError> {
    let found: Option<DbId> = applications::table
        .filter(is_visible(scope, application.into()))
        .select(applications::id)
        .first(connection)
        .optional()?;
    Ok(found.is_some())
}

type Identified = dsl::Eq<applications::id, DbId>;
type Owned = dsl::Eq<applications::organization_id, DbId>;

/// Selects an application of the organization that is not deleted.
fn is_visible(
    scope: Scope,
    application: DbId,
) -> dsl::And<dsl::And<Identified, Owned>, dsl::IsNull<applications::deleted_at>> {
    let is_owned = applications::organization_id.eq(DbId::from(scope.id()));
    applications::id.eq(application).and(is_owned).and(applications::deleted_at.is_null())
}

/// A range of a log: lines of an application by their numbers, or of one of its deployments by theirs.
#[derive(Clone)]
struct NumberRange {
    application: DbId,
    deployment: Option<DbId>,
    numbers: RangeInclusive<i64>,
}

impl NumberRange {
    /// Returns the range of all kept lines, which is empty when there are none; `None` if the organization has no such
    /// application.
    fn whole(
        connection: &mut AnyConnection,
        scope: Scope,
        application: ApplicationId,
        deployment: Option<DeploymentId>,
    ) -> Result<Option<Self>, QueryError> {
        let (application, deployment) = (DbId::from(application), deployment.map(DbId::from));
        let ends: Option<(Option<i64>, Option<i64>)> = match deployment {
            None => each_backend!(connection, backend => applications::table
                .left_join(log_heads::table.on(log_heads::application_id.eq(applications::id)))
                .filter(is_visible(scope, application))
                .select((log_heads::first_number.nullable(), log_heads::last_number.nullable()))
                .first(backend)),
            Some(deployment) => each_backend!(connection, backend => applications::table
                .left_join(
                    deployment_log_heads::table.on(deployment_log_heads::deployment_id
                        .eq(deployment)
                        .and(deployment_log_heads::application_id.eq(applications::id))),
                )
                .filter(is_visible(scope, application))
                .select((
                    deployment_log_heads::first_number.nullable(),
                    deployment_log_heads::last_number.nullable(),
                ))
                .first(backend)),
        }
        .optional()?;
        Ok(ends.map(|(first, last)| {
            let numbers = first.unwrap_or(1)..=last.unwrap_or(0);
            Self { application, deployment, numbers }
        }))
    }

    fn length(&self) -> i64 {
        (self.numbers.end() - self.numbers.start() + 1).max(0)
    }

    /// Returns the range after skipping the newest `offset` lines, at most `size` lines.
    fn part(self, offset: i64, size: i64) -> Self {
        let newest = self.numbers.end().saturating_sub(offset);
        let oldest = newest.saturating_sub(size - 1).max(*self.numbers.start());
        Self { numbers: oldest..=newest, ..self }
    }

    /// Returns its lines, oldest first: SQLite finds a row faster if it is next to the one before.
    fn read(&self, connection: &mut AnyConnection) -> Result<Vec<LogLine>, QueryError> {
        let (first, last) = (*self.numbers.start(), *self.numbers.end());
        let lines = application_logs::table.filter(application_logs::application_id.eq(self.application));
        let application = self.application.into();
        match self.deployment {
            None => {
                let rows: Vec<(LineRow, DbId)> = each_backend!(connection, backend => lines
                    .filter(application_logs::number.between(first, last))
                    .order(application_logs::number.asc())
                    .select((LineRow::as_select(), application_logs::deployment_id))
                    .load(backend))?;
                Ok(rows.into_iter().map(|(row, of)| row.line_of(application, of.into())).collect())
            }
            Some(deployment) => {
                let rows: Vec<LineRow> = each_backend!(connection, backend => lines
                    .filter(application_logs::deployment_id.eq(deployment))
                    .filter(application_logs::deployment_number.between(first, last))
                    .order(application_logs::deployment_number.asc())
                    .select(LineRow::as_select())
                    .load(backend))?;
                Ok(rows.into_iter().map(|row| row.line_of(application, deployment.into())).collect())
            }
        }
    }

    fn lines(&self) -> application_logs::BoxedQuery<'static, MultiBackend> {
        let lines = application_logs::table.filter(application_logs::application_id.eq(self.application));
        let (first, last) = (*self.numbers.start(), *self.numbers.end());
        match self.deployment {
            None => lines.filter(application_logs::number.between(first, last)).into_boxed(),
            Some(deployment) => lines
                .filter(application_logs::deployment_id.eq(deployment))
                .filter(application_logs::deployment_number.between(first, last))
                .into_boxed(),
        }
    }
}

fn page_of(
    connection: &mut AnyConnection,
    // Read once: lines that are appended meanwhile are not part of this page.
    whole: NumberRange,
    filter: &LogFilter,
    page: PageRequest,
    cache: &CountCache,
) -> Result<Page<LogLine>, QueryError> {
    if holds_nul(filter) {
        return Ok(Page { items: Vec::new(), request: page, total: 0 });
    }
    let (items, total) = if filters_by_deployment_only(filter) {
        let total = whole.length();
        let mut lines = whole.part(page.offset(), page.size()).read(connection)?;
        lines.reverse();
        (lines, total)
    } else if let Some(term) = &filter.search {
        search::page_of(connection, &whole, (filter, term), page, cache)?
    } else {
        let total = matching(connection, whole.lines(), filter).count().get_result(connection)?;
        let lines = matching(connection, whole.lines(), filter).limit(page.size()).offset(page.offset());
        (newest_first(connection, (whole.application, whole.deployment), lines)?, total)
    };
    Ok(Page { items, request: page, total })
}

/// Returns the newest lines of an application, oldest first.
pub(super) fn newest(
    connection: &mut AnyConnection,
    application: ApplicationId,
    limit: i64,
) -> Result<Vec<LogLine>, QueryError> {
    let rows: Vec<(LineRow, DbId)> = application_logs::table
        .filter(application_logs::application_id.eq(DbId::from(application)))
        .order(application_logs::number.desc())
        .limit(limit)
        .select((LineRow::as_select(), application_logs::deployment_id))
        .load(connection)?;
    Ok(rows.into_iter().rev().map(|(row, of)| row.line_of(application, of.into())).collect())
}

/// Returns the lines of a deployment up to the number `last`, at most `limit`, oldest first.
pub(super) fn newest_of_deployment(
    connection: &mut AnyConnection,
    application: ApplicationId,
    deployment: DeploymentId,
    last: i64,
    limit: i64,
) -> Result<Vec<LogLine>, QueryError> {
    let (application, deployment) = (application.into(), Some(deployment.into()));
    NumberRange { application, deployment, numbers: 1..=last }.part(0, limit).read(connection)
}

fn lines_after(
    connection: &mut AnyConnection,
    application: ApplicationId,
    filter: &LogFilter,
    after: i64,
    limit: i64,
) -> Result<Vec<LogLine>, QueryError> {
    if holds_nul(filter) {
        return Ok(Vec::new());
    }
    let mut lines = application_logs::table
        .filter(application_logs::application_id.eq(DbId::from(application)))
        .filter(application_logs::number.gt(after))
        .into_boxed();
    if let Some(deployment) = filter.deployment {
        lines = lines.filter(application_logs::deployment_id.eq(DbId::from(deployment)));
    }
    let rows: Vec<(LineRow, DbId)> = matching(connection, lines, filter)
        .order(application_logs::number.asc())
        .limit(limit)
        .select((LineRow::as_select(), application_logs::deployment_id))
        .load(connection)?;
    Ok(rows.into_iter().map(|(row, of)| row.line_of(application, of.into())).collect())
}

fn filters_by_deployment_only(filter: &LogFilter) -> bool {
    let LogFilter { search, level, from, to, deployment: _ } = filter;
    search.is_none() && level.is_none() && from.is_none() && to.is_none()
}

/// PostgreSQL does not even compare a text that contains NUL, and no line contains one.
fn holds_nul(filter: &LogFilter) -> bool {
    filter.search.as_ref().is_some_and(|search| search.contains('\0'))
}

/// Returns those of `lines` that pass the filter; they are already restricted to its deployment.
fn matching(
    connection: &AnyConnection,
    mut lines: application_logs::BoxedQuery<'static, MultiBackend>,
    filter: &LogFilter,
) -> application_logs::BoxedQuery<'static, MultiBackend> {
    if let Some(level) = filter.level {
        lines = lines.filter(application_logs::level.eq(level.as_str()));
    }
    if let Some(from) = filter.from {
        lines = lines.filter(application_logs::created_at.ge(DbTs(from)));
    }
    if let Some(to) = filter.to {
        lines = lines.filter(application_logs::created_at.le(DbTs(to)));
    }
    if let Some(search) = &filter.search {
        lines = lines.filter(searched_text(connection).like(containing(search)).escape('\\'));
    }
    lines
}

/// Returns the SQL for the text of a line in lower case.
fn searched_text(connection: &AnyConnection) -> Literal<Text> {
    literal(match connection {
        AnyConnection::Sqlite(_) => "COALESCE(application_logs.search, lower(application_logs.log))",
        // In this collation it knows A to Z and nothing else, as SQLite does.
        AnyConnection::Postgres(_) => {
            "COALESCE(application_logs.search, lower(application_logs.log COLLATE \"C\"))"
        }
    })
}

fn newest_first(
    connection: &mut AnyConnection,
    (application, deployment): (DbId, Option<DbId>),
    lines: application_logs::BoxedQuery<'static, MultiBackend>,
) -> Result<Vec<LogLine>, QueryError> {
    // Both orders are the same, but only one of them is that of the index.
    let lines = match deployment {
        None => lines.order(application_logs::number.desc()),
        Some(_) => lines.order(application_logs::deployment_number.desc()),
    };
    let rows: Vec<(LineRow, DbId)> =
        lines.select((LineRow::as_select(), application_logs::deployment_id)).load(connection)?;
    Ok(rows.into_iter().map(|(row, of)| row.line_of(application.into(), of.into())).collect())
}
