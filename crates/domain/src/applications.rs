//! Applications: what is deployed, from where, and how it is reached.

mod automatic_host;
mod blueprint;
mod branch;
mod build_pack;
mod hostname;
mod image;
mod name;
mod paths;
mod reference;
mod repository;
mod status;
mod variables;

use async_trait::async_trait;

pub use self::{
    automatic_host::AutomaticHost,
    blueprint::{Blueprint, InvalidBlueprint, RunCommand},
    branch::Branch,
    build_pack::{BuildPack, Port, ProxyServer},
    hostname::Hostname,
    image::ImageRef,
    name::{ApplicationName, Environment, Label, Labels},
    paths::{BasePath, DockerfilePath, HealthCheckPath},
    reference::{AllowedRegistry, PUBLIC_REGISTRIES, Reference, Registry, RegistryAccess, RegistryPolicy},
    repository::{GitCredentials, GitPlace, GitUrl, Repository, SourcePolicy, Transport},
    status::{ApplicationState, Health, Progress},
    variables::{InvalidVariables, Variables},
};
use crate::{
    clock::Timestamp,
    deployments::Deployment,
    ids::{ApplicationId, ApplicationStatusId, DeploymentId, OrganizationId, UserId},
    logs::LogLine,
    organizations::{Organization, Scope},
    page::{Page, PageRequest},
    secret::Sealed,
    store::{self, StoreError},
    users::User,
};

/// An application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Application {
    /// Which.
    pub id: ApplicationId,
    /// Whose.
    pub organization_id: OrganizationId,
    /// Who made it.
    pub user_id: UserId,
    /// What is to be deployed, and how.
    pub blueprint: Blueprint,
    /// The name that Launchway gave it. It stays when the application is renamed.
    pub automatic_host: AutomaticHost,
    /// Its names beside its [`domain`](Blueprint::domain), in the order in which they were added.
    pub further_domains: Vec<Hostname>,
    /// What its build and its environment are told, and what its repository wants to see.
    pub secrets: ApplicationSecrets,
    /// How it is.
    pub status: ApplicationStatus,
    /// The deployment whose version serves, or would serve if the application were not stopped.
    pub live: Option<DeploymentId>,
    /// Whether somebody stopped it.
    pub is_stopped: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// How an application is, as a record of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApplicationStatus {
    /// Which.
    pub id: ApplicationStatusId,
    /// How it is.
    pub state: ApplicationState,
    /// When the application was made.
    pub created_at: Timestamp,
    /// When the state last changed.
    pub updated_at: Timestamp,
}

/// What of an application is kept encrypted. Who opens it knows the place: see
/// [`ApplicationSecrets::place`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationSecrets {
    /// Its [`Variables`] for building.
    pub build_variables: Sealed,
    /// Its [`Variables`] for running.
    pub environment_variables: Sealed,
    /// Its [`GitCredentials`], if the repository needs any.
    pub credentials: Option<Sealed>,
}

impl ApplicationSecrets {
    /// What a secret of an application is sealed for: it opens nowhere else.
    #[must_use]
    pub fn place(id: ApplicationId, column: &str) -> String {
        format!("applications.{column}:{id}")
    }
}

impl Application {
    /// The most names that can be added to an application.
    pub const MOST_FURTHER_DOMAINS: usize = 100;

    /// An application that has just been made, with its first deployment waiting.
    #[must_use]
    pub fn new(
        (id, status_id): (ApplicationId, ApplicationStatusId),
        organization: &Organization,
        user_id: UserId,
        blueprint: Blueprint,
        secrets: ApplicationSecrets,
        now: Timestamp,
    ) -> Self {
        let state = ApplicationState::UnderWay(Progress::Queued);
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

    /// Every name that it is reached by: those that people chose first.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        let chosen = self.blueprint.domain.iter().chain(&self.further_domains).map(Hostname::as_str);
        chosen.chain([self.automatic_host.as_str()])
    }
}

/// The names that lead to one application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedApplication {
    /// Which.
    pub id: ApplicationId,
    /// Its names, in no order.
    pub hosts: Vec<String>,
}

/// An application with whom it belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationSummary {
    /// The application.
    pub application: Application,
    /// Whose it is.
    pub organization: Organization,
    /// Who made it.
    pub user: User,
    /// The reason why its live version does not serve; none while it does, or none is live.
    pub breakdown: Option<String>,
}

/// An application with everything around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApplicationDetail {
    /// The application, with whom it belongs to.
    pub summary: ApplicationSummary,
    /// Its newest deployments, at most [`ApplicationDetail::DEPLOYMENTS`], newest first.
    pub deployments: Vec<Deployment>,
    /// The newest lines of its log, at most [`ApplicationDetail::LOGS`], oldest first.
    pub logs: Vec<LogLine>,
}

impl ApplicationDetail {
    /// How many deployments are shown with an application.
    pub const DEPLOYMENTS: i64 = 20;
    /// How many log lines are shown with an application.
    pub const LOGS: i64 = 100;
}

/// Which applications are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApplicationFilter {
    /// Those whose name, repository, domain or one of whose further domains contains this, ignoring
    /// case.
    pub search: Option<String>,
    /// Those of this environment.
    pub environment: Option<Environment>,
    /// Those that are so.
    pub state: Option<ApplicationState>,
}

/// Reads applications. Every method sees what `commit` last made durable and no deleted record.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ApplicationRepository: Send + Sync {
    /// A page of an organization's applications, newest first, ties by id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn page(
        &self,
        scope: Scope,
        filter: &ApplicationFilter,
        page: PageRequest,
    ) -> Result<Page<ApplicationSummary>, StoreError>;

    /// One application; `None` when the organization has none with that id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn get(&self, scope: Scope, id: ApplicationId) -> Result<Option<Application>, StoreError>;

    /// The same with everything around it, in a bounded number of queries.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn detail(&self, scope: Scope, id: ApplicationId) -> Result<Option<ApplicationDetail>, StoreError>;

    /// The names of every application of the installation.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn named(&self) -> Result<Vec<NamedApplication>, StoreError>;

    /// Whether `host` leads to an application of the installation.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn is_named(&self, host: &str) -> Result<bool, StoreError>;
}

/// Changes to applications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A new application. Its automatic host gets the first [number](AutomaticHost::numbered) that
    /// makes it the only one, beginning with none. `Taken(ApplicationName)` when the organization
    /// has one of that name in that environment, `Taken(Domain)` when another application of the
    /// installation has the domain, `Stale` when the organization is gone.
    Insert(Box<Application>),
    /// Another blueprint and other secrets. A domain that was one of its further ones is its domain
    /// from now on. `Stale` when the application is gone, or when it was last changed at another
    /// moment than who changes it has seen; `Taken` as above.
    Update {
        /// Whose.
        scope: Scope,
        /// Which.
        id: ApplicationId,
        /// When it was last changed, as far as who changes it knows.
        seen: Option<Timestamp>,
        /// What is to be deployed from now on.
        blueprint: Box<Blueprint>,
        /// What is kept encrypted from now on.
        secrets: ApplicationSecrets,
        /// When.
        at: Timestamp,
    },
    /// One more name. `Taken(Domain)` when an application of the installation has it already, this
    /// one too; `Refused(MostDomains)` when the application has
    /// [enough](Application::MOST_FURTHER_DOMAINS); `Stale` when it is gone.
    AddDomain {
        /// Whose.
        scope: Scope,
        /// Which.
        id: ApplicationId,
        /// The name.
        domain: Hostname,
        /// When.
        at: Timestamp,
    },
    /// One name less: a further one, or its domain. `Stale` when the application is gone or does not
    /// have it.
    RemoveDomain {
        /// Whose.
        scope: Scope,
        /// Which.
        id: ApplicationId,
        /// The name.
        domain: Hostname,
        /// When.
        at: Timestamp,
    },
    /// It is gone for every reader; its name and its hosts are free. `Stale` when it was gone.
    Delete {
        /// Whose.
        scope: Scope,
        /// Which.
        id: ApplicationId,
        /// When.
        at: Timestamp,
    },
    /// It is to stand still, or not any more: [`Stopped`](ApplicationState::Stopped) or
    /// [`Running`](ApplicationState::Running). `Stale` when it is gone or has no live version.
    SetStopped {
        /// Whose.
        scope: Scope,
        /// Which.
        id: ApplicationId,
        /// Whether it stands still.
        is_stopped: bool,
        /// When.
        at: Timestamp,
    },
    /// Its live version broke down ([`Failed`](ApplicationState::Failed)), or serves again
    /// ([`Running`](ApplicationState::Running)). `Stale` unless `deployment` is the live one and the
    /// application is not stopped.
    SetHealth {
        /// Which version.
        deployment: DeploymentId,
        /// Its health.
        health: Health,
        /// When.
        at: Timestamp,
    },
}

impl Write {
    /// Whether the trail has to tell of it. What a version does by itself is in its log.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        !matches!(self, Self::SetHealth { .. })
    }
}

impl From<Write> for store::Write {
    fn from(write: Write) -> Self {
        Self::Application(write)
    }
}
