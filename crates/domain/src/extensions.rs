//! Extensions: definitions of things to set up or to do, and their runs.

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
        Execution, ExecutionDetail, ExecutionLine, ExecutionState, ExecutionStep, IllegalMove,
        NewExecutionLine, Phase, PrintedStep,
    },
    host_ports::{
        HostPort, HostPorts, PortError, PortKey, PortPolicy, PortRange, PortRecord, PortRefusal, PortRequest,
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
    host_ports::MockHostPorts,
    ports::{MockExecutionLog, MockExtensionRunner},
};
use crate::{
    applications::{Hostname, Port},
    clock::Timestamp,
    deployments::ContainerId,
    ids::{ExecutionId, ExtensionId, ExtensionRouteId, ExtensionVariableId, OrganizationId},
    organizations::Scope,
    page::{Page, PageRequest},
    store::{self, StoreError},
    value::named,
};

named!(
    /// Whether the definition of an extension can be used.
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

/// An extension: an entry of the catalog, which is everyone's, or a fork of an organization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extension {
    /// Which.
    pub id: ExtensionId,
    /// Whose fork; none for an entry of the catalog.
    pub organization_id: Option<OrganizationId>,
    /// How it is called in paths.
    pub key: ExtensionKey,
    /// What it is a fork of.
    pub parent: Option<ExtensionKey>,
    /// How people call it.
    pub name: ExtensionName,
    /// What it does.
    pub description: String,
    /// Who wrote it.
    pub author: String,
    /// What it is shown by.
    pub icon: String,
    /// What it is about.
    pub category: Category,
    /// Whether it sets something up or does something.
    pub kind: ExtensionKind,
    /// Which version of it this is.
    pub version: String,
    /// Whether somebody has looked at it.
    pub is_verified: bool,
    /// The SHA-256 of the definition, in hex.
    pub content_hash: String,
    /// The definition.
    pub yaml: String,
    /// What was read from it, as a JSON object.
    pub parsed: String,
    /// Whether it can be used.
    pub validation: Validation,
    /// What is wrong with it, as a JSON array.
    pub validation_errors: String,
    /// What it asks for, in the order of the definition.
    pub variables: Vec<ExtensionVariable>,
    /// When it came.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
}

/// Something that an extension asks for, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionVariable {
    /// Which.
    pub id: ExtensionVariableId,
    /// What it is called.
    pub name: String,
    /// What kind of value it takes.
    pub kind: VariableKind,
    /// What it is, for a person.
    pub description: String,
    /// What it is when nobody says, as JSON.
    pub default: Option<String>,
    /// Whether there has to be a value.
    pub is_required: bool,
    /// What values have to look like; empty for anything.
    pub pattern: String,
    /// When it came.
    pub created_at: Timestamp,
}

/// Which extensions are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtensionFilter {
    /// Those whose key, name, description or author contains this, ignoring case.
    pub search: Option<String>,
    /// Those about this.
    pub category: Option<Category>,
    /// Those of this kind.
    pub kind: Option<ExtensionKind>,
}

/// A name that leads to a container of an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtensionRoute {
    /// Which.
    pub id: ExtensionRouteId,
    /// Whose.
    pub scope: Scope,
    /// Of which extension.
    pub extension: ExtensionKey,
    /// The name.
    pub host: Hostname,
    /// The container that it leads to.
    pub container: ContainerId,
    /// Where the container is reached; [nowhere](ExtensionRoute::NOWHERE) while it does not run.
    pub address: IpAddr,
    /// Where it listens.
    pub port: Port,
}

impl ExtensionRoute {
    /// The address of a container that does not run: the one that it had may be another's by now.
    pub const NOWHERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

    /// Whether nobody is reached by it.
    #[must_use]
    pub fn leads_nowhere(&self) -> bool {
        self.address.is_unspecified()
    }
}

/// Reads extensions. Every method sees what `commit` last made durable, and none that is deleted.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ExtensionRepository: Send + Sync {
    /// A page of the catalog and of the organization's forks, by name, ties by key, each with its
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

    /// An entry of the catalog or a fork of the organization, with its variables.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn by_key(&self, scope: Scope, key: &ExtensionKey) -> Result<Option<Extension>, StoreError>;

    /// The same by its id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn by_id(&self, scope: Scope, id: ExtensionId) -> Result<Option<Extension>, StoreError>;

    /// The entries of the catalog: their keys, whether they can be used, and the hashes of their
    /// definitions.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn catalog(&self) -> Result<Vec<(ExtensionKey, Validation, String)>, StoreError>;

    /// Every name that leads to a container of an extension, in the whole installation.
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
    /// A page of the organization's runs of an extension, newest first, ties by id, each with the
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

    /// One run with its steps in their order; `None` when the organization has none with that id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn get(
        &self,
        scope: Scope,
        id: ExecutionId,
    ) -> Result<Option<(Execution, Vec<ExecutionStep>)>, StoreError>;

    /// One run with everything around it, in a bounded number of queries.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn detail(&self, scope: Scope, id: ExecutionId) -> Result<Option<ExecutionDetail>, StoreError>;

    /// The lines of a run behind number `after`, oldest first, at most `limit`; `None` when the
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

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionEnd {
    /// Completed, failed or cancelled.
    pub state: ExecutionState,
    /// How the step ended that it failed by; 0 otherwise.
    pub exit_code: i32,
    /// Why it failed; empty otherwise.
    pub error_message: String,
}

/// Changes to extensions and their runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// An entry of the catalog as it is now. One with the same key keeps its id and the moment it
    /// came; one with the same content as well stays as it is, unless it was deleted.
    Publish(Box<Extension>),
    /// Entries of the catalog with other keys than these are deleted, unless an organization has
    /// something of them.
    Withdraw {
        /// Those that stay.
        keep: Vec<ExtensionKey>,
        /// When.
        at: Timestamp,
    },
    /// A new fork. `Taken` when its key is.
    Fork(Box<Extension>),
    /// A fork goes, and the names that lead to its containers. `Stale` when the organization has no
    /// such fork.
    Delete {
        /// Whose.
        scope: Scope,
        /// Which.
        key: ExtensionKey,
        /// When.
        at: Timestamp,
    },
    /// A run that is to be made, with its steps. `Stale` when the extension is gone.
    Request {
        /// The run.
        execution: Box<Execution>,
        /// Its steps.
        steps: Vec<ExecutionStep>,
        /// Whether it makes things that outlive it: then the organization
        /// [has](crate::store::Rule::HasExtensions) the extension from now on.
        installs: bool,
    },
    /// A run begins. `Stale` when it does not wait any more.
    Begin {
        /// Which.
        id: ExecutionId,
        /// On which machine.
        server_hostname: String,
        /// When.
        at: Timestamp,
    },
    /// A step begins. `Stale` when it does not wait any more.
    BeginStep {
        /// Of which run.
        execution: ExecutionId,
        /// At which place.
        order: i32,
        /// When.
        at: Timestamp,
    },
    /// A step ends. `Stale` when it does not run.
    EndStep {
        /// Of which run.
        execution: ExecutionId,
        /// At which place.
        order: i32,
        /// How.
        state: ExecutionState,
        /// How its program ended.
        exit_code: i32,
        /// When.
        at: Timestamp,
    },
    /// A run ends. Steps that wait are cancelled; one that runs ends as the run does. `Stale` when
    /// the run is over.
    Finish {
        /// Which.
        id: ExecutionId,
        /// How.
        end: ExecutionEnd,
        /// When.
        at: Timestamp,
    },
    /// Runs that are not over although their job is end as it did: cancelled when it was, failed
    /// with its reason when it failed. Their steps follow.
    FollowJobs {
        /// When.
        at: Timestamp,
    },
    /// A name leads to a container. `Taken` when the name leads elsewhere; one of the same
    /// extension and organization leads there from now on.
    AddRoute(ExtensionRoute),
    /// A container of a name is elsewhere now. Changes nothing when the name is gone.
    MoveRoute {
        /// Which name.
        id: ExtensionRouteId,
        /// Where it is.
        address: IpAddr,
    },
    /// A name leads nowhere any more. `Stale` when it is no name of this extension and organization.
    RemoveRoute {
        /// Whose.
        scope: Scope,
        /// Of which extension.
        extension: ExtensionKey,
        /// Which name.
        host: Hostname,
    },
    /// Nothing that an extension made for an organization is left but its volumes, if `with_volumes`
    /// not even those: the names that led there go.
    Uninstall {
        /// Whose.
        scope: Scope,
        /// Which.
        extension: ExtensionKey,
        /// Whether the volumes are gone too: then the organization does not have it any more, unless
        /// a run of it is to be made.
        with_volumes: bool,
    },
}

impl Write {
    /// Whether the trail has to tell of it. It tells of the wish and of the end, which carry an
    /// entry of their own.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        matches!(self, Self::Fork(_) | Self::Delete { .. } | Self::Request { .. })
    }
}

impl From<Write> for store::Write {
    fn from(write: Write) -> Self {
        Self::Extension(write)
    }
}
