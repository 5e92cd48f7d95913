//! Reads extensions from the database.

mod announcements;
mod executions;
mod host_ports;
mod log;
mod moves;
mod publish;
mod requests;
mod routes;
mod rows;
mod writes;

use std::collections::HashMap;

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    extensions::{
        Extension, ExtensionFilter, ExtensionKey, ExtensionRepository, ExtensionRoute, ExtensionVariable,
        Validation,
    },
    ids::ExtensionId,
    organizations::Scope,
    page::{Page, PageRequest},
    store::StoreError,
};
use uuid::Uuid;

use self::rows::{ExtensionRow, SEPARATOR, VariableRow};
pub(super) use self::writes::{apply, leave};
use super::{
    Database,
    columns::DbId,
    connection::{AnyConnection, MultiBackend},
    error::QueryError,
    schema::{extension_variables, extensions},
    search::containing,
    statement::ListComparison as _,
};

#[async_trait]
impl ExtensionRepository for Database {
    async fn page(
        &self,
        scope: Scope,
        filter: &ExtensionFilter,
        page: PageRequest,
    ) -> Result<Page<Extension>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| page_of(connection, scope, &filter, page)).await
    }

    async fn by_key(&self, scope: Scope, key: &ExtensionKey) -> Result<Option<Extension>, StoreError> {
        let key = key.to_string();
        self.read_point(move |connection| {
            first(connection, visible_to(scope).filter(extensions::key.eq(key.clone())))
        })
        .await
    }

    async fn by_id(&self, scope: Scope, id: ExtensionId) -> Result<Option<Extension>, StoreError> {
        self.read_point(move |connection| {
            first(connection, visible_to(scope).filter(extensions::id.eq(DbId::from(id))))
        })
        .await
    }

    async fn catalog(&self) -> Result<Vec<(ExtensionKey, Validation, String)>, StoreError> {
        self.read(|connection| {
            let rows: Vec<(String, String, String)> = extensions::table
                .filter(extensions::organization_id.is_null())
                .filter(extensions::deleted_at.is_null())
                .order(extensions::key.asc())
                .select((extensions::key, extensions::validation, extensions::content_hash))
                .load(connection)?;
            let entry = |(key, validation, hash): (String, String, String)| {
                let key = ExtensionKey::try_from(key).map_err(QueryError::unreadable)?;
                Ok((key, Validation::try_from(validation).map_err(QueryError::unreadable)?, hash))
            };
            rows.into_iter().map(entry).collect()
        })
        .await
    }

    async fn routes(&self) -> Result<Vec<ExtensionRoute>, StoreError> {
        self.read(routes::all).await
    }
}

/// The catalog and the forks of an organization.
fn visible_to(scope: Scope) -> extensions::BoxedQuery<'static, MultiBackend> {
    let own = extensions::organization_id.eq(DbId::from(scope.id()));
    extensions::table
        .filter(extensions::deleted_at.is_null())
        .filter(extensions::organization_id.is_null().or(own))
        .into_boxed()
}

fn first(
    connection: &mut AnyConnection,
    found: extensions::BoxedQuery<'static, MultiBackend>,
) -> Result<Option<Extension>, QueryError> {
    let rows = found.limit(1).select(ExtensionRow::as_select()).load(connection)?;
    Ok(with_variables(connection, rows)?.pop())
}

fn page_of(
    connection: &mut AnyConnection,
    scope: Scope,
    filter: &ExtensionFilter,
    page: PageRequest,
) -> Result<Page<Extension>, QueryError> {
    // PostgreSQL does not even compare a text that contains NUL.
    if filter.search.as_ref().is_some_and(|search| search.contains(['\0', SEPARATOR])) {
        return Ok(Page { items: Vec::new(), request: page, total: 0 });
    }
    let total = matching(scope, filter).count().get_result(connection)?;
    let rows = matching(scope, filter)
        .order((extensions::name_key.asc(), extensions::key.asc()))
        .limit(page.size())
        .offset(page.offset())
        .select(ExtensionRow::as_select())
        .load(connection)?;
    Ok(Page { items: with_variables(connection, rows)?, request: page, total })
}

/// The extensions that an organization sees and that pass the filter.
fn matching(scope: Scope, filter: &ExtensionFilter) -> extensions::BoxedQuery<'static, MultiBackend> {
    let mut matching = visible_to(scope);
    if let Some(category) = filter.category {
        matching = matching.filter(extensions::category.eq(category.as_str()));
    }
    if let Some(kind) = filter.kind {
        matching = matching.filter(extensions::kind.eq(kind.as_str()));
    }
    if let Some(search) = &filter.search {
        matching = matching.filter(extensions::search.like(containing(search)).escape('\\'));
    }
    matching
}

/// Adds the variables to the extensions of rows, in their order.
fn with_variables(
    connection: &mut AnyConnection,
    rows: Vec<ExtensionRow>,
) -> Result<Vec<Extension>, QueryError> {
    let ids: Vec<DbId> = rows.iter().map(ExtensionRow::id).collect();
    let found: Vec<VariableRow> = extension_variables::table
        .filter(extension_variables::extension_id.one_of(ids))
        .order((extension_variables::extension_id.asc(), extension_variables::position.asc()))
        .select(VariableRow::as_select())
        .load(connection)?;
    let mut variables: HashMap<Uuid, Vec<ExtensionVariable>> = HashMap::new();
    for row in found {
        variables.entry(row.extension_id.0).or_default().push(row.into());
    }
    let whole = |row: ExtensionRow| {
        let variables = variables.remove(&row.id().0).unwrap_or_default();
        row.with(variables)
    };
    rows.into_iter().map(whole).collect()
}
