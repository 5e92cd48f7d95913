//! Counts failed logins in the database.

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    auth::{Admission, LoginAttempt, LoginThrottle, ThrottleLimits},
    clock::Timestamp,
    ids::LoginAttemptId,
    store::StoreError,
};

use super::{
    Database,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::{Lock, hold},
    error::QueryError,
    schema::login_attempts,
};

/// Counts failed logins durably, for all replicas together.
#[derive(Debug, Clone)]
pub struct DurableThrottle {
    database: Database,
    limits: ThrottleLimits,
}

impl DurableThrottle {
    /// Returns a throttle with these limits.
    #[must_use]
    pub fn new(database: Database, limits: ThrottleLimits) -> Self {
        Self { database, limits }
    }
}

#[async_trait]
impl LoginThrottle for DurableThrottle {
    async fn admit(&self, attempt: &LoginAttempt) -> Result<Admission, StoreError> {
        let (attempt, limits) = (attempt.clone(), self.limits);
        self.database.write(move |connection| admit(connection, &attempt, &limits)).await
    }

    async fn forgive(&self, id: LoginAttemptId) -> Result<(), StoreError> {
        self.database
            .write(move |connection| {
                diesel::delete(login_attempts::table.find(DbId::from(id))).execute(connection)?;
                Ok(())
            })
            .await
    }
}

fn admit(
    connection: &mut AnyConnection,
    attempt: &LoginAttempt,
    limits: &ThrottleLimits,
) -> Result<Admission, QueryError> {
    hold(connection, Lock::LoginAttempts)?;
    let forgotten = DbTs(attempt.at - limits.window);
    diesel::delete(login_attempts::table).filter(login_attempts::at.le(forgotten)).execute(connection)?;
    let in_the_way = oldest_blocking_failure(connection, attempt, limits)?;
    if let Some(oldest) = in_the_way {
        return Ok(Admission::Refused { until: oldest + limits.window });
    }
    diesel::insert_into(login_attempts::table)
        .values((
            login_attempts::id.eq(DbId::from(attempt.id)),
            login_attempts::account.eq(attempt.account.as_bytes().as_slice()),
            login_attempts::address.eq(&attempt.address),
            login_attempts::at.eq(DbTs(attempt.at)),
        ))
        .execute(connection)?;
    Ok(Admission::Granted)
}

/// Returns the failure that has to expire before every count is below its limit again.
///
/// A limit of ten is reached while there is a tenth failure, counted from the latest; once that one has
/// expired, nine are left.
fn oldest_blocking_failure(
    connection: &mut AnyConnection,
    attempt: &LoginAttempt,
    limits: &ThrottleLimits,
) -> Result<Option<Timestamp>, QueryError> {
    let account = attempt.account.as_bytes().as_slice();
    let latest_first = || login_attempts::table.select(login_attempts::at).order(login_attempts::at.desc());
    let of_both: Option<DbTs> = latest_first()
        .filter(login_attempts::account.eq(account))
        .filter(login_attempts::address.eq(&attempt.address))
        .offset(limits.account_and_address - 1)
        .first(connection)
        .optional()?;
    let of_address: Option<DbTs> = latest_first()
        .filter(login_attempts::address.eq(&attempt.address))
        .offset(limits.address - 1)
        .first(connection)
        .optional()?;
    let of_account: Option<DbTs> = latest_first()
        .filter(login_attempts::account.eq(account))
        .offset(limits.account - 1)
        .first(connection)
        .optional()?;
    Ok([of_both, of_address, of_account].into_iter().flatten().map(Timestamp::from).max())
}
