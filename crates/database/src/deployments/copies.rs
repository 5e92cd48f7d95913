//! The containers of the copies of a deployment after the first one, which are stored in one column.

use diesel::prelude::*;
use launchway_domain::{
    applications::Port,
    clock::Timestamp,
    deployments::{ContainerId, ContainerRecord, ContainerState},
    ids::DeploymentId,
};
use serde_json::{Value, json};

use super::writes::held_application_of;
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::QueryError,
    schema::deployments,
    statement::StatementCache as _,
};

/// Returns the stored form; `None` without copies.
pub(super) fn stored(copies: &[ContainerRecord]) -> Option<String> {
    let value = |copy: &ContainerRecord| {
        json!({
            "id": copy.id.as_str(),
            "name": copy.name,
            "state": copy.state.as_str(),
            "address": copy.address,
            "port": copy.port.get(),
        })
    };
    (!copies.is_empty()).then(|| copies.iter().map(value).collect::<Value>().to_string())
}

/// Reads the stored form.
pub(super) fn read(stored: Option<&str>) -> Result<Vec<ContainerRecord>, QueryError> {
    let Some(stored) = stored else { return Ok(Vec::new()) };
    let values: Vec<Value> = serde_json::from_str(stored).map_err(QueryError::unreadable)?;
    values.iter().map(read_one).collect()
}

fn read_one(value: &Value) -> Result<ContainerRecord, QueryError> {
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let address = value["address"].as_str().map(str::parse).transpose().map_err(QueryError::unreadable)?;
    Ok(ContainerRecord {
        id: ContainerId::try_from(text("id")).map_err(QueryError::unreadable)?,
        name: text("name"),
        state: ContainerState::try_from(text("state")).map_err(QueryError::unreadable)?,
        address,
        port: Port::try_from(value["port"].as_i64().unwrap_or_default()).map_err(QueryError::unreadable)?,
    })
}

/// Records another state of a copy, if the deployment has one with that container.
pub(super) fn record(
    connection: &mut AnyConnection,
    id: DeploymentId,
    container: &ContainerRecord,
    at: Timestamp,
) -> Result<(), QueryError> {
    // The column is read and written again: nothing else may change it meanwhile.
    if held_application_of(connection, id)?.is_none() {
        return Ok(());
    }
    let found: Option<String> = deployments::table
        .find(DbId::from(id))
        .select(deployments::further_copies)
        .first::<Option<String>>(connection)?;
    let mut copies = read(found.as_deref())?;
    let Some(recorded) = copies.iter_mut().find(|copy| copy.id == container.id) else { return Ok(()) };
    recorded.clone_from(container);
    diesel::update(deployments::table.find(DbId::from(id)))
        .set((deployments::further_copies.eq(stored(&copies)), deployments::updated_at.eq(DbTs(at))))
        .cached()
        .execute(connection)?;
    Ok(())
}
