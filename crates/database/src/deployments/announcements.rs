//! Events of finished deployments.

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    deployments::{DeploymentState, EndCause},
    ids::{DeploymentId, Ids as _},
    jobs::JobState,
    notifications::{EndedDeployment, EventKind},
};
use launchway_system::clock::TimeOrderedIds;

use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::QueryError,
    notifications::{announce, has_channel},
    schema::{applications, deployments, jobs, organizations},
    statement::ListComparison as _,
};

diesel::alias!(deployments as replacements: Replacements);

/// Stores the event of each of the deployments, which have just entered their state.
pub(super) fn announce_ends(
    connection: &mut AnyConnection,
    entered: impl IntoIterator<Item = (DeploymentId, DeploymentState)>,
    at: Timestamp,
) -> Result<(), QueryError> {
    let ended = entered.into_iter().filter(|(_, state)| EventKind::of_deployment(*state).is_some());
    let ids: Vec<DbId> = ended.map(|(id, _)| id.into()).collect();
    if ids.is_empty() {
        return Ok(());
    }
    let rows: Vec<(EndRow, CauseRow)> = deployments::table
        .inner_join(applications::table.on(applications::id.eq(deployments::application_id)))
        .inner_join(organizations::table.on(organizations::id.eq(deployments::organization_id)))
        .left_join(jobs::table.on(jobs::id.eq(deployments::job_id)))
        .left_join(
            replacements.on(jobs::superseded_by.eq(replacements.field(deployments::job_id).nullable())),
        )
        .filter(deployments::id.one_of(ids))
        .filter(has_channel!(deployments::organization_id))
        .order((deployments::created_at.asc(), deployments::id.asc()))
        .select((
            EndRow::as_select(),
            (jobs::state.nullable(), jobs::reason.nullable(), replacements.field(deployments::id).nullable()),
        ))
        .load(connection)?;
    for (row, cause) in rows {
        if let Some(event) = row.ended(cause)?.event(TimeOrderedIds.next().into(), at) {
            announce(connection, &event)?;
        }
    }
    Ok(())
}

/// The job's view of a deployment: its state, the reason why its last attempt failed, and the deployment
/// whose job superseded it.
type CauseRow = (Option<String>, Option<String>, Option<DbId>);

/// The data of a finished deployment.
#[derive(Queryable, Selectable)]
#[diesel(table_name = deployments)]
struct EndRow {
    id: DbId,
    organization_id: DbId,
    application_id: DbId,
    rollback_to: Option<DbId>,
    status: String,
    commit_hash: Option<String>,
    requested_by: String,
    created_at: DbTs,
    #[diesel(embed)]
    application: ApplicationColumns,
    #[diesel(select_expression = organizations::name)]
    organization: String,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = applications)]
struct ApplicationColumns {
    name: String,
    environment: String,
    domain: Option<String>,
    automatic_host: String,
    branch: Option<String>,
}

impl EndRow {
    fn ended(self, (job, reason, replaced_by): CauseRow) -> Result<EndedDeployment, QueryError> {
        let Self { application, .. } = self;
        let job = job.map(JobState::try_from).transpose().map_err(QueryError::unreadable)?;
        Ok(EndedDeployment {
            id: self.id.into(),
            organization_id: self.organization_id.into(),
            organization: self.organization,
            application_id: self.application_id.into(),
            application: application.name,
            environment: application.environment,
            host: application.domain.unwrap_or(application.automatic_host),
            rollback_to: self.rollback_to.map(Into::into),
            branch: application.branch,
            commit: self.commit_hash,
            requested_by: self.requested_by,
            created_at: self.created_at.into(),
            state: DeploymentState::try_from(self.status).map_err(QueryError::unreadable)?,
            cause: EndCause { job, reason, replaced_by: replaced_by.map(Into::into) },
        })
    }
}
