//! Deployments whose state no longer matches their job.

use std::collections::BTreeSet;

use diesel::{prelude::*, sql_types::Bool};
use launchway_domain::{
    clock::Timestamp,
    deployments::{DeploymentState, EndCause},
    ids::{ApplicationId, DeploymentId},
    jobs::JobState,
    logs::{Level, NewLine},
};
use uuid::Uuid;

use super::{announcements::announce_ends, rows::is_open};
use crate::{
    applications::follow,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::hold_each,
    error::QueryError,
    schema::{applications, deployments, jobs},
    statement::{ListComparison as _, Literal, StatementCache as _, literal},
};

diesel::alias!(deployments as successors: Successors);

/// The most deployments that one call updates, oldest first. The next call continues after them.
const AT_ONCE: i64 = 1000;

/// Updates all deployments to the state of their jobs. Returns the lines that have to be appended to their logs.
pub(super) fn follow_all_jobs(
    connection: &mut AnyConnection,
    at: Timestamp,
) -> Result<Vec<NewLine>, QueryError> {
    let applications = stray_applications(connection)?;
    follow_jobs(connection, applications, at)
}

/// Updates the deployments of `applications` to the state of their jobs. Returns the lines that have to be appended to their
/// logs.
pub(super) fn follow_jobs(
    connection: &mut AnyConnection,
    applications: BTreeSet<Uuid>,
    at: Timestamp,
) -> Result<Vec<NewLine>, QueryError> {
    let mismatches = locked_mismatches(connection, applications)?;
    if mismatches.is_empty() {
        return Ok(Vec::new());
    }
    for to in DeploymentState::ALL {
        let ids: Vec<DbId> = mismatches
            .iter()
            .filter(|mismatch| mismatch.moves_to() == to)
            .map(|mismatch| DbId::from(mismatch.id))
            .collect();
        if ids.is_empty() {
            continue;
        }
        diesel::update(deployments::table)
            .filter(deployments::id.one_of(ids))
            .set((
                deployments::status.eq(to.as_str()),
                deployments::status_updated_at.eq(DbTs(at)),
                deployments::updated_at.eq(DbTs(at)),
            ))
            .cached()
            .execute(connection)?;
    }
    let moved: Vec<_> =
        mismatches.iter().map(|mismatch| (mismatch.application_id, mismatch.moves_to())).collect();
    follow(connection, &moved, at)?;
    announce_ends(connection, mismatches.iter().map(|mismatch| (mismatch.id, mismatch.moves_to())), at)?;
    Ok(mismatches.iter().filter_map(|mismatch| mismatch.line(at)).collect())
}

/// A deployment whose state does not match its job's.
struct StateMismatch {
    id: DeploymentId,
    application_id: ApplicationId,
    is_live: bool,
    job: JobState,
    cause: EndCause,
}

impl StateMismatch {
    fn moves_to(&self) -> DeploymentState {
        DeploymentState::after_job(self.job, self.is_live)
    }

    /// Returns the log line about it.
    fn line(&self, at: Timestamp) -> Option<NewLine> {
        let to = self.moves_to();
        let (level, end) = match to {
            DeploymentState::Deployed => (Level::Info, "Deployed"),
            DeploymentState::Cancelled => (Level::Info, "Cancelled"),
            DeploymentState::Failed => (Level::Error, "Failed"),
            _ => return None,
        };
        let why = self.cause.describe(to);
        let text = if why.is_empty() { end.to_owned() } else { format!("{end}: {why}") };
        let (application_id, deployment_id) = (self.application_id, self.id);
        Some(NewLine { application_id, deployment_id, level, text, at })
    }
}

type MismatchRow = (DbId, DbId, Option<DbId>, String, Option<String>, Option<DbId>);

/// The deployments whose state does not match their jobs'. On PostgreSQL no other transaction changes them
/// until this one ends.
fn locked_mismatches(
    connection: &mut AnyConnection,
    applications: BTreeSet<Uuid>,
) -> Result<Vec<StateMismatch>, QueryError> {
    hold_each(connection, applications.iter().copied().map(DbId))?;
    let rows: Vec<MismatchRow> = deployments::table
        .inner_join(jobs::table.on(jobs::id.eq(deployments::job_id)))
        .inner_join(applications::table.on(applications::id.eq(deployments::application_id)))
        .left_join(successors.on(jobs::superseded_by.eq(successors.field(deployments::job_id).nullable())))
        .filter(is_open())
        .filter(differs_from_job())
        .filter(deployments::application_id.one_of(applications.into_iter().map(DbId)))
        .order((deployments::created_at.asc(), deployments::id.asc()))
        .limit(AT_ONCE)
        .select((
            deployments::id,
            deployments::application_id,
            applications::live_deployment_id,
            jobs::state,
            jobs::reason,
            successors.field(deployments::id).nullable(),
        ))
        .load(connection)?;
    let mismatch = |(id, application_id, live, job, reason, replaced_by): MismatchRow| {
        let job = JobState::try_from(job).map_err(QueryError::unreadable)?;
        let cause = EndCause { job: Some(job), reason, replaced_by: replaced_by.map(DeploymentId::from) };
        let is_live = live == Some(id);
        Ok(StateMismatch { id: id.into(), application_id: application_id.into(), is_live, job, cause })
    };
    rows.into_iter().map(mismatch).collect()
}

fn stray_applications(connection: &mut AnyConnection) -> Result<BTreeSet<Uuid>, QueryError> {
    let ids: Vec<DbId> = deployments::table
        .inner_join(jobs::table.on(jobs::id.eq(deployments::job_id)))
        .inner_join(applications::table.on(applications::id.eq(deployments::application_id)))
        .filter(is_open())
        .filter(differs_from_job())
        .order((deployments::created_at.asc(), deployments::id.asc()))
        .limit(AT_ONCE)
        .select(deployments::application_id)
        .load(connection)?;
    Ok(ids.into_iter().map(|id| id.0).collect())
}

/// Selects open deployments whose job is queued again or has finished, over the deployment, its application
/// and its job. One whose version is live need not be queued again: the next attempt continues from there.
fn differs_from_job() -> Literal<Bool> {
    literal(
        "((jobs.state = 'queued' AND deployments.status <> 'queued' \
           AND (applications.live_deployment_id IS NULL OR applications.live_deployment_id <> deployments.id)) \
         OR jobs.state NOT IN ('queued', 'running'))",
    )
}
