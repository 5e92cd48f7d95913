//! The times at which certificates are renewed.

use diesel::prelude::*;
use launchway_domain::{applications::Hostname, certificates::Certificate, clock::Timestamp};

use super::{CertificateRow, of_acme};
use crate::{
    columns::DbTs,
    connection::AnyConnection,
    error::{QueryError, guarded},
    schema::certificates,
    statement::StatementCache as _,
};

/// Returns the certificates whose renewal is to be asked for at `now`.
pub(super) fn unplanned(
    connection: &mut AnyConnection,
    now: Timestamp,
    most: u32,
) -> Result<Vec<Certificate>, QueryError> {
    let now = DbTs(now);
    let is_open =
        certificates::renewal_check_at.is_null().or(certificates::renewal_check_at.assume_not_null().le(now));
    let rows: Vec<CertificateRow> = certificates::table
        .filter(of_acme())
        .filter(certificates::chain.is_not_null())
        .filter(certificates::failures.eq(0))
        .filter(certificates::next_attempt_at.gt(Some(now)))
        .filter(is_open)
        .order((certificates::not_after.asc(), certificates::domain.asc()))
        .limit(i64::from(most))
        .select(CertificateRow::as_select())
        .load(connection)?;
    rows.into_iter().map(Certificate::try_from).collect()
}

/// Sets the time of a renewal, if there is one, and that of the next question.
pub(super) fn plan(
    connection: &mut AnyConnection,
    (domain, not_after): (&Hostname, Timestamp),
    renew_at: Option<Timestamp>,
    check_at: Timestamp,
) -> Result<(), QueryError> {
    let row = certificates::table
        .find(domain.as_str())
        .filter(of_acme())
        .filter(certificates::failures.eq(0))
        .filter(certificates::not_after.eq(Some(DbTs(not_after))));
    let check = certificates::renewal_check_at.eq(Some(DbTs(check_at)));
    let rows = match renew_at {
        Some(time) => {
            let next = certificates::next_attempt_at.eq(Some(DbTs(time)));
            diesel::update(row).set((check, next)).cached().execute(connection)?
        }
        None => diesel::update(row).set(check).cached().execute(connection)?,
    };
    guarded(rows)
}
