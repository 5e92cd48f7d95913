//! Extensions: their definitions and runs.

mod actions;
mod containers;
mod definition;
mod execution;
mod host_ports;
mod metadata;
mod names;
mod ports;
mod steps;
mod template;
mod variables;

use std::net::{IpAddr, Ipv4Addr};

use async_trait::async_trait;
use chrono::TimeDelta;

pub use self::{
    actions::{
        Action, ComposeAction, ComposeText, DockerAction, FileAction, ProxyAction, ServiceVerb, UserAction,
    },
    containers::{ContainerSpec, PublishedPort, VolumeMount},
    definition::{Definition, InvalidDefinition, MOST_STEPS, Problem, content_hash},
    execution::{
        Execution, ExecutionDetail, ExecutionEnd, ExecutionLine, ExecutionState, ExecutionStep, IllegalMove,
        NewExecutionLine, Phase, PrintedStep,
    },
    host_ports::{
        HeldPorts, HostPort, HostPorts, PortCheck, PortError, PortKey, PortPolicy, PortRange, PortRecord,
        PortRefusal, PortRequest,
    },
    metadata::{Category, ExtensionKind, ExtensionName, Metadata},
    names::{AccountName, ExtensionKey, ObjectName, UnitName, WorkspacePath},
    ports::{ExecutionLog, ExtensionRunner, Run},
    steps::{Misuse, Property, StepKind, StepSpec},
    template::{Template, Values, WORKSPACE, environment_name},
    variables::{DefaultValue, LONGEST_VALUE, Pattern, VariableKind, VariableSpec, check as check_values},
};
#[cfg(feature = "mock")]
pub use self::{
    host_ports::{MockHostPorts, MockPortCheck},
    ports::{MockExecutionLog, MockExtensionRunner},
};
use crate::{
    applications::{Hostname, Port},
    clock::Timestamp,
    deployments::ContainerId,
    homes::Home,
    ids::{ExecutionId, ExtensionId, ExtensionRouteId, ExtensionVariableId, OrganizationId, SubjectId},
    organizations::Scope,
    page::{Page, PageRequest},
    replicas::ReleaseVersion,
    store_error::StoreError,
    value::named,
};

named!(
    /// The result of validating the definition of an extension.
    Validation,
    "whether a definition can be used",
    {
        Valid => "valid",
        Invalid => "invalid",
        NotValidated => "not_validated",
    }
);

/// The time for which the workspace of a completed run is kept.
pub const WORKSPACE_RETENTION: TimeDelta = TimeDelta::days(7);

/// An extension: an entry of the catalog, which is shared by all, or a fork of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// The id of the extension.
    pub id: ExtensionId,
    /// The organization of a fork; `None` for an entry of the catalog.
    pub organization_id: Option<OrganizationId>,
    /// Its name in URLs.
    pub key: ExtensionKey,
    /// The extension that it was forked from.
    pub parent: Option<ExtensionKey>,
    /// Its display name.
    pub name: ExtensionName,
    /// A description for users.
    pub description: String,
    /// The author.
    pub author: String,
    /// The icon that it is shown with.
    pub icon: String,
    /// The category in the catalog.
    pub category: Category,
    /// The kind: install or run.
    pub kind: ExtensionKind,
    /// The version.
    pub version: String,
    /// True if it was reviewed.
    pub is_verified: bool,
    /// The SHA-256 of the definition, in hex.
    pub content_hash: String,
    /// The definition.
    pub yaml: String,
    /// The parsed definition, as a JSON object.
    pub parsed: String,
    /// The result of the validation.
    pub validation: Validation,
    /// The problems of the definition, as a JSON array.
    pub validation_errors: String,
    /// Its variables, in the order of the definition.
    pub variables: Vec<ExtensionVariable>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
}

/// A variable of an extension, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionVariable {
    /// The id of the extension variable.
    pub id: ExtensionVariableId,
    /// The name of the variable.
    pub name: String,
    /// The type of its value.
    pub kind: VariableKind,
    /// A description for users.
    pub description: String,
    /// The default value, as JSON.
    pub default: Option<String>,
    /// True if a value is required.
    pub is_required: bool,
    /// The regular expression that values must match; empty for anything.
    pub pattern: String,
    /// When it was added.
    pub created_at: Timestamp,
}

/// A filter for extensions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtensionFilter {
    /// Those whose key, name, description or author contains this, ignoring case.
    pub search: Option<String>,
    /// Those of this category.
    pub category: Option<Category>,
    /// Those of this kind.
    pub kind: Option<ExtensionKind>,
}

/// A host name that is routed to a container of an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionRoute {
    /// The id of the extension route.
    pub id: ExtensionRouteId,
    /// The organization that it belongs to.
    pub scope: Scope,
    /// The key of the extension.
    pub extension: ExtensionKey,
    /// The host name.
    pub host: Hostname,
    /// The container that it is routed to.
    pub container: ContainerId,
    /// The address of the container; [`NOWHERE`](ExtensionRoute::NOWHERE) while it does not run.
    pub address: IpAddr,
    /// The port that the container listens on.
    pub port: Port,
}

impl ExtensionRoute {
    /// The address of a container that does not run: its last address may belong to another one by now.
    pub const NOWHERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

    /// Returns whether the container does not run.
    #[must_use]
    pub fn has_no_target(&self) -> bool {
        self.address.is_unspecified()
    }
}

/// Reads extensions. Every method sees what `commit` last made durable, and none that is deleted.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ExtensionRepository: Send + Sync {
    /// Returns a page of the catalog and of the organization's forks, by name, ties by key, each with its
    /// variables.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn page(
        &self,
        scope: Scope,
        filter: &ExtensionFilter,
        page: PageRequest,
    ) -> Result<Page<Extension>, StoreError>;

    /// Returns an entry of the catalog or a fork of the organization, with its variables.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn by_key(&self, scope: Scope, key: &ExtensionKey) -> Result<Option<Extension>, StoreError>;

    /// Returns the same by its id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn by_id(&self, scope: Scope, id: ExtensionId) -> Result<Option<Extension>, StoreError>;

    /// Returns the entries of the catalog: their keys, the results of their validation, and the hashes of
    /// their definitions.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn catalog(&self) -> Result<Vec<(ExtensionKey, Validation, String)>, StoreError>;

    /// Returns every host name that is routed to a container of an extension, in the whole installation.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn routes(&self) -> Result<Vec<ExtensionRoute>, StoreError>;
}

/// Reads runs of extensions. Every method sees what `commit` and [`ExecutionLog::append`] last made
/// durable. The runs of a deleted fork stay readable by their id.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ExecutionRepository: Send + Sync {
    /// Returns a page of the organization's runs of an extension, newest first, ties by id, each with the
    /// newest [`ExecutionDetail::SHOWN`] bytes of its log.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn page(
        &self,
        scope: Scope,
        extension: ExtensionId,
        page: PageRequest,
    ) -> Result<Page<(Execution, String)>, StoreError>;

    /// Returns one run with its steps in their order; `None` if the organization has none with that id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn get(
        &self,
        scope: Scope,
        id: ExecutionId,
    ) -> Result<Option<(Execution, Vec<ExecutionStep>)>, StoreError>;

    /// Returns one run with its details, in a bounded number of queries.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn detail(&self, scope: Scope, id: ExecutionId) -> Result<Option<ExecutionDetail>, StoreError>;

    /// Returns the lines of a run after number `after`, oldest first, at most `limit`; `None` if the
    /// organization has no such run.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn lines(
        &self,
        scope: Scope,
        id: ExecutionId,
        after: i64,
        limit: i64,
    ) -> Result<Option<Vec<ExecutionLine>>, StoreError>;
}

/// Changes to extensions and their runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Records that this version writes the catalog. `Stale` if a newer one has.
    ClaimCatalog(ReleaseVersion),
    /// Inserts or updates an entry of the catalog. One with the same key keeps its id and its time of
    /// creation; one with the same content as well stays as it is, unless it was deleted.
    Publish(Box<Extension>),
    /// Deletes the entries of the catalog with other keys than these, unless an organization has installed
    /// something of them.
    Withdraw {
        /// The keys to keep.
        keep: Vec<ExtensionKey>,
        /// The time of the change.
        at: Timestamp,
    },
    /// Inserts a fork. `Taken` if its key is.
    Fork(Box<Extension>),
    /// Deletes a fork, and the host names of its containers. `Stale` if the organization has no such fork.
    Delete {
        /// The organization that it belongs to.
        scope: Scope,
        /// The key of the fork.
        key: ExtensionKey,
        /// The time of the change.
        at: Timestamp,
    },
    /// Inserts a requested run with its steps. `Stale` if the extension is gone.
    Request {
        /// The run.
        execution: Box<Execution>,
        /// Its steps.
        steps: Vec<ExecutionStep>,
        /// True if it creates objects that outlive it: then the organization
        /// [has](crate::store::Rule::HasExtensions) the extension from now on.
        installs: bool,
        /// The home of the extensions of the organization, unless they have one, and the subject of the jobs of this one, which
        /// has the same home. `None` on one machine.
        home: Option<(Home, SubjectId)>,
    },
    /// Starts a run. `Stale` if it is not pending.
    Begin {
        /// The id of the execution.
        id: ExecutionId,
        /// The host name of the machine that runs it.
        server_hostname: String,
        /// The time of the change.
        at: Timestamp,
    },
    /// Starts a step. `Stale` if it is not pending.
    BeginStep {
        /// The run.
        execution: ExecutionId,
        /// The position of the step.
        order: i32,
        /// The time of the change.
        at: Timestamp,
    },
    /// Ends a step. `Stale` if it does not run.
    EndStep {
        /// The run.
        execution: ExecutionId,
        /// The position of the step.
        order: i32,
        /// The final state.
        state: ExecutionState,
        /// The exit code of its program.
        exit_code: i32,
        /// The time of the change.
        at: Timestamp,
    },
    /// Ends a run. Pending steps are cancelled; a running one ends as the run does. `Stale` if the run has
    /// finished.
    Finish {
        /// The id of the execution.
        id: ExecutionId,
        /// The outcome.
        end: ExecutionEnd,
        /// The time of the change.
        at: Timestamp,
    },
    /// Ends unfinished runs whose job has finished: cancelled if it was, failed with its reason if it
    /// failed. Their steps follow.
    FollowJobs {
        /// The time of the change.
        at: Timestamp,
    },
    /// Routes a host name to a container. `Taken` if the name is routed elsewhere; one of the same
    /// extension and organization is rerouted.
    AddRoute(ExtensionRoute),
    /// Changes the address of the container of a route. Changes nothing if the route is gone.
    MoveRoute {
        /// The id of the route.
        id: ExtensionRouteId,
        /// The new address.
        address: IpAddr,
    },
    /// Removes a host name. `Stale` if it does not belong to this extension and organization.
    RemoveRoute {
        /// The organization that it belongs to.
        scope: Scope,
        /// The key of the extension.
        extension: ExtensionKey,
        /// The host name.
        host: Hostname,
    },
    /// Records that everything that an extension created for an organization was removed, except its
    /// volumes, and with `with_volumes` those too. Its host names are removed.
    Uninstall {
        /// The organization that it belongs to.
        scope: Scope,
        /// The key of the extension.
        extension: ExtensionKey,
        /// The subject of its jobs.
        subject: SubjectId,
        /// True if the volumes were removed too: then the organization does not have the extension any
        /// more, unless a run of it is requested.
        with_volumes: bool,
    },
}

impl Write {
    /// Returns whether the change requires an entry in the audit log. The request and the outcome carry an
    /// entry of their own.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        matches!(self, Self::Fork(_) | Self::Delete { .. } | Self::Request { .. })
    }
}
