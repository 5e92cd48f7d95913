//! One service of a compose file, with its allowed keys.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use launchway_domain::{
    deployments::ServiceName,
    yaml::{Content, Node},
};
use serde_json::{Map, Value, json};

use super::{
    builds::ImageSource,
    fields::{self, Fields},
    mounts::Mount,
    quantities,
};
use crate::command::{CONTAINER_CPU_SHARES, CPU_PERIOD, cpu_quota};

/// The longest duration in a health check.
const LONGEST: Duration = Duration::from_secs(60 * 60);
/// The longest grace period of a service.
const LONGEST_GRACE: Duration = Duration::from_secs(60);
/// The shortest health check interval: each check costs the engine more than the service, and nothing
/// limits the engine.
const SHORTEST_INTERVAL: Duration = Duration::from_secs(1);
/// The most mounts of a service.
const MOST_MOUNTS: usize = 50;
/// The conditions under which a dependency is ready.
const CONDITIONS: [&str; 3] = ["service_started", "service_healthy", "service_completed_successfully"];

/// A service.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Service {
    pub(super) image: ImageSource,
    /// The settings that are copied to the generated file.
    pub(super) settings: Map<String, Value>,
    /// Variables without a value get that of the application's variable.
    pub(super) environment: Vec<(String, Option<String>)>,
    pub(super) env_files: Vec<EnvFile>,
    /// Its dependencies, and the condition of each.
    pub(super) depends_on: BTreeMap<ServiceName, String>,
    /// The TCP ports on which it listens.
    pub(super) ports: BTreeSet<u16>,
    pub(super) mounts: Vec<Mount>,
    /// The networks of the file that it is in, with its aliases there.
    pub(super) networks: Vec<(String, Vec<String>)>,
    pub(super) labels: Vec<(String, String)>,
    /// True if it is labelled as the service that gets the traffic.
    pub(super) is_labelled: bool,
    /// The restart policy, if given.
    pub(super) restart: Option<String>,
    pub(super) limits: Limits,
    /// The capabilities that it drops.
    pub(super) dropped_capabilities: Vec<String>,
    /// Keys that are read and ignored.
    pub(super) ignored: Vec<&'static str>,
}

/// A file with variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EnvFile {
    pub(super) path: String,
    pub(super) is_required: bool,
}

/// The limits of a service, where they are below those of every container.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Limits {
    pub(super) memory: Option<u64>,
    pub(super) cpus: Option<f64>,
    pub(super) pids: Option<u32>,
    pub(super) shared_memory: Option<u64>,
}

impl Service {
    pub(super) fn read(name: &ServiceName, node: &Node) -> Result<Self, String> {
        let mut fields = Fields::of(node, &format!("the service `{name}`"))?;
        let image = ImageSource::take(&mut fields)?;
        let (labels, is_labelled) = fields.take_as("labels", labels)?.unwrap_or_default();
        let service = Self {
            image,
            settings: settings(&mut fields)?,
            environment: fields.take_as("environment", environment)?.unwrap_or_default(),
            env_files: fields.take_as("env_file", env_files)?.unwrap_or_default(),
            depends_on: fields.take_as("depends_on", depends_on)?.unwrap_or_default(),
            ignored: ignored(&mut fields),
            ports: ports(&mut fields)?,
            mounts: mounts(&mut fields)?,
            networks: fields.take_as("networks", networks)?.unwrap_or_default(),
            labels,
            is_labelled,
            restart: fields.take_as("restart", restart)?,
            limits: Limits::take(&mut fields)?,
            dropped_capabilities: fields.take_as("cap_drop", capabilities)?.unwrap_or_default(),
        };
        fields.finish()?;
        Ok(service)
    }
}

/// Ports are not taken here, because they determine the service that gets the traffic.
fn ignored(fields: &mut Fields<'_>) -> Vec<&'static str> {
    let mut ignored = Vec::new();
    if fields.has("ports") {
        ignored.push("ports");
    }
    if fields.take("container_name").is_some() {
        ignored.push("container_name");
    }
    ignored
}

/// Reads the settings that are checked and copied to the generated file.
fn settings(fields: &mut Fields<'_>) -> Result<Map<String, Value>, String> {
    let mut settings = Map::new();
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            settings.insert(key.to_owned(), value);
        }
    };
    set("command", fields.take_as("command", words)?);
    set("entrypoint", fields.take_as("entrypoint", words)?);
    set("init", fields.take_as("init", fields::truth)?.map(Value::from));
    set("read_only", fields.take_as("read_only", fields::truth)?.map(Value::from));
    set("user", fields.take_as("user", |node, place| plain(node, place, "._-:"))?);
    set("hostname", fields.take_as("hostname", |node, place| plain(node, place, ".-"))?);
    set("stop_signal", fields.take_as("stop_signal", |node, place| plain(node, place, "+-"))?);
    let grace = |node: &Node, place: &str| at_most(node, place, LONGEST_GRACE);
    set("stop_grace_period", fields.take_as("stop_grace_period", grace)?);
    set(
        "working_dir",
        fields.take_as("working_dir", |node, place| match fields::text(node, place)? {
            folder if folder.starts_with('/') => Ok(folder.into()),
            _ => Err(format!("{place} has to begin with `/`")),
        })?,
    );
    set("healthcheck", fields.take_as("healthcheck", health_check)?);
    Ok(settings)
}

/// Reads a command: one text, or a list of words.
fn words(node: &Node, place: &str) -> Result<Value, String> {
    match &node.content {
        Content::List(_) => Ok(fields::texts(node, place)?.into()),
        _ => Ok(fields::text(node, place)?.into()),
    }
}

/// Reads a short text of ASCII letters, digits and a few `others`.
fn plain(node: &Node, place: &str, others: &str) -> Result<Value, String> {
    let text = fields::text(node, place)?;
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c));
    if is_plain && (1..=63).contains(&text.len()) {
        Ok(text.into())
    } else {
        Err(format!("{place} may only have up to 63 letters, digits and `{others}`"))
    }
}

fn at_most(node: &Node, place: &str, longest: Duration) -> Result<Value, String> {
    let text = fields::text(node, place)?;
    match quantities::duration(&text) {
        Some(duration) if duration <= longest => Ok(format!("{}ms", duration.as_millis()).into()),
        _ => Err(format!("{place} has to be a duration of at most {} s, such as `10s`", longest.as_secs())),
    }
}

fn health_check(node: &Node, place: &str) -> Result<Value, String> {
    let mut fields = Fields::of(node, place)?;
    let mut check = Map::new();
    if let Some(value) = fields.take_as("interval", |node, place| {
        let interval = quantities::duration(&fields::text(node, place)?);
        match interval.is_some_and(|interval| interval < SHORTEST_INTERVAL) {
            true => Err(format!("{place} has to be at least {} s", SHORTEST_INTERVAL.as_secs())),
            false => at_most(node, place, LONGEST),
        }
    })? {
        check.insert("interval".to_owned(), value);
    }
    for key in ["timeout", "start_period"] {
        if let Some(value) = fields.take_as(key, |node, place| at_most(node, place, LONGEST))? {
            check.insert(key.to_owned(), value);
        }
    }
    if let Some(test) = fields.take_as("test", words)? {
        check.insert("test".to_owned(), test);
    }
    if let Some(retries) = fields.take_as("retries", number::<u16>)? {
        check.insert("retries".to_owned(), retries.into());
    }
    if fields.take_as("disable", fields::truth)? == Some(true) {
        check = Map::from_iter([("disable".to_owned(), Value::from(true))]);
    }
    fields.finish()?;
    Ok(check.into())
}

fn number<T: std::str::FromStr>(node: &Node, place: &str) -> Result<T, String> {
    fields::text(node, place)?.trim().parse().map_err(|_no_number| format!("{place} has to be a number"))
}

fn environment(node: &Node, place: &str) -> Result<Vec<(String, Option<String>)>, String> {
    let pairs = fields::pairs(node, place)?;
    match pairs.iter().find(|(name, _)| !is_variable(name)) {
        None => Ok(pairs),
        Some((name, _)) => {
            let shown: String = name.chars().filter(|c| !c.is_control()).take(60).collect();
            Err(format!("{place}: `{shown}` is no name of a variable"))
        }
    }
}

/// Returns whether the name is valid for a variable.
pub(super) fn is_variable(name: &str) -> bool {
    let is_of_names = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.bytes().all(is_of_names)
}

fn env_files(node: &Node, place: &str) -> Result<Vec<EnvFile>, String> {
    let items = match &node.content {
        Content::List(items) => items.iter().collect(),
        _ => vec![node],
    };
    let read = items.into_iter().map(|item| match &item.content {
        Content::Map(_) => {
            let mut fields = Fields::of(item, place)?;
            let path = fields.take_as("path", fields::text)?;
            let is_required = fields.take_as("required", fields::truth)?.unwrap_or(true);
            fields.finish()?;
            Ok(EnvFile { path: path.ok_or_else(|| format!("{place} needs `path`"))?, is_required })
        }
        _ => Ok(EnvFile { path: fields::text(item, place)?, is_required: true }),
    });
    read.collect()
}

fn depends_on(node: &Node, place: &str) -> Result<BTreeMap<ServiceName, String>, String> {
    let name = |text: &str| text.parse().map_err(|error| format!("{place}: a service's name {error}"));
    let Content::Map(entries) = &node.content else {
        let names = fields::texts(node, place)?;
        return names.iter().map(|text| Ok((name(text)?, CONDITIONS[0].to_owned()))).collect();
    };
    let read = entries.iter().map(|(key, node)| {
        let mut fields = Fields::of(node, &format!("`{key}` in {place}"))?;
        let condition = fields.take_as("condition", |node, place| match fields::text(node, place)? {
            known if CONDITIONS.contains(&known.as_str()) => Ok(known),
            _ => Err(format!("{place} has to be one of `{}`", CONDITIONS.join("`, `"))),
        })?;
        fields.finish()?;
        Ok((name(key)?, condition.unwrap_or_else(|| CONDITIONS[0].to_owned())))
    });
    read.collect()
}

/// Returns the ports that it exposes, and the container ports of those that it publishes.
fn ports(fields: &mut Fields<'_>) -> Result<BTreeSet<u16>, String> {
    let misread = |place: &str| format!("{place} has to hold ports, such as `8080` or `80:8080`");
    let of_text = |text: &str, place: &str| quantities::container_ports(text).ok_or_else(|| misread(place));
    let exposed = fields.take_as("expose", |node, place| {
        let read = fields::texts(node, place)?.iter().map(|text| of_text(text, place)).collect::<Vec<_>>();
        read.into_iter().collect::<Result<Vec<_>, _>>()
    })?;
    let published = fields.take_as("ports", |node, place| {
        let Content::List(items) = &node.content else { return Err(misread(place)) };
        let read = items.iter().map(|item| match &item.content {
            Content::Map(_) => {
                let mut fields = Fields::of(item, place)?;
                for key in ["published", "host_ip", "mode", "name", "app_protocol"] {
                    fields.take_as(key, fields::text)?;
                }
                let protocol = fields.take_as("protocol", fields::text)?.unwrap_or_else(|| "tcp".to_owned());
                let target = fields.take_as("target", fields::text)?.ok_or_else(|| misread(place))?;
                fields.finish()?;
                of_text(&format!("{target}/{protocol}"), place)
            }
            _ => of_text(&fields::text(item, place)?, place),
        });
        read.collect::<Result<Vec<_>, _>>()
    })?;
    Ok(exposed.into_iter().chain(published).flatten().flatten().collect())
}

fn mounts(fields: &mut Fields<'_>) -> Result<Vec<Mount>, String> {
    let mut mounts = fields
        .take_as("volumes", |node, place| {
            let Content::List(items) = &node.content else { return Err(format!("{place} has to be a list")) };
            items.iter().map(|item| Mount::read(item, place)).collect::<Result<Vec<_>, _>>()
        })?
        .unwrap_or_default();
    let memory = fields.take_as("tmpfs", |node, place| {
        let read = fields::texts(node, place)?;
        read.iter().map(|text| Mount::read_memory(text, place)).collect::<Result<Vec<_>, _>>()
    })?;
    mounts.extend(memory.unwrap_or_default());
    match mounts.len() > MOST_MOUNTS {
        true => Err(format!("{} may not have more than {MOST_MOUNTS} volumes", fields.place())),
        false => Ok(mounts),
    }
}

fn networks(node: &Node, place: &str) -> Result<Vec<(String, Vec<String>)>, String> {
    let Content::Map(entries) = &node.content else {
        return Ok(fields::texts(node, place)?.into_iter().map(|name| (name, Vec::new())).collect());
    };
    let read = entries.iter().map(|(name, node)| {
        let mut fields = Fields::of(node, &format!("`{name}` in {place}"))?;
        let aliases = fields.take_as("aliases", |node, place| {
            let Content::List(items) = &node.content else { return Err(format!("{place} has to be a list")) };
            let plain = items.iter().map(|item| plain(item, place, "._-"));
            let plain = plain.map(|value| Ok(value?.as_str().unwrap_or_default().to_owned()));
            plain.collect::<Result<Vec<_>, String>>()
        })?;
        fields.finish()?;
        Ok((name.clone(), aliases.unwrap_or_default()))
    });
    read.collect()
}

/// Returns the labels that are passed on, and whether the web label is among them.
fn labels(node: &Node, place: &str) -> Result<(Vec<(String, String)>, bool), String> {
    let (mut labels, mut is_labelled) = (Vec::new(), false);
    for (name, value) in fields::pairs(node, place)? {
        let value = value.unwrap_or_default();
        let lower = name.to_ascii_lowercase();
        if name == "launchway.web" {
            is_labelled = match value.as_str() {
                "true" => true,
                "false" => false,
                _ => return Err(format!("{place}: `launchway.web` has to be `true` or `false`")),
            };
        } else if lower.starts_with("launchway") || lower.starts_with("com.docker") {
            return Err(format!("{place} may not have `{name}`: such labels are not the file's to give"));
        } else if name.is_empty() || name.chars().any(|c| c.is_control() || matches!(c, '=' | '$')) {
            return Err(format!("{place} may not have a label without a name, or with `=` or `$` in it"));
        } else {
            labels.push((name, value));
        }
    }
    Ok((labels, is_labelled))
}

fn restart(node: &Node, place: &str) -> Result<String, String> {
    let text = fields::text(node, place)?;
    let is_known = match text.split_once(':') {
        None => ["no", "always", "on-failure", "unless-stopped"].contains(&text.as_str()),
        Some((policy, times)) => policy == "on-failure" && times.parse::<u16>().is_ok(),
    };
    let refused = || format!("{place} has to be `no`, `always`, `on-failure` or `unless-stopped`");
    is_known.then_some(text).ok_or_else(refused)
}

fn capabilities(node: &Node, place: &str) -> Result<Vec<String>, String> {
    let Content::List(items) = &node.content else { return Err(format!("{place} has to be a list")) };
    let read = items.iter().map(|item| {
        let name = plain(item, place, "_")?.as_str().unwrap_or_default().to_ascii_uppercase();
        Ok(name.strip_prefix("CAP_").map(str::to_owned).unwrap_or(name))
    });
    read.collect()
}

impl Limits {
    fn take(fields: &mut Fields<'_>) -> Result<Self, String> {
        let mut limits = Self {
            memory: fields.take_as("mem_limit", bytes)?,
            cpus: fields.take_as("cpus", share)?,
            pids: fields.take_as("pids_limit", number)?,
            shared_memory: fields.take_as("shm_size", bytes)?,
        };
        fields.take_as("deploy", |node, place| {
            let mut deploy = Fields::of(node, place)?;
            if deploy.take_as("replicas", number::<u32>)?.is_some_and(|replicas| replicas != 1) {
                return Err(format!("{place} may not have more or fewer than one replica"));
            }
            deploy.take_as("resources", |node, place| {
                let mut resources = Fields::of(node, place)?;
                resources.take_as("limits", |node, place| {
                    let mut wanted = Fields::of(node, place)?;
                    limits.memory = wanted.take_as("memory", bytes)?.or(limits.memory);
                    limits.cpus = wanted.take_as("cpus", share)?.or(limits.cpus);
                    limits.pids = wanted.take_as("pids", number)?.or(limits.pids);
                    wanted.finish()
                })?;
                resources.finish()
            })?;
            deploy.finish()
        })?;
        Ok(limits)
    }
}

/// Reads a size that is at least the engine's minimum for a container.
fn bytes(node: &Node, place: &str) -> Result<u64, String> {
    const LEAST: u64 = 6 * 1024 * 1024;
    let size = quantities::size(&fields::text(node, place)?);
    size.filter(|size| *size >= LEAST).ok_or_else(|| format!("{place} has to be a size from `6m` on"))
}

fn share(node: &Node, place: &str) -> Result<f64, String> {
    let share = number::<f64>(node, place)?;
    let is_share = (0.01..=1024.0).contains(&share);
    is_share
        .then_some(share)
        .ok_or_else(|| format!("{place} has to be a number of processors, such as `0.5`"))
}

impl Limits {
    /// Renders the limits for the generated file, none above those of every container.
    pub(super) fn render(&self, most: &crate::ContainerLimits) -> Map<String, Value> {
        let memory = self.memory.map_or(most.memory, |wanted| wanted.min(most.memory));
        let pids = self.pids.filter(|wanted| *wanted > 0).map_or(most.pids, |wanted| wanted.min(most.pids));
        let cpus = match (self.cpus, most.cpus) {
            (Some(wanted), Some(most)) => Some(wanted.min(most)),
            (wanted, most) => wanted.or(most),
        };
        let mut rendered = Map::new();
        for (key, value) in [
            ("mem_limit", json!(memory)),
            ("memswap_limit", json!(memory)),
            ("pids_limit", json!(pids)),
            ("cpu_shares", json!(CONTAINER_CPU_SHARES)),
            ("cpu_period", cpus.map_or(Value::Null, |_| json!(CPU_PERIOD))),
            ("cpu_quota", cpus.map_or(Value::Null, |cpus| json!(u64::try_from(cpu_quota(cpus)).ok()))),
            ("shm_size", self.shared_memory.map_or(Value::Null, |wanted| json!(wanted.min(memory)))),
        ] {
            if !value.is_null() {
                rendered.insert(key.to_owned(), value);
            }
        }
        rendered
    }
}
