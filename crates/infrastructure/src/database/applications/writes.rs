//! Applications in the database: what changes.

use diesel::prelude::*;
use launchway_domain::{
    applications::{Application, ApplicationSecrets, ApplicationState, Blueprint, Write},
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId},
    organizations::Scope,
};

use super::{rows::ChosenColumns, state::set_state};
use crate::database::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    deployments,
    dialect::hold_one,
    error::{QueryError, guarded},
    organizations,
    schema::applications,
};

/// Carries out one change.
pub(in crate::database) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::Insert(application) => insert(connection, application),
        Write::Update { scope, id, blueprint, secrets, at } => {
            update(connection, (*scope, *id), blueprint, secrets, *at)
        }
        Write::Delete { scope, id, at } => delete(connection, *scope, *id, *at),
        Write::SetStopped { scope, id, is_stopped, at } => {
            set_stopped(connection, *scope, *id, *is_stopped, *at)
        }
        Write::SetStable { deployment, is_stable, at } => {
            set_stable(connection, *deployment, *is_stable, *at)
        }
    }
}

fn insert(connection: &mut AnyConnection, application: &Application) -> Result<(), QueryError> {
    organizations::require(connection, application.organization_id)?;
    diesel::insert_into(applications::table)
        .values((
            applications::id.eq(DbId::from(application.id)),
            applications::organization_id.eq(DbId::from(application.organization_id)),
            applications::user_id.eq(DbId::from(application.user_id)),
            ChosenColumns::of(&application.blueprint, &application.secrets),
            applications::status_id.eq(DbId::from(application.status.id)),
            applications::status.eq(application.status.state.as_str()),
            applications::status_updated_at.eq(DbTs(application.status.updated_at)),
            applications::live_deployment_id.eq(application.live.map(DbId::from)),
            applications::is_stopped.eq(application.is_stopped),
            applications::created_at.eq(DbTs(application.created_at)),
            applications::updated_at.eq(DbTs(application.updated_at)),
        ))
        .execute(connection)?;
    Ok(())
}

fn update(
    connection: &mut AnyConnection,
    (scope, id): (Scope, ApplicationId),
    blueprint: &Blueprint,
    secrets: &ApplicationSecrets,
    at: Timestamp,
) -> Result<(), QueryError> {
    hold_one(connection, id.into())?;
    guarded(
        diesel::update(applications::table)
            .filter(applications::id.eq(DbId::from(id)))
            .filter(applications::organization_id.eq(DbId::from(scope.id())))
            .filter(applications::deleted_at.is_null())
            .set((ChosenColumns::of(blueprint, secrets), applications::updated_at.eq(DbTs(at))))
            .execute(connection)?,
    )
}

/// Its rows stay, for who has to remove what is left of it on the machine.
fn delete(
    connection: &mut AnyConnection,
    scope: Scope,
    id: ApplicationId,
    at: Timestamp,
) -> Result<(), QueryError> {
    hold_one(connection, id.into())?;
    guarded(
        diesel::update(applications::table)
            .filter(applications::id.eq(DbId::from(id)))
            .filter(applications::organization_id.eq(DbId::from(scope.id())))
            .filter(applications::deleted_at.is_null())
            .set((applications::deleted_at.eq(DbTs(at)), applications::updated_at.eq(DbTs(at))))
            .execute(connection)?,
    )
}

fn set_stopped(
    connection: &mut AnyConnection,
    scope: Scope,
    id: ApplicationId,
    is_stopped: bool,
    at: Timestamp,
) -> Result<(), QueryError> {
    hold_one(connection, id.into())?;
    guarded(
        diesel::update(applications::table)
            .filter(applications::id.eq(DbId::from(id)))
            .filter(applications::organization_id.eq(DbId::from(scope.id())))
            .filter(applications::deleted_at.is_null())
            .filter(applications::live_deployment_id.is_not_null())
            .set((applications::is_stopped.eq(is_stopped), applications::updated_at.eq(DbTs(at))))
            .execute(connection)?,
    )?;
    let state = if is_stopped { ApplicationState::Stopped } else { ApplicationState::Running };
    set_state(connection, vec![id.into()], state, at)
}

fn set_stable(
    connection: &mut AnyConnection,
    deployment: DeploymentId,
    is_stable: bool,
    at: Timestamp,
) -> Result<(), QueryError> {
    let Some(application) = deployments::held_application_of(connection, deployment)? else { return Ok(()) };
    let serving: Vec<DbId> = applications::table
        .find(DbId::from(application))
        .filter(applications::live_deployment_id.eq(DbId::from(deployment)))
        .filter(applications::is_stopped.eq(false))
        .filter(applications::deleted_at.is_null())
        .select(applications::id)
        .load(connection)?;
    let state = if is_stable { ApplicationState::Running } else { ApplicationState::Failed };
    set_state(connection, serving, state, at)
}
