//! Writes second factors to the database.

use diesel::{prelude::*, query_dsl::methods::FilterDsl};
use launchway_domain::{auth::TokenHash, clock::Timestamp, ids::UserId, secret::Sealed};

use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::each_backend,
    error::{QueryError, guarded},
    schema::{recovery_codes, two_factor, users},
    statement::StatementCache as _,
};

/// Starts a new enrolment of a second factor, unless one is enabled.
pub(super) fn begin(
    connection: &mut AnyConnection,
    user_id: UserId,
    secret: &Sealed,
    at: Timestamp,
) -> Result<(), QueryError> {
    let set_up = (two_factor::secret.eq(secret.0.as_str()), two_factor::created_at.eq(DbTs(at)));
    let upsert = diesel::insert_into(two_factor::table)
        .values((two_factor::user_id.eq(DbId::from(user_id)), set_up))
        .on_conflict(two_factor::user_id)
        .do_update()
        .set(set_up);
    let upsert = FilterDsl::filter(upsert, two_factor::enabled_at.is_null());
    guarded(each_backend!(connection, backend => upsert.execute(backend))?)
}

/// Enables the second factor that is being enrolled.
pub(super) fn enable(
    connection: &mut AnyConnection,
    user_id: UserId,
    secret: &Sealed,
    step: i64,
    at: Timestamp,
) -> Result<(), QueryError> {
    guarded(
        diesel::update(two_factor::table)
            .filter(two_factor::user_id.eq(DbId::from(user_id)))
            .filter(two_factor::secret.eq(&secret.0))
            .filter(two_factor::enabled_at.is_null())
            .set((two_factor::enabled_at.eq(DbTs(at)), two_factor::last_step.eq(step)))
            .cached()
            .execute(connection)?,
    )?;
    mark_user(connection, user_id, true, at)
}

/// Removes an enabled second factor.
pub(super) fn disable(
    connection: &mut AnyConnection,
    user_id: UserId,
    at: Timestamp,
) -> Result<(), QueryError> {
    guarded(
        diesel::delete(two_factor::table)
            .filter(two_factor::user_id.eq(DbId::from(user_id)))
            .filter(two_factor::enabled_at.is_not_null())
            .execute(connection)?,
    )?;
    mark_user(connection, user_id, false, at)
}

fn mark_user(
    connection: &mut AnyConnection,
    user_id: UserId,
    enabled: bool,
    at: Timestamp,
) -> Result<(), QueryError> {
    diesel::update(users::table)
        .filter(users::id.eq(DbId::from(user_id)))
        .set((users::two_factor_enabled.eq(enabled), users::updated_at.eq(DbTs(at))))
        .cached()
        .execute(connection)?;
    Ok(())
}

/// Records that the code of a time step was used, and rejects that step and earlier ones.
pub(super) fn use_step(connection: &mut AnyConnection, user_id: UserId, step: i64) -> Result<(), QueryError> {
    guarded(
        diesel::update(two_factor::table)
            .filter(two_factor::user_id.eq(DbId::from(user_id)))
            .filter(two_factor::enabled_at.is_not_null())
            .filter(two_factor::last_step.lt(step))
            .set(two_factor::last_step.eq(step))
            .cached()
            .execute(connection)?,
    )
}

/// Makes `codes` the user's only recovery codes.
pub(super) fn replace_recovery_codes(
    connection: &mut AnyConnection,
    user_id: UserId,
    codes: &[TokenHash],
) -> Result<(), QueryError> {
    let user_id = DbId::from(user_id);
    diesel::delete(recovery_codes::table).filter(recovery_codes::user_id.eq(user_id)).execute(connection)?;
    let rows: Vec<_> = codes
        .iter()
        .map(|code| {
            (recovery_codes::user_id.eq(user_id), recovery_codes::code_hash.eq(code.as_bytes().as_slice()))
        })
        .collect();
    each_backend!(connection, backend => diesel::insert_into(recovery_codes::table)
        .values(&rows)
        .execute(backend))?;
    Ok(())
}

/// Deletes a used recovery code.
pub(super) fn use_recovery_code(
    connection: &mut AnyConnection,
    user_id: UserId,
    code: &TokenHash,
    at: Timestamp,
) -> Result<(), QueryError> {
    guarded(
        diesel::update(recovery_codes::table)
            .filter(recovery_codes::user_id.eq(DbId::from(user_id)))
            .filter(recovery_codes::code_hash.eq(code.as_bytes().as_slice()))
            .filter(recovery_codes::used_at.is_null())
            .set(recovery_codes::used_at.eq(DbTs(at)))
            .cached()
            .execute(connection)?,
    )
}
