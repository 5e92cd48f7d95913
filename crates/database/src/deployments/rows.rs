//! The rows of deployments.

use diesel::{
    prelude::*,
    sql_types::{Bool, Nullable},
};
use launchway_domain::{
    applications::Port,
    clock::Timestamp,
    deployments::{
        BuildCache, ContainerId, ContainerRecord, ContainerState, Deployment, DeploymentKind,
        DeploymentState, DeploymentStatus,
    },
    ids::{ApplicationId, DeploymentId, DeploymentStatusId, JobId, OrganizationId},
};

use super::copies;
use crate::{
    applications::read,
    columns::{DbId, DbTs},
    error::QueryError,
    schema::deployments,
    statement::{Literal, literal},
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = deployments)]
pub(super) struct DeploymentRow {
    #[diesel(deserialize_as = DbId)]
    id: DeploymentId,
    #[diesel(deserialize_as = DbId)]
    application_id: ApplicationId,
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    rollback_to: Option<DbId>,
    #[diesel(deserialize_as = DbId)]
    job_id: JobId,
    #[diesel(deserialize_as = DbId)]
    status_id: DeploymentStatusId,
    #[diesel(deserialize_as = String)]
    status: DeploymentState,
    #[diesel(deserialize_as = DbTs)]
    status_updated_at: Timestamp,
    commit_hash: Option<String>,
    image: Option<String>,
    container_id: Option<String>,
    container_name: Option<String>,
    container_state: Option<String>,
    container_address: Option<String>,
    container_port: Option<i64>,
    requested_by: String,
    breakdown: Option<String>,
    further_copies: Option<String>,
    no_cache: bool,
    source_digest: Option<String>,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    updated_at: Timestamp,
}

impl TryFrom<DeploymentRow> for Deployment {
    type Error = QueryError;

    fn try_from(row: DeploymentRow) -> Result<Self, QueryError> {
        let kind = match row.rollback_to {
            None => DeploymentKind::Fresh,
            Some(to) => DeploymentKind::Rollback { to: to.into() },
        };
        let (id, state): (Option<ContainerId>, Option<ContainerState>) =
            (read(row.container_id)?, read(row.container_state)?);
        let address = row.container_address.map(|address| address.parse()).transpose();
        let address = address.map_err(QueryError::unreadable)?;
        let port = row.container_port.map(Port::try_from).transpose().map_err(QueryError::unreadable)?;
        // The table has all of them or none.
        let container = id.zip(state).zip(row.container_name).zip(port);
        Ok(Self {
            id: row.id,
            application_id: row.application_id,
            organization_id: row.organization_id,
            kind,
            requested_by: row.requested_by,
            build_cache: if row.no_cache { BuildCache::Ignore } else { BuildCache::Use },
            job_id: row.job_id,
            status: DeploymentStatus {
                id: row.status_id,
                state: row.status,
                created_at: row.created_at,
                updated_at: row.status_updated_at,
            },
            commit: read(row.commit_hash)?,
            source_digest: read(row.source_digest)?,
            image: read(row.image)?,
            container: container.map(|(((id, state), name), port)| ContainerRecord {
                id,
                name,
                state,
                address,
                port,
            }),
            further_copies: copies::read(row.further_copies.as_deref())?,
            breakdown: row.breakdown,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

/// A new deployment. Columns without a value are NULL, so that a batch has one text. It owns its texts, because Diesel
/// inserts batches only of types that borrow nothing.
#[derive(Insertable)]
#[diesel(table_name = deployments, treat_none_as_default_value = false)]
pub(super) struct NewRow {
    id: DbId,
    application_id: DbId,
    organization_id: DbId,
    kind: &'static str,
    rollback_to: Option<DbId>,
    requested_by: String,
    no_cache: bool,
    job_id: DbId,
    status_id: DbId,
    status: &'static str,
    status_updated_at: DbTs,
    commit_hash: Option<String>,
    source_digest: Option<String>,
    image: Option<String>,
    container_id: Option<String>,
    container_name: Option<String>,
    container_state: Option<&'static str>,
    container_address: Option<String>,
    container_port: Option<i64>,
    further_copies: Option<String>,
    created_at: DbTs,
    updated_at: DbTs,
}

impl From<&Deployment> for NewRow {
    fn from(deployment: &Deployment) -> Self {
        let (kind, rollback_to) = match deployment.kind {
            DeploymentKind::Fresh => ("fresh", None),
            DeploymentKind::Rollback { to } => ("rollback", Some(to.into())),
        };
        let container = deployment.container.as_ref();
        let address = container.and_then(|container| container.address);
        Self {
            id: deployment.id.into(),
            application_id: deployment.application_id.into(),
            organization_id: deployment.organization_id.into(),
            kind,
            rollback_to,
            requested_by: deployment.requested_by.clone(),
            no_cache: deployment.build_cache == BuildCache::Ignore,
            job_id: deployment.job_id.into(),
            status_id: deployment.status.id.into(),
            status: deployment.status.state.as_str(),
            status_updated_at: DbTs(deployment.status.updated_at),
            commit_hash: deployment.commit.as_ref().map(|commit| commit.as_str().to_owned()),
            source_digest: deployment.source_digest.as_ref().map(|digest| digest.as_str().to_owned()),
            image: deployment.image.as_ref().map(|image| image.as_str().to_owned()),
            container_id: container.map(|container| container.id.as_str().to_owned()),
            container_name: container.map(|container| container.name.clone()),
            container_state: container.map(|container| container.state.as_str()),
            container_address: address.map(|address| address.to_string()),
            container_port: container.map(|container| container.port.get().into()),
            further_copies: copies::stored(&deployment.further_copies),
            created_at: DbTs(deployment.created_at),
            updated_at: DbTs(deployment.updated_at),
        }
    }
}

/// The columns of facts that are found out during a deployment. Absent ones stay unchanged.
#[derive(AsChangeset, Default)]
#[diesel(table_name = deployments)]
pub(super) struct FactColumns<'a> {
    pub(super) commit_hash: Option<&'a str>,
    pub(super) source_digest: Option<&'a str>,
    pub(super) image: Option<&'a str>,
    pub(super) container_id: Option<&'a str>,
    pub(super) container_name: Option<&'a str>,
    pub(super) container_state: Option<&'static str>,
    pub(super) container_address: Option<Option<String>>,
    pub(super) container_port: Option<i64>,
    pub(super) further_copies: Option<Option<String>>,
}

impl<'a> FactColumns<'a> {
    /// Sets the column of the copies after the first one.
    pub(super) fn with_further_copies(self, copies: &[ContainerRecord]) -> Self {
        Self { further_copies: Some(copies::stored(copies)), ..self }
    }

    /// Sets the columns of a container, which may have no address any more.
    pub(super) fn with_container(self, container: Option<&'a ContainerRecord>) -> Self {
        let Some(container) = container else { return self };
        Self {
            container_id: Some(container.id.as_str()),
            container_name: Some(&container.name),
            container_state: Some(container.state.as_str()),
            container_address: Some(container.address.map(|address| address.to_string())),
            container_port: Some(container.port.get().into()),
            ..self
        }
    }
}

/// Selects whether the application of a deployment is not deleted; null if there is none.
pub(super) fn has_application() -> Literal<Nullable<Bool>> {
    literal(
        "(SELECT applications.deleted_at IS NULL FROM applications \
         WHERE applications.id = deployments.application_id \
         AND applications.organization_id = deployments.organization_id)",
    )
}

/// Selects open deployments. Written as a literal, because with parameters the planner does not see that
/// the partial index applies.
pub(crate) fn is_open() -> Literal<Bool> {
    literal("deployments.status IN ('queued', 'cloning', 'building', 'deploying')")
}

#[cfg(test)]
mod tests {
    use diesel::{debug_query, pg::Pg};
    use launchway_testkit::builders::{a_container, a_deployment};

    use super::*;

    /// Returns the statement that inserts `deployments`, without its values.
    fn statement(deployments: &[&Deployment]) -> String {
        let rows: Vec<NewRow> = deployments.iter().map(|deployment| NewRow::from(*deployment)).collect();
        let insert = diesel::insert_into(deployments::table).values(&rows);
        let text = debug_query::<Pg, _>(&insert).to_string();
        text.split(" -- binds").next().unwrap().to_owned()
    }

    #[test]
    fn batches_of_the_same_length_have_one_text() {
        let (bare, full) =
            (a_deployment().build(), a_deployment().with_image().run_by(a_container("web")).build());
        let expected = statement(&[&bare, &bare]);
        assert!(!expected.contains("DEFAULT"), "{expected}");
        assert_eq!(statement(&[&bare, &full]), expected);
        assert_eq!(statement(&[&full, &bare]), expected);
    }
}
