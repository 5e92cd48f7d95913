//! Generates the compose file that the engine gets.
//!
//! It is JSON, which is also YAML, so that no value can be misinterpreted.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
};

use launchway_domain::{
    applications::{Port, Variables},
    deployments::{Owner, ServiceName},
};
use serde_json::{Map, Value, json};

use super::{env_files, file::ComposeFile, interpolation::Interpolation, service::Service, store::Kept};
use crate::{
    ContainerLimits,
    command::CAPABILITIES,
    labels::{Label, Role},
};

/// The largest generated file. Compose is slow with larger ones.
const LARGEST: usize = 2 * 1024 * 1024;

/// The health check interval of a service that does not set one.
const USUAL_INTERVAL: &str = "30s";
/// The health check interval if only the image has a check, and other services wait for it.
const AWAITED_INTERVAL: &str = "5s";

/// The inputs of the generated compose file.
#[derive(Debug)]
pub(super) struct Rendering<'a> {
    pub(super) owner: &'a Owner,
    pub(super) file: &'a ComposeFile,
    pub(super) kept: &'a Kept,
    pub(super) web: &'a ServiceName,
    pub(super) variables: &'a Variables,
    /// The labels of every container.
    pub(super) labels: &'a [Label],
    pub(super) limits: &'a ContainerLimits,
    /// The address of the service that gets the traffic.
    pub(super) address: Option<Ipv4Addr>,
    /// The address and port of this machine that lead to it, and the port that it listens on.
    pub(super) published: Option<(SocketAddr, Port)>,
}

/// Returns the name of a composition: of its project, its network, and the prefix of its containers' names.
pub(super) fn project_name(owner: &Owner) -> String {
    format!("launchway-{}-{}", owner.deployment, owner.attempt)
}

/// Returns the engine's name of an application's volume.
pub(super) fn volume_name(owner: &Owner, volume: &str) -> String {
    format!("launchway-{}-{volume}", owner.application)
}

impl Rendering<'_> {
    /// Renders the file.
    pub(super) fn render(&self) -> Result<Vec<u8>, String> {
        let order = self.file.order()?;
        let services = self.file.services.iter().map(|(name, service)| {
            let place = order.iter().position(|other| *other == name).unwrap_or_default();
            Ok((name.to_string(), self.service(name, service, place)?))
        });
        let services = services.collect::<Result<Map<_, _>, String>>()?;
        let volumes = self.file.volumes.iter().map(|volume| {
            (volume.clone(), json!({ "external": true, "name": volume_name(self.owner, volume) }))
        });
        written(json!({
            "services": services,
            "volumes": volumes.collect::<Map<_, _>>(),
            "networks": { "composition": { "external": true, "name": project_name(self.owner) } },
        }))
    }

    /// Returns the environment of a service: the application's variables if it gets the traffic, then those
    /// of its env files, then its own, of which the last takes precedence.
    pub(super) fn environment(&self, name: &ServiceName) -> Result<BTreeMap<String, String>, String> {
        let mut interpolation = Interpolation::new(self.variables);
        let mut environment = BTreeMap::new();
        if name == self.web {
            let own = self.variables.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
            environment.extend(own);
        }
        let Some(service) = self.file.services.get(name) else { return Ok(environment) };
        for file in &service.env_files {
            // A file that is missing here was missing in the repository, and is not required.
            let Some(text) = self.kept.env_files.get(&file.path) else { continue };
            environment.extend(env_files::read(text, &file.path, &mut interpolation)?);
        }
        for (name, value) in &service.environment {
            match value.as_deref().or_else(|| interpolation.value(name)) {
                Some(value) => drop(environment.insert(name.clone(), value.to_owned())),
                None => drop(environment.remove(name)),
            }
        }
        Ok(environment)
    }

    fn service(&self, name: &ServiceName, service: &Service, place: usize) -> Result<Value, String> {
        let image = self.kept.images.get(name).ok_or_else(|| format!("the service `{name}` has no image"))?;
        let mut rendered = service.settings.clone();
        rendered.extend(service.limits.render(self.limits));
        let aliases: Vec<&String> = service.networks.iter().flat_map(|(_, aliases)| aliases).collect();
        let mut network = json!({ "aliases": aliases });
        let address = self.address.filter(|_| name == self.web);
        if let (Some(address), Some(network)) = (address, network.as_object_mut()) {
            network.insert("ipv4_address".to_owned(), address.to_string().into());
        }
        for (key, value) in [
            ("image", json!(image.as_str())),
            ("container_name", json!(format!("{}-{name}", project_name(self.owner)))),
            ("environment", json!(self.environment(name)?)),
            ("labels", self.labels_of(name, service, place)),
            ("healthcheck", health_check(self.file, name, service)),
            ("networks", json!({ "composition": network })),
            ("volumes", service.mounts.iter().map(|mount| mount.render(self.limits.memory)).collect()),
            ("restart", json!("no")),
        ] {
            rendered.insert(key.to_owned(), value);
        }
        if let Some((endpoint, port)) = self.published.filter(|_| name == self.web) {
            rendered.insert("ports".to_owned(), json!([format!("{endpoint}:{}/tcp", port.get())]));
        }
        rendered.extend(protections(&service.dropped_capabilities));
        rendered.extend(depends_on(service));
        Ok(rendered.into())
    }

    fn labels_of(&self, name: &ServiceName, service: &Service, place: usize) -> Value {
        let restart = match &service.restart {
            None if self.file.is_a_task(name) => Some("no".to_owned()),
            said => said.clone(),
        };
        let role = Role { service: name.clone(), place, restart, is_web: name == self.web };
        let mut labels: Map<String, Value> =
            service.labels.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        let address = Label::of_address(self.address.filter(|_| name == self.web));
        let aliases: Vec<&str> =
            service.networks.iter().flat_map(|(_, aliases)| aliases).map(String::as_str).collect();
        let ours = self.labels.iter().cloned().chain(role.labels());
        // Our labels override those of the file or an image.
        let published = self.published.filter(|_| name == self.web);
        let published = Label::of_published(published.map(|(endpoint, _)| endpoint));
        for label in ours.chain([address, published, Label::of_aliases(&aliases)]) {
            labels.insert(label.name().to_owned(), label.value().into());
        }
        labels.into()
    }
}

/// Serializes a file for compose.
pub(super) fn written(mut file: Value) -> Result<Vec<u8>, String> {
    escape_dollars(&mut file);
    let text = escape_unprintables(&format!("{file:#}"));
    if text.len() > LARGEST {
        return Err(format!("its variables make it larger than {LARGEST} bytes"));
    }
    Ok(text.into_bytes())
}

/// Returns the settings of every service, whatever its file says.
pub(super) fn protections(dropped_capabilities: &[String]) -> [(String, Value); 5] {
    [
        ("pull_policy", json!("never")),
        ("security_opt", json!(["no-new-privileges"])),
        ("cap_drop", json!(["ALL"])),
        ("cap_add", capabilities(dropped_capabilities)),
        ("logging", json!({ "driver": "json-file", "options": { "max-size": "10m", "max-file": "3" } })),
    ]
    .map(|(key, value)| (key.to_owned(), value))
}

/// Returns the dependencies of a service.
pub(super) fn depends_on(service: &Service) -> Option<(String, Value)> {
    let all = service.depends_on.iter();
    let all = all.map(|(name, condition)| (name.to_string(), json!({ "condition": condition })));
    let all: Map<String, Value> = all.collect();
    (!all.is_empty()).then(|| ("depends_on".to_owned(), all.into()))
}

/// Returns the health check of a service. An image may ask for a thousand checks a second, so the interval
/// is always set here, and a check that no service waits for is disabled.
pub(super) fn health_check(file: &ComposeFile, name: &ServiceName, service: &Service) -> Value {
    let is_awaited =
        |other: &Service| other.depends_on.get(name).is_some_and(|condition| condition == "service_healthy");
    match service.settings.get("healthcheck").and_then(Value::as_object) {
        Some(own) if own.contains_key("disable") || own.contains_key("interval") => own.clone().into(),
        Some(own) => {
            let mut check = own.clone();
            check.insert("interval".to_owned(), USUAL_INTERVAL.into());
            check.into()
        }
        None if file.services.values().any(is_awaited) => json!({ "interval": AWAITED_INTERVAL }),
        None => json!({ "disable": true }),
    }
}

/// Returns the capabilities of a service: those of every container, without those that it drops.
fn capabilities(dropped: &[String]) -> Value {
    let is_kept = |name: &&&str| !dropped.iter().any(|dropped| dropped == "ALL" || dropped == **name);
    CAPABILITIES.iter().filter(is_kept).copied().collect()
}

/// Compose replaces variables once more; `$$` is a dollar sign to it.
fn escape_dollars(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace('$', "$$"),
        Value::Array(items) => items.iter_mut().for_each(escape_dollars),
        Value::Object(entries) => entries.values_mut().for_each(escape_dollars),
        _ => {}
    }
}

/// JSON allows characters that YAML does not, or takes for a line break. All of them are escaped by their
/// code points.
fn escape_unprintables(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                text.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => text.push(c),
        }
    }
    text
}
