//! Events of finished executions.

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    extensions::ExecutionState,
    ids::Ids as _,
    notifications::{EndedExecution, EventKind},
};
use launchway_system::clock::TimeOrderedIds;

use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::QueryError,
    notifications::{announce, has_channel},
    schema::{extension_executions, extensions, organizations, users},
    statement::ListComparison as _,
};

/// Stores the event of each of the runs, which have just entered `state`.
pub(super) fn announce_ends(
    connection: &mut AnyConnection,
    state: ExecutionState,
    ids: Vec<DbId>,
    at: Timestamp,
) -> Result<(), QueryError> {
    if EventKind::of_execution(state).is_none() {
        return Ok(());
    }
    let rows: Vec<EndRow> = extension_executions::table
        .inner_join(extensions::table.on(extensions::id.eq(extension_executions::extension_id)))
        .inner_join(organizations::table.on(organizations::id.eq(extension_executions::organization_id)))
        .inner_join(users::table.on(users::id.eq(extension_executions::user_id)))
        .filter(extension_executions::id.one_of(ids))
        .filter(has_channel!(extension_executions::organization_id))
        .order((extension_executions::created_at.asc(), extension_executions::id.asc()))
        .select(EndRow::as_select())
        .load(connection)?;
    let mut events =
        rows.into_iter().filter_map(|row| row.ended(state).event(TimeOrderedIds.next().into(), at));
    events.try_for_each(|event| announce(connection, &event))
}

/// The data of a finished run.
#[derive(Queryable, Selectable)]
#[diesel(table_name = extension_executions)]
struct EndRow {
    id: DbId,
    organization_id: DbId,
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
    fn ended(self, state: ExecutionState) -> EndedExecution {
        EndedExecution {
            id: self.id.into(),
            organization_id: self.organization_id.into(),
            organization: self.organization,
            extension: self.extension,
            extension_key: self.key,
            requested_by: self.requested_by,
            created_at: self.created_at.into(),
            state,
            exit_code: self.exit_code,
            error_message: self.error_message,
        }
    }
}
