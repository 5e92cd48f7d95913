//! A stored text for checking that the secret key is the one that this database was written with.

use diesel::prelude::*;
use launchway_domain::store::StoreError;

use super::{Database, dialect::each_backend, schema::key_check};

impl Database {
    /// Returns the sealed text for checking the secret key; `None` when there is none yet.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    pub async fn key_check(&self) -> Result<Option<String>, StoreError> {
        let query = |connection: &mut _| {
            Ok(key_check::table.select(key_check::sealed).first(connection).optional()?)
        };
        self.read_point(query).await
    }

    /// Stores the sealed text, unless there is one already: if two servers start at once, the second has to
    /// compare.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    pub async fn remember_key_check(&self, sealed: String) -> Result<(), StoreError> {
        self.write(move |connection| {
            each_backend!(connection, backend => diesel::insert_into(key_check::table)
                .values((key_check::id.eq(1), key_check::sealed.eq(sealed)))
                .on_conflict(key_check::id)
                .do_nothing()
                .execute(backend))?;
            Ok(())
        })
        .await
    }
}
