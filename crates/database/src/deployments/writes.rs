//! Writes deployments to the database.

use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    applications::{self as domain, ApplicationState},
    clock::Timestamp,
    deployments::{
        BuildCache, CommitHash, ContainerRecord, Deployment, DeploymentKind, DeploymentState, ImageName,
        Progress, SourceDigest, Write,
    },
    ids::{ApplicationId, DeploymentId},
    store::StoreError,
};

use super::{
    announcements::announce_ends,
    copies,
    jobs::follow_jobs,
    rows::{FactColumns, kind_name},
};
use crate::{
    applications::{follow, set_state},
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::hold_one,
    error::{QueryError, guarded},
    schema::{applications, deployments},
    statement::{ListComparison as _, StatementCache as _},
};

/// Applies one change.
pub(crate) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::Insert(deployment) => insert(connection, deployment),
        Write::Advance { id, progress, at } => advance(connection, *id, progress, *at),
        Write::GoLive { id, at } => go_live(connection, *id, *at),
        Write::RecordContainer { id, container, at } => record_container(connection, *id, container, *at),
        Write::ReplaceContainer { id, container, further_copies, at } => {
            replace_container(connection, *id, (container, further_copies), *at)
        }
        Write::FollowJobs { application, at } => follow_jobs(connection, *application, *at),
    }
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

fn insert(connection: &mut AnyConnection, deployment: &Deployment) -> Result<(), QueryError> {
    let application = DbId::from(deployment.application_id);
    hold_one(connection, application)?;
    let there = applications::table
        .find(application)
        .filter(applications::organization_id.eq(DbId::from(deployment.organization_id)))
        .filter(applications::deleted_at.is_null());
    let runs: Option<bool> = there
        .select(applications::live_deployment_id.is_not_null().and(applications::is_stopped.eq(false)))
        .first(connection)
        .optional()?;
    let runs = runs.ok_or(StoreError::Stale)?;
    let rollback_to = match deployment.kind {
        DeploymentKind::Fresh => None,
        DeploymentKind::Rollback { to } => Some(DbId::from(to)),
    };
    let container = deployment.container.as_ref();
    diesel::insert_into(deployments::table)
        .values((
            deployments::id.eq(DbId::from(deployment.id)),
            deployments::application_id.eq(application),
            deployments::organization_id.eq(DbId::from(deployment.organization_id)),
            deployments::kind.eq(kind_name(deployment.kind)),
            deployments::rollback_to.eq(rollback_to),
            deployments::requested_by.eq(&deployment.requested_by),
            deployments::no_cache.eq(deployment.build_cache == BuildCache::Ignore),
            deployments::job_id.eq(DbId::from(deployment.job_id)),
            deployments::status_id.eq(DbId::from(deployment.status.id)),
            deployments::status.eq(deployment.status.state.as_str()),
            deployments::status_updated_at.eq(DbTs(deployment.status.updated_at)),
            deployments::commit_hash.eq(deployment.commit.as_ref().map(CommitHash::as_str)),
            deployments::source_digest.eq(deployment.source_digest.as_ref().map(SourceDigest::as_str)),
            deployments::image.eq(deployment.image.as_ref().map(ImageName::as_str)),
            deployments::container_id.eq(container.map(|container| container.id.as_str())),
            deployments::container_name.eq(container.map(|container| container.name.as_str())),
            deployments::container_state.eq(container.map(|container| container.state.as_str())),
            deployments::container_address
                .eq(container.and_then(|container| container.address).map(|address| address.to_string())),
            deployments::container_port.eq(container.map(|container| i64::from(container.port.get()))),
            deployments::further_copies.eq(copies::stored(&deployment.further_copies)),
            deployments::created_at.eq(DbTs(deployment.created_at)),
            deployments::updated_at.eq(DbTs(deployment.updated_at)),
        ))
        .execute(connection)?;
    if runs {
        return Ok(());
    }
    let queued = ApplicationState::UnderWay(domain::Progress::Queued);
    set_state(connection, vec![application], queued, deployment.created_at)
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
        None => DeploymentState::ALL.into_iter().filter(|state| !state.is_over()).collect(),
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
