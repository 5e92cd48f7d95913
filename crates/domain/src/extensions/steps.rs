//! The steps of a definition, and their resolution to actions once values are known.

use std::{collections::BTreeMap, time::Duration};

use super::{
    AccountName, Action, ComposeAction, ComposeText, ContainerSpec, DockerAction, FileAction, ObjectName,
    ProxyAction, PublishedPort, ServiceVerb, UserAction, VolumeMount, WorkspacePath,
    containers::check_labels,
    template::{Template, Values, WORKSPACE},
};
use crate::{
    applications::{Port, Variables},
    value::InvalidValue,
};

/// The kind of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepKind {
    /// Runs a program on the server's machine.
    Command,
    /// Creates, changes or removes a file of the workspace.
    File,
    /// Runs or controls a container.
    Docker,
    /// Runs several containers by a compose file.
    DockerCompose,
    /// Controls a service of the machine.
    Service,
    /// Creates or removes a user of the machine.
    User,
    /// Routes a host name to a container.
    Proxy,
}

impl StepKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Command,
        Self::File,
        Self::Docker,
        Self::DockerCompose,
        Self::Service,
        Self::User,
        Self::Proxy,
    ];

    /// Returns the name in definitions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Command => "command",
            Self::File => "file",
            Self::Docker => "docker",
            Self::DockerCompose => "docker_compose",
            Self::Service => "service",
            Self::User => "user",
            Self::Proxy => "proxy",
        }
    }

    /// Returns whether it acts on this machine itself, which requires an administrator.
    #[must_use]
    pub fn acts_on_host(self) -> bool {
        matches!(self, Self::Command | Self::Service | Self::User)
    }

    /// Returns whether it creates objects that outlive a run.
    #[must_use]
    pub fn reaches_engine(self) -> bool {
        matches!(self, Self::Docker | Self::DockerCompose)
    }
}

/// A step of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepSpec {
    /// The name of the step.
    pub name: String,
    /// The kind of the step.
    pub kind: StepKind,
    /// The properties by name.
    pub properties: BTreeMap<String, Property>,
    /// True if the run continues when it fails.
    pub ignores_errors: bool,
    /// The timeout.
    pub timeout: Duration,
}

/// One property of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Property {
    /// A text.
    Text(Template),
    /// A list of texts.
    List(Vec<Template>),
    /// Texts by name.
    Map(Vec<(String, Template)>),
}

impl Property {
    fn templates(&self) -> Box<dyn Iterator<Item = &Template> + '_> {
        match self {
            Self::Text(template) => Box::new(std::iter::once(template)),
            Self::List(templates) => Box::new(templates.iter()),
            Self::Map(entries) => Box::new(entries.iter().map(|(_, template)| template)),
        }
    }

    /// Returns the names of the values that it refers to.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.templates().flat_map(Template::names)
    }
}

/// A property that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misuse {
    /// The name of the property.
    pub key: String,
    /// The error and the rule.
    pub message: String,
    /// True if the value is wrong, not the form: other values may be allowed.
    pub is_about_value: bool,
}

impl StepSpec {
    /// The default timeout of a step.
    pub const TIMEOUT: Duration = Duration::from_secs(300);

    /// Returns the names of the values that it refers to.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.properties.values().flat_map(Property::names)
    }

    /// Returns the action of the step with `values`, among them the [workspace](WORKSPACE).
    ///
    /// # Errors
    /// Every property that is missing, unknown or not allowed.
    pub fn resolve(&self, values: &Values) -> Result<Action, Vec<Misuse>> {
        let mut properties = Properties { spec: self, values, taken: Vec::new(), misuses: Vec::new() };
        let action = properties.action();
        properties.refuse_others();
        match action {
            Some(action) if properties.misuses.is_empty() => Ok(action),
            _ => Err(properties.misuses),
        }
    }
}

/// The properties of a step while they are read.
struct Properties<'a> {
    spec: &'a StepSpec,
    values: &'a Values,
    taken: Vec<&'static str>,
    misuses: Vec<Misuse>,
}

impl Properties<'_> {
    fn action(&mut self) -> Option<Action> {
        match self.spec.kind {
            StepKind::Command => self.command(),
            StepKind::File => self.file().map(Action::File),
            StepKind::Docker => self.docker().map(Action::Docker),
            StepKind::DockerCompose => self.compose().map(Action::Compose),
            StepKind::Service => self.service(),
            StepKind::User => self.user().map(Action::User),
            StepKind::Proxy => self.proxy().map(Action::Proxy),
        }
    }

    fn command(&mut self) -> Option<Action> {
        let (run, revert) = (self.shell("cmd"), self.shell("revert_cmd"));
        if !self.spec.properties.contains_key("cmd") {
            self.misuse("cmd", "is missing: it is what the step runs");
        }
        Some(Action::Command { run: run?, revert })
    }

    fn file(&mut self) -> Option<FileAction> {
        match self.verb(&["mkdir", "write", "copy", "move", "delete"])? {
            "mkdir" => self.path("dest").map(FileAction::MakeFolder),
            "write" => {
                let (dest, content) = (self.path("dest"), self.required("content"));
                Some(FileAction::Write { dest: dest?, content: content? })
            }
            verb @ ("copy" | "move") => {
                let (src, dest) = (self.path("src"), self.path("dest"));
                let (src, dest) = (src?, dest?);
                Some(if verb == "copy" {
                    FileAction::Copy { src, dest }
                } else {
                    FileAction::Move { src, dest }
                })
            }
            _ => self.path("dest").map(FileAction::Delete),
        }
    }

    fn docker(&mut self) -> Option<DockerAction> {
        match self.verb(&["pull", "run", "start", "stop", "rm"])? {
            "pull" => self.parsed("image").map(DockerAction::Pull),
            "run" => self.container().map(Box::new).map(DockerAction::Run),
            "start" => self.parsed("name").map(DockerAction::Start),
            "stop" => self.parsed("name").map(DockerAction::Stop),
            _ => self.parsed("name").map(DockerAction::Remove),
        }
    }

    fn container(&mut self) -> Option<ContainerSpec> {
        let (name, image, command) = (self.parsed("name"), self.parsed("image"), self.texts("command"));
        let environment = self.pairs("environment");
        let environment = environment.into_iter().collect::<BTreeMap<_, _>>().try_into();
        let environment: Option<Variables> = self.noted("environment", environment);
        let labels = check_labels(self.pairs("labels"));
        let labels = self.noted("labels", labels);
        let (volumes, ports) = (self.each::<VolumeMount>("volumes"), self.each::<PublishedPort>("ports"));
        let is_detached = self.truth("detach", true);
        Some(ContainerSpec {
            name: name?,
            image: image?,
            command,
            environment: environment?,
            labels: labels?,
            volumes: volumes?,
            ports: ports?,
            is_detached: is_detached?,
        })
    }

    fn compose(&mut self) -> Option<ComposeAction> {
        let verb = self.verb(&["up", "down"])?;
        let project = self.parsed::<ObjectName>("project");
        if verb == "down" {
            return Some(ComposeAction::Down { project: project? });
        }
        let is_inline = self.spec.properties.contains_key("content");
        if is_inline == self.spec.properties.contains_key("file") {
            self.misuse("content", "or `file` has to be there, and not both: the compose file itself, or where it lies in the workspace");
        }
        let file = if is_inline {
            self.taken.push("content");
            match self.spec.properties.get("content") {
                Some(property) if property.names().next().is_some() => {
                    self.misuse(
                        "content",
                        "must refer to variables by `${name}`, as compose files do, instead of `{{ name }}`",
                    );
                    None
                }
                _ => self.required("content").map(ComposeText::Inline),
            }
        } else {
            self.path("file").map(ComposeText::InWorkspace)
        };
        Some(ComposeAction::Up { project: project?, file: file? })
    }

    fn service(&mut self) -> Option<Action> {
        let verbs = ServiceVerb::ALL.map(ServiceVerb::as_str);
        let (verb, unit) = (self.verb(&verbs), self.parsed("name"));
        let verb = ServiceVerb::ALL.into_iter().find(|known| Some(known.as_str()) == verb)?;
        Some(Action::Service { unit: unit?, verb })
    }

    fn user(&mut self) -> Option<UserAction> {
        let verb = self.verb(&["create", "delete", "add_groups", "remove_groups"])?;
        let name = self.parsed("name");
        if verb == "delete" {
            return name.map(UserAction::Delete);
        }
        let groups = self.each::<AccountName>("groups");
        if verb == "create" {
            let is_system = self.truth("system", false);
            return Some(UserAction::Create { name: name?, groups: groups?, is_system: is_system? });
        }
        if !self.spec.properties.contains_key("groups") {
            self.misuse("groups", "is missing: a list of groups");
        }
        let (name, groups) = (name?, groups?);
        Some(match verb {
            "add_groups" => UserAction::AddGroups { name, groups },
            _ => UserAction::RemoveGroups { name, groups },
        })
    }

    fn proxy(&mut self) -> Option<ProxyAction> {
        let verb = self.verb(&["add", "remove"])?;
        let domain = self.parsed("domain");
        if verb == "remove" {
            return Some(ProxyAction::Remove { domain: domain? });
        }
        let (container, port) = (self.parsed("container"), self.required("port"));
        let port = port.and_then(|text| {
            let port = text
                .trim()
                .parse::<i64>()
                .map_err(|_no_number| InvalidValue::text("a port between 1 and 65535", &text));
            self.noted("port", port.and_then(Port::try_from))
        });
        Some(ProxyAction::Add { domain: domain?, container: container?, port: port? })
    }

    fn misuse(&mut self, key: &str, message: impl Into<String>) {
        self.misuses.push(Misuse { key: key.to_owned(), message: message.into(), is_about_value: false });
    }

    fn wrong_value(&mut self, key: &str, message: impl Into<String>) {
        self.misuses.push(Misuse { key: key.to_owned(), message: message.into(), is_about_value: true });
    }

    /// Returns the value, or records the error.
    fn noted<T>(&mut self, key: &str, read: Result<T, impl ToString>) -> Option<T> {
        read.map_err(|refused| self.wrong_value(key, refused.to_string())).ok()
    }

    /// Reads the property `action`, one of `verbs`.
    fn verb<'v>(&mut self, verbs: &[&'v str]) -> Option<&'v str> {
        let text = self.text("action");
        let told = || format!("must be one of `{}`", verbs.join("`, `"));
        match text {
            None if self.spec.properties.contains_key("action") => None,
            None => {
                self.misuse("action", format!("is missing: it {}", told()));
                None
            }
            Some(text) => {
                let known = verbs.iter().find(|verb| **verb == text).copied();
                if known.is_none() {
                    self.wrong_value("action", told());
                }
                known
            }
        }
    }

    fn text(&mut self, key: &'static str) -> Option<String> {
        self.taken.push(key);
        match self.spec.properties.get(key)? {
            Property::Text(template) => Some(template.render(self.values)),
            _ => {
                self.misuse(key, "has to be a text");
                None
            }
        }
    }

    fn required(&mut self, key: &'static str) -> Option<String> {
        if !self.spec.properties.contains_key(key) {
            self.misuse(key, "is missing");
        }
        self.text(key)
    }

    fn parsed<T: TryFrom<String, Error = InvalidValue>>(&mut self, key: &'static str) -> Option<T> {
        let text = self.required(key)?;
        let read = T::try_from(text);
        self.noted(key, read)
    }

    /// Reads a path in the workspace, relative or absolute.
    fn path(&mut self, key: &'static str) -> Option<WorkspacePath> {
        let text = self.required(key)?;
        let inside = match self.values.get(WORKSPACE) {
            Some(workspace) if !workspace.is_empty() => text.strip_prefix(workspace.as_str()),
            _ => None,
        };
        let inside = inside.filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let read = inside.map(|rest| rest.trim_start_matches('/').to_owned()).unwrap_or(text).try_into();
        self.noted(key, read)
    }

    fn texts(&mut self, key: &'static str) -> Vec<String> {
        self.taken.push(key);
        match self.spec.properties.get(key) {
            None => Vec::new(),
            Some(Property::List(templates)) => {
                templates.iter().map(|template| template.render(self.values)).collect()
            }
            Some(_) => {
                self.misuse(key, "has to be a list of texts");
                Vec::new()
            }
        }
    }

    fn each<T: TryFrom<String, Error = InvalidValue>>(&mut self, key: &'static str) -> Option<Vec<T>> {
        let read: Result<Vec<T>, InvalidValue> = self.texts(key).into_iter().map(T::try_from).collect();
        self.noted(key, read)
    }

    fn pairs(&mut self, key: &'static str) -> Vec<(String, String)> {
        self.taken.push(key);
        match self.spec.properties.get(key) {
            None => Vec::new(),
            Some(Property::Map(entries)) => {
                let rendered =
                    entries.iter().map(|(name, template)| (name.clone(), template.render(self.values)));
                rendered.collect()
            }
            Some(_) => {
                self.misuse(key, "has to be a map of texts");
                Vec::new()
            }
        }
    }

    fn truth(&mut self, key: &'static str, default: bool) -> Option<bool> {
        if !self.spec.properties.contains_key(key) {
            return Some(default);
        }
        match self.text(key)?.as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => {
                self.wrong_value(key, "must be `true` or `false`");
                None
            }
        }
    }

    fn shell(&mut self, key: &'static str) -> Option<String> {
        self.taken.push(key);
        match self.spec.properties.get(key)? {
            Property::Text(template) => {
                let text = template.for_shell();
                let text = text.map_err(|misplaced| self.misuse(key, misplaced)).ok()?;
                if text.trim().is_empty() {
                    self.misuse(key, "must not be empty");
                    return None;
                }
                Some(text)
            }
            _ => {
                self.misuse(key, "has to be a text");
                None
            }
        }
    }

    fn refuse_others(&mut self) {
        // The allowed properties depend on the action.
        if self.misuses.iter().any(|misuse| misuse.key == "action") {
            return;
        }
        let mut known = self.taken.clone();
        known.sort_unstable();
        known.dedup();
        let message = format!("is not known here: allowed are `{}`", known.join("`, `"));
        for key in self.spec.properties.keys().filter(|key| !known.contains(&key.as_str())) {
            self.misuses.push(Misuse { key: key.clone(), message: message.clone(), is_about_value: false });
        }
    }
}

#[cfg(test)]
mod tests;
