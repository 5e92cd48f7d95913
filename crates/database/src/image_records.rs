//! The images of deployments in the database, and the bytes that they take.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    deployments::{ImageRecord, ImageRecords, ImageSize},
    ids::DeploymentId,
    organizations::Scope,
    quotas::Quota,
    store::StoreError,
};
use uuid::Uuid;

use super::{
    Database,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::{each_backend, hold_quotas},
    error::QueryError,
    schema::{deployment_images, deployments},
};

#[async_trait]
impl ImageRecords for Database {
    async fn used(&self, scope: Scope) -> Result<u64, StoreError> {
        let organization = DbId::from(scope.id());
        let bytes = self.read(move |connection| bytes_of(connection, organization)).await?;
        Ok(u64::try_from(bytes).unwrap_or_default())
    }

    async fn record(
        &self,
        scope: Scope,
        deployment: DeploymentId,
        images: Vec<ImageSize>,
        quota: Quota,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (organization, deployment) = (DbId::from(scope.id()), DbId::from(deployment));
        self.write(move |connection| {
            // On PostgreSQL a concurrent transaction waits here, and then counts these images.
            hold_quotas(connection, organization)?;
            if owner_of(connection, deployment)?.is_none_or(|owner| owner.0 != organization.0) {
                return Err(StoreError::Stale.into());
            }
            let of_deployment =
                deployment_images::table.filter(deployment_images::deployment_id.eq(deployment));
            diesel::delete(of_deployment).execute(connection)?;
            let held = sizes_of(connection, organization)?;
            let wanted: BTreeMap<&str, u64> =
                images.iter().map(|image| (image.id.as_str(), image.bytes)).collect();
            let more = wanted.iter().filter(|(id, _)| !held.contains_key(**id)).map(|(_, bytes)| bytes).sum();
            let used = u64::try_from(held.values().sum::<i64>()).unwrap_or_default();
            quota.check(used, more).map_err(StoreError::QuotaExceeded)?;
            for image in &images {
                insert(connection, (deployment, organization), image, at)?;
            }
            Ok(())
        })
        .await
    }

    async fn synchronize(&self, found: Vec<ImageRecord>, at: Timestamp) -> Result<(), StoreError> {
        type Row = (DbId, String, DbTs);
        let rows: Vec<Row> = self
            .read(|connection| {
                Ok(deployment_images::table
                    .select((
                        deployment_images::deployment_id,
                        deployment_images::image_id,
                        deployment_images::recorded_at,
                    ))
                    .load(connection)?)
            })
            .await?;
        let key = |record: &ImageRecord| (Uuid::from(record.deployment), record.image.id.as_str().to_owned());
        let there: BTreeSet<(Uuid, String)> = found.iter().map(key).collect();
        let recorded: BTreeSet<(Uuid, String)> =
            rows.iter().map(|(deployment, image, _)| (deployment.0, image.clone())).collect();
        let gone: Vec<Row> = rows
            .into_iter()
            .filter(|(deployment, image, since)| {
                Timestamp::from(*since) < at && !there.contains(&(deployment.0, image.clone()))
            })
            .collect();
        let missing: Vec<ImageRecord> =
            found.into_iter().filter(|record| !recorded.contains(&key(record))).collect();
        // Usually nothing differs, and no transaction is needed.
        if gone.is_empty() && missing.is_empty() {
            return Ok(());
        }
        self.write(move |connection| {
            for (deployment, image, since) in gone {
                // Unless it was recorded anew since it was read.
                let row = deployment_images::table
                    .find((deployment, image))
                    .filter(deployment_images::recorded_at.eq(since));
                diesel::delete(row).execute(connection)?;
            }
            for ImageRecord { deployment, image } in missing {
                let deployment = DbId::from(deployment);
                if let Some(organization) = owner_of(connection, deployment)? {
                    insert(connection, (deployment, organization), &image, at)?;
                }
            }
            Ok(())
        })
        .await
    }

    async fn forget(&self, deployments: Vec<DeploymentId>) -> Result<(), StoreError> {
        self.write(move |connection| {
            for deployment in deployments {
                let rows = deployment_images::table
                    .filter(deployment_images::deployment_id.eq(DbId::from(deployment)));
                diesel::delete(rows).execute(connection)?;
            }
            Ok(())
        })
        .await
    }
}

/// Returns the bytes of all images of an organization, each counted once.
pub(super) fn bytes_of(connection: &mut AnyConnection, organization: DbId) -> Result<i64, QueryError> {
    Ok(sizes_of(connection, organization)?.values().sum())
}

fn sizes_of(connection: &mut AnyConnection, organization: DbId) -> Result<BTreeMap<String, i64>, QueryError> {
    let rows: Vec<(String, i64)> = deployment_images::table
        .filter(deployment_images::organization_id.eq(organization))
        .select((deployment_images::image_id, deployment_images::bytes))
        .load(connection)?;
    Ok(rows.into_iter().collect())
}

/// Returns the organization of a deployment; `None` when there is no such deployment.
fn owner_of(connection: &mut AnyConnection, deployment: DbId) -> Result<Option<DbId>, QueryError> {
    let owner = deployments::table.find(deployment).select(deployments::organization_id);
    Ok(owner.first(connection).optional()?)
}

fn insert(
    connection: &mut AnyConnection,
    (deployment, organization): (DbId, DbId),
    image: &ImageSize,
    at: Timestamp,
) -> Result<(), QueryError> {
    let row = (
        deployment_images::deployment_id.eq(deployment),
        deployment_images::image_id.eq(image.id.as_str()),
        deployment_images::organization_id.eq(organization),
        deployment_images::bytes.eq(i64::try_from(image.bytes).unwrap_or(i64::MAX)),
        deployment_images::recorded_at.eq(DbTs(at)),
    );
    each_backend!(connection, backend => diesel::insert_into(deployment_images::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(backend))?;
    Ok(())
}
