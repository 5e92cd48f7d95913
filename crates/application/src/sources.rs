//! Use cases of source that users send to this server: pushes and uploads.

mod blocks;
mod locator;
mod push;
mod recovery;
mod turns;
mod upload;

use std::{sync::Arc, time::Duration};

use launchway_domain::{
    applications::{Application, ApplicationRepository, Branch, GitUrl, Repository},
    audit::{Action as Did, Author, Event, Resource as Audited},
    auth::{Action, Actor, Permission, Resource},
    deployments::{
        BuildCache, CommitHash, DeploymentRepository, DeploymentState, Output, SourceDigest, StepError,
    },
    ids::{ApplicationId, DeploymentId},
    quotas::Quotas,
    sources::{GitService, PendingSource, SourceFile, SourceRepositories, Spool},
    store::StoreError,
};

use tokio::time::Instant;

use self::turns::Turns;
pub use self::{
    locator::{SourceTarget, TargetName},
    push::Pushed,
    upload::{UploadRequest, Uploaded},
};
use crate::{
    Error, ServiceContext,
    applications::{APPLICATION, Applications, NewApplication, titled},
    deployments::Request,
    webhooks::PathWatcher,
};

/// The time for comparing the commits of a push, which are on this machine.
const COMPARISON: Duration = Duration::from_secs(60);

const CREATE: Permission = Permission::new(Resource::Deploy, Action::Create);
const READ: Permission = Permission::new(Resource::Deploy, Action::Read);

/// The ports of source that users send.
pub struct SourcePorts {
    /// Reads applications.
    pub applications: Arc<dyn ApplicationRepository>,
    /// Reads deployments.
    pub deployments: Arc<dyn DeploymentRepository>,
    /// Stores the source.
    pub repositories: Arc<dyn SourceRepositories>,
    /// Compares pushes with the paths that applications watch.
    pub watcher: PathWatcher,
    /// True if all servers of the installation have the same repositories.
    pub is_shared: bool,
}

/// Source of an application that does not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSource {
    /// The name of the application.
    pub name: TargetName,
    /// The address of its repository.
    pub repository: GitUrl,
    /// The branch to follow.
    pub branch: Branch,
    /// The files of the top folder.
    pub files: Vec<SourceFile>,
}

/// Decides how a new application is built; the error is a sentence for the user.
pub type Describe = dyn Fn(&NewSource) -> Result<NewApplication, String> + Send + Sync;

/// Receives pushes and uploads, deploys them, and serves them to git clients.
pub struct Sources {
    ports: SourcePorts,
    applications: Arc<Applications>,
    quotas: Quotas,
    turns: Turns,
    context: ServiceContext,
}

impl Sources {
    /// Returns the use cases over `ports`.
    pub fn new(
        ports: SourcePorts,
        applications: Arc<Applications>,
        quotas: Quotas,
        context: ServiceContext,
    ) -> Self {
        Self { ports, applications, quotas, turns: Turns::default(), context }
    }

    /// Starts to collect a body of a caller who may deploy.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `deploy:create`, [`Error::Conflict`] if the servers of this installation
    /// do not share their repositories or the disk is nearly full.
    pub async fn spool(&self, actor: &Actor) -> Result<Box<dyn Spool>, Error> {
        actor.require(CREATE)?;
        self.require_one_place()?;
        self.ports.repositories.spool().await.map_err(refused)
    }

    /// Returns the references of a repository, for a client that fetches or pushes.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `deploy:read` to fetch or `deploy:create` to push.
    pub async fn advertise(
        &self,
        actor: &Actor,
        target: &SourceTarget,
        service: GitService,
        is_v2: bool,
    ) -> Result<Vec<u8>, Error> {
        match service {
            GitService::UploadPack => actor.require(READ)?,
            GitService::ReceivePack => actor.require(CREATE)?,
        };
        if service == GitService::UploadPack && target.application().is_none() {
            return Err(APPLICATION);
        }
        self.require_one_place()?;
        self.ports.repositories.advertise(target.id(), service, is_v2).await.map_err(refused)
    }

    /// Answers a client that fetches.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `deploy:read`, [`Error::NotFound`] if nothing was pushed.
    pub async fn fetch(
        &self,
        actor: &Actor,
        target: &SourceTarget,
        request: Vec<u8>,
        is_v2: bool,
        output: Arc<dyn Output>,
    ) -> Result<(), Error> {
        actor.require(READ)?;
        let application = target.application().ok_or(APPLICATION)?;
        self.require_one_place()?;
        self.ports.repositories.fetch(application.id, request, is_v2, output).await.map_err(refused)
    }

    /// Returns the state of a deployment.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the actor's organization has no such deployment, [`Error::Forbidden`] without the
    /// permission `deploy:read`.
    pub async fn state(&self, actor: &Actor, id: DeploymentId) -> Result<DeploymentState, Error> {
        let scope = actor.require(READ)?;
        let deployment = self.ports.deployments.get(scope, id).await?;
        Ok(deployment.ok_or(Error::NotFound("the deployment"))?.status.state)
    }

    /// Fails if other servers would not find what this one stores.
    fn require_one_place(&self) -> Result<(), Error> {
        if self.ports.is_shared || !self.context.replica.has_others() {
            return Ok(());
        }
        Err(Error::Conflict(
            "this installation has several servers, and its operator has to give them one folder for repositories by \
             LAUNCHWAY_REPOSITORIES_DIR before source can be pushed or uploaded"
                .to_owned(),
        ))
    }

    /// Returns the deployed commit since which a push changed no path that the application watches.
    async fn unchanged_since(
        &self,
        application: &Application,
        commit: &CommitHash,
    ) -> Result<Option<CommitHash>, Error> {
        let deadline = Instant::now() + COMPARISON;
        Ok(self.ports.watcher.unchanged_since(application, commit, deadline).await?)
    }

    /// Commits the deployment of a commit that a reference of an existing application moved to.
    async fn deploy(
        &self,
        application: &Application,
        pending: &PendingSource,
        author: Author,
        how: &CommitOrigin,
    ) -> Result<(), StoreError> {
        let (id, commit) = (pending.deployment, pending.new.clone());
        let request = Request::of_commit(application, id, commit, &self.context);
        let request = request.with_cache(how.cache).with_digest(pending.digest.clone());
        let what = format!("requested a deployment of {} by {}", titled(&application.blueprint), how.what);
        let event =
            Event::new(Did::Create, Audited::Deployment, id, what).with("application_id", application.id);
        let event = how.details(event, &pending.new);
        let mut writes: Vec<_> = self.context.claim(pending.key.clone(), id.into()).into_iter().collect();
        writes.extend(request.image_room(self.quotas, application, &self.context));
        let reason = format!("by {}, by {}", pending.by, how.what);
        writes.extend(request.writes_because(&pending.by, &reason, &self.context));
        writes.push(self.context.record(author, event));
        self.context.store.commit(writes).await?;
        self.context.wake.notify();
        Ok(())
    }
}

/// The way in which a commit came to this server.
struct CommitOrigin {
    /// A noun with an article, such as "a push to `main`".
    what: String,
    branch: Branch,
    /// The digest of an upload.
    digest: Option<SourceDigest>,
    /// The use of the build cache.
    cache: BuildCache,
}

impl CommitOrigin {
    fn push(branch: &Branch) -> Self {
        Self {
            what: format!("a push to `{branch}`"),
            branch: branch.clone(),
            digest: None,
            cache: BuildCache::Use,
        }
    }

    /// Returns an upload. Announcements of earlier versions have no digest.
    fn upload(branch: &Branch, digest: Option<SourceDigest>, cache: BuildCache) -> Self {
        let what = match &digest {
            Some(digest) => format!("an upload with the SHA-256 {}", digest.digits()),
            None => "an upload".to_owned(),
        };
        Self { what, branch: branch.clone(), digest, cache }
    }

    fn details(&self, event: Event, commit: &CommitHash) -> Event {
        let event = event.with("branch", &self.branch).with("commit", commit);
        match &self.digest {
            Some(digest) => event.with("sha256", digest.digits()),
            None => event,
        }
    }
}

/// Returns whether the source of an application is its repository on this server.
fn is_hosted(application: &Application) -> bool {
    let own = |url: &GitUrl| url.hosted_for() == Some(application.id);
    matches!(&application.blueprint.repository, Repository::Git(url) if own(url))
}

/// Returns the error of a use case for that of a repository.
fn refused(error: StepError) -> Error {
    match error {
        StepError::Rejected(sentence) => Error::Conflict(sentence),
        error => Error::Unavailable(error.into()),
    }
}

/// Returns the sentence for a client whose deployment could not be committed.
fn sentence(error: &Error) -> String {
    match error {
        Error::Unavailable(_) | Error::Internal(_) => {
            tracing::error!(error = error as &dyn std::error::Error, "source could not be deployed");
            "the server could not record the deployment: try again".to_owned()
        }
        error => error.to_string(),
    }
}

/// The id of an application that does not exist yet.
fn new_id(context: &ServiceContext) -> ApplicationId {
    context.ids.next().into()
}
