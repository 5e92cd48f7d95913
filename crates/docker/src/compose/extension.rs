//! The compose file of an extension: its allowed keys, which are fewer than those of a repository's, and
//! the generated file.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, net::Ipv4Addr};

use launchway_domain::{
    applications::{ImageRef, Variables},
    deployments::ServiceName,
    extensions::PublishedPort,
    yaml::{Aliases, Content, Node},
};
use serde_json::{Map, Value, json};

use super::{
    builds::ImageSource,
    fields::{self, Fields},
    file::ComposeFile,
    interpolation::Interpolation,
    mounts::Mount,
    render::{depends_on, health_check, protections, written},
    service::Service,
};
use crate::{
    ContainerLimits,
    command::ImageId,
    forwarded_ports::ForwardedPort,
    labels::{Label, Role},
};

/// The allowed keys of a service. The rest is the same for all services: the network of the organization,
/// the limits of every container, and no access to this machine.
const ALLOWED: [&str; 10] = [
    "command",
    "depends_on",
    "entrypoint",
    "environment",
    "healthcheck",
    "image",
    "labels",
    "ports",
    "restart",
    "volumes",
];

/// A compose file that was checked.
#[derive(Debug)]
pub(crate) struct ExtensionFile {
    file: ComposeFile,
    images: BTreeMap<ServiceName, ImageRef>,
    ports: BTreeMap<ServiceName, Vec<PublishedPort>>,
}

impl ExtensionFile {
    /// Parses a file in which only `values` are known.
    pub(crate) fn read(text: &str, values: &Variables) -> Result<Self, String> {
        let tree =
            Node::read(text.as_bytes(), Aliases::Allowed).map_err(|unreadable| unreadable.to_string())?;
        let mut top = Fields::of(&tree, "the file")?;
        for key in ["version", "name", "volumes"] {
            top.take(key);
        }
        let services = top.take("services").map(|node| Interpolation::new(values).node(node)).transpose()?;
        top.finish()?;
        let ports = match services.as_ref().map(|services| &services.content) {
            Some(Content::Map(entries)) => {
                entries.iter().map(|(name, node)| checked(name, node)).collect::<Result<Vec<_>, _>>()?
            }
            _ => Vec::new(),
        };
        let file = ComposeFile::read(text.as_bytes(), values)?;
        let mut images = BTreeMap::new();
        for (name, service) in &file.services {
            images.insert(name.clone(), image(name, service)?);
            require_named_volumes(name, service)?;
        }
        let named = ports.into_iter().filter_map(|(name, ports)| Some((name.parse().ok()?, ports)));
        Ok(Self { file, images, ports: named.collect() })
    }

    pub(crate) fn services(&self) -> impl Iterator<Item = &ServiceName> {
        self.file.services.keys()
    }

    pub(crate) fn images(&self) -> impl Iterator<Item = (&ServiceName, &ImageRef)> {
        self.images.iter()
    }

    /// The named volumes that services use.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = &str> {
        self.file.volumes.iter().map(String::as_str)
    }

    /// The ports that services publish.
    pub(crate) fn ports(&self) -> impl Iterator<Item = (&ServiceName, &PublishedPort)> {
        self.ports.iter().flat_map(|(service, ports)| ports.iter().map(move |port| (service, port)))
    }
}

/// Rejects keys that a service must not have, and reads its ports: those of a repository are not published.
fn checked(name: &str, node: &Node) -> Result<(String, Vec<PublishedPort>), String> {
    let mut fields = Fields::of(node, &format!("the service `{name}`"))?;
    let ports = fields.take_as("ports", |node, place| {
        let Content::List(items) = &node.content else { return Err(format!("{place} has to be a list")) };
        items.iter().map(|item| port(item, place)).collect::<Result<Vec<_>, _>>()
    })?;
    for key in ALLOWED {
        fields.take(key);
    }
    fields.finish()?;
    Ok((name.to_owned(), ports.unwrap_or_default()))
}

fn port(node: &Node, place: &str) -> Result<PublishedPort, String> {
    let text = match &node.content {
        Content::Map(_) => {
            let mut fields = Fields::of(node, place)?;
            let mut part = |key: &str| fields.take_as(key, fields::text);
            let (address, published) = (part("host_ip")?, part("published")?);
            let (target, protocol) = (part("target")?, part("protocol")?);
            fields.finish()?;
            let target = target.ok_or_else(|| format!("{place} needs `target`"))?;
            let ports = format!("{}:{target}", published.unwrap_or_default());
            let address = address.map(|address| format!("{address}:")).unwrap_or_default();
            format!("{address}{ports}/{}", protocol.as_deref().unwrap_or("tcp"))
        }
        _ => fields::text(node, place)?,
    };
    PublishedPort::try_from(text).map_err(|refused| format!("{place} {refused}"))
}

fn image(name: &ServiceName, service: &Service) -> Result<ImageRef, String> {
    if service.is_labelled {
        return Err(format!(
            "the service `{name}` may not have the label `launchway.web`: use a step `proxy`"
        ));
    }
    match &service.image {
        ImageSource::Image(image) => Ok(image.clone()),
        ImageSource::Build(..) => Err(format!("the service `{name}` may not have `build`: name an image")),
    }
}

fn require_named_volumes(name: &ServiceName, service: &Service) -> Result<(), String> {
    let is_named = |mount: &Mount| matches!(mount, Mount::Volume { name: Some(_), .. });
    match service.mounts.iter().all(is_named) {
        true => Ok(()),
        false => Err(format!("`volumes` of the service `{name}` may only be volumes with a name")),
    }
}

/// The inputs of the generated compose file of an extension.
pub(crate) struct ExtensionRendering<'a> {
    pub(crate) file: &'a ExtensionFile,
    pub(crate) images: &'a BTreeMap<ServiceName, ImageId>,
    pub(crate) values: &'a Variables,
    /// The network of all services.
    pub(crate) network: &'a str,
    pub(crate) limits: &'a ContainerLimits,
    /// The name of the container of a service, and of a volume.
    pub(crate) container: &'a (dyn Fn(&ServiceName) -> String + Sync),
    pub(crate) volume: &'a (dyn Fn(&str) -> String + Sync),
    /// The labels of the container of a service.
    pub(crate) labels: &'a (dyn Fn(&ServiceName) -> Vec<Label> + Sync),
    /// The addresses of services; the engine assigns those of the others.
    pub(crate) addresses: &'a BTreeMap<ServiceName, Ipv4Addr>,
    /// The ports of this machine that are forwarded to services.
    pub(crate) ports: &'a BTreeMap<ServiceName, Vec<ForwardedPort>>,
}

impl ExtensionRendering<'_> {
    /// Renders the file.
    pub(crate) fn render(&self) -> Result<Vec<u8>, String> {
        let file = &self.file.file;
        let order = file.order()?;
        let services = order.iter().enumerate().filter_map(|(place, name)| {
            let service = file.services.get(*name)?;
            Some(self.service(name, service, place).map(|rendered| (name.to_string(), rendered)))
        });
        let services = services.collect::<Result<Map<_, _>, String>>()?;
        let volumes = self
            .file
            .volumes()
            .map(|volume| (volume.to_owned(), json!({ "external": true, "name": (self.volume)(volume) })));
        written(json!({
            "services": services,
            "volumes": volumes.collect::<Map<_, _>>(),
            "networks": { "organization": { "external": true, "name": self.network } },
        }))
    }

    fn service(&self, name: &ServiceName, service: &Service, place: usize) -> Result<Value, String> {
        let image = self.images.get(name).ok_or_else(|| format!("the service `{name}` has no image"))?;
        let restart = match &service.restart {
            None if self.file.file.is_a_task(name) => "no",
            None => "unless-stopped",
            Some(said) => said.as_str(),
        };
        let mut rendered = service.settings.clone();
        rendered.extend(service.limits.render(self.limits));
        let network = match self.addresses.get(name) {
            Some(address) => json!({ "ipv4_address": address.to_string() }),
            None => json!({}),
        };
        for (key, value) in [
            ("image", json!(image.as_str())),
            ("container_name", json!((self.container)(name))),
            ("environment", json!(self.environment(service))),
            ("labels", self.labels_of(name, service, place)),
            ("healthcheck", health_check(&self.file.file, name, service)),
            ("networks", json!({ "organization": network })),
            ("volumes", service.mounts.iter().map(|mount| mount.render(self.limits.memory)).collect()),
            ("ports", self.ports.get(name).into_iter().flatten().map(ForwardedPort::to_string).collect()),
            ("restart", json!(restart)),
        ] {
            rendered.insert(key.to_owned(), value);
        }
        rendered.extend(protections(&[]));
        rendered.extend(depends_on(service));
        Ok(rendered.into())
    }

    /// Returns the environment of a service. A name without a value takes the value of that name.
    fn environment(&self, service: &Service) -> BTreeMap<String, String> {
        let known = Interpolation::new(self.values);
        let told = service.environment.iter().filter_map(|(name, value)| {
            let value = value.as_deref().or_else(|| known.value(name))?;
            Some((name.clone(), value.to_owned()))
        });
        told.collect()
    }

    fn labels_of(&self, name: &ServiceName, service: &Service, place: usize) -> Value {
        let mut labels: Map<String, Value> =
            service.labels.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let role = Role { service: name.clone(), place, restart: service.restart.clone(), is_web: false };
        // Our labels override those of the file or an image.
        let address = Label::of_address(self.addresses.get(name).copied());
        for label in (self.labels)(name).into_iter().chain(role.labels()).chain([address]) {
            labels.insert(label.name().to_owned(), label.value().into());
        }
        labels.into()
    }
}
