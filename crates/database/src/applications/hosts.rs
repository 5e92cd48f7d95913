//! The host names of applications, each of one application only. The host names of extension containers are
//! in the same table, so that all names are unique.
//!
//! Taking a name on PostgreSQL waits for other transactions that take or release the same one. To avoid
//! deadlocks, names that users chose are taken in sorted order and before the automatic one, and no name is
//! taken after one was released.

use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    applications::{AutomaticHost, Hostname, NamedApplication},
    ids::ApplicationId,
    store::{StoreError, Unique},
};

use crate::{
    columns::DbId, connection::AnyConnection, dialect::each_backend, error::QueryError, schema::hosts,
};

/// The number of automatic hosts that are tried before an application gets none.
const MOST_TRIES: u32 = 1000;

/// The names of every application, in the order of their ids.
pub(super) fn all(connection: &mut AnyConnection) -> Result<Vec<NamedApplication>, QueryError> {
    let rows: Vec<(DbId, String)> = hosts::table
        .filter(hosts::application_id.is_not_null())
        .order((hosts::application_id.asc(), hosts::host.asc()))
        .select((hosts::application_id.assume_not_null(), hosts::host))
        .load(connection)?;
    let mut named: Vec<NamedApplication> = Vec::new();
    for (id, host) in rows {
        let id = ApplicationId::from(id);
        match named.last_mut().filter(|last| last.id == id) {
            Some(last) => last.hosts.push(host),
            None => named.push(NamedApplication { id, hosts: vec![host] }),
        }
    }
    Ok(named)
}

/// Returns whether the name is taken.
pub(super) fn is_there(connection: &mut AnyConnection, host: &str) -> Result<bool, QueryError> {
    // PostgreSQL does not even compare a text that contains NUL.
    if host.contains('\0') {
        return Ok(false);
    }
    Ok(diesel::select(exists(hosts::table.find(host))).get_result(connection)?)
}

/// Takes names that users chose. `Taken(Domain)` when one of them is in use.
pub(super) fn take<'a>(
    connection: &mut AnyConnection,
    application: ApplicationId,
    names: impl IntoIterator<Item = &'a Hostname>,
) -> Result<(), QueryError> {
    let mut names: Vec<&str> = names.into_iter().map(Hostname::as_str).collect();
    names.sort_unstable();
    for host in names {
        diesel::insert_into(hosts::table)
            .values((hosts::host.eq(host), hosts::application_id.eq(DbId::from(application))))
            .execute(connection)?;
    }
    Ok(())
}

/// Takes `wanted`, or the first numbered variant that is free.
pub(super) fn take_automatic(
    connection: &mut AnyConnection,
    application: ApplicationId,
    wanted: &AutomaticHost,
) -> Result<AutomaticHost, QueryError> {
    for number in 1..=MOST_TRIES {
        let host = if number == 1 { wanted.clone() } else { wanted.numbered(number) };
        let row = (hosts::host.eq(host.as_str()), hosts::application_id.eq(DbId::from(application)));
        // A conflict must not abort the transaction.
        let taken = each_backend!(connection, backend => diesel::insert_into(hosts::table)
            .values(row)
            .on_conflict_do_nothing()
            .execute(backend))?;
        if taken == 1 {
            return Ok(host);
        }
    }
    Err(StoreError::Taken(Unique::Domain).into())
}

/// Releases one name of an application.
pub(super) fn give_up(
    connection: &mut AnyConnection,
    application: ApplicationId,
    host: &Hostname,
) -> Result<(), QueryError> {
    diesel::delete(hosts::table)
        .filter(hosts::host.eq(host.as_str()))
        .filter(hosts::application_id.eq(DbId::from(application)))
        .execute(connection)?;
    Ok(())
}

/// Releases every name of an application.
pub(super) fn give_up_all(
    connection: &mut AnyConnection,
    application: ApplicationId,
) -> Result<(), QueryError> {
    diesel::delete(hosts::table)
        .filter(hosts::application_id.eq(DbId::from(application)))
        .execute(connection)?;
    Ok(())
}
