//! Events of finished executions.

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    extensions::ExecutionState,
    ids::Ids as _,
    notifications::{Event, EventKind, Fact},
};

use crate::{
    clock::TimeOrderedIds,
    database::{
        columns::{DbId, DbTs},
        connection::AnyConnection,
        error::QueryError,
        notifications::{announce, is_told},
        schema::{extension_executions, extensions, organizations, users},
    },
};

/// Emits an event for each of the finished runs, except cancelled ones: the user who cancelled one knows.
/// The caller ends them once, so that there is one event each.
pub(super) fn announce_ends(
    connection: &mut AnyConnection,
    ids: Vec<DbId>,
    at: Timestamp,
) -> Result<(), QueryError> {
    let rows: Vec<EndRow> = extension_executions::table
        .inner_join(extensions::table.on(extensions::id.eq(extension_executions::extension_id)))
        .inner_join(organizations::table.on(organizations::id.eq(extension_executions::organization_id)))
        .inner_join(users::table.on(users::id.eq(extension_executions::user_id)))
        .filter(extension_executions::id.eq_any(ids))
        .filter(is_told!(extension_executions::organization_id))
        .order((extension_executions::created_at.asc(), extension_executions::id.asc()))
        .select(EndRow::as_select())
        .load(connection)?;
    for row in rows {
        let kind = match ExecutionState::try_from(row.status.clone()).map_err(QueryError::unreadable)? {
            ExecutionState::Completed => EventKind::ExtensionCompleted,
            ExecutionState::Failed => EventKind::ExtensionFailed,
            ExecutionState::Cancelled | ExecutionState::Pending | ExecutionState::Running => continue,
        };
        announce(connection, &row.event(kind, at))?;
    }
    Ok(())
}

/// The data of a finished run.
#[derive(Queryable, Selectable)]
#[diesel(table_name = extension_executions)]
struct EndRow {
    id: DbId,
    organization_id: DbId,
    status: String,
    exit_code: i32,
    error_message: String,
    created_at: DbTs,
    #[diesel(select_expression = organizations::name)]
    organization: String,
    #[diesel(select_expression = extensions::name)]
    extension: String,
    #[diesel(select_expression = extensions::key)]
    key: String,
    #[diesel(select_expression = users::username)]
    requested_by: String,
}

impl EndRow {
    fn event(self, kind: EventKind, at: Timestamp) -> Event {
        let seconds = (at - self.created_at.0).as_seconds_f64();
        let exit_code = if self.exit_code == 0 { String::new() } else { self.exit_code.to_string() };
        Event::new(TimeOrderedIds.next().into(), self.organization_id.into(), kind, at)
            .with(Fact::Organization, self.organization)
            .with(Fact::Extension, self.extension)
            .with(Fact::ExtensionKey, self.key)
            .with(Fact::ExecutionId, self.id.0)
            .with(Fact::ExitCode, exit_code)
            .with(Fact::RequestedBy, self.requested_by)
            .with(Fact::Seconds, format!("{seconds:.1}"))
            .with(Fact::Reason, self.error_message)
    }
}
