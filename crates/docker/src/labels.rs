//! The labels by which everything that we create is found again.
//!
//! **Invariant:** every object has the label `launchway.instance`, and labels for its owner: a container
//! `launchway.{organization,application,deployment,attempt}`; a container of an extension
//! `launchway.{organization,extension,execution,step}` and an empty `launchway.application`, which no
//! container of a deployment has; an image `launchway.owner`, one label because each is a step of a build.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
};

use launchway_domain::{
    applications::Port,
    deployments::{Owner, ServiceName},
    extensions::ExtensionKey,
    ids::{ApplicationId, DeploymentId, ExecutionId, InstanceId, OrganizationId},
};
use serde_json::Value;

pub(super) const INSTANCE: &str = "launchway.instance";
const ORGANIZATION: &str = "launchway.organization";
const APPLICATION: &str = "launchway.application";
const DEPLOYMENT: &str = "launchway.deployment";
const ATTEMPT: &str = "launchway.attempt";
const OWNER: &str = "launchway.owner";
const CALL: &str = "launchway.call";
const SERVICE: &str = "launchway.service";
const PLACE: &str = "launchway.place";
const RESTART: &str = "launchway.restart";
const WEB: &str = "launchway.web";
const EXTENSION: &str = "launchway.extension";
const EXECUTION: &str = "launchway.execution";
const STEP: &str = "launchway.step";
const PROJECT: &str = "launchway.project";
const ALIAS: &str = "launchway.alias";
const ADDRESS: &str = "launchway.address";
const ALIASES: &str = "launchway.aliases";
const PORT: &str = "launchway.port";
const COPY: &str = "launchway.copy";
const KEPT: &str = "launchway.kept";
const PUBLISHED: &str = "launchway.published";

/// The labels of an object on the engine.
pub(super) trait LabelSet {
    /// Returns the value of the label with this name.
    fn value_of(&self, name: &str) -> Option<&str>;
}

impl LabelSet for Value {
    fn value_of(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }
}

impl LabelSet for BTreeMap<String, String> {
    fn value_of(&self, name: &str) -> Option<&str> {
        self.get(name).map(String::as_str)
    }
}

/// A label, as `name=value`. The values are ids of our own making.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Label(String);

impl Label {
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part before the `=`.
    pub(super) fn name(&self) -> &str {
        self.0.split_once('=').map_or(&self.0, |(name, _)| name)
    }

    /// Returns the part after the `=`.
    pub(super) fn value(&self) -> &str {
        self.0.split_once('=').map_or("", |(_, value)| value)
    }

    pub(super) fn of_instance(instance: InstanceId) -> Self {
        Self(format!("{INSTANCE}={instance}"))
    }

    pub(super) fn of_organization(organization: OrganizationId) -> Self {
        Self(format!("{ORGANIZATION}={organization}"))
    }

    pub(super) fn of_deployment(deployment: DeploymentId) -> Self {
        Self(format!("{DEPLOYMENT}={deployment}"))
    }

    pub(super) fn of_application(application: ApplicationId) -> Self {
        Self(format!("{APPLICATION}={application}"))
    }

    /// The static address of a container; empty without one, which overrides a label of the image.
    pub(super) fn of_address(address: Option<Ipv4Addr>) -> Self {
        Self(format!("{ADDRESS}={}", address.map(|address| address.to_string()).unwrap_or_default()))
    }

    /// The address and port of the machine at which a container is reached; empty without one, which overrides a label of the
    /// image.
    pub(super) fn of_published(endpoint: Option<SocketAddr>) -> Self {
        Self(format!("{PUBLISHED}={}", endpoint.map(|endpoint| endpoint.to_string()).unwrap_or_default()))
    }

    /// The port that a container was started for.
    pub(super) fn of_port(port: Port) -> Self {
        Self(format!("{PORT}={}", port.get()))
    }

    /// The number of a copy among those of its attempt.
    pub(super) fn of_copy(copy: u16) -> Self {
        Self(format!("{COPY}={copy}"))
    }

    /// Marks a service that has been healthy: its container is replaced whenever it ends.
    pub(super) fn of_kept() -> Self {
        Self(format!("{KEPT}=true"))
    }

    /// The aliases of a container in its network, by which it is connected again.
    pub(super) fn of_aliases(aliases: &[&str]) -> Self {
        Self(format!("{ALIASES}={}", aliases.join(",")))
    }

    /// Marks the container of a composition that gets the traffic.
    pub(super) fn of_web() -> Self {
        Self(format!("{WEB}=true"))
    }

    /// Marks a container that belongs to no composition, which overrides a label of the image.
    pub(super) fn of_no_service() -> Self {
        Self(format!("{SERVICE}="))
    }

    /// Matches objects that belong to a deployment as a whole, whichever.
    pub(super) fn of_any_owner() -> Self {
        Self(OWNER.to_owned())
    }

    /// Marks objects that one run of an extension creates.
    pub(super) fn of_execution(execution: ExecutionId) -> Self {
        Self(format!("{EXECUTION}={execution}"))
    }

    /// Marks objects that belong to no application, which overrides a label of the image.
    pub(super) fn of_no_application() -> Self {
        Self(format!("{APPLICATION}="))
    }

    /// A label that the definition of an extension puts on a container.
    pub(super) fn of_definition(name: &str, value: &str) -> Self {
        Self(format!("{name}={value}"))
    }

    /// Marks the objects of one call, so that exactly these are removed when the call fails.
    pub(super) fn of_call(call: &str) -> Self {
        Self(format!("{CALL}={call}"))
    }
}

/// Returns the labels of a deployment's container.
pub(super) fn of(instance: InstanceId, owner: &Owner) -> Vec<Label> {
    vec![
        Label::of_instance(instance),
        Label::of_organization(owner.organization),
        Label::of_application(owner.application),
        Label::of_deployment(owner.deployment),
        Label(format!("{ATTEMPT}={}", owner.attempt)),
    ]
}

/// Returns the instruction of a Dockerfile that sets these labels, as a line. Their values need no quotes.
pub(super) fn instruction(labels: &[Label]) -> String {
    let labels: Vec<&str> = labels.iter().map(Label::as_str).collect();
    format!("LABEL {}\n", labels.join(" "))
}

/// Returns the labels of a deployment's image.
pub(super) fn of_image(instance: InstanceId, owner: &Owner) -> Vec<Label> {
    let Owner { organization, application, deployment, attempt } = owner;
    let whose = Label(format!("{OWNER}={organization}/{application}/{deployment}/{attempt}"));
    vec![Label::of_instance(instance), whose]
}

/// Returns the labels of everything that an extension has created for an organization. An image may come
/// with any label, so that a container of a deployment could claim to be an extension's; but every
/// container of a deployment has an application.
pub(super) fn of_extension(
    instance: InstanceId,
    organization: OrganizationId,
    extension: &ExtensionKey,
) -> Vec<Label> {
    vec![
        Label::of_instance(instance),
        Label::of_organization(organization),
        Label::of_no_application(),
        Label(format!("{EXTENSION}={extension}")),
    ]
}

/// The step and run that created a container, and its name. The composition is empty for one that belongs
/// to none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) execution: String,
    pub(super) step: String,
    pub(super) project: String,
    pub(super) alias: String,
}

impl Origin {
    /// Returns the labels, including those that override labels of the image.
    pub(super) fn labels(&self) -> Vec<Label> {
        let said = [
            (EXECUTION, &self.execution),
            (STEP, &self.step),
            (PROJECT, &self.project),
            (ALIAS, &self.alias),
        ];
        let said = said.into_iter().map(|(name, value)| Label(format!("{name}={value}")));
        let unsaid = [DEPLOYMENT, ATTEMPT, OWNER, SERVICE, PLACE, RESTART, WEB];
        said.chain(unsaid.map(|name| Label(format!("{name}=")))).collect()
    }

    /// Parses labels; `None` when they are not of an extension.
    pub(super) fn read(labels: &Value) -> Option<Self> {
        let text = |name: &str| Some(labels.get(name)?.as_str()?.to_owned());
        Some(Self {
            execution: text(EXECUTION)?,
            step: text(STEP)?,
            project: text(PROJECT)?,
            alias: text(ALIAS)?,
        })
    }
}

/// Returns whether a container is an extension's: one that no deployment created.
pub(super) fn is_of_extension(labels: &impl LabelSet) -> bool {
    labels.value_of(EXTENSION).is_some() && labels.value_of(APPLICATION) == Some("")
}

/// Returns the static address of a container.
pub(super) fn address(labels: &impl LabelSet) -> Option<Ipv4Addr> {
    labels.value_of(ADDRESS)?.parse().ok()
}

/// Returns the address and port of the machine at which a container is reached.
pub(super) fn published(labels: &impl LabelSet) -> Option<SocketAddr> {
    labels.value_of(PUBLISHED)?.parse().ok()
}

/// Returns the port that a container was started for.
pub(super) fn port(labels: &impl LabelSet) -> Option<Port> {
    labels.value_of(PORT)?.parse::<u16>().ok()?.try_into().ok()
}

/// Returns the number of a copy.
pub(super) fn copy(labels: &impl LabelSet) -> Option<u16> {
    labels.value_of(COPY)?.parse().ok()
}

/// Returns whether a service has been healthy.
pub(super) fn is_kept(labels: &impl LabelSet) -> bool {
    labels.value_of(KEPT) == Some("true")
}

/// Returns the aliases of a container in its network.
pub(super) fn aliases(labels: &impl LabelSet) -> Vec<String> {
    let names = labels.value_of(ALIASES).unwrap_or_default().split(',');
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Returns the position of a container of a composition in the order of starting.
pub(super) fn place(labels: &Value) -> usize {
    labels.get(PLACE).and_then(|place| place.as_str()?.parse().ok()).unwrap_or_default()
}

/// Returns whether the image was built for a deployment.
pub(super) fn belongs_to_deployment(labels: &Value) -> bool {
    labels.get(OWNER).is_some()
}

/// The role of a container in its composition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Role {
    pub(super) service: ServiceName,
    /// Its position in the order of starting.
    pub(super) place: usize,
    /// The restart policy once it is enabled, if given.
    pub(super) restart: Option<String>,
    /// True if it gets the traffic.
    pub(super) is_web: bool,
}

impl Role {
    /// Returns the labels of the role.
    pub(super) fn labels(&self) -> Vec<Label> {
        vec![
            Label(format!("{SERVICE}={}", self.service)),
            Label(format!("{PLACE}={}", self.place)),
            Label(format!("{RESTART}={}", self.restart.as_deref().unwrap_or_default())),
            Label(format!("{WEB}={}", self.is_web)),
        ]
    }

    /// Parses labels; `None` when the container belongs to no composition.
    pub(super) fn read(labels: &impl LabelSet) -> Option<Self> {
        let text = |name: &str| labels.value_of(name);
        Some(Self {
            service: service(labels)?,
            place: text(PLACE)?.parse().ok()?,
            restart: text(RESTART).filter(|policy| !policy.is_empty()).map(str::to_owned),
            is_web: text(WEB)? == "true",
        })
    }
}

/// Returns the service of a container in its composition.
pub(super) fn service(labels: &impl LabelSet) -> Option<ServiceName> {
    labels.value_of(SERVICE)?.parse().ok()
}

/// Returns the owner of a container from its labels; `None` when they cannot be parsed.
pub(super) fn owner(labels: &impl LabelSet) -> Option<Owner> {
    let text = |name: &str| labels.value_of(name);
    parsed([text(ORGANIZATION)?, text(APPLICATION)?, text(DEPLOYMENT)?, text(ATTEMPT)?])
}

/// Returns the owner of an image.
pub(super) fn owner_of_image(labels: &Value) -> Option<Owner> {
    let parts: Vec<&str> = labels.get(OWNER)?.as_str()?.split('/').collect();
    parsed(parts.try_into().ok()?)
}

fn parsed([organization, application, deployment, attempt]: [&str; 4]) -> Option<Owner> {
    Some(Owner {
        organization: organization.parse().ok()?,
        application: application.parse().ok()?,
        deployment: deployment.parse().ok()?,
        attempt: attempt.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use launchway_testkit::CountingIds;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_owner_is_read_as_it_was_written() {
        let whose = Owner {
            organization: CountingIds::nth(1).into(),
            application: CountingIds::nth(2).into(),
            deployment: CountingIds::nth(3).into(),
            attempt: 4,
        };
        let told = |labels: Vec<Label>| -> Value {
            let pairs = labels.iter().filter_map(|label| label.as_str().split_once('='));
            Value::Object(pairs.map(|(name, value)| (name.to_owned(), json!(value))).collect())
        };
        let instance = CountingIds::nth(5).into();
        assert_eq!(owner(&told(of(instance, &whose))), Some(whose));
        assert_eq!(owner_of_image(&told(of_image(instance, &whose))), Some(whose));
        assert_eq!(owner_of_image(&told(of(instance, &whose))), None);
        assert_eq!(owner(&json!({ ORGANIZATION: "x" })), None);
        assert_eq!(owner(&Value::Null), None);
        assert_eq!(owner_of_image(&json!({ OWNER: "x/y" })), None);
        for restart in [None, Some("on-failure:3".to_owned())] {
            let role = Role { service: "db".parse().unwrap(), place: 2, restart, is_web: false };
            assert_eq!(Role::read(&told(role.labels())), Some(role));
        }
        assert_eq!(Role::read(&json!({ WEB: "true" })), None);
    }
}
