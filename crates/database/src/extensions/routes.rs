//! The host names of extension containers. Each is also stored in the table of the applications' names, so
//! that all names are unique; there it is inserted and deleted with its route.

use std::net::IpAddr;

use diesel::{prelude::*, query_dsl::methods, upsert::excluded};
use launchway_domain::{
    applications::{Hostname, Port},
    deployments::ContainerId,
    extensions::{ExtensionKey, ExtensionRoute},
    ids::{ExtensionRouteId, OrganizationId},
    organizations::Scope,
    store::{StoreError, Unique},
};

use crate::{
    columns::DbId,
    connection::AnyConnection,
    dialect::each_backend,
    error::QueryError,
    schema::{extension_routes, hosts},
    statement::StatementCache as _,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = extension_routes)]
struct RouteRow {
    #[diesel(deserialize_as = DbId)]
    id: ExtensionRouteId,
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    #[diesel(deserialize_as = String)]
    extension_key: ExtensionKey,
    #[diesel(deserialize_as = String)]
    host: Hostname,
    #[diesel(deserialize_as = String)]
    container_id: ContainerId,
    address: String,
    #[diesel(deserialize_as = i64)]
    port: Port,
}

impl TryFrom<RouteRow> for ExtensionRoute {
    type Error = QueryError;

    fn try_from(row: RouteRow) -> Result<Self, QueryError> {
        Ok(Self {
            id: row.id,
            scope: Scope::of_record(row.organization_id),
            extension: row.extension_key,
            host: row.host,
            container: row.container_id,
            address: row.address.parse().map_err(QueryError::unreadable)?,
            port: row.port,
        })
    }
}

/// Returns every route, sorted by id.
pub(super) fn all(connection: &mut AnyConnection) -> Result<Vec<ExtensionRoute>, QueryError> {
    let rows: Vec<RouteRow> = extension_routes::table
        .order(extension_routes::id.asc())
        .select(RouteRow::as_select())
        .load(connection)?;
    rows.into_iter().map(ExtensionRoute::try_from).collect()
}

/// Inserts a route, or replaces one that the same extension has for the same organization. `Taken(Domain)`
/// when the name is in use.
///
/// The id is replaced as well, because holders of the old one mean the old container.
pub(super) fn add(connection: &mut AnyConnection, route: &ExtensionRoute) -> Result<(), QueryError> {
    let target = || {
        (
            extension_routes::id.eq(DbId::from(route.id)),
            extension_routes::container_id.eq(route.container.as_str()),
            extension_routes::address.eq(route.address.to_string()),
            extension_routes::port.eq(i64::from(route.port.get())),
        )
    };
    let row = || {
        (
            extension_routes::organization_id.eq(DbId::from(route.scope.id())),
            extension_routes::extension_key.eq(route.extension.as_str()),
            extension_routes::host.eq(route.host.as_str()),
            target(),
        )
    };
    let is_own = || {
        extension_routes::organization_id
            .eq(excluded(extension_routes::organization_id))
            .and(extension_routes::extension_key.eq(excluded(extension_routes::extension_key)))
    };
    let added = each_backend!(connection, backend => {
        let upsert = diesel::insert_into(extension_routes::table)
            .values(row())
            .on_conflict(extension_routes::host)
            .do_update()
            .set(target());
        methods::FilterDsl::filter(upsert, is_own()).execute(backend)
    })?;
    taken_unless(added == 1)?;
    let host = (hosts::host.eq(route.host.as_str()), hosts::extension_route_id.eq(DbId::from(route.id)));
    // A name that belongs to a route belongs to this one, because names are unique.
    let named = each_backend!(connection, backend => {
        let upsert = diesel::insert_into(hosts::table)
            .values(host)
            .on_conflict(hosts::host)
            .do_update()
            .set(hosts::extension_route_id.eq(excluded(hosts::extension_route_id)));
        methods::FilterDsl::filter(upsert, hosts::extension_route_id.is_not_null()).execute(backend)
    })?;
    taken_unless(named == 1)
}

fn taken_unless(is_ours: bool) -> Result<(), QueryError> {
    if is_ours { Ok(()) } else { Err(StoreError::Taken(Unique::Domain).into()) }
}

/// Sets the container address of a name.
pub(super) fn set_route_address(
    connection: &mut AnyConnection,
    id: ExtensionRouteId,
    address: IpAddr,
) -> Result<(), QueryError> {
    diesel::update(extension_routes::table.find(DbId::from(id)))
        .set(extension_routes::address.eq(address.to_string()))
        .cached()
        .execute(connection)?;
    Ok(())
}

/// Removes the routes to containers that an extension made for an organization: one name, or all. Returns
/// their number.
pub(super) fn remove(
    connection: &mut AnyConnection,
    scope: Scope,
    extension: &ExtensionKey,
    host: Option<&Hostname>,
) -> Result<usize, QueryError> {
    let own = extension_routes::table
        .filter(extension_routes::organization_id.eq(DbId::from(scope.id())))
        .filter(extension_routes::extension_key.eq(extension.as_str()));
    Ok(match host {
        Some(host) => {
            diesel::delete(own.filter(extension_routes::host.eq(host.as_str()))).execute(connection)?
        }
        None => diesel::delete(own).execute(connection)?,
    })
}

/// Removes all routes to containers that extensions made for an organization.
pub(super) fn remove_all(connection: &mut AnyConnection, scope: Scope) -> Result<(), QueryError> {
    diesel::delete(extension_routes::table)
        .filter(extension_routes::organization_id.eq(DbId::from(scope.id())))
        .execute(connection)?;
    Ok(())
}
