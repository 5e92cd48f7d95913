//! Reads runs of extensions from the database.

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    extensions::{
        Execution, ExecutionDetail, ExecutionLine, ExecutionRepository, ExecutionState, ExecutionStep, Phase,
        PrintedStep,
    },
    ids::{ExecutionId, ExecutionStepId, ExtensionId, JobId, OrganizationId, UserId},
    organizations::Scope,
    page::{Page, PageRequest},
    secret::Sealed,
    store::StoreError,
};

use super::{log, rows::ExtensionRow, with_variables};
use crate::{
    Database,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::QueryError,
    schema::{execution_steps, extension_executions, extensions},
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = extension_executions)]
struct ExecutionRow {
    #[diesel(deserialize_as = DbId)]
    id: ExecutionId,
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    #[diesel(deserialize_as = DbId)]
    extension_id: ExtensionId,
    #[diesel(deserialize_as = DbId)]
    user_id: UserId,
    #[diesel(deserialize_as = DbId)]
    job_id: JobId,
    #[diesel(deserialize_as = String)]
    status: ExecutionState,
    server_hostname: String,
    exit_code: i32,
    error_message: String,
    shown_values: String,
    sealed_values: String,
    definition: String,
    log_seq: i64,
    started_at: Option<DbTs>,
    completed_at: Option<DbTs>,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
}

impl From<ExecutionRow> for Execution {
    fn from(row: ExecutionRow) -> Self {
        Self {
            id: row.id,
            scope: Scope::of_record(row.organization_id),
            extension_id: row.extension_id,
            user_id: row.user_id,
            job_id: row.job_id,
            state: row.status,
            server_hostname: row.server_hostname,
            exit_code: row.exit_code,
            error_message: row.error_message,
            shown_values: row.shown_values,
            sealed_values: Sealed(row.sealed_values),
            definition: row.definition,
            log_seq: row.log_seq,
            started_at: row.started_at.map(Timestamp::from),
            completed_at: row.completed_at.map(Timestamp::from),
            created_at: row.created_at,
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = execution_steps)]
struct StepRow {
    #[diesel(deserialize_as = DbId)]
    id: ExecutionStepId,
    #[diesel(deserialize_as = DbId)]
    execution_id: ExecutionId,
    name: String,
    step_order: i32,
    #[diesel(deserialize_as = String)]
    phase: Phase,
    #[diesel(deserialize_as = String)]
    status: ExecutionState,
    exit_code: i32,
    started_at: Option<DbTs>,
    completed_at: Option<DbTs>,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
}

impl From<StepRow> for ExecutionStep {
    fn from(row: StepRow) -> Self {
        Self {
            id: row.id,
            execution_id: row.execution_id,
            name: row.name,
            order: row.step_order,
            phase: row.phase,
            state: row.status,
            exit_code: row.exit_code,
            started_at: row.started_at.map(Timestamp::from),
            completed_at: row.completed_at.map(Timestamp::from),
            created_at: row.created_at,
        }
    }
}

#[async_trait]
impl ExecutionRepository for Database {
    async fn page(
        &self,
        scope: Scope,
        extension: ExtensionId,
        page: PageRequest,
    ) -> Result<Page<(Execution, String)>, StoreError> {
        self.read(move |connection| page_of(connection, scope, extension, page)).await
    }

    async fn get(
        &self,
        scope: Scope,
        id: ExecutionId,
    ) -> Result<Option<(Execution, Vec<ExecutionStep>)>, StoreError> {
        self.read_point(move |connection| {
            let Some(execution) = visible(connection, scope, id)? else { return Ok(None) };
            Ok(Some((execution, steps_of(connection, id)?)))
        })
        .await
    }

    async fn detail(&self, scope: Scope, id: ExecutionId) -> Result<Option<ExecutionDetail>, StoreError> {
        self.read(move |connection| detail_of(connection, scope, id)).await
    }

    async fn lines(
        &self,
        scope: Scope,
        id: ExecutionId,
        after: i64,
        limit: i64,
    ) -> Result<Option<Vec<ExecutionLine>>, StoreError> {
        self.read(move |connection| {
            let found: Option<DbId> = extension_executions::table
                .find(DbId::from(id))
                .filter(extension_executions::organization_id.eq(DbId::from(scope.id())))
                .select(extension_executions::id)
                .first(connection)
                .optional()?;
            if found.is_none() {
                return Ok(None);
            }
            log::lines_after(connection, id, after, limit).map(Some)
        })
        .await
    }
}

fn visible(
    connection: &mut AnyConnection,
    scope: Scope,
    id: ExecutionId,
) -> Result<Option<Execution>, QueryError> {
    let row: Option<ExecutionRow> = extension_executions::table
        .find(DbId::from(id))
        .filter(extension_executions::organization_id.eq(DbId::from(scope.id())))
        .select(ExecutionRow::as_select())
        .first(connection)
        .optional()?;
    Ok(row.map(Execution::from))
}

fn steps_of(connection: &mut AnyConnection, id: ExecutionId) -> Result<Vec<ExecutionStep>, QueryError> {
    let rows: Vec<StepRow> = execution_steps::table
        .filter(execution_steps::execution_id.eq(DbId::from(id)))
        .order(execution_steps::step_order.asc())
        .select(StepRow::as_select())
        .load(connection)?;
    Ok(rows.into_iter().map(ExecutionStep::from).collect())
}

fn page_of(
    connection: &mut AnyConnection,
    scope: Scope,
    extension: ExtensionId,
    page: PageRequest,
) -> Result<Page<(Execution, String)>, QueryError> {
    let of_extension = || {
        extension_executions::table
            .filter(extension_executions::organization_id.eq(DbId::from(scope.id())))
            .filter(extension_executions::extension_id.eq(DbId::from(extension)))
    };
    let total = of_extension().count().get_result(connection)?;
    let rows: Vec<ExecutionRow> = of_extension()
        .order((extension_executions::created_at.desc(), extension_executions::id.desc()))
        .limit(page.size())
        .offset(page.offset())
        .select(ExecutionRow::as_select())
        .load(connection)?;
    let executions: Vec<Execution> = rows.into_iter().map(Execution::from).collect();
    let mut logs = log::of_runs(connection, &executions)?;
    let with_log = |execution: Execution| {
        let log = logs.remove(&execution.id.into()).unwrap_or_default();
        (execution, log)
    };
    Ok(Page { items: executions.into_iter().map(with_log).collect(), request: page, total })
}

fn detail_of(
    connection: &mut AnyConnection,
    scope: Scope,
    id: ExecutionId,
) -> Result<Option<ExecutionDetail>, QueryError> {
    let Some(execution) = visible(connection, scope, id)? else { return Ok(None) };
    // It may have been deleted since.
    let extension = extensions::table
        .find(DbId::from(execution.extension_id))
        .select(ExtensionRow::as_select())
        .load(connection)?;
    let Some(extension) = with_variables(connection, extension)?.pop() else { return Ok(None) };
    let log = log::of_runs(connection, std::slice::from_ref(&execution))?.into_values().next();
    let mut outputs = log::of_steps(connection, id)?;
    let printed = |step: ExecutionStep| {
        let output = outputs.remove(&step.id.into()).unwrap_or_default();
        PrintedStep { step, output }
    };
    let steps = steps_of(connection, id)?.into_iter().map(printed).collect();
    Ok(Some(ExecutionDetail { execution, extension, steps, log: log.unwrap_or_default() }))
}
