//! The number of copies of applications: a row for each that has more than one.

use diesel::prelude::*;
use launchway_domain::{applications::CopyCount, ids::ApplicationId};

use crate::{
    columns::DbId, connection::AnyConnection, dialect::each_backend, error::QueryError,
    schema::application_replicas, statement::StatementCache as _,
};

/// Stores the number of copies of a new application.
pub(super) fn insert(
    connection: &mut AnyConnection,
    id: ApplicationId,
    copies: CopyCount,
) -> Result<(), QueryError> {
    if copies == CopyCount::ONE {
        return Ok(());
    }
    set(connection, id, copies)
}

/// Stores another number of copies.
pub(super) fn set(
    connection: &mut AnyConnection,
    id: ApplicationId,
    copies: CopyCount,
) -> Result<(), QueryError> {
    if copies == CopyCount::ONE {
        diesel::delete(application_replicas::table.find(DbId::from(id))).execute(connection)?;
        return Ok(());
    }
    let count = i64::from(copies.get());
    let row =
        (application_replicas::application_id.eq(DbId::from(id)), application_replicas::replicas.eq(count));
    each_backend!(connection, backend => diesel::insert_into(application_replicas::table)
        .values(row)
        .on_conflict(application_replicas::application_id)
        .do_update()
        .set(application_replicas::replicas.eq(count))
        .cached()
        .execute(backend))?;
    Ok(())
}
