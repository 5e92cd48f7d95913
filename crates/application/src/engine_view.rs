//! A snapshot of the containers of the installation on the engine.

use std::collections::HashMap;

use launchway_domain::deployments::{
    Condition, ContainerId, Deployment, DiscoveredObject, DiscoveredResource, Owner, Sidecar,
};

/// The containers on the engine, by their ids, and those of compositions by the attempts that created them.
#[derive(Debug, Default)]
pub struct EngineView {
    found: Vec<DiscoveredResource>,
    by_id: HashMap<ContainerId, usize>,
    services: HashMap<Owner, Vec<usize>>,
}

impl From<Vec<DiscoveredResource>> for EngineView {
    fn from(found: Vec<DiscoveredResource>) -> Self {
        let mut view = Self { by_id: HashMap::with_capacity(found.len()), ..Self::default() };
        for (place, found) in found.iter().enumerate() {
            let DiscoveredObject::Container { id, service, .. } = &found.what else { continue };
            view.by_id.insert(id.clone(), place);
            if service.is_some() {
                view.services.entry(found.owner).or_default().push(place);
            }
        }
        view.found = found;
        view
    }
}

impl EngineView {
    /// Returns the condition of a container.
    pub(crate) fn condition(&self, container: &ContainerId) -> Condition {
        match self.by_id.get(container).map(|place| &self.found[*place].what) {
            Some(DiscoveredObject::Container { condition, .. }) => *condition,
            _ => Condition::Gone,
        }
    }

    /// Returns the attempt that created a container.
    pub(crate) fn owner(&self, container: &ContainerId) -> Option<Owner> {
        self.by_id.get(container).map(|place| self.found[*place].owner)
    }

    /// Returns the containers of a composition beside the one of `deployment` that gets the traffic.
    pub(crate) fn sidecars(&self, deployment: &Deployment) -> Vec<Sidecar> {
        let sidecars = self.found_sidecars(deployment).into_iter();
        sidecars.map(|(id, service, ..)| Sidecar { id: id.clone(), service: service.clone() }).collect()
    }

    /// Returns whether every long-running service of the composition of `deployment` is up.
    pub(crate) fn sidecars_are_up(&self, deployment: &Deployment) -> bool {
        self.found_sidecars(deployment).into_iter().all(|(_, _, condition, stays_up)| {
            !stays_up || matches!(condition, Condition::Running { .. } | Condition::Restarting(_))
        })
    }

    fn found_sidecars(
        &self,
        deployment: &Deployment,
    ) -> Vec<(&ContainerId, &launchway_domain::deployments::ServiceName, Condition, bool)> {
        let recorded = deployment.container.as_ref().filter(|_| !self.services.is_empty());
        let Some(recorded) = recorded else { return Vec::new() };
        let Some(owner) = self.owner(&recorded.id) else { return Vec::new() };
        let made = self.services.get(&owner).into_iter().flatten();
        let sidecars = made.filter_map(|place| match &self.found[*place].what {
            DiscoveredObject::Container { id, condition, service: Some(service), stays_up, .. }
                if *id != recorded.id =>
            {
                Some((id, service, *condition, *stays_up))
            }
            _ => None,
        });
        sidecars.collect()
    }
}
