//! Writes extensions to the database.

use diesel::{dsl::exists, prelude::*, sql_types::Bool};
use launchway_domain::{
    clock::Timestamp,
    extensions::{ExtensionKey, Write},
    ids::SubjectId,
    organizations::Scope,
    store::{Rule, StoreError},
};

use super::{moves, publish, requests, routes};
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::hold_one,
    error::{QueryError, guarded},
    homes::bind_extension,
    schema::{extension_executions, extension_installations, extensions, homes},
    statement::{ListComparison as _, Literal, StatementCache as _, literal},
};

/// Applies one change.
pub(crate) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::Publish(extension) => publish::publish(connection, extension),
        Write::ClaimCatalog(version) => publish::claim(connection, *version),
        Write::Withdraw { keep, at } => publish::withdraw(connection, keep, *at),
        Write::Fork(extension) => publish::fork(connection, extension),
        Write::Delete { scope, key, at } => delete(connection, *scope, key, *at),
        Write::Request { execution, steps, installs, home } => {
            requests::request(connection, execution, steps, *installs)?;
            home.as_ref().map_or(Ok(()), |(home, subject)| bind_extension(connection, home, *subject))
        }
        Write::Begin { id, server_hostname, at } => moves::begin(connection, *id, server_hostname, *at),
        Write::BeginStep { execution, order, at } => moves::begin_step(connection, (*execution, *order), *at),
        Write::EndStep { execution, order, state, exit_code, at } => {
            moves::end_step(connection, (*execution, *order), (*state, *exit_code), *at)
        }
        Write::Finish { id, end, at } => moves::finish(connection, *id, end, *at),
        Write::FollowJobs { at } => moves::follow_jobs(connection, *at),
        Write::AddRoute(route) => routes::add(connection, route),
        Write::MoveRoute { id, address } => routes::set_route_address(connection, *id, *address),
        Write::RemoveRoute { scope, extension, host } => {
            guarded(routes::remove(connection, *scope, extension, Some(host))?)
        }
        Write::Uninstall { scope, extension, subject, with_volumes } => {
            uninstall(connection, *scope, extension, *with_volumes)?;
            leave_home(connection, *scope, extension, *subject)
        }
    }
}

fn delete(
    connection: &mut AnyConnection,
    scope: Scope,
    key: &ExtensionKey,
    at: Timestamp,
) -> Result<(), QueryError> {
    guarded(
        diesel::update(extensions::table)
            .filter(extensions::organization_id.eq(DbId::from(scope.id())))
            .filter(extensions::key.eq(key.as_str()))
            .filter(extensions::deleted_at.is_null())
            .set((extensions::deleted_at.eq(DbTs(at)), extensions::updated_at.eq(DbTs(at))))
            .cached()
            .execute(connection)?,
    )?;
    routes::remove(connection, scope, key, None)?;
    Ok(())
}

fn uninstall(
    connection: &mut AnyConnection,
    scope: Scope,
    key: &ExtensionKey,
    with_volumes: bool,
) -> Result<(), QueryError> {
    routes::remove(connection, scope, key, None)?;
    if with_volumes {
        // A run that was requested meanwhile creates objects again.
        let called_so = extensions::table.filter(extensions::key.eq(key.as_str())).select(extensions::id);
        let called_so: Vec<DbId> = called_so.load(connection)?;
        let runs = extension_executions::table
            .filter(extension_executions::organization_id.eq(DbId::from(scope.id())))
            .filter(extension_executions::extension_id.one_of(called_so))
            .filter(is_open());
        let is_wanted: bool = diesel::select(exists(runs)).get_result(connection)?;
        if !is_wanted {
            diesel::delete(extension_installations::table.find((DbId::from(scope.id()), key.as_str())))
                .execute(connection)?;
        }
    }
    Ok(())
}

/// Forgets the machine of an extension that is not installed any more, neither it nor, for that of all, another one of its
/// organization.
fn leave_home(
    connection: &mut AnyConnection,
    scope: Scope,
    key: &ExtensionKey,
    subject: SubjectId,
) -> Result<(), QueryError> {
    let organization = DbId::from(scope.id());
    hold_one(connection, organization)?;
    let installed = extension_installations::table
        .filter(extension_installations::organization_id.eq(organization))
        .select(extension_installations::extension_key);
    let installed: Vec<String> = installed.load(connection)?;
    if !installed.iter().any(|other| other == key.as_str()) {
        diesel::delete(homes::table.find(DbId::from(subject))).execute(connection)?;
    }
    if installed.is_empty() {
        diesel::delete(homes::table.find(organization)).execute(connection)?;
    }
    Ok(())
}

/// Deletes the forks of an organization with it. Fails while an extension has made something for it, or is
/// about to.
///
/// The caller that deletes an organization locks it, so that no run is requested meanwhile.
pub(crate) fn leave(connection: &mut AnyConnection, scope: Scope, at: Timestamp) -> Result<(), QueryError> {
    let id = DbId::from(scope.id());
    let installations =
        extension_installations::table.filter(extension_installations::organization_id.eq(id));
    let runs =
        extension_executions::table.filter(extension_executions::organization_id.eq(id)).filter(is_open());
    let has_some: bool = diesel::select(exists(installations).or(exists(runs))).get_result(connection)?;
    if has_some {
        return Err(StoreError::Refused(Rule::HasExtensions).into());
    }
    diesel::update(extensions::table)
        .filter(extensions::organization_id.eq(id))
        .filter(extensions::deleted_at.is_null())
        .set((extensions::deleted_at.eq(DbTs(at)), extensions::updated_at.eq(DbTs(at))))
        .cached()
        .execute(connection)?;
    routes::remove_all(connection, scope)
}

/// Selects open runs. Written as a literal, because with parameters the planner does not see that the
/// partial index applies.
pub(super) fn is_open() -> Literal<Bool> {
    literal("extension_executions.status IN ('pending', 'running')")
}
