//! Events of finished deployments.

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    deployments::DeploymentState,
    ids::{DeploymentId, Ids as _},
    jobs::JobState,
    logs::clean,
    notifications::{Event, EventKind, Fact},
};

use crate::{
    clock::TimeOrderedIds,
    database::{
        columns::{DbId, DbTs},
        connection::AnyConnection,
        error::QueryError,
        notifications::{announce, is_told},
        schema::{applications, deployments, jobs, organizations},
    },
};

diesel::alias!(deployments as replacements: Replacements);

/// Emits an event for each of the deployments that is in a final state. The caller moves them there once,
/// so that there is one event each.
pub(super) fn announce_ends(
    connection: &mut AnyConnection,
    ids: Vec<DbId>,
    at: Timestamp,
) -> Result<(), QueryError> {
    let rows: Vec<(EndRow, Cause)> = deployments::table
        .inner_join(applications::table.on(applications::id.eq(deployments::application_id)))
        .inner_join(organizations::table.on(organizations::id.eq(deployments::organization_id)))
        .left_join(jobs::table.on(jobs::id.eq(deployments::job_id)))
        .left_join(
            replacements.on(jobs::superseded_by.eq(replacements.field(deployments::job_id).nullable())),
        )
        .filter(deployments::id.eq_any(ids))
        .filter(is_told!(deployments::organization_id))
        .order((deployments::created_at.asc(), deployments::id.asc()))
        .select((
            EndRow::as_select(),
            (jobs::state.nullable(), jobs::reason.nullable(), replacements.field(deployments::id).nullable()),
        ))
        .load(connection)?;
    for (row, cause) in rows {
        let state = DeploymentState::try_from(row.status.clone()).map_err(QueryError::unreadable)?;
        let kind = match state {
            DeploymentState::Deployed => EventKind::DeploymentSucceeded,
            DeploymentState::Failed => EventKind::DeploymentFailed,
            DeploymentState::Cancelled => EventKind::DeploymentCancelled,
            DeploymentState::Queued
            | DeploymentState::Cloning
            | DeploymentState::Building
            | DeploymentState::Deploying => continue,
        };
        let (job, reason, replaced_by) = cause;
        let job = job.map(JobState::try_from).transpose().map_err(QueryError::unreadable)?;
        let why = why_ended(state, job, reason.as_deref(), replaced_by.map(DeploymentId::from));
        announce(connection, &row.event(kind, at).with(Fact::Reason, why))?;
    }
    Ok(())
}

/// Returns the reason of a deployment's end, derived from its job; empty if there is none to give.
pub(super) fn why_ended(
    state: DeploymentState,
    job: Option<JobState>,
    reason: Option<&str>,
    replaced_by: Option<DeploymentId>,
) -> String {
    match (state, job) {
        (DeploymentState::Cancelled, Some(JobState::Superseded)) => {
            let by = replaced_by.map_or("a newer one".to_owned(), |id| format!("deployment {id}"));
            format!("replaced by {by}")
        }
        (DeploymentState::Failed, Some(JobState::Succeeded)) => "its job ended without an outcome".to_owned(),
        (DeploymentState::Failed, Some(JobState::Failed)) => {
            clean(reason.unwrap_or("the worker was lost").as_bytes())
        }
        (DeploymentState::Failed, _) => clean(reason.unwrap_or_default().as_bytes()),
        _ => String::new(),
    }
}

/// The job's view of a deployment: its state, the reason why its last attempt failed, and the deployment
/// whose job superseded it.
type Cause = (Option<String>, Option<String>, Option<DbId>);

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
    fn event(self, kind: EventKind, at: Timestamp) -> Event {
        let Self { application, .. } = self;
        let seconds = (at - self.created_at.0).as_seconds_f64();
        Event::new(TimeOrderedIds.next().into(), self.organization_id.into(), kind, at)
            .with(Fact::Organization, self.organization)
            .with(Fact::Application, application.name)
            .with(Fact::ApplicationId, self.application_id.0)
            .with(Fact::Environment, application.environment)
            .with(Fact::Host, application.domain.unwrap_or(application.automatic_host))
            .with(Fact::DeploymentId, self.id.0)
            .with(Fact::RollbackTo, self.rollback_to.map(|id| id.0.to_string()).unwrap_or_default())
            .with(Fact::Branch, application.branch.unwrap_or_default())
            .with(Fact::Commit, self.commit_hash.unwrap_or_default())
            .with(Fact::RequestedBy, self.requested_by)
            .with(Fact::Seconds, format!("{seconds:.1}"))
    }
}
