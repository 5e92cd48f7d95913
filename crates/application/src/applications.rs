//! Use cases of applications: create, read, update and delete.

mod changes;
mod domains;
mod operations;
mod secrets;

use std::sync::Arc;

use launchway_domain::{
    applications::{
        Application, ApplicationDetail, ApplicationFilter, ApplicationRepository, ApplicationSummary,
        Blueprint, CopyCount, GitCredentials, Hostname, Repository, SourcePolicy, Variables, Write,
    },
    audit::{Action as Did, Event, Resource as Audited},
    auth::{Action, Actor, Permission, Resource},
    deployments::{CommitHash, DeploymentKind, KeptVersions, SourceDigest},
    idempotency::IdempotencyKey,
    ids::{ApplicationId, DeploymentId},
    page::{Page, PageRequest},
    quotas::{Quotas, Resource as Limited},
    secret::SecretBox,
    store::{StoreError, Unique},
};
#[cfg(feature = "webhooks")]
use launchway_domain::{organizations::Scope, previews::PreviewRepository};

#[cfg(feature = "webhooks")]
pub(crate) use self::changes::{deleted, deletion};
pub(crate) use self::secrets::{OpenSecrets, Vault};
use crate::{Error, ServiceContext, deployments::Request, organizations::ORGANIZATION, routes::Routes};
pub use launchway_domain::applications::ApplicationChange;

const CREATE: Permission = Permission::new(Resource::Deploy, Action::Create);
const READ: Permission = Permission::new(Resource::Deploy, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Deploy, Action::Update);
const DELETE: Permission = Permission::new(Resource::Deploy, Action::Delete);

pub(crate) const APPLICATION: Error = Error::NotFound("the application");

/// The request to create an application.
#[derive(Debug)]
pub struct NewApplication {
    /// The source to deploy, and the settings of its build and its runtime.
    pub blueprint: Blueprint,
    /// The credentials of a private repository.
    pub credentials: Option<GitCredentials>,
    /// The variables of the build.
    pub build_variables: Variables,
    /// The environment variables of the containers.
    pub environment_variables: Variables,
}

impl From<Blueprint> for NewApplication {
    /// Returns an application without variables and without repository credentials.
    fn from(blueprint: Blueprint) -> Self {
        let (build_variables, environment_variables) = (Variables::default(), Variables::default());
        Self { blueprint, credentials: None, build_variables, environment_variables }
    }
}

/// A commit that was sent to this server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentCommit {
    /// The id of its deployment.
    pub deployment: DeploymentId,
    /// The commit.
    pub commit: CommitHash,
    /// The digest of an upload; `None` for a push.
    pub digest: Option<SourceDigest>,
    /// The way in which it was sent, such as "a push to `main`".
    pub what: String,
}

/// The variables of an application that the actor is allowed to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownVariables {
    /// The variables of the build.
    pub build: Variables,
    /// The environment variables of the containers.
    pub environment: Variables,
}

/// The rules of the installation for repositories, domains, kept versions and quotas of applications.
#[derive(Debug, Clone, Default)]
pub struct ApplicationPolicy {
    /// The repositories that are allowed.
    pub sources: SourcePolicy,
    /// The host name of the installation itself.
    pub public_host: Option<String>,
    /// The number of versions that can be rolled back to.
    pub kept_versions: KeptVersions,
    /// The quotas of each organization.
    pub quotas: Quotas,
    /// True if only prebuilt images are deployed: no source, and no commands.
    pub images_only: bool,
}

/// The ports of the use cases of applications.
pub struct ApplicationPorts {
    /// Reads applications.
    pub applications: Arc<dyn ApplicationRepository>,
    /// Routes the traffic of applications.
    pub routes: Arc<Routes>,
}

/// Creates, reads, updates and deletes applications, and starts and stops them.
pub struct Applications {
    applications: Arc<dyn ApplicationRepository>,
    routes: Arc<Routes>,
    vault: Vault,
    policy: ApplicationPolicy,
    context: ServiceContext,
    #[cfg(feature = "webhooks")]
    previews: Option<Arc<dyn PreviewRepository>>,
}

impl Applications {
    /// Returns the use cases over `ports`, with secrets encrypted by `secrets`.
    pub fn new(
        ports: ApplicationPorts,
        secrets: Arc<dyn SecretBox>,
        policy: ApplicationPolicy,
        context: ServiceContext,
    ) -> Self {
        let ApplicationPorts { applications, routes } = ports;
        Self {
            applications,
            routes,
            vault: Vault::new(secrets),
            policy,
            context,
            #[cfg(feature = "webhooks")]
            previews: None,
        }
    }

    /// Deletes the previews of an application with it.
    #[cfg(feature = "webhooks")]
    #[must_use]
    pub fn with_previews(self, previews: Arc<dyn PreviewRepository>) -> Self {
        Self { previews: Some(previews), ..self }
    }

    /// Returns the applications that run the previews of an application.
    #[cfg(feature = "webhooks")]
    async fn previews_of(&self, scope: Scope, id: ApplicationId) -> Result<Vec<Application>, Error> {
        let Some(previews) = &self.previews else { return Ok(Vec::new()) };
        let found = previews.of_application(scope, id).await?;
        Ok(found.into_iter().filter_map(|summary| summary.application).collect())
    }

    /// Creates an application and requests its first deployment. Its host names are routed at once, though
    /// nothing runs there yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] when its parts do not fit together or its repository may not be used,
    /// [`Error::Conflict`] when its name or domain is in use, [`Error::QuotaExceeded`] when the
    /// organization has as many as it may have, or as many bytes of images, [`Error::Repeated`] when `key`
    /// was used, [`Error::Forbidden`] without the permission `deploy:create`.
    pub async fn create(
        &self,
        actor: &Actor,
        new: NewApplication,
        key: Option<IdempotencyKey>,
    ) -> Result<(ApplicationDetail, ShownVariables), Error> {
        self.create_with(actor, self.context.ids.next().into(), new, key, None).await
    }

    /// Creates an application with the source that was sent to its repository on this server, and requests the deployment
    /// of that commit. A claimed key names the deployment.
    ///
    /// # Errors
    /// As [`create`](Applications::create).
    pub async fn create_from_source(
        &self,
        actor: &Actor,
        id: ApplicationId,
        new: NewApplication,
        sent: SentCommit,
        key: Option<IdempotencyKey>,
    ) -> Result<(ApplicationDetail, ShownVariables), Error> {
        self.create_with(actor, id, new, key, Some(sent)).await
    }

    async fn create_with(
        &self,
        actor: &Actor,
        id: ApplicationId,
        new: NewApplication,
        key: Option<IdempotencyKey>,
        sent: Option<SentCommit>,
    ) -> Result<(ApplicationDetail, ShownVariables), Error> {
        let scope = actor.require(CREATE)?;
        let NewApplication { blueprint, credentials, build_variables, environment_variables } = new;
        self.check(id, &blueprint)?;
        let secrets = OpenSecrets { build_variables, environment_variables, credentials, former: Vec::new() };
        let secrets = self.vault.seal(id, &secrets)?;
        let now = self.context.clock.now();
        let ids = (id, self.context.ids.next().into());
        let organization = &actor.membership().ok_or(ORGANIZATION)?.organization;
        let application = Application::new(ids, organization, actor.user_id(), blueprint, secrets, now);
        let username = actor.user().username.as_str();
        // The resource is that of the response to a repeated request.
        let (request, reason, resource) = match sent {
            None => {
                let request = Request::of(&application, DeploymentKind::Fresh, &self.context);
                (request, format!("by {username}"), id.into())
            }
            Some(SentCommit { deployment, commit, digest, what }) => {
                let request = Request::of_commit(&application, deployment, commit, &self.context);
                (request.with_digest(digest), format!("by {username}, by {what}"), deployment.into())
            }
        };
        let event = described(
            Event::new(
                Did::Create,
                Audited::Application,
                id,
                format!("created {}", titled(&application.blueprint)),
            ),
            &application.blueprint,
        );
        let conflict = conflicts(&application.blueprint);
        let mut writes: Vec<_> = self.context.claim(key, resource).into_iter().collect();
        writes.extend(self.policy.quotas.require(scope, Limited::Applications, 1, now).map(Into::into));
        writes.extend(request.image_room(self.policy.quotas, &application, &self.context));
        writes.push(Write::Insert(Box::new(application)).into());
        writes.extend(request.writes_because(username, &reason, &self.context));
        writes.push(self.context.record(actor.author(), event));
        self.context.store.commit(writes).await.map_err(conflict)?;
        self.context.wake.notify();
        self.update_routes(scope, id).await;
        self.written(actor, id).await
    }

    /// Returns a page of the applications of the actor's organization, newest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `deploy:read`.
    pub async fn list(
        &self,
        actor: &Actor,
        filter: &ApplicationFilter,
        page: PageRequest,
    ) -> Result<Page<(ApplicationSummary, ShownVariables)>, Error> {
        let scope = actor.require(READ)?;
        let Page { items, request, total } = self.applications.page(scope, filter, page).await?;
        let items = items.into_iter().map(|summary| {
            let variables = self.shown(actor, &summary.application)?;
            Ok((summary, variables))
        });
        Ok(Page { items: items.collect::<Result<_, Error>>()?, request, total })
    }

    /// Returns an application of the actor's organization, with its related records.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Forbidden`] without the permission
    /// `deploy:read`.
    pub async fn detail(
        &self,
        actor: &Actor,
        id: ApplicationId,
    ) -> Result<(ApplicationDetail, ShownVariables), Error> {
        actor.require(READ)?;
        self.written(actor, id).await
    }

    /// Returns an application that the actor has just created or changed, with its related records. That needs no
    /// further permission.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id.
    pub async fn written(
        &self,
        actor: &Actor,
        id: ApplicationId,
    ) -> Result<(ApplicationDetail, ShownVariables), Error> {
        let detail = self.applications.detail(actor.organization()?, id).await?.ok_or(APPLICATION)?;
        let variables = self.shown(actor, &detail.summary.application)?;
        Ok((detail, variables))
    }

    /// Returns the URL of an application; `None` if no traffic is routed.
    #[must_use]
    pub fn url(&self, application: &Application) -> Option<String> {
        self.routes.url(application)
    }

    /// Returns the variables of an application, or none if the actor may not update it.
    fn shown(&self, actor: &Actor, application: &Application) -> Result<ShownVariables, Error> {
        if actor.require(UPDATE).is_err() {
            return Ok(ShownVariables::default());
        }
        let OpenSecrets { build_variables, environment_variables, .. } = self.vault.open(application)?;
        Ok(ShownVariables { build: build_variables, environment: environment_variables })
    }

    fn is_our_own(&self, domain: &Hostname) -> bool {
        Some(domain.as_str()) == self.policy.public_host.as_deref()
    }

    /// Checks the blueprint of an application without network access.
    fn check(&self, id: ApplicationId, blueprint: &Blueprint) -> Result<(), Error> {
        let mut problems: Vec<String> = match blueprint.check() {
            Ok(()) => Vec::new(),
            Err(problems) => problems.iter().map(ToString::to_string).collect(),
        };
        if let Repository::Git(url) = &blueprint.repository {
            if let Err(refused) = self.policy.sources.check(url) {
                problems.push(format!("repository {refused}"));
            }
            if url.hosted_for().is_some_and(|owner| owner != id) {
                problems.push(format!(
                    "repository must not be that of another application, got `{}`",
                    url.as_str()
                ));
            }
        }
        if self.policy.images_only {
            problems.extend(needs_engine(blueprint).map(str::to_owned));
        }
        if blueprint.domain.as_ref().is_some_and(|domain| self.is_our_own(domain)) {
            problems.push(OUR_OWN.to_owned());
        }
        if problems.is_empty() { Ok(()) } else { Err(Error::Invalid(problems.join("; "))) }
    }
}

/// Returns what a blueprint requests that only an engine can do.
fn needs_engine(blueprint: &Blueprint) -> impl Iterator<Item = &'static str> {
    let source = matches!(blueprint.repository, Repository::Git(_))
        .then_some("repository must be a reference such as `web:1`: nothing is built here");
    let (before, after) = (&blueprint.pre_run_command, &blueprint.post_run_command);
    let commands = (before.is_some() || after.is_some())
        .then_some("pre_run_command and post_run_command must be absent: commands are not run here");
    let copies = (blueprint.copies > CopyCount::ONE).then_some("replicas must be 1: one instance runs here");
    source.into_iter().chain(commands).chain(copies)
}

const OUR_OWN: &str = "domain must not be the host name of this installation";

/// Describes the application for messages, with its name and environment.
pub(crate) fn titled(blueprint: &Blueprint) -> String {
    format!("the application `{}` ({})", blueprint.name, blueprint.environment)
}

/// Adds the properties of a blueprint to an event. None of them is secret.
fn described(event: Event, blueprint: &Blueprint) -> Event {
    let event = event
        .with("name", &blueprint.name)
        .with("environment", &blueprint.environment)
        .with("repository", blueprint.repository.as_str())
        .with("build_pack", blueprint.build_pack.as_str());
    let event = match blueprint.copies {
        CopyCount::ONE => event,
        copies => event.with("replicas", copies.get()),
    };
    match &blueprint.branch {
        Some(branch) => event.with("branch", branch),
        None => event,
    }
}

/// Maps the error of a rejected commit to the error of the request with this blueprint.
fn conflicts(blueprint: &Blueprint) -> impl FnOnce(StoreError) -> Error + use<> {
    let (name, environment) = (blueprint.name.clone(), blueprint.environment.clone());
    let domain = blueprint.domain.clone();
    move |error| match (error, domain) {
        (StoreError::Taken(Unique::ApplicationName), _) => Error::Conflict(format!(
            "an application `{name}` exists already in the environment `{environment}`"
        )),
        (StoreError::Taken(Unique::Domain), Some(domain)) => in_use(&domain),
        (StoreError::Stale, _) => APPLICATION,
        (error, _) => error.into(),
    }
}

fn in_use(domain: &Hostname) -> Error {
    Error::Conflict(format!("the domain `{domain}` is in use by another application"))
}
