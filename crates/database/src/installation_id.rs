//! The id of the installation that a database belongs to.

use diesel::prelude::*;
use launchway_domain::{clock::Timestamp, ids::InstanceId, store::StoreError};

use super::{
    Database,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::each_backend,
    error::QueryError,
    schema::installation_identity,
};

impl Database {
    /// Returns the id of the installation that the database belongs to, or `None` if no server has written one.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    pub async fn installation_id(&self) -> Result<Option<InstanceId>, StoreError> {
        self.read_point(stored).await
    }

    /// Writes `id` unless the database has an id, and returns the id that it has then. Of several servers that start at
    /// once on a new database, all get the id of the first.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    pub async fn claim_for_installation(
        &self,
        id: InstanceId,
        at: Timestamp,
    ) -> Result<InstanceId, StoreError> {
        self.write(move |connection| {
            let row = (
                installation_identity::singleton.eq(1),
                installation_identity::id.eq(DbId::from(id)),
                installation_identity::created_at.eq(DbTs(at)),
            );
            each_backend!(connection, backend => diesel::insert_into(installation_identity::table)
                .values(row)
                .on_conflict(installation_identity::singleton)
                .do_nothing()
                .execute(backend))?;
            stored(connection)?.ok_or_else(|| QueryError::unreadable("the id of the installation is missing"))
        })
        .await
    }
}

/// Returns the stored id. The table has to exist.
pub(super) fn stored(connection: &mut AnyConnection) -> Result<Option<InstanceId>, QueryError> {
    let id: Option<DbId> =
        installation_identity::table.select(installation_identity::id).first(connection).optional()?;
    Ok(id.map(Into::into))
}
