//! Writes deployments to the database.

use std::collections::{BTreeSet, HashMap};

use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    applications::{self as domain, ApplicationState},
    clock::Timestamp,
    deployments::{CommitHash, ContainerRecord, Deployment, DeploymentState, ImageName, Progress, Write},
    ids::{ApplicationId, DeploymentId},
    logs::NewLine,
    store::StoreError,
};
use uuid::Uuid;

use super::{
    announcements::announce_ends,
    copies,
    jobs::{follow_all_jobs, follow_jobs},
    rows::{FactColumns, NewRow},
};
use crate::{
    applications::{follow, set_state},
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::{hold_each, hold_one, insert_in_chunks},
    error::{QueryError, guarded},
    schema::{applications, deployments},
    statement::{ListComparison as _, StatementCache as _},
};

/// Applies one change. Returns the lines that have to be appended to logs.
pub(crate) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<Vec<NewLine>, QueryError> {
    match write {
        Write::Insert(deployment) => insert(connection, &[deployment])?,
        Write::Advance { id, progress, at } => advance(connection, *id, progress, *at)?,
        Write::GoLive { id, at } => go_live(connection, *id, *at)?,
        Write::RecordContainer { id, container, at } => record_container(connection, *id, container, *at)?,
        Write::ReplaceContainer { id, container, further_copies, at } => {
            replace_container(connection, *id, (container, further_copies), *at)?;
        }
        Write::FollowJobs { application: None, at } => return follow_all_jobs(connection, *at),
        Write::FollowJobs { application: Some(application), at } => {
            return follow_jobs(connection, BTreeSet::from([Uuid::from(*application)]), *at);
        }
    }
    Ok(Vec::new())
}

/// Returns the application of a deployment; `None` for an unknown one. On PostgreSQL no other transaction
/// changes the application or its deployments until this one ends.
pub(crate) fn held_application_of(
    connection: &mut AnyConnection,
    id: DeploymentId,
) -> Result<Option<ApplicationId>, QueryError> {
    let application: Option<DbId> = deployments::table
        .find(DbId::from(id))
        .select(deployments::application_id)
        .first(connection)
        .optional()?;
    if let Some(application) = application {
        hold_one(connection, application)?;
    }
    Ok(application.map(ApplicationId::from))
}

/// Inserts deployments, no two of which belong to the same application.
pub(super) fn insert(connection: &mut AnyConnection, deployments: &[&Deployment]) -> Result<(), QueryError> {
    let applications = || deployments.iter().map(|deployment| DbId::from(deployment.application_id));
    hold_each(connection, applications())?;
    let runs = applications::live_deployment_id.is_not_null().and(applications::is_stopped.eq(false));
    let known: Vec<(DbId, DbId, bool)> = applications::table
        .filter(applications::id.one_of(applications()))
        .filter(applications::deleted_at.is_null())
        .select((applications::id, applications::organization_id, runs))
        .load(connection)?;
    let known: HashMap<(Uuid, Uuid), bool> =
        known.into_iter().map(|(id, organization, runs)| ((id.0, organization.0), runs)).collect();
    let mut idle = Vec::new();
    for deployment in deployments {
        match known.get(&(deployment.application_id.into(), deployment.organization_id.into())) {
            Some(true) => {}
            Some(false) => idle.push(DbId::from(deployment.application_id)),
            None => return Err(StoreError::Stale.into()),
        }
    }
    let rows: Vec<NewRow> = deployments.iter().map(|deployment| NewRow::from(*deployment)).collect();
    insert_in_chunks!(connection, deployments::table, rows);
    let last = deployments.iter().map(|deployment| deployment.created_at).max();
    match last.filter(|_| !idle.is_empty()) {
        Some(at) => set_state(connection, idle, ApplicationState::InProgress(domain::Progress::Queued), at),
        None => Ok(()),
    }
}

fn advance(
    connection: &mut AnyConnection,
    id: DeploymentId,
    progress: &Progress,
    at: Timestamp,
) -> Result<(), QueryError> {
    let application = held_application_of(connection, id)?.ok_or(StoreError::Stale)?;
    let from = match progress.state {
        Some(to) => DeploymentState::before(to),
        None => DeploymentState::ALL.into_iter().filter(|state| !state.is_final()).collect(),
    };
    let digest = match &progress.commit {
        Some(commit) => digest_of(connection, application, commit)?,
        None => None,
    };
    let facts = FactColumns {
        commit_hash: progress.commit.as_ref().map(CommitHash::as_str),
        source_digest: digest.as_deref(),
        image: progress.image.as_ref().map(ImageName::as_str),
        ..FactColumns::default()
    };
    let facts = match &progress.container {
        Some(container) => {
            facts.with_container(Some(container)).with_further_copies(&progress.further_copies)
        }
        None => facts,
    };
    guarded(
        diesel::update(deployments::table)
            .filter(deployments::id.eq(DbId::from(id)))
            .filter(deployments::status.one_of(from.into_iter().map(DeploymentState::as_str)))
            .set((
                progress.state.map(|to| {
                    (deployments::status.eq(to.as_str()), deployments::status_updated_at.eq(DbTs(at)))
                }),
                facts,
                deployments::updated_at.eq(DbTs(at)),
            ))
            .cached()
            .execute(connection)?,
    )?;
    let Some(to) = progress.state else { return Ok(()) };
    follow(connection, &[(application, to)], at)?;
    announce_ends(connection, [(id, to)], at)
}

/// Returns the digest of the upload that a commit was made of, which an earlier deployment of the application has.
fn digest_of(
    connection: &mut AnyConnection,
    application: ApplicationId,
    commit: &CommitHash,
) -> Result<Option<String>, QueryError> {
    let known = deployments::table
        .filter(deployments::application_id.eq(DbId::from(application)))
        .filter(deployments::commit_hash.eq(commit.as_str()))
        .filter(deployments::source_digest.is_not_null())
        .select(deployments::source_digest)
        .first::<Option<String>>(connection);
    Ok(known.optional()?.flatten())
}

fn go_live(connection: &mut AnyConnection, id: DeploymentId, at: Timestamp) -> Result<(), QueryError> {
    let application = held_application_of(connection, id)?.ok_or(StoreError::Stale)?;
    let application = DbId::from(application);
    let deploying = deployments::table
        .filter(deployments::id.eq(DbId::from(id)))
        .filter(deployments::status.eq(DeploymentState::Deploying.as_str()));
    guarded(
        diesel::update(applications::table)
            .filter(applications::id.eq(application))
            .filter(applications::deleted_at.is_null())
            .filter(exists(deploying))
            .set((
                applications::live_deployment_id.eq(DbId::from(id)),
                applications::is_stopped.eq(false),
                applications::updated_at.eq(DbTs(at)),
            ))
            .cached()
            .execute(connection)?,
    )?;
    set_state(connection, vec![application], ApplicationState::Running, at)
}

fn record_container(
    connection: &mut AnyConnection,
    id: DeploymentId,
    container: &ContainerRecord,
    at: Timestamp,
) -> Result<(), QueryError> {
    let recorded = diesel::update(deployments::table)
        .filter(deployments::id.eq(DbId::from(id)))
        .filter(deployments::container_id.eq(container.id.as_str()))
        .set((FactColumns::default().with_container(Some(container)), deployments::updated_at.eq(DbTs(at))))
        .cached()
        .execute(connection)?;
    match recorded {
        0 => copies::record(connection, id, container, at),
        _ => Ok(()),
    }
}

fn replace_container(
    connection: &mut AnyConnection,
    id: DeploymentId,
    (container, further_copies): (&ContainerRecord, &[ContainerRecord]),
    at: Timestamp,
) -> Result<(), QueryError> {
    held_application_of(connection, id)?.ok_or(StoreError::Stale)?;
    let live = applications::table
        .filter(applications::live_deployment_id.eq(DbId::from(id)))
        .filter(applications::deleted_at.is_null());
    guarded(
        diesel::update(deployments::table)
            .filter(deployments::id.eq(DbId::from(id)))
            .filter(exists(live))
            .set((
                FactColumns::default().with_container(Some(container)).with_further_copies(further_copies),
                deployments::updated_at.eq(DbTs(at)),
            ))
            .cached()
            .execute(connection)?,
    )
}
