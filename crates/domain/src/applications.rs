//! Applications: their configuration, source, hosts and status.

mod automatic_host;
mod blueprint;
mod branch;
mod build_pack;
mod copies;
mod hostname;
mod image;
mod name;
mod paths;
mod reference;
mod repository;
mod status;
mod variables;
mod watch_paths;

use async_trait::async_trait;

pub use self::{
    automatic_host::AutomaticHost,
    blueprint::{ApplicationChange, Blueprint, InvalidBlueprint, RunCommand},
    branch::Branch,
    build_pack::{BuildPack, Port, ProxyServer},
    copies::CopyCount,
    hostname::Hostname,
    image::ImageRef,
    name::{ApplicationName, Environment, Label, Labels},
    paths::{BasePath, DockerfilePath, HealthCheckPath},
    reference::{AllowedRegistry, PUBLIC_REGISTRIES, Reference, Registry, RegistryAccess, RegistryPolicy},
    repository::{GitCredentials, GitPlace, GitUrl, Repository, SourcePolicy, Transport},
    status::{ApplicationState, Health, Progress},
    variables::{InvalidVariables, VariableNames, Variables},
    watch_paths::{WatchPath, WatchPaths},
};
use crate::{
    clock::Timestamp,
    deployments::Deployment,
    ids::{ApplicationId, ApplicationStatusId, DeploymentId, OrganizationId, UserId},
    logs::LogLine,
    organizations::{Organization, Scope},
    page::{Page, PageRequest},
    secret::Sealed,
    store_error::StoreError,
    users::User,
};

/// An application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// The id of the application.
    pub id: ApplicationId,
    /// The organization that it belongs to.
    pub organization_id: OrganizationId,
    /// The user who created it.
    pub user_id: UserId,
    /// The configuration that is deployed.
    pub blueprint: Blueprint,
    /// The host name that Launchway assigned. It stays when the application is renamed.
    pub automatic_host: AutomaticHost,
    /// Its host names beside its [`domain`](Blueprint::domain), in the order in which they were added.
    pub further_domains: Vec<Hostname>,
    /// Its build variables, environment variables and git credentials, encrypted.
    pub secrets: ApplicationSecrets,
    /// Its current status.
    pub status: ApplicationStatus,
    /// The deployment whose version serves, or would serve if the application were not stopped.
    pub live: Option<DeploymentId>,
    /// True if a user stopped it.
    pub is_stopped: bool,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// The status of an application, as a record of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApplicationStatus {
    /// The id of the application status.
    pub id: ApplicationStatusId,
    /// The current state.
    pub state: ApplicationState,
    /// When the application was created.
    pub created_at: Timestamp,
    /// When the state last changed.
    pub updated_at: Timestamp,
}

/// The encrypted values of an application. Decrypting needs their associated data: see
/// [`ApplicationSecrets::associated_data`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationSecrets {
    /// Its build-time [`Variables`].
    pub build_variables: Sealed,
    /// Its runtime [`Variables`].
    pub environment_variables: Sealed,
    /// Its [`GitCredentials`], if the repository needs any.
    pub credentials: Option<Sealed>,
}

impl ApplicationSecrets {
    /// Returns the associated data (AEAD) of a secret of an application: with any other, it cannot be
    /// decrypted.
    #[must_use]
    pub fn associated_data(id: ApplicationId, column: &str) -> String {
        format!("applications.{column}:{id}")
    }
}

impl Application {
    /// The maximum number of further domains of an application.
    pub const MOST_FURTHER_DOMAINS: usize = 100;

    /// Creates an application with its first deployment queued.
    #[must_use]
    pub fn new(
        (id, status_id): (ApplicationId, ApplicationStatusId),
        organization: &Organization,
        user_id: UserId,
        blueprint: Blueprint,
        secrets: ApplicationSecrets,
        now: Timestamp,
    ) -> Self {
        let state = ApplicationState::InProgress(Progress::Queued);
        let automatic_host = AutomaticHost::of(&blueprint.name, &blueprint.environment, &organization.name);
        Self {
            id,
            organization_id: organization.id,
            user_id,
            blueprint,
            automatic_host,
            further_domains: Vec::new(),
            secrets,
            status: ApplicationStatus { id: status_id, state, created_at: now, updated_at: now },
            live: None,
            is_stopped: false,
            created_at: now,
            updated_at: now,
        }
    }

    /// Creates another application of the same organization and creator, with its first deployment queued.
    #[must_use]
    pub fn beside(
        &self,
        (id, status_id): (ApplicationId, ApplicationStatusId),
        blueprint: Blueprint,
        secrets: ApplicationSecrets,
        now: Timestamp,
    ) -> Self {
        let state = ApplicationState::InProgress(Progress::Queued);
        Self {
            id,
            organization_id: self.organization_id,
            user_id: self.user_id,
            automatic_host: self.automatic_host.beside(&blueprint.name, &blueprint.environment),
            blueprint,
            further_domains: Vec::new(),
            secrets,
            status: ApplicationStatus { id: status_id, state, created_at: now, updated_at: now },
            live: None,
            is_stopped: false,
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns every host name of the application, those that users chose first.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        let chosen = self.blueprint.domain.iter().chain(&self.further_domains).map(Hostname::as_str);
        chosen.chain([self.automatic_host.as_str()])
    }
}

/// The host names that are routed to one application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedApplication {
    /// The id of the application.
    pub id: ApplicationId,
    /// Its host names, in no order.
    pub hosts: Vec<String>,
}

/// An application with its organization and its creator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationSummary {
    /// The application.
    pub application: Application,
    /// The organization that it belongs to.
    pub organization: Organization,
    /// The user who created it.
    pub user: User,
    /// The reason why its live version does not serve, or not by all of its copies; `None` while it does, or if
    /// none is live.
    pub breakdown: Option<String>,
}

/// An application with its newest deployments and log lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationDetail {
    /// The application, with its organization and its creator.
    pub summary: ApplicationSummary,
    /// Its newest deployments, at most [`ApplicationDetail::DEPLOYMENTS`], newest first.
    pub deployments: Vec<Deployment>,
    /// The newest lines of its log, at most [`ApplicationDetail::LOGS`], oldest first.
    pub logs: Vec<LogLine>,
}

impl ApplicationDetail {
    /// The maximum number of deployments shown with an application.
    pub const DEPLOYMENTS: i64 = 20;
    /// The maximum number of log lines shown with an application.
    pub const LOGS: i64 = 100;
}

/// A filter for applications.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplicationFilter {
    /// Those whose name, repository, domain or one of whose further domains contains this, ignoring case.
    pub search: Option<String>,
    /// Those of this environment.
    pub environment: Option<Environment>,
    /// Those in this state.
    pub state: Option<ApplicationState>,
}

/// Reads applications. Every method sees what `commit` last made durable, and no deleted record.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ApplicationRepository: Send + Sync {
    /// Returns a page of an organization's applications, newest first, ties by id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn page(
        &self,
        scope: Scope,
        filter: &ApplicationFilter,
        page: PageRequest,
    ) -> Result<Page<ApplicationSummary>, StoreError>;

    /// Returns one application; `None` if the organization has none with that id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn get(&self, scope: Scope, id: ApplicationId) -> Result<Option<Application>, StoreError>;

    /// Returns one application with its details, in a bounded number of queries.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn detail(&self, scope: Scope, id: ApplicationId) -> Result<Option<ApplicationDetail>, StoreError>;

    /// Returns the host names of every application of the installation.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn named(&self) -> Result<Vec<NamedApplication>, StoreError>;

    /// Returns whether `host` is routed to an application of the installation.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn is_named(&self, host: &str) -> Result<bool, StoreError>;
}

/// Changes to applications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Inserts an application. Its automatic host gets the first [number](AutomaticHost::numbered) that
    /// makes it unique, beginning with none. `Taken(ApplicationName)` if the organization has one of that
    /// name in that environment, `Taken(Domain)` if another application of the installation has the domain,
    /// `Stale` if the organization is gone.
    Insert(Box<Application>),
    /// Replaces the blueprint and the secrets. A domain that was one of its further ones becomes its
    /// domain. `Stale` if the application is gone, or if it was last changed at another time than `seen`;
    /// `Taken` as above.
    Update {
        /// The organization that it belongs to.
        scope: Scope,
        /// The id of the application.
        id: ApplicationId,
        /// When the caller believes that it was last changed.
        seen: Option<Timestamp>,
        /// The new blueprint.
        blueprint: Box<Blueprint>,
        /// The new encrypted values.
        secrets: ApplicationSecrets,
        /// The time of the change.
        at: Timestamp,
    },
    /// Adds a host name. `Taken(Domain)` if an application of the installation has it already, this one
    /// included; `Refused(MostDomains)` if the application has [enough](Application::MOST_FURTHER_DOMAINS);
    /// `Stale` if it is gone.
    AddDomain {
        /// The organization that it belongs to.
        scope: Scope,
        /// The id of the application.
        id: ApplicationId,
        /// The host name.
        domain: Hostname,
        /// The time of the change.
        at: Timestamp,
    },
    /// Removes a host name: a further one, or its domain. `Stale` if the application is gone or does not
    /// have it.
    RemoveDomain {
        /// The organization that it belongs to.
        scope: Scope,
        /// The id of the application.
        id: ApplicationId,
        /// The host name.
        domain: Hostname,
        /// The time of the change.
        at: Timestamp,
    },
    /// Deletes the application for every reader; its name and its hosts are free. `Stale` if it was gone
    /// already.
    Delete {
        /// The organization that it belongs to.
        scope: Scope,
        /// The id of the application.
        id: ApplicationId,
        /// The time of the change.
        at: Timestamp,
    },
    /// Marks the application as [`Stopped`](ApplicationState::Stopped) or
    /// [`Running`](ApplicationState::Running). `Stale` if it is gone or has no live version.
    SetStopped {
        /// The organization that it belongs to.
        scope: Scope,
        /// The id of the application.
        id: ApplicationId,
        /// True to stop it, false to start it.
        is_stopped: bool,
        /// The time of the change.
        at: Timestamp,
    },
    /// Records that the live version broke down ([`Failed`](ApplicationState::Failed)), or serves again, at
    /// least by some of its copies ([`Running`](ApplicationState::Running)). `Stale` unless `deployment` is the live one and the
    /// application is not stopped.
    SetHealth {
        /// The deployment of the version.
        deployment: DeploymentId,
        /// The health of the version.
        health: Health,
        /// The time of the change.
        at: Timestamp,
    },
}

impl Write {
    /// Returns whether the change requires an entry in the audit log. Changes of health are in the
    /// application's own log.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        !matches!(self, Self::SetHealth { .. })
    }
}
