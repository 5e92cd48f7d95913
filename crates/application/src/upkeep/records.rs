//! Keeping the records of live containers true: after a reboot an engine gives out other addresses.

use std::{collections::HashMap, net::SocketAddr};

use launchway_domain::{
    deployments::{
        Condition, ContainerId, ContainerRecord, ContainerState, Found, FoundObject, LiveVersion, Write,
    },
    logs::Level,
    organizations::Scope,
};

use super::Upkeep;

/// How each container among `found` is.
pub(super) fn conditions_of(found: &[Found]) -> HashMap<ContainerId, Condition> {
    let conditions = found.iter().filter_map(|found| match &found.what {
        FoundObject::Container { id, condition, .. } => Some((id.clone(), *condition)),
        FoundObject::Image(_) | FoundObject::Network(_) => None,
    });
    conditions.collect()
}

impl Upkeep {
    /// The containers of this installation; `None` when it cannot be asked.
    pub(super) async fn found(&self) -> Option<Vec<Found>> {
        match self.ports.inventory.containers().await {
            Ok(found) => Some(found),
            Err(error) => {
                tracing::debug!(%error, "containers could not be looked at");
                None
            }
        }
    }

    /// Makes the records of live containers true, if there are any and the engine can be asked.
    pub(super) async fn look_once(&self) {
        let Ok(live) = self.ports.deployments.live().await else { return };
        let running: Vec<&LiveVersion> =
            live.iter().filter(|version| !version.application.is_stopped).collect();
        if running.iter().all(|version| version.deployment.container.is_none()) {
            return;
        }
        if let Some(found) = self.found().await {
            self.correct_records(&running, &conditions_of(&found)).await;
        }
    }

    /// Records how the containers of `live` are, and leads traffic to where they are reached now.
    pub(super) async fn correct_records(
        &self,
        live: &[&LiveVersion],
        conditions: &HashMap<ContainerId, Condition>,
    ) {
        for version in live {
            let Some(recorded) = &version.deployment.container else { continue };
            let (state, address) = match conditions.get(&recorded.id) {
                Some(Condition::Running { address, .. }) => (ContainerState::Running, Some(*address)),
                Some(Condition::Exited { .. }) => (ContainerState::Exited, None),
                Some(Condition::Gone) | None => (ContainerState::Removed, None),
            };
            if (state, address) == (recorded.state, recorded.address) || !self.is_still_live(version).await {
                continue;
            }
            self.correct(version, ContainerRecord { state, address, ..recorded.clone() }).await;
        }
    }

    async fn correct(&self, version: &LiveVersion, container: ContainerRecord) {
        let (id, at) = (version.deployment.id, self.tools.clock.now());
        let (address, port) = (container.address, container.port.get());
        let write = Write::RecordContainer { id, container, at };
        if let Err(error) = self.tools.store.commit(vec![write.into()]).await {
            tracing::warn!(%error, deployment.id = %id, "the record of a container could not be corrected");
            return;
        }
        let scope = Scope::of_record(version.application.organization_id);
        match (self.ports.routes.follow(scope, version.application.id).await, address) {
            (Ok(()), None) => {}
            (Ok(()), Some(address)) => {
                self.note(
                    version,
                    Level::Info,
                    format!("Live again at http://{}", SocketAddr::new(address, port)),
                )
                .await;
            }
            (Err(error), _) => {
                tracing::warn!(%error, deployment.id = %id, "traffic could not be led to a container")
            }
        }
    }
}
