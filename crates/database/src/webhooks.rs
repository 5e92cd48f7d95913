//! Reads webhooks from the database.

mod missed;
mod writes;

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    applications::{Application, BuildPack, Repository},
    clock::Timestamp,
    ids::{ApplicationId, OrganizationId, WebhookSecretId},
    organizations::Scope,
    secret::Sealed,
    store::StoreError,
    webhooks::{
        BranchHead, DeliveryMark, DeliveryMemory, FollowedBranches, KeptSecret, RepositoryKey,
        WebhookRepository,
    },
};

pub(super) use self::writes::apply;
use super::{
    Database,
    applications::ApplicationRow,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::QueryError,
    schema::{applications, organizations, webhook_deliveries, webhook_secrets},
    statement::ListComparison as _,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = webhook_secrets)]
struct SecretRow {
    #[diesel(deserialize_as = DbId)]
    id: WebhookSecretId,
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    #[diesel(deserialize_as = String)]
    repository: RepositoryKey,
    secret: String,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
    confirmed_at: Option<DbTs>,
}

impl From<SecretRow> for KeptSecret {
    fn from(row: SecretRow) -> Self {
        Self {
            id: row.id,
            organization_id: row.organization_id,
            repository: row.repository,
            secret: Sealed(row.secret),
            created_at: row.created_at,
            confirmed_at: row.confirmed_at.map(Timestamp::from),
        }
    }
}

#[async_trait]
impl WebhookRepository for Database {
    async fn secret(
        &self,
        scope: Scope,
        repository: &RepositoryKey,
    ) -> Result<Option<KeptSecret>, StoreError> {
        let repository = repository.clone();
        self.read_point(move |connection| {
            let row: Option<SecretRow> = webhook_secrets::table
                .inner_join(organizations::table.on(organizations::id.eq(webhook_secrets::organization_id)))
                .filter(webhook_secrets::organization_id.eq(DbId::from(scope.id())))
                .filter(webhook_secrets::repository.eq(repository.as_str()))
                .filter(webhook_secrets::valid_until.is_null())
                .filter(organizations::deleted_at.is_null())
                .select(SecretRow::as_select())
                .first(connection)
                .optional()?;
            Ok(row.map(KeptSecret::from))
        })
        .await
    }

    async fn secrets(
        &self,
        repositories: &[RepositoryKey],
        now: Timestamp,
    ) -> Result<Vec<KeptSecret>, StoreError> {
        let repositories: Vec<String> = repositories.iter().cloned().map(String::from).collect();
        self.read_point(move |connection| {
            let is_valid = webhook_secrets::valid_until.is_null();
            let is_valid = is_valid.or(webhook_secrets::valid_until.gt(DbTs(now)).assume_not_null());
            let rows: Vec<SecretRow> = webhook_secrets::table
                .inner_join(organizations::table.on(organizations::id.eq(webhook_secrets::organization_id)))
                .filter(webhook_secrets::repository.one_of(repositories.clone()))
                .filter(is_valid)
                .filter(organizations::deleted_at.is_null())
                .order((webhook_secrets::created_at.desc(), webhook_secrets::id.desc()))
                .select(SecretRow::as_select())
                .load(connection)?;
            Ok(rows.into_iter().map(KeptSecret::from).collect())
        })
        .await
    }

    async fn applications_of(
        &self,
        scope: Scope,
        repository: &RepositoryKey,
    ) -> Result<Vec<Application>, StoreError> {
        let wanted = [(scope.id(), repository.clone())];
        self.read(move |connection| from_repositories(connection, &wanted)).await
    }

    async fn taken(
        &self,
        applications: &[ApplicationId],
        mark: &DeliveryMark,
        since: Timestamp,
    ) -> Result<Vec<ApplicationId>, StoreError> {
        let applications: Vec<DbId> = applications.iter().copied().map(DbId::from).collect();
        let mark = mark.to_string();
        self.read_point(move |connection| {
            let taken: Vec<DbId> = webhook_deliveries::table
                .filter(webhook_deliveries::application_id.one_of(applications.clone()))
                .filter(webhook_deliveries::taken_at.gt(DbTs(since)))
                .filter(webhook_deliveries::mark.eq(&mark))
                .select(webhook_deliveries::application_id)
                .load(connection)?;
            Ok(taken.into_iter().map(ApplicationId::from).collect())
        })
        .await
    }
}

#[async_trait]
impl FollowedBranches for Database {
    async fn followers(&self) -> Result<Vec<Application>, StoreError> {
        self.read(|connection| {
            let confirmed: Vec<(DbId, String)> = webhook_secrets::table
                .filter(webhook_secrets::valid_until.is_null())
                .filter(webhook_secrets::confirmed_at.is_not_null())
                .select((webhook_secrets::organization_id, webhook_secrets::repository))
                .load(connection)?;
            let confirmed = confirmed.into_iter().map(|(organization, repository)| {
                let repository = RepositoryKey::try_from(repository).map_err(QueryError::unreadable)?;
                Ok((organization.into(), repository))
            });
            let confirmed = confirmed.collect::<Result<Vec<_>, QueryError>>()?;
            let mut followers = from_repositories(connection, &confirmed)?;
            followers.retain(|application| application.blueprint.auto_deploy);
            Ok(followers)
        })
        .await
    }

    async fn is_missed(&self, head: &BranchHead) -> Result<bool, StoreError> {
        let head = head.clone();
        self.read_point(move |connection| missed::is_missed(connection, &head)).await
    }
}

#[async_trait]
impl DeliveryMemory for Database {
    async fn forget(&self, deliveries: Timestamp, secrets: Timestamp) -> Result<(), StoreError> {
        self.write(move |connection| {
            diesel::delete(webhook_deliveries::table)
                .filter(webhook_deliveries::taken_at.lt(DbTs(deliveries)))
                .execute(connection)?;
            diesel::delete(webhook_secrets::table)
                .filter(webhook_secrets::valid_until.lt(DbTs(secrets)))
                .execute(connection)?;
            Ok(())
        })
        .await
    }
}

/// Returns the applications of `repositories`, each of its organization, sorted by id. Only the domain
/// knows which URLs are of the same repository, so all repositories of the organization are compared here,
/// one by one.
fn from_repositories(
    connection: &mut AnyConnection,
    repositories: &[(OrganizationId, RepositoryKey)],
) -> Result<Vec<Application>, QueryError> {
    let mut organizations: Vec<DbId> = repositories.iter().map(|(id, _)| DbId::from(*id)).collect();
    organizations.sort_unstable_by_key(|id| id.0);
    organizations.dedup();
    let mut found = Vec::new();
    for organization in organizations {
        let rows: Vec<ApplicationRow> = applications::table
            .filter(applications::organization_id.eq(organization))
            .filter(applications::deleted_at.is_null())
            .filter(applications::build_pack.ne(BuildPack::Image.as_str()))
            .select(ApplicationRow::as_select())
            .load(connection)?;
        for row in rows {
            let application = Application::try_from(row)?;
            let Repository::Git(url) = &application.blueprint.repository else { continue };
            if repositories.contains(&(application.organization_id, RepositoryKey::of(url))) {
                found.push(application);
            }
        }
    }
    found.sort_unstable_by_key(|application| application.id);
    Ok(found)
}
