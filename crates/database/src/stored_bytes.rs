//! The space that records use.

use std::collections::BTreeMap;

use async_trait::async_trait;
use diesel::{QueryableByName, prelude::*, sql_query, sql_types::BigInt};
use launchway_domain::{
    diagnostics::{StorageStatistics, StoredBytes},
    store::StoreError,
};

use super::{
    Database,
    connection::AnyConnection,
    error::QueryError,
    schema::{deployment_images, log_usage},
};

#[derive(QueryableByName)]
struct Size {
    #[diesel(sql_type = BigInt)]
    bytes: i64,
}

#[async_trait]
impl StorageStatistics for Database {
    async fn stored_bytes(&self) -> Result<StoredBytes, StoreError> {
        self.read(|connection| {
            // A sum in the database is a decimal number on PostgreSQL.
            let logs: Vec<i64> = log_usage::table.select(log_usage::bytes).load(connection)?;
            let images: Vec<(String, i64)> = deployment_images::table
                .select((deployment_images::image_id, deployment_images::bytes))
                .load(connection)?;
            let images: BTreeMap<String, i64> = images.into_iter().collect();
            let bytes = |sum: i64| u64::try_from(sum).unwrap_or_default();
            Ok(StoredBytes {
                database: bytes(database_size(connection)?),
                logs: bytes(logs.iter().sum()),
                images: bytes(images.values().sum()),
            })
        })
        .await
    }
}

fn database_size(connection: &mut AnyConnection) -> Result<i64, QueryError> {
    let size: Size = match connection {
        AnyConnection::Sqlite(sqlite) => {
            sql_query("SELECT page_count * page_size AS bytes FROM pragma_page_count, pragma_page_size")
                .get_result(sqlite)?
        }
        AnyConnection::Postgres(postgres) => {
            sql_query("SELECT pg_database_size(current_database()) AS bytes").get_result(postgres)?
        }
    };
    Ok(size.bytes)
}
