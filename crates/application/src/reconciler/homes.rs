//! The division of work among servers: the leader acts on what may run anywhere, and a home on its own applications.

use std::collections::HashSet;

use launchway_domain::{
    applications::Health,
    deployments::{Deployment, DiscoveredObject, DiscoveredResource},
    ids::{ApplicationId, DeploymentId},
    logs::{Level, NewLine},
    store::{StoreError, Write},
};

use super::{Reconciler, Snapshot, health::recorded};
use crate::homes::{AbsentHome, HomeView, Place};

impl Reconciler {
    /// Returns whether this server acts on a version. That of a home elsewhere is not seen from here.
    pub(super) fn acts_on(&self, homes: &HomeView, version: &Deployment) -> bool {
        match homes.place_of(version) {
            Place::Here => true,
            Place::Elsewhere => false,
            Place::Anywhere => self.context.replica.is_leader(),
        }
    }

    /// Returns whether this server removes an object if nobody needs it. Every server sees services and the networks of a
    /// Swarm, and only this one the containers and images of its own engine.
    pub(super) fn may_remove(&self, homes: &HomeView, found: &DiscoveredResource) -> bool {
        let is_leader = self.context.replica.is_leader();
        if matches!(&found.what, DiscoveredObject::Container { id, .. } if id.is_service()) {
            return is_leader;
        }
        let is_network = matches!(found.what, DiscoveredObject::Network(_));
        match homes.place(found.owner.application) {
            Place::Here => true,
            Place::Elsewhere => false,
            Place::Anywhere => is_leader || (self.has_own_engine() && !is_network),
        }
    }

    /// Returns whether this server has an engine of its own: images are in a registry only if there are several engines.
    pub(super) fn has_own_engine(&self) -> bool {
        self.ports.registry.is_some()
    }

    /// Commits changes about a version. A home needs no proof: no other server acts on what it runs.
    pub(super) async fn commit_about(
        &self,
        version: &Deployment,
        writes: Vec<Write>,
    ) -> Result<(), StoreError> {
        let place = self.snapshot.borrow().homes.place_of(version);
        match place {
            Place::Here => self.context.store.commit(writes).await,
            Place::Elsewhere | Place::Anywhere => self.context.commit_as_leader(writes).await,
        }
    }

    /// Returns the homes whose server is not alive, as far as that is known.
    pub(super) async fn absent_homes(&self, snapshot: &Snapshot) -> Vec<AbsentHome> {
        self.context.homes.without_server(&snapshot.homes).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "servers of stateful applications could not be checked");
            Vec::new()
        })
    }

    /// Records that versions do not serve because their machine is lost, and logs which deployments wait for a server.
    pub(super) async fn report_absent_homes(&self, snapshot: &Snapshot, absent: &[AbsentHome]) {
        for version in snapshot.running().filter(|version| version.deployment.is_composition()) {
            let subject = version.application.id.into();
            let Some(lost) = absent.iter().find(|absent| absent.is_lost && absent.home.subject == subject)
            else {
                continue;
            };
            let health = Health::Broken(lost.reason());
            if recorded(version) != health {
                self.mark(version, health).await;
            }
        }
        self.report_waiting(absent).await;
    }

    async fn report_waiting(&self, absent: &[AbsentHome]) {
        let servers: HashSet<_> = absent.iter().map(|absent| absent.home.server).collect();
        let mut waiting: Vec<(ApplicationId, DeploymentId)> = Vec::new();
        for server in servers {
            match self.context.homes.waiting_for(server).await {
                Ok(found) => waiting.extend(found),
                Err(error) => tracing::warn!(%error, "deployments that wait for a server could not be read"),
            }
        }
        let known = {
            let mut known = self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let now = waiting.iter().map(|(_, deployment)| *deployment).collect();
            std::mem::replace(&mut *known, now)
        };
        for (application_id, deployment_id) in waiting {
            let home = absent.iter().find(|absent| absent.home.subject == application_id.into());
            let Some(home) = home.filter(|_| !known.contains(&deployment_id)) else { continue };
            let text = format!("Waiting for the machine of the application: {}", home.reason());
            let at = self.context.clock.now();
            let line = NewLine { application_id, deployment_id, level: Level::Warn, text, at };
            if let Err(error) = self.ports.logs.append(vec![line]).await {
                tracing::warn!(%error, deployment.id = %deployment_id, "log line could not be stored");
            }
        }
    }
}
