//! The output of runs.
//!
//! **Invariant:** the lines of a run are numbered contiguously from 1 to the run's last number. Appending
//! updates that number first, and on PostgreSQL thereby waits for other transactions that append there: a
//! line never becomes visible after one with a greater number.

use std::collections::{BTreeMap, HashMap};

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    extensions::{Execution, ExecutionDetail, ExecutionLine, ExecutionLog, NewExecutionLine},
    ids::{ExecutionId, ExecutionStepId},
    logs::Level,
    store::StoreError,
};
use uuid::Uuid;

use crate::{
    Database,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::insert_in_chunks,
    error::QueryError,
    schema::{execution_logs, execution_steps, extension_executions},
    statement::{ListComparison as _, StatementCache as _},
};

/// The most bytes of a log that are shown.
const SHOWN: i64 = ExecutionDetail::SHOWN as i64;

#[async_trait]
impl ExecutionLog for Database {
    async fn append(&self, execution: ExecutionId, lines: Vec<NewExecutionLine>) -> Result<(), StoreError> {
        if lines.is_empty() {
            return Ok(());
        }
        self.write(move |connection| append(connection, execution, &lines)).await
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = execution_logs)]
struct LineRow {
    number: i64,
    step_id: Option<DbId>,
    #[diesel(deserialize_as = String)]
    level: Level,
    log: String,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
}

impl From<LineRow> for ExecutionLine {
    fn from(row: LineRow) -> Self {
        Self {
            seq: row.number,
            step_id: row.step_id.map(ExecutionStepId::from),
            level: row.level,
            text: row.log,
            at: row.created_at,
        }
    }
}

/// A line to insert, with its number. It owns its text, because Diesel caches prepared statements only by
/// types that borrow nothing.
#[derive(Insertable)]
#[diesel(table_name = execution_logs, treat_none_as_default_value = false)]
struct NewRow {
    execution_id: DbId,
    number: i64,
    step_id: Option<DbId>,
    log_end: i64,
    step_end: Option<i64>,
    level: &'static str,
    log: String,
    created_at: DbTs,
}

/// Returns the lines after a number, oldest first, at most `limit`.
pub(super) fn lines_after(
    connection: &mut AnyConnection,
    execution: ExecutionId,
    after: i64,
    limit: i64,
) -> Result<Vec<ExecutionLine>, QueryError> {
    let rows: Vec<LineRow> = execution_logs::table
        .filter(execution_logs::execution_id.eq(DbId::from(execution)))
        .filter(execution_logs::number.gt(after))
        .order(execution_logs::number.asc())
        .limit(limit)
        .select(LineRow::as_select())
        .load(connection)?;
    Ok(rows.into_iter().map(ExecutionLine::from).collect())
}

/// Returns the tail of the output of each run, up to its last number.
pub(super) fn of_runs(
    connection: &mut AnyConnection,
    executions: &[Execution],
) -> Result<HashMap<Uuid, String>, QueryError> {
    let last: HashMap<Uuid, i64> =
        executions.iter().map(|execution| (execution.id.into(), execution.log_seq)).collect();
    let lines: Vec<(DbId, i64, String)> = execution_logs::table
        .inner_join(extension_executions::table.on(extension_executions::id.eq(execution_logs::execution_id)))
        .filter(extension_executions::id.one_of(last.keys().copied().map(DbId)))
        .filter(execution_logs::log_end.gt(extension_executions::log_bytes - SHOWN))
        .order((execution_logs::execution_id.asc(), execution_logs::number.asc()))
        .select((execution_logs::execution_id, execution_logs::number, execution_logs::log))
        .load(connection)?;
    // Lines that were appended after the run was read are left out: a client that polls from its last
    // number gets them.
    let known =
        lines.into_iter().filter(|(id, number, _)| last.get(&id.0).is_some_and(|last| number <= last));
    Ok(joined(known.map(|(id, _, text)| (id, text))))
}

/// Returns the tail of the output of each step of a run.
pub(super) fn of_steps(
    connection: &mut AnyConnection,
    execution: ExecutionId,
) -> Result<HashMap<Uuid, String>, QueryError> {
    let lines: Vec<(DbId, String)> = execution_steps::table
        .inner_join(execution_logs::table.on(execution_logs::step_id.eq(execution_steps::id.nullable())))
        .filter(execution_steps::execution_id.eq(DbId::from(execution)))
        .filter(execution_logs::step_end.gt((execution_steps::log_bytes - SHOWN).nullable()))
        .order((execution_steps::id.asc(), execution_logs::step_end.asc()))
        .select((execution_steps::id, execution_logs::log))
        .load(connection)?;
    Ok(joined(lines.into_iter()))
}

/// Joins the lines of each, terminated, and keeps as much as is shown.
fn joined(lines: impl Iterator<Item = (DbId, String)>) -> HashMap<Uuid, String> {
    let mut texts: HashMap<Uuid, String> = HashMap::new();
    for (id, line) in lines {
        let text = texts.entry(id.0).or_default();
        text.push_str(&line);
        text.push('\n');
    }
    texts.into_iter().map(|(id, text)| (id, shown(text))).collect()
}

/// Returns the tail of a text, from the beginning of a line if one begins there, and never from within a
/// character.
fn shown(text: String) -> String {
    let Some(from) = text.len().checked_sub(ExecutionDetail::SHOWN).filter(|from| *from > 0) else {
        return text;
    };
    // The character before counts: it may end a line.
    let ends = text.bytes().enumerate().skip(from - 1).filter(|(_, byte)| *byte == b'\n');
    let starts = ends.map(|(end, _)| end + 1).find(|start| *start < text.len());
    let start = starts.unwrap_or_else(|| text.ceil_char_boundary(from));
    text.get(start..).unwrap_or_default().to_owned()
}

/// Appends lines to the log of a run.
fn append(
    connection: &mut AnyConnection,
    execution: ExecutionId,
    lines: &[NewExecutionLine],
) -> Result<(), QueryError> {
    let (mut number, mut log_end) = make_room(connection, execution, lines)?;
    let mut step_ends = make_room_for_steps(connection, execution, lines)?;
    let mut rows = Vec::with_capacity(lines.len());
    for line in lines {
        number += 1;
        log_end += size(line);
        let step_end = line.step_id.map(|step| {
            let end = step_ends.entry(step.into()).or_default();
            *end += size(line);
            *end
        });
        rows.push(NewRow {
            execution_id: execution.into(),
            number,
            step_id: line.step_id.map(DbId::from),
            log_end,
            step_end,
            level: line.level.as_str(),
            log: line.text.clone(),
            created_at: DbTs(line.at),
        });
    }
    insert_in_chunks!(connection, execution_logs::table, &rows);
    Ok(())
}

/// Returns the size of a line with its terminator, in bytes.
fn size(line: &NewExecutionLine) -> i64 {
    line.text.len() as i64 + 1
}

/// Advances the end of a run's log by the lines, and returns where it was: the last number and the bytes up
/// to there.
fn make_room(
    connection: &mut AnyConnection,
    execution: ExecutionId,
    lines: &[NewExecutionLine],
) -> Result<(i64, i64), QueryError> {
    let (more, bytes) = (lines.len() as i64, lines.iter().map(size).sum::<i64>());
    let moved: Vec<(i64, i64)> = diesel::update(extension_executions::table.find(DbId::from(execution)))
        .set((
            extension_executions::log_seq.eq(extension_executions::log_seq + more),
            extension_executions::log_bytes.eq(extension_executions::log_bytes + bytes),
        ))
        .returning((extension_executions::log_seq, extension_executions::log_bytes))
        .cached()
        .load(connection)?;
    let (last, end) = moved.first().ok_or_else(|| missing("run"))?;
    Ok((last - more, end - bytes))
}

/// Advances the ends of the steps' logs, in a fixed order.
fn make_room_for_steps(
    connection: &mut AnyConnection,
    execution: ExecutionId,
    lines: &[NewExecutionLine],
) -> Result<BTreeMap<Uuid, i64>, QueryError> {
    let mut more: BTreeMap<Uuid, i64> = BTreeMap::new();
    for line in lines {
        if let Some(step) = line.step_id {
            *more.entry(step.into()).or_default() += size(line);
        }
    }
    let make_room = |(step, bytes)| {
        let moved: Vec<i64> = diesel::update(execution_steps::table.find(DbId(step)))
            .filter(execution_steps::execution_id.eq(DbId::from(execution)))
            .set(execution_steps::log_bytes.eq(execution_steps::log_bytes + bytes))
            .returning(execution_steps::log_bytes)
            .cached()
            .load(connection)?;
        Ok((step, moved.first().ok_or_else(|| missing("step"))? - bytes))
    };
    more.into_iter().map(make_room).collect()
}

fn missing(what: &str) -> StoreError {
    StoreError::Internal(format!("lines of a {what} that is not there").into())
}
