//! Idempotent requests in the database.

use async_trait::async_trait;
use diesel::{dsl::auto_type, prelude::*};
use launchway_domain::{
    clock::Timestamp,
    idempotency::{BodyHash, IdempotencyKey, IdempotencyStore, StoredResponse, Write},
    secret::Sealed,
    store::{StoreError, Unique},
};

use super::{
    Database,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::each_backend,
    error::QueryError,
    schema::idempotency_keys,
    statement::StatementCache as _,
};

#[async_trait]
impl IdempotencyStore for Database {
    async fn find(
        &self,
        key: &IdempotencyKey,
        since: Timestamp,
    ) -> Result<Option<StoredResponse>, StoreError> {
        let key = key.clone();
        self.read_point(move |connection| {
            let row: Option<(Vec<u8>, DbId, Option<String>)> = idempotency_keys::table
                .filter(is(&key))
                .filter(idempotency_keys::created_at.gt(DbTs(since)))
                .select((idempotency_keys::body_hash, idempotency_keys::resource, idempotency_keys::answer))
                .first(connection)
                .optional()?;
            let Some((body, resource, answer)) = row else { return Ok(None) };
            let body = <[u8; 32]>::try_from(body.as_slice()).map_err(QueryError::unreadable)?;
            Ok(Some(StoredResponse {
                body: BodyHash(body),
                resource: resource.0,
                answer: answer.map(Sealed),
            }))
        })
        .await
    }

    async fn keep_answer(&self, key: &IdempotencyKey, answer: &Sealed) -> Result<(), StoreError> {
        let (key, answer) = (key.clone(), answer.clone());
        self.write(move |connection| {
            diesel::update(idempotency_keys::table)
                .filter(is(&key))
                // Another request may have taken the name after this one expired.
                .filter(idempotency_keys::body_hash.eq(key.body.0.as_slice()))
                .set(idempotency_keys::answer.eq(&answer.0))
                .cached()
                .execute(connection)?;
            Ok(())
        })
        .await
    }

    async fn forget(&self, until: Timestamp) -> Result<(), StoreError> {
        self.write(move |connection| {
            diesel::delete(idempotency_keys::table)
                .filter(idempotency_keys::created_at.lt(DbTs(until)))
                .execute(connection)?;
            Ok(())
        })
        .await
    }
}

/// Selects the request of that scope, user, operation and name.
#[auto_type(no_type_alias)]
fn is<'a>(key: &'a IdempotencyKey) -> _ {
    let organization_id: DbId = DbId::from(key.scope.id());
    let user_id: DbId = DbId::from(key.user_id);
    let operation: &'a str = key.operation.as_str();
    let name: &'a str = key.name.as_str();
    idempotency_keys::organization_id
        .eq(organization_id)
        .and(idempotency_keys::user_id.eq(user_id))
        .and(idempotency_keys::operation.eq(operation))
        .and(idempotency_keys::name.eq(name))
}

/// Applies one change.
pub(super) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    use diesel::query_dsl::methods::FilterDsl as _;

    let Write::Claim { key, resource, since, at } = write;
    let remembered = (
        idempotency_keys::body_hash.eq(key.body.0.as_slice()),
        idempotency_keys::resource.eq(DbId(*resource)),
        idempotency_keys::answer.eq(None::<String>),
        idempotency_keys::created_at.eq(DbTs(*at)),
    );
    let claimed = each_backend!(connection, backend => diesel::insert_into(idempotency_keys::table)
        .values((
            idempotency_keys::organization_id.eq(DbId::from(key.scope.id())),
            idempotency_keys::user_id.eq(DbId::from(key.user_id)),
            idempotency_keys::operation.eq(&key.operation),
            idempotency_keys::name.eq(key.name.as_str()),
            remembered.clone(),
        ))
        .on_conflict((
            idempotency_keys::organization_id,
            idempotency_keys::user_id,
            idempotency_keys::operation,
            idempotency_keys::name,
        ))
        .do_update()
        .set(remembered)
        .filter(idempotency_keys::created_at.le(DbTs(*since)))
        .cached()
        .execute(backend))?;
    if claimed == 0 { Err(StoreError::Taken(Unique::IdempotencyKey).into()) } else { Ok(()) }
}
