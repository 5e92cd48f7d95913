//! Requests of runs.

use diesel::prelude::*;
use launchway_domain::{
    extensions::{Execution, ExecutionStep, ExtensionKey},
    store::StoreError,
};

use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::each_backend,
    error::QueryError,
    organizations,
    schema::{execution_steps, extension_executions, extension_installations, extensions},
};

/// Inserts a requested run with its steps. `Stale` when the extension or the organization is gone.
pub(super) fn request(
    connection: &mut AnyConnection,
    execution: &Execution,
    steps: &[ExecutionStep],
    installs: bool,
) -> Result<(), QueryError> {
    organizations::require(connection, execution.scope.id())?;
    let key = held_key(connection, execution)?;
    insert(connection, execution)?;
    steps.iter().try_for_each(|step| insert_step(connection, step))?;
    if installs { install(connection, execution, &key) } else { Ok(()) }
}

/// Returns the key of the extension to run. On PostgreSQL it is not deleted until this transaction ends.
fn held_key(connection: &mut AnyConnection, execution: &Execution) -> Result<ExtensionKey, QueryError> {
    let organization = DbId::from(execution.scope.id());
    let extension = extensions::table
        .find(DbId::from(execution.extension_id))
        .filter(extensions::deleted_at.is_null())
        .filter(extensions::organization_id.is_null().or(extensions::organization_id.eq(organization)))
        .select(extensions::key);
    let key: Option<String> = match connection {
        AnyConnection::Sqlite(sqlite) => extension.get_result(sqlite),
        AnyConnection::Postgres(postgres) => extension.for_share().get_result(postgres),
    }
    .optional()?;
    ExtensionKey::try_from(key.ok_or(StoreError::Stale)?).map_err(QueryError::unreadable)
}

fn insert(connection: &mut AnyConnection, execution: &Execution) -> Result<(), QueryError> {
    diesel::insert_into(extension_executions::table)
        .values((
            extension_executions::id.eq(DbId::from(execution.id)),
            extension_executions::organization_id.eq(DbId::from(execution.scope.id())),
            extension_executions::extension_id.eq(DbId::from(execution.extension_id)),
            extension_executions::user_id.eq(DbId::from(execution.user_id)),
            extension_executions::job_id.eq(DbId::from(execution.job_id)),
            extension_executions::status.eq(execution.state.as_str()),
            extension_executions::server_hostname.eq(&execution.server_hostname),
            extension_executions::exit_code.eq(execution.exit_code),
            extension_executions::error_message.eq(&execution.error_message),
            extension_executions::shown_values.eq(&execution.shown_values),
            extension_executions::sealed_values.eq(&execution.sealed_values.0),
            extension_executions::definition.eq(&execution.definition),
            // There is no output yet.
            extension_executions::log_seq.eq(0),
            extension_executions::log_bytes.eq(0),
            extension_executions::started_at.eq(execution.started_at.map(DbTs)),
            extension_executions::completed_at.eq(execution.completed_at.map(DbTs)),
            extension_executions::created_at.eq(DbTs(execution.created_at)),
        ))
        .execute(connection)?;
    Ok(())
}

fn insert_step(connection: &mut AnyConnection, step: &ExecutionStep) -> Result<(), QueryError> {
    diesel::insert_into(execution_steps::table)
        .values((
            execution_steps::id.eq(DbId::from(step.id)),
            execution_steps::execution_id.eq(DbId::from(step.execution_id)),
            execution_steps::step_order.eq(step.order),
            execution_steps::name.eq(&step.name),
            execution_steps::phase.eq(step.phase.as_str()),
            execution_steps::status.eq(step.state.as_str()),
            execution_steps::exit_code.eq(step.exit_code),
            execution_steps::log_bytes.eq(0),
            execution_steps::started_at.eq(step.started_at.map(DbTs)),
            execution_steps::completed_at.eq(step.completed_at.map(DbTs)),
            execution_steps::created_at.eq(DbTs(step.created_at)),
        ))
        .execute(connection)?;
    Ok(())
}

fn install(
    connection: &mut AnyConnection,
    execution: &Execution,
    key: &ExtensionKey,
) -> Result<(), QueryError> {
    let installation = (
        extension_installations::organization_id.eq(DbId::from(execution.scope.id())),
        extension_installations::extension_key.eq(key.as_str()),
        extension_installations::created_at.eq(DbTs(execution.created_at)),
    );
    each_backend!(connection, backend => diesel::insert_into(extension_installations::table)
        .values(installation)
        .on_conflict_do_nothing()
        .execute(backend))?;
    Ok(())
}
