//! Which containers stand beside the one that gets the traffic.

use launchway_domain::deployments::{Companion, Deployment, Found, FoundObject, Owner};

/// The attempt that made the container of `deployment`.
fn maker_of(deployment: &Deployment, found: &[Found]) -> Option<Owner> {
    let recorded = deployment.container.as_ref()?;
    let is_it =
        |found: &&Found| matches!(&found.what, FoundObject::Container { id, .. } if *id == recorded.id);
    found.iter().find(is_it).map(|found| found.owner)
}

/// The containers among `found` that were made with the one of `deployment`.
pub(crate) fn companions_of(deployment: &Deployment, found: &[Found]) -> Vec<Companion> {
    let Some(maker) = maker_of(deployment, found) else { return Vec::new() };
    let recorded = deployment.container.as_ref().map(|container| &container.id);
    let companions =
        found.iter().filter(|found| found.owner == maker).filter_map(|found| match &found.what {
            FoundObject::Container { id, service: Some(service), .. } if Some(id) != recorded => {
                Some(Companion { id: id.clone(), service: service.clone() })
            }
            _ => None,
        });
    companions.collect()
}
