//! Writes applications to the database.

use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    applications::{Application, ApplicationSecrets, ApplicationState, Blueprint, Health, Hostname, Write},
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId},
    organizations::Scope,
    store::{Rule, StoreError},
};

use super::{copies, hosts, names::Names, rows::ChosenColumns, state::set_state, watch_paths};
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    deployments,
    dialect::hold_one,
    error::{QueryError, guarded},
    organizations, previews,
    schema::{applications, deployments as deployment_rows},
    statement::StatementCache as _,
};

/// Applies one change.
pub(crate) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::Insert(application) => insert(connection, application),
        Write::Update { scope, id, seen, blueprint, secrets, at } => {
            update(connection, (*scope, *id), *seen, (blueprint, secrets), *at)
        }
        Write::AddDomain { scope, id, domain, at } => add_domain(connection, (*scope, *id), domain, *at),
        Write::RemoveDomain { scope, id, domain, at } => {
            remove_domain(connection, (*scope, *id), domain, *at)
        }
        Write::Delete { scope, id, at } => delete(connection, *scope, *id, *at),
        Write::SetStopped { scope, id, is_stopped, at } => {
            set_stopped(connection, *scope, *id, *is_stopped, *at)
        }
        Write::SetHealth { deployment, health, at } => set_health(connection, *deployment, health, *at),
    }
}

fn insert(connection: &mut AnyConnection, application: &Application) -> Result<(), QueryError> {
    hold_one(connection, application.id.into())?;
    organizations::require(connection, application.organization_id)?;
    let mut names = Names::of(application);
    diesel::insert_into(applications::table)
        .values((
            applications::id.eq(DbId::from(application.id)),
            applications::organization_id.eq(DbId::from(application.organization_id)),
            applications::user_id.eq(DbId::from(application.user_id)),
            ChosenColumns::of(&application.blueprint, &application.secrets),
            names.columns(),
            applications::status_id.eq(DbId::from(application.status.id)),
            applications::status.eq(application.status.state.as_str()),
            applications::status_updated_at.eq(DbTs(application.status.updated_at)),
            applications::live_deployment_id.eq(application.live.map(DbId::from)),
            applications::is_stopped.eq(application.is_stopped),
            applications::created_at.eq(DbTs(application.created_at)),
            applications::updated_at.eq(DbTs(application.updated_at)),
        ))
        .execute(connection)?;
    copies::insert(connection, application.id, application.blueprint.copies)?;
    watch_paths::insert(connection, application.id, &application.blueprint.watch_paths)?;
    hosts::take(connection, application.id, names.chosen())?;
    // Names reference the application, so it is inserted before a free one is known.
    names.automatic = hosts::take_automatic(connection, application.id, &application.automatic_host)?;
    if names.automatic != application.automatic_host {
        diesel::update(applications::table.find(DbId::from(application.id)))
            .set(names.columns())
            .cached()
            .execute(connection)?;
    }
    Ok(())
}

fn update(
    connection: &mut AnyConnection,
    (scope, id): (Scope, ApplicationId),
    seen: Option<Timestamp>,
    (blueprint, secrets): (&Blueprint, &ApplicationSecrets),
    at: Timestamp,
) -> Result<(), QueryError> {
    let mut names = Names::held(connection, scope, id)?;
    if let Some(seen) = seen {
        let known = applications::table.find(DbId::from(id)).filter(applications::updated_at.eq(DbTs(seen)));
        let is_unchanged: bool = diesel::select(exists(known)).get_result(connection)?;
        guarded(is_unchanged.into())?;
    }
    let before: Vec<Hostname> = names.chosen().cloned().collect();
    names.follow(blueprint);
    diesel::update(applications::table.find(DbId::from(id)))
        .set((ChosenColumns::of(blueprint, secrets), names.columns(), applications::updated_at.eq(DbTs(at))))
        .cached()
        .execute(connection)?;
    copies::set(connection, id, blueprint.copies)?;
    watch_paths::set(connection, id, &blueprint.watch_paths)?;
    hosts::take(connection, id, names.chosen().filter(|name| !before.contains(name)))?;
    let mut given_up = before.iter().filter(|name| !names.chosen().any(|kept| kept == *name));
    given_up.try_for_each(|name| hosts::give_up(connection, id, name))
}

fn add_domain(
    connection: &mut AnyConnection,
    (scope, id): (Scope, ApplicationId),
    domain: &Hostname,
    at: Timestamp,
) -> Result<(), QueryError> {
    let mut names = Names::held(connection, scope, id)?;
    hosts::take(connection, id, [domain])?;
    if names.further.len() >= Application::MOST_FURTHER_DOMAINS {
        return Err(StoreError::Refused(Rule::MostDomains).into());
    }
    names.further.push(domain.clone());
    set_names(connection, id, &names, at)
}

fn remove_domain(
    connection: &mut AnyConnection,
    (scope, id): (Scope, ApplicationId),
    domain: &Hostname,
    at: Timestamp,
) -> Result<(), QueryError> {
    let mut names = Names::held(connection, scope, id)?;
    if !names.chosen().any(|name| name == domain) {
        return Err(StoreError::Stale.into());
    }
    names.domain = names.domain.filter(|name| name != domain);
    names.further.retain(|name| name != domain);
    set_names(connection, id, &names, at)?;
    hosts::give_up(connection, id, domain)
}

fn set_names(
    connection: &mut AnyConnection,
    id: ApplicationId,
    names: &Names,
    at: Timestamp,
) -> Result<(), QueryError> {
    diesel::update(applications::table.find(DbId::from(id)))
        .set((names.columns(), applications::updated_at.eq(DbTs(at))))
        .cached()
        .execute(connection)?;
    Ok(())
}

/// Keeps its rows except its names, because the cleanup of its resources on the machine needs them.
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
            .cached()
            .execute(connection)?,
    )?;
    previews::give_up(connection, id)?;
    hosts::give_up_all(connection, id)
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
            .cached()
            .execute(connection)?,
    )?;
    let state = if is_stopped { ApplicationState::Stopped } else { ApplicationState::Running };
    set_state(connection, vec![id.into()], state, at)
}

fn set_health(
    connection: &mut AnyConnection,
    deployment: DeploymentId,
    health: &Health,
    at: Timestamp,
) -> Result<(), QueryError> {
    let application = deployments::held_application_of(connection, deployment)?.ok_or(StoreError::Stale)?;
    let serving: Vec<DbId> = applications::table
        .find(DbId::from(application))
        .filter(applications::live_deployment_id.eq(DbId::from(deployment)))
        .filter(applications::is_stopped.eq(false))
        .filter(applications::deleted_at.is_null())
        .select(applications::id)
        .load(connection)?;
    guarded(serving.len())?;
    set_state(connection, serving, health.state(), at)?;
    diesel::update(deployment_rows::table.find(DbId::from(deployment)))
        .set(deployment_rows::breakdown.eq(health.reason()))
        .cached()
        .execute(connection)?;
    Ok(())
}
