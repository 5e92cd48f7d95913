//! Lists every container of this installation in one request.
//!
//! A list has the state of a container, but neither its restart count nor its exit. Those are inspected
//! once, and again whenever the list does not prove that the container was neither started nor ended since.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use chrono::{DateTime, SubsecRound as _};
use launchway_domain::{
    clock::Timestamp,
    deployments::{Condition, ContainerId, DiscoveredObject, DiscoveredResource, Exit, StepError},
};
use serde::Deserialize;
use serde_json::Value;

use super::{
    record::{Endpoint, Endpoints, condition, is_kept, own_endpoint},
    uptime::{Moment, is_unchanged},
};
use crate::{
    DockerEngine,
    command::unreadable,
    errors::EngineError,
    groups,
    labels::{self, Label},
    socket::Socket,
};

/// The timeout of a list of containers.
const LIST_TIME: Duration = Duration::from_secs(10);
/// The prefix of the name of each container that we create. The engine gives those of a build other names.
pub(crate) const NAME_PREFIX: &str = "launchway-";

/// The filters of a list: each key names one, and any of its values passes it. Of several labels a
/// container must have all.
pub(crate) type Filters = BTreeMap<&'static str, Vec<String>>;

/// A container in a list of the engine.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct ListedContainer {
    id: String,
    names: Option<Vec<String>>,
    /// In seconds since 1970.
    pub(crate) created: i64,
    state: String,
    status: String,
    #[serde(default, deserialize_with = "or_empty")]
    pub(crate) labels: BTreeMap<String, String>,
    #[serde(default)]
    network_settings: ListedNetworks,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct ListedNetworks {
    #[serde(deserialize_with = "or_empty")]
    networks: Endpoints,
}

/// The engine writes `null` for a map without entries.
fn or_empty<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl ListedContainer {
    pub(crate) fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.network_settings.networks.values()
    }

    fn is_named_by_us(&self) -> bool {
        let mut names = self.names.iter().flatten();
        names.any(|name| name.trim_start_matches('/').starts_with(NAME_PREFIX))
    }

    /// Returns the condition, if the list and the earlier inspection are enough to know it.
    fn condition(&self, known: Option<&Inspected>, now: Moment) -> Option<Condition> {
        let known =
            known.filter(|known| known.state == self.state && is_unchanged(&self.status, known.seen, now));
        match self.state.as_str() {
            "created" => Some(Condition::Created),
            "paused" => Some(Condition::Paused),
            "removing" | "dead" => Some(Condition::Gone),
            "running" => {
                let endpoint = own_endpoint(&self.labels, &self.network_settings.networks);
                let address = endpoint.and_then(Endpoint::address)?;
                Some(Condition::Running { address, restarts: known?.exit.restarts })
            }
            "exited" => Some(Condition::Exited(known?.exit)),
            _ => None,
        }
    }
}

/// The data of a container that a list does not have, and the time at which it was true.
#[derive(Debug, Clone)]
struct Inspected {
    seen: Moment,
    state: String,
    exit: Exit,
    created_at: Timestamp,
    is_kept: bool,
}

/// The results of earlier inspections, by the ids of containers.
#[derive(Debug, Default)]
pub(crate) struct ListMemory(Mutex<HashMap<String, Inspected>>);

impl DockerEngine {
    /// Lists the containers that pass the filters.
    pub(crate) async fn list(
        &self,
        socket: &Socket,
        filters: &Filters,
    ) -> Result<Vec<ListedContainer>, EngineError> {
        let listed = socket.containers(filters, LIST_TIME.min(self.options.call_time)).await?;
        serde_json::from_slice(&listed).map_err(|_unexpected| unreadable())
    }

    /// Lists the containers of this installation that deployments made.
    pub(crate) async fn list_own(&self, socket: &Socket) -> Result<Vec<DiscoveredResource>, StepError> {
        let instance = Label::of_instance(self.options.instance);
        let filters = Filters::from([
            ("label", vec![instance.as_str().to_owned()]),
            ("name", vec![format!("^/?{NAME_PREFIX}")]),
        ]);
        let asked = Moment::now();
        let listed = self.list(socket, &filters).await.map_err(EngineError::or_fault)?;
        let answered = Moment::now();
        let mut remembered = HashMap::with_capacity(listed.len());
        let mut found = Vec::with_capacity(listed.len());
        for container in listed.iter().filter(|container| container.is_named_by_us()) {
            let mut inspected = self.listed.lock().get(&container.id).cloned();
            let one = match container.condition(inspected.as_ref(), answered) {
                Some(condition) => {
                    if let Some(inspected) = &mut inspected {
                        inspected.seen = asked;
                        inspected.state.clone_from(&container.state);
                    }
                    found_container(container, condition, inspected.as_ref())
                }
                None => match self.inspect_listed(socket, container, asked).await? {
                    Some((condition, looked_at)) => {
                        inspected = Some(looked_at);
                        found_container(container, condition, inspected.as_ref())
                    }
                    // It was removed meanwhile.
                    None => continue,
                },
            };
            found.extend(one);
            remembered.extend(inspected.map(|inspected| (container.id.clone(), inspected)));
        }
        *self.listed.lock() = remembered;
        Ok(found)
    }

    /// Inspects a container for which the list is not enough.
    async fn inspect_listed(
        &self,
        socket: &Socket,
        container: &ListedContainer,
        asked: Moment,
    ) -> Result<Option<(Condition, Inspected)>, StepError> {
        let record = match self.docker.inspect_at(socket, &container.id).await {
            Some(record) => Some(record),
            None => match container.id.parse::<ContainerId>() {
                Ok(id) => self.record(&id).await?,
                Err(_not_an_id) => None,
            },
        };
        let Some(record) = record else { return Ok(None) };
        let condition = condition(&record);
        let restarts = match condition {
            Condition::Running { restarts, .. } => restarts,
            Condition::Restarting(exit) | Condition::Exited(exit) => exit.restarts,
            _ => 0,
        };
        let exit = match condition {
            Condition::Restarting(exit) | Condition::Exited(exit) => exit,
            _ => Exit { code: 0, out_of_memory: false, restarts },
        };
        let created = record.get("created").and_then(Value::as_str).unwrap_or_default();
        let created_at = DateTime::parse_from_rfc3339(created).map_or_else(
            |_unreadable| seconds(container.created),
            |created| created.to_utc().trunc_subsecs(6),
        );
        let status = |value: &Value| value.get("state")?.get("Status")?.as_str().map(str::to_owned);
        let state = status(&record).unwrap_or_default();
        Ok(Some((condition, Inspected { seen: asked, state, exit, created_at, is_kept: is_kept(&record) })))
    }
}

impl ListMemory {
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Inspected>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn seconds(seconds: i64) -> Timestamp {
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}

fn found_container(
    container: &ListedContainer,
    condition: Condition,
    inspected: Option<&Inspected>,
) -> Option<DiscoveredResource> {
    let labels = &container.labels;
    let owner = labels::owner(labels);
    // Those of extensions belong to no deployment, and are managed elsewhere.
    if owner.is_none() && !labels::is_of_extension(labels) {
        tracing::warn!(id = container.id, kind = "container", "engine object has invalid labels");
    }
    let is_kept = inspected.is_some_and(|inspected| inspected.is_kept);
    Some(DiscoveredResource {
        owner: owner?,
        what: DiscoveredObject::Container {
            id: container.id.parse().ok()?,
            condition,
            created_at: inspected
                .map_or_else(|| seconds(container.created), |inspected| inspected.created_at),
            port: labels::port(labels),
            service: labels::service(labels),
            stays_up: groups::stays_up(labels, condition, is_kept),
        },
    })
}
