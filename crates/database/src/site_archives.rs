//! The archives of published sites in the database.

use std::collections::HashMap;

use async_trait::async_trait;
use diesel::{
    dsl::{exists, not},
    prelude::*,
};
use launchway_domain::{
    clock::Timestamp,
    deployments::{ArchiveState, DeploymentRepository as _, KeptVersions, SiteArchive, SiteArchives},
    ids::{ApplicationId, DeploymentId, SiteUploadId},
    store::StoreError,
};

use super::{
    Database,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    deployments::AT_ONCE,
    dialect::each_backend,
    error::QueryError,
    schema::{deployments, site_archive_parts, site_archives},
    statement::{ListComparison as _, StatementCache as _},
};

/// The most parts that one transaction deletes.
const DELETED_AT_ONCE: usize = 16;

#[async_trait]
impl SiteArchives for Database {
    async fn find(&self, deployment: DeploymentId) -> Result<Option<SiteArchive>, StoreError> {
        self.read_point(move |connection| {
            let row: Option<(DbId, DbId, i64, i64, Vec<u8>)> = site_archives::table
                .find(DbId::from(deployment))
                .filter(not(site_archives::is_removed))
                .select((
                    site_archives::application_id,
                    site_archives::upload_id,
                    site_archives::parts,
                    site_archives::size,
                    site_archives::sha256,
                ))
                .first(connection)
                .optional()?;
            let Some((application, upload, parts, size, sha256)) = row else { return Ok(None) };
            let archive = SiteArchive {
                application: application.into(),
                deployment,
                upload: upload.into(),
                parts: u32::try_from(parts).map_err(QueryError::unreadable)?,
                size: u64::try_from(size).map_err(QueryError::unreadable)?,
                sha256: sha256
                    .try_into()
                    .map_err(|_bytes| QueryError::unreadable("a hash has another length"))?,
            };
            Ok(Some(archive))
        })
        .await
    }

    async fn all(&self) -> Result<Vec<(ApplicationId, DeploymentId)>, StoreError> {
        self.read(|connection| {
            let rows: Vec<(DbId, DbId)> = site_archives::table
                .filter(not(site_archives::is_removed))
                .select((site_archives::application_id, site_archives::deployment_id))
                .order(site_archives::deployment_id)
                .load(connection)?;
            Ok(rows
                .into_iter()
                .map(|(application, deployment)| (application.into(), deployment.into()))
                .collect())
        })
        .await
    }

    async fn states(
        &self,
        deployments: &[DeploymentId],
    ) -> Result<Vec<(DeploymentId, ArchiveState)>, StoreError> {
        let ids: Vec<DbId> = deployments.iter().copied().map(DbId::from).collect();
        let rows = self.read(move |connection| recorded(connection, &ids)).await?;
        let (mut states, mut removed, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        for deployment in deployments {
            match rows.get(deployment) {
                Some(false) => states.push((*deployment, ArchiveState::Complete)),
                Some(true) => removed.push(*deployment),
                None => unknown.push(*deployment),
            }
        }
        // A release whose archive was removed is needed only by what serves or is about to.
        for (some, kept) in [(removed, KeptVersions(1)), (unknown, KeptVersions(u16::MAX))] {
            let was_removed = kept == KeptVersions(1);
            for status in self.retention_status(&some, kept).await? {
                let is_needed = status.is_live || status.is_open || status.is_worth_keeping;
                match (is_needed, was_removed) {
                    (true, _) => states.push((status.deployment, ArchiveState::Missing)),
                    (false, true) => states.push((status.deployment, ArchiveState::Removed)),
                    (false, false) => {}
                }
            }
        }
        Ok(states)
    }

    async fn add_part(
        &self,
        upload: SiteUploadId,
        part: u32,
        bytes: Vec<u8>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.write(move |connection| {
            let row = (
                site_archive_parts::upload_id.eq(DbId::from(upload)),
                site_archive_parts::part.eq(i64::from(part)),
                site_archive_parts::bytes.eq(bytes),
                site_archive_parts::written_at.eq(DbTs(at)),
            );
            diesel::insert_into(site_archive_parts::table).values(row).execute(connection)?;
            Ok(())
        })
        .await
    }

    async fn part(&self, upload: SiteUploadId, part: u32) -> Result<Option<Vec<u8>>, StoreError> {
        let key = (DbId::from(upload), i64::from(part));
        self.read(move |connection| {
            let bytes = site_archive_parts::table.find(key).select(site_archive_parts::bytes);
            Ok(bytes.first(connection).optional()?)
        })
        .await
    }

    async fn complete(&self, archive: SiteArchive) -> Result<(), StoreError> {
        let replaced = self.write(move |connection| complete(connection, &archive)).await?;
        match replaced {
            Some(upload) => self.delete_parts(upload).await,
            None => Ok(()),
        }
    }

    async fn remove(&self, deployment: DeploymentId) -> Result<(), StoreError> {
        let deployment = DbId::from(deployment);
        self.remove_archives(move |connection| {
            Ok(site_archives::table
                .find(deployment)
                .filter(not(site_archives::is_removed))
                .select((site_archives::deployment_id, site_archives::upload_id))
                .load(connection)?)
        })
        .await
    }

    async fn remove_all(&self, application: ApplicationId) -> Result<(), StoreError> {
        let application = DbId::from(application);
        self.remove_archives(move |connection| {
            Ok(site_archives::table
                .filter(site_archives::application_id.eq(application))
                .filter(not(site_archives::is_removed))
                .select((site_archives::deployment_id, site_archives::upload_id))
                .load(connection)?)
        })
        .await
    }

    async fn remove_incomplete(&self, before: Timestamp) -> Result<(), StoreError> {
        let uploads = self.read(move |connection| {
            let archive = site_archives::table
                .filter(site_archives::upload_id.eq(site_archive_parts::upload_id))
                .filter(not(site_archives::is_removed));
            // Parts are deleted from the last one on, so that the first one tells of a deletion that did not finish.
            let uploads: Vec<DbId> = site_archive_parts::table
                .filter(site_archive_parts::part.eq(0))
                .filter(site_archive_parts::written_at.lt(DbTs(before)))
                .filter(not(exists(archive)))
                .select(site_archive_parts::upload_id)
                .load(connection)?;
            Ok(uploads)
        });
        for upload in uploads.await? {
            self.delete_parts(upload).await?;
        }
        Ok(())
    }
}

impl Database {
    /// Marks archives as removed, and deletes their parts in transactions of their own.
    async fn remove_archives(
        &self,
        find: impl FnOnce(&mut AnyConnection) -> Result<Vec<(DbId, DbId)>, QueryError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let removed = self.write(move |connection| {
            let archives = find(connection)?;
            for (deployment, _) in &archives {
                diesel::update(site_archives::table.find(*deployment))
                    .set(site_archives::is_removed.eq(true))
                    .cached()
                    .execute(connection)?;
            }
            Ok(archives)
        });
        for (_, upload) in removed.await? {
            self.delete_parts(upload).await?;
        }
        Ok(())
    }

    async fn delete_parts(&self, upload: DbId) -> Result<(), StoreError> {
        loop {
            let deleted = self.write(move |connection| {
                let parts: Vec<i64> = site_archive_parts::table
                    .filter(site_archive_parts::upload_id.eq(upload))
                    .order(site_archive_parts::part.desc())
                    .select(site_archive_parts::part)
                    .limit(i64::try_from(DELETED_AT_ONCE).unwrap_or(i64::MAX))
                    .load(connection)?;
                for part in &parts {
                    diesel::delete(site_archive_parts::table.find((upload, *part))).execute(connection)?;
                }
                Ok(parts.len())
            });
            if deleted.await? < DELETED_AT_ONCE {
                return Ok(());
            }
        }
    }
}

/// Returns whether the archive of each of `ids` that has ever been complete was removed.
fn recorded(connection: &mut AnyConnection, ids: &[DbId]) -> Result<HashMap<DeploymentId, bool>, QueryError> {
    let mut found = HashMap::new();
    for some in ids.chunks(AT_ONCE) {
        let rows: Vec<(DbId, bool)> = site_archives::table
            .filter(site_archives::deployment_id.one_of(some.to_vec()))
            .select((site_archives::deployment_id, site_archives::is_removed))
            .load(connection)?;
        found.extend(rows.into_iter().map(|(deployment, is_removed)| (deployment.into(), is_removed)));
    }
    Ok(found)
}

/// Returns the upload that the archive had before.
fn complete(connection: &mut AnyConnection, archive: &SiteArchive) -> Result<Option<DbId>, QueryError> {
    let (application, deployment) = (DbId::from(archive.application), DbId::from(archive.deployment));
    let upload = DbId::from(archive.upload);
    let owned = deployments::table.find(deployment).filter(deployments::application_id.eq(application));
    let stored: i64 = site_archive_parts::table
        .filter(site_archive_parts::upload_id.eq(upload))
        .count()
        .get_result(connection)?;
    if stored != i64::from(archive.parts) || !diesel::select(exists(owned)).get_result::<bool>(connection)? {
        return Err(StoreError::Stale.into());
    }
    let earlier: Option<DbId> = site_archives::table
        .find(deployment)
        .select(site_archives::upload_id)
        .first(connection)
        .optional()?;
    let content = (
        site_archives::upload_id.eq(upload),
        site_archives::parts.eq(i64::from(archive.parts)),
        site_archives::size.eq(i64::try_from(archive.size).map_err(QueryError::unreadable)?),
        site_archives::sha256.eq(archive.sha256.as_slice()),
        site_archives::is_removed.eq(false),
    );
    let key = (site_archives::deployment_id.eq(deployment), site_archives::application_id.eq(application));
    each_backend!(connection, backend => diesel::insert_into(site_archives::table)
        .values((key, content))
        .on_conflict(site_archives::deployment_id)
        .do_update()
        .set(content)
        .cached()
        .execute(backend))?;
    Ok(earlier.filter(|earlier| *earlier != upload))
}
