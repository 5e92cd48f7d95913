//! The HSTS policies of domains.

use diesel::prelude::*;
use launchway_domain::{
    applications::Hostname,
    certificates::{HstsMaxAge, HstsPolicy},
    organizations::Scope,
};

use crate::{
    columns::DbId,
    connection::AnyConnection,
    dialect::each_backend,
    error::{QueryError, guarded},
    schema::{applications, domain_hsts, hosts},
    statement::{ListComparison as _, StatementCache as _},
};

type Row = (String, DbId, i32);

fn policy((domain, application_id, max_age): Row) -> Result<HstsPolicy, QueryError> {
    Ok(HstsPolicy {
        domain: Hostname::try_from(domain).map_err(QueryError::unreadable)?,
        application_id: application_id.into(),
        max_age: i64::from(max_age).try_into().map_err(QueryError::unreadable)?,
    })
}

/// Returns the policies of these applications of an organization, sorted by domain.
pub(super) fn of_applications(
    connection: &mut AnyConnection,
    scope: Scope,
    ids: &[DbId],
) -> Result<Vec<HstsPolicy>, QueryError> {
    let rows: Vec<Row> = domain_hsts::table
        .inner_join(hosts::table.on(hosts::host.eq(domain_hsts::domain)))
        .inner_join(applications::table.on(hosts::application_id.eq(applications::id.nullable())))
        .filter(applications::organization_id.eq(DbId::from(scope.id())))
        .filter(applications::id.one_of(ids))
        .order(domain_hsts::domain.asc())
        .select((domain_hsts::domain, applications::id, domain_hsts::max_age))
        .load(connection)?;
    rows.into_iter().map(policy).collect()
}

/// Returns all policies, sorted by domain.
pub(super) fn all(connection: &mut AnyConnection) -> Result<Vec<HstsPolicy>, QueryError> {
    let rows: Vec<Row> = domain_hsts::table
        .inner_join(hosts::table.on(hosts::host.eq(domain_hsts::domain)))
        .filter(hosts::application_id.is_not_null())
        .order(domain_hsts::domain.asc())
        .select((domain_hsts::domain, hosts::application_id.assume_not_null(), domain_hsts::max_age))
        .load(connection)?;
    rows.into_iter().map(policy).collect()
}

/// Sets the policy of a domain; `None` removes it, and is `Stale` without one.
pub(super) fn set(
    connection: &mut AnyConnection,
    domain: &Hostname,
    max_age: Option<HstsMaxAge>,
) -> Result<(), QueryError> {
    let Some(max_age) = max_age else {
        return guarded(diesel::delete(domain_hsts::table.find(domain.as_str())).execute(connection)?);
    };
    let max_age = domain_hsts::max_age.eq(i32::try_from(max_age.get()).map_err(QueryError::unreadable)?);
    each_backend!(connection, backend => diesel::insert_into(domain_hsts::table)
        .values((domain_hsts::domain.eq(domain.as_str()), max_age))
        .on_conflict(domain_hsts::domain)
        .do_update()
        .set(max_age)
        .cached()
        .execute(backend))?;
    Ok(())
}
