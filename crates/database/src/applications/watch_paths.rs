//! The paths that applications watch: a row for each that has any.

use diesel::prelude::*;
use launchway_domain::{
    applications::{WatchPath, WatchPaths},
    ids::ApplicationId,
};

use crate::{
    columns::DbId, connection::AnyConnection, dialect::each_backend, error::QueryError,
    schema::application_watch_paths, statement::StatementCache as _,
};

/// Stores the watched paths of a new application.
pub(super) fn insert(
    connection: &mut AnyConnection,
    id: ApplicationId,
    paths: &WatchPaths,
) -> Result<(), QueryError> {
    if paths.is_empty() {
        return Ok(());
    }
    set(connection, id, paths)
}

/// Stores other watched paths.
pub(super) fn set(
    connection: &mut AnyConnection,
    id: ApplicationId,
    paths: &WatchPaths,
) -> Result<(), QueryError> {
    if paths.is_empty() {
        diesel::delete(application_watch_paths::table.find(DbId::from(id))).execute(connection)?;
        return Ok(());
    }
    let patterns = paths.as_slice().iter().map(WatchPath::as_str);
    let patterns = serde_json::Value::from_iter(patterns).to_string();
    let row = (
        application_watch_paths::application_id.eq(DbId::from(id)),
        application_watch_paths::patterns.eq(&patterns),
    );
    each_backend!(connection, backend => diesel::insert_into(application_watch_paths::table)
        .values(row)
        .on_conflict(application_watch_paths::application_id)
        .do_update()
        .set(application_watch_paths::patterns.eq(&patterns))
        .cached()
        .execute(backend))?;
    Ok(())
}
