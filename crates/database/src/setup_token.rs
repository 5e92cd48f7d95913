//! The setup token, with which the first administrator registers from another machine.

use diesel::{dsl::exists, prelude::*};
use launchway_domain::{secret::Sealed, store::StoreError};

use super::{
    Database,
    connection::AnyConnection,
    dialect::each_backend,
    error::QueryError,
    schema::{installation, setup_token},
};

impl Database {
    /// Stores `sealed` unless a token is stored, and returns the stored one. Of several servers that start at once, all
    /// get the token of the first. Returns `None` if the first administrator exists: then no token is stored any more.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    pub async fn claim_setup_token(&self, sealed: Sealed) -> Result<Option<Sealed>, StoreError> {
        // Usually nothing changes, and no transaction is needed.
        match self.read_point(stored).await? {
            (true, None) => return Ok(None),
            (false, Some(token)) => return Ok(Some(token)),
            _ => {}
        }
        self.write(move |connection| {
            if stored(connection)?.0 {
                forget(connection)?;
                return Ok(None);
            }
            each_backend!(connection, backend => diesel::insert_into(setup_token::table)
                .values((setup_token::singleton.eq(1), setup_token::sealed.eq(sealed.0)))
                .on_conflict(setup_token::singleton)
                .do_nothing()
                .execute(backend))?;
            Ok(stored(connection)?.1)
        })
        .await
    }
}

/// Returns whether the first administrator exists, and the stored token.
fn stored(connection: &mut AnyConnection) -> Result<(bool, Option<Sealed>), QueryError> {
    let is_registered = diesel::select(exists(installation::table.find(1))).get_result(connection)?;
    let token: Option<String> =
        setup_token::table.select(setup_token::sealed).first(connection).optional()?;
    Ok((is_registered, token.map(Sealed)))
}

/// Deletes the token.
pub(super) fn forget(connection: &mut AnyConnection) -> Result<(), QueryError> {
    diesel::delete(setup_token::table).execute(connection)?;
    Ok(())
}
