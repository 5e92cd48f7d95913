//! A checked compose file.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use launchway_domain::{
    applications::Variables,
    deployments::ServiceName,
    yaml::{Aliases, Content, Node},
};

use super::{
    fields::{self, Fields},
    interpolation::Interpolation,
    mounts::{self, Mount},
    service::Service,
};

/// The most services of a file.
const MOST_SERVICES: usize = 20;

/// A compose file that was checked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ComposeFile {
    pub(super) services: BTreeMap<ServiceName, Service>,
    /// The named volumes that services use.
    pub(super) volumes: BTreeSet<String>,
    /// The differences from the file as written, as lines for the log.
    pub(super) remarks: Vec<String>,
}

impl ComposeFile {
    /// Parses a file in which only `variables` are known.
    pub(super) fn read(bytes: &[u8], variables: &Variables) -> Result<Self, String> {
        let tree = Node::read(bytes, Aliases::Allowed).map_err(|unreadable| unreadable.to_string())?;
        let mut interpolation = Interpolation::new(variables);
        let mut top = Fields::of(&tree, "the file")?;
        for ignored in ["version", "name"] {
            top.take_as(ignored, fields::text)?;
        }
        let mut section = |key: &str| match top.take(key) {
            Some(node) => interpolation.node(node),
            None => Ok(Node::empty_map()),
        };
        let (services, volumes, networks) = (section("services")?, section("volumes")?, section("networks")?);
        top.finish()?;
        let services = read_services(&services)?;
        let mut file = Self { services, volumes: declared_volumes(&volumes)?, remarks: Vec::new() };
        let networks = declared_networks(&networks)?;
        file.check_references(&networks)?;
        file.order()?;
        file.volumes = file.used_volumes();
        file.remarks = file.remarks(&networks, &interpolation.unset());
        Ok(file)
    }

    /// Returns the service that gets the traffic: the one that listens on `port`, or else the labelled one.
    pub(super) fn web(&self, port: u16) -> Result<&ServiceName, String> {
        let that = |is_it: &dyn Fn(&Service) -> bool| -> Vec<&ServiceName> {
            self.services.iter().filter(|(_, service)| is_it(service)).map(|(name, _)| name).collect()
        };
        let listening = that(&|service| service.ports.contains(&port));
        let labelled = that(&|service| service.is_labelled);
        match (listening.as_slice(), labelled.as_slice()) {
            ([one], _) | ([], [one]) => Ok(one),
            ([], []) => Err(format!(
                "none of the services {} exposes or publishes the port {port}: add it to `expose` of the one \
                 that gets the traffic, or label that one `launchway.web=true`",
                quoted(self.services.keys())
            )),
            ([], several) => Err(format!(
                "the services {} are all labelled `launchway.web=true`: only one can get the traffic",
                quoted(several.iter().copied())
            )),
            (several, _) => Err(format!(
                "the services {} all expose or publish the port {port}: only one can get the traffic",
                quoted(several.iter().copied())
            )),
        }
    }

    /// Returns the services in the order in which they can be started: each after its dependencies.
    pub(super) fn order(&self) -> Result<Vec<&ServiceName>, String> {
        let mut order: Vec<&ServiceName> = Vec::new();
        while order.len() < self.services.len() {
            let is_ready = |service: &Service| service.depends_on.keys().all(|name| order.contains(&name));
            let ready = self.services.iter().filter(|(name, _)| !order.contains(name));
            let ready: Vec<_> =
                ready.filter(|(_, service)| is_ready(service)).map(|(name, _)| name).collect();
            if ready.is_empty() {
                let left = self.services.keys().filter(|name| !order.contains(name));
                return Err(format!("the services {} wait for each other", quoted(left)));
            }
            order.extend(ready);
        }
        Ok(order)
    }

    /// Returns the services that can run without `web`.
    pub(super) fn sidecars(&self, web: &ServiceName) -> Vec<&ServiceName> {
        let mut waiting: BTreeSet<&ServiceName> = BTreeSet::from([web]);
        // In the order of starting, a dependent service comes after its dependencies.
        for name in self.order().unwrap_or_default() {
            let needs = self.services.get(name).map(|service| &service.depends_on);
            if needs.is_some_and(|needs| needs.keys().any(|needed| waiting.contains(needed))) {
                waiting.insert(name);
            }
        }
        self.services.keys().filter(|name| !waiting.contains(name)).collect()
    }

    /// Returns whether another service waits until this one has completed.
    pub(super) fn is_a_task(&self, name: &ServiceName) -> bool {
        let conditions = self.services.values().filter_map(|service| service.depends_on.get(name));
        conditions.into_iter().any(|condition| condition == "service_completed_successfully")
    }

    fn check_references(&self, networks: &BTreeSet<String>) -> Result<(), String> {
        for (name, service) in &self.services {
            if let Some(unknown) = service.depends_on.keys().find(|other| !self.services.contains_key(other))
            {
                return Err(format!("the service `{name}` depends on `{unknown}`, which is not there"));
            }
            for volume in volumes_of(service) {
                if !self.volumes.contains(volume) {
                    return Err(format!(
                        "the service `{name}` uses the volume `{volume}`, which `volumes` of the file does not name"
                    ));
                }
            }
            let unknown = service.networks.iter().find(|(network, _)| !networks.contains(network));
            if let Some((network, _)) = unknown.filter(|(network, _)| network != "default") {
                return Err(format!(
                    "the service `{name}` is in the network `{network}`, which `networks` of the file does not name"
                ));
            }
        }
        Ok(())
    }

    fn used_volumes(&self) -> BTreeSet<String> {
        self.services.values().flat_map(volumes_of).cloned().collect()
    }

    fn remarks(&self, networks: &BTreeSet<String>, unset: &BTreeSet<String>) -> Vec<String> {
        let mut remarks = Vec::new();
        let that_say = |key: &str| -> Vec<&ServiceName> {
            let services = self.services.iter().filter(|(_, service)| service.ignored.contains(&key));
            services.map(|(name, _)| name).collect()
        };
        let named = that_say("container_name");
        if !named.is_empty() {
            let which = quoted(named.into_iter());
            remarks
                .push(format!("`container_name` of {which} is not followed: versions run beside each other"));
        }
        let published = that_say("ports");
        if !published.is_empty() {
            let which = quoted(published.into_iter());
            remarks.push(format!(
                "`ports` of {which} are not published on this machine: traffic comes by Launchway"
            ));
        }
        if networks.len() > 1 {
            remarks.push("All services are in one network: those of the file are not kept apart".to_owned());
        }
        for name in unset {
            remarks.push(format!("The variable `{name}` is not set: it is empty"));
        }
        remarks
    }
}

/// Returns the named volumes that a service uses.
fn volumes_of(service: &Service) -> impl Iterator<Item = &String> {
    service.mounts.iter().filter_map(|mount| match mount {
        Mount::Volume { name, .. } => name.as_ref(),
        Mount::Memory { .. } => None,
    })
}

fn read_services(node: &Node) -> Result<BTreeMap<ServiceName, Service>, String> {
    let Content::Map(entries) = &node.content else {
        return Err("`services` of the file has to be a map".to_owned());
    };
    if entries.is_empty() {
        return Err("there is no service in it".to_owned());
    }
    if entries.len() > MOST_SERVICES {
        return Err(format!("there are more than {MOST_SERVICES} services in it"));
    }
    let read = entries.iter().map(|(name, node)| {
        let name: ServiceName = name.parse().map_err(|error| format!("a service's name {error}"))?;
        let service = Service::read(&name, node)?;
        Ok((name, service))
    });
    read.collect()
}

fn declared_volumes(node: &Node) -> Result<BTreeSet<String>, String> {
    declared(node, "volume", "local")
}

fn declared_networks(node: &Node) -> Result<BTreeSet<String>, String> {
    declared(node, "network", "bridge")
}

/// Reads names whose only setting may be the default driver.
fn declared(node: &Node, what: &str, driver: &str) -> Result<BTreeSet<String>, String> {
    let entries = match &node.content {
        Content::Map(entries) => entries,
        _ if node.is_nothing() => return Ok(BTreeSet::new()),
        _ => return Err(format!("`{what}s` of the file has to be a map")),
    };
    let read = entries.iter().map(|(name, node)| {
        if !mounts::is_name(name) {
            return Err(format!(
                "the name of a {what} may only have up to 63 letters, digits, `.`, `_` and `-`"
            ));
        }
        let mut fields = Fields::of(node, &format!("the {what} `{name}`"))?;
        let wanted = fields.take_as("driver", fields::text)?;
        if wanted.is_some_and(|wanted| wanted != driver) {
            return Err(format!("the {what} `{name}` may not have another driver than `{driver}`"));
        }
        fields.finish()?;
        Ok(name.clone())
    });
    read.collect()
}

fn quoted<'a>(names: impl Iterator<Item = &'a ServiceName>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
