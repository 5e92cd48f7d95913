//! Detects applications that missed the current commit of their branch.

use diesel::{dsl::exists, prelude::*, sql_types::Bool};
use launchway_domain::{deployments::DeploymentState, webhooks::BranchHead};

use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    deployments::is_open,
    error::QueryError,
    schema::{applications, deployments, jobs, webhook_skips},
    statement::literal,
};

/// The newest deployment: the version that it rolls back to, its state, its commit, and the time of its
/// request.
type Newest = (Option<DbId>, String, Option<String>, DbTs);

/// See [`RequireMissed`](launchway_domain::webhooks::Write::RequireMissed).
pub(super) fn is_missed(connection: &mut AnyConnection, head: &BranchHead) -> Result<bool, QueryError> {
    let application = DbId::from(head.application);
    if !is_followed(connection, head)? || is_handled(connection, head)? {
        return Ok(false);
    }
    let newest: Option<Newest> = deployments::table
        .filter(deployments::application_id.eq(application))
        .order((deployments::created_at.desc(), deployments::id.desc()))
        .select((
            deployments::rollback_to,
            deployments::status,
            deployments::commit_hash,
            deployments::created_at,
        ))
        .first(connection)
        .optional()?;
    let Some((rollback_to, status, commit, created_at)) = newest else { return Ok(true) };
    // The commit of a deployment that was cancelled before it began is unknown.
    let was_called_off = status == DeploymentState::Cancelled.as_str() && commit.is_none();
    if rollback_to.is_some() || was_called_off {
        return Ok(false);
    }
    let stopped_since = jobs::table
        // Written as a literal, so that the planner sees that the partial index applies.
        .filter(literal::<Bool>("jobs.kind = 'stop'"))
        .filter(jobs::subject.eq(application))
        .filter(jobs::enqueued_at.ge(created_at));
    let was_stopped: bool = diesel::select(exists(stopped_since)).get_result(connection)?;
    Ok(!was_stopped)
}

fn is_followed(connection: &mut AnyConnection, head: &BranchHead) -> Result<bool, QueryError> {
    let follows = applications::table
        .find(DbId::from(head.application))
        .filter(applications::deleted_at.is_null())
        .filter(applications::auto_deploy.eq(true))
        .filter(applications::repository.eq(head.repository.as_str()))
        .filter(applications::branch.eq(head.branch.as_str()).assume_not_null());
    Ok(diesel::select(exists(follows)).get_result(connection)?)
}

/// Returns whether the commit was deployed, may be being deployed, or was skipped.
fn is_handled(connection: &mut AnyConnection, head: &BranchHead) -> Result<bool, QueryError> {
    let application = DbId::from(head.application);
    let of_application = || deployments::table.filter(deployments::application_id.eq(application));
    let is_open: bool = diesel::select(exists(of_application().filter(is_open()))).get_result(connection)?;
    let of_commit = of_application().filter(deployments::commit_hash.eq(head.commit.as_str()));
    let is_known: bool = diesel::select(exists(of_commit)).get_result(connection)?;
    let skip =
        webhook_skips::table.find(application).filter(webhook_skips::commit_hash.eq(head.commit.as_str()));
    let is_skipped: bool = diesel::select(exists(skip)).get_result(connection)?;
    Ok(is_open || is_known || is_skipped)
}
