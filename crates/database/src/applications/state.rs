//! The state of an application, derived from its deployments.

use std::collections::HashMap;

use diesel::prelude::*;
use launchway_domain::{
    applications::ApplicationState, clock::Timestamp, deployments::DeploymentState, ids::ApplicationId,
};
use uuid::Uuid;

use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    deployments,
    error::QueryError,
    schema::applications,
    statement::{ListComparison as _, StatementCache as _},
};

/// Sets the state of `applications`. One that has the state already keeps its timestamp.
pub(crate) fn set_state(
    connection: &mut AnyConnection,
    applications: Vec<DbId>,
    state: ApplicationState,
    at: Timestamp,
) -> Result<(), QueryError> {
    diesel::update(applications::table)
        .filter(applications::id.one_of(applications))
        .filter(applications::status.ne(state.as_str()))
        .set((
            applications::status.eq(state.as_str()),
            applications::status_updated_at.eq(DbTs(at)),
            applications::updated_at.eq(DbTs(at)),
        ))
        .cached()
        .execute(connection)?;
    Ok(())
}

/// Updates the states of applications after a deployment of each moved to the state beside its id: an
/// application without a running version has the state of its newest open deployment, or the outcome of the
/// last one.
pub(crate) fn follow(
    connection: &mut AnyConnection,
    moved: &[(ApplicationId, DeploymentState)],
    at: Timestamp,
) -> Result<(), QueryError> {
    let ids: Vec<DbId> = moved.iter().map(|(application, _)| DbId::from(*application)).collect();
    let standing_still: Vec<(DbId, bool)> = applications::table
        .filter(applications::id.one_of(ids))
        .filter(applications::live_deployment_id.is_null().or(applications::is_stopped))
        .select((applications::id, applications::is_stopped))
        .load(connection)?;
    let ended: HashMap<Uuid, DeploymentState> =
        moved.iter().map(|(application, state)| (Uuid::from(*application), *state)).collect();
    let open = deployments::newest_open(connection, standing_still.iter().map(|(id, _)| *id).collect())?;
    let mut by_state: HashMap<ApplicationState, Vec<DbId>> = HashMap::new();
    for (id, is_stopped) in standing_still {
        let Some(deployment) = open.get(&id.0).or_else(|| ended.get(&id.0)) else { continue };
        if let Some(state) = ApplicationState::without_a_running_version(*deployment, is_stopped) {
            by_state.entry(state).or_default().push(id);
        }
    }
    by_state.into_iter().try_for_each(|(state, ids)| set_state(connection, ids, state, at))
}
