//! Deploy keys in the database.

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    ids::OrganizationId,
    organizations::{DeployKey, DeployKeyRepository, Scope},
    secret::Sealed,
    store::StoreError,
};

use crate::{
    Database,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::each_backend,
    error::{QueryError, guarded},
    schema::{deploy_keys, organizations},
    statement::StatementCache as _,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = deploy_keys)]
struct DeployKeyRow {
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    public_key: String,
    private_key: String,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
}

impl From<DeployKeyRow> for DeployKey {
    fn from(row: DeployKeyRow) -> Self {
        Self {
            organization_id: row.organization_id,
            public_key: row.public_key,
            private_key: Sealed(row.private_key),
            created_at: row.created_at,
        }
    }
}

#[async_trait]
impl DeployKeyRepository for Database {
    async fn deploy_key(&self, scope: Scope) -> Result<Option<DeployKey>, StoreError> {
        self.read_point(move |connection| {
            let row: Option<DeployKeyRow> = deploy_keys::table
                .inner_join(organizations::table.on(organizations::id.eq(deploy_keys::organization_id)))
                .filter(deploy_keys::organization_id.eq(DbId::from(scope.id())))
                .filter(organizations::deleted_at.is_null())
                .select(DeployKeyRow::as_select())
                .first(connection)
                .optional()?;
            Ok(row.map(DeployKey::from))
        })
        .await
    }
}

type Columns<'a> = (
    diesel::dsl::Eq<deploy_keys::public_key, &'a str>,
    diesel::dsl::Eq<deploy_keys::private_key, &'a str>,
    diesel::dsl::Eq<deploy_keys::created_at, DbTs>,
);

fn columns(key: &DeployKey) -> Columns<'_> {
    (
        deploy_keys::public_key.eq(key.public_key.as_str()),
        deploy_keys::private_key.eq(key.private_key.0.as_str()),
        deploy_keys::created_at.eq(DbTs(key.created_at)),
    )
}

/// Inserts the first key of an organization that is not deleted.
pub(super) fn insert_first(connection: &mut AnyConnection, key: &DeployKey) -> Result<(), QueryError> {
    let organization_id = deploy_keys::organization_id.eq(DbId::from(key.organization_id));
    guarded(each_backend!(connection, backend => diesel::insert_into(deploy_keys::table)
        .values((organization_id, columns(key)))
        .on_conflict(deploy_keys::organization_id)
        .do_nothing()
        .execute(backend))?)
}

/// Replaces the key of an organization that is not deleted.
pub(super) fn replace(connection: &mut AnyConnection, key: &DeployKey) -> Result<(), QueryError> {
    let organization_id = deploy_keys::organization_id.eq(DbId::from(key.organization_id));
    each_backend!(connection, backend => diesel::insert_into(deploy_keys::table)
        .values((organization_id, columns(key)))
        .on_conflict(deploy_keys::organization_id)
        .do_update()
        .set(columns(key))
        .cached()
        .execute(backend))?;
    Ok(())
}
