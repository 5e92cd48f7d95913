//! Deployments: requests, cancellation and execution.

mod log;
mod pipeline;
mod request;
mod retirement;

use std::sync::Arc;

use launchway_domain::{
    applications::{Application, ApplicationRepository},
    audit::{Action as Did, Event, Resource as Audited},
    auth::{Action, Actor, Permission, Resource},
    deployments::{
        BuildCache, Deployment, DeploymentDetail, DeploymentKind, DeploymentRepository, DeploymentState,
        KeptVersions, Write,
    },
    idempotency::IdempotencyKey,
    ids::{ApplicationId, DeploymentId},
    jobs::Write as JobWrite,
    page::{Page, PageRequest},
    quotas::Quotas,
    store::StoreError,
};

pub(crate) use self::{
    log::secrets_of,
    request::{Request, job_about},
};
pub use self::{
    pipeline::{HealthTimings, ImageQuota, Pipeline, PipelinePorts},
    retirement::{Retired, Retirer},
};
use crate::{
    Error, ServiceContext,
    applications::{APPLICATION, titled},
};

const CREATE: Permission = Permission::new(Resource::Deploy, Action::Create);
const READ: Permission = Permission::new(Resource::Deploy, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Deploy, Action::Update);

pub(crate) const DEPLOYMENT: Error = Error::NotFound("the deployment");

/// Requests, reads and cancels deployments.
pub struct Deployments {
    applications: Arc<dyn ApplicationRepository>,
    deployments: Arc<dyn DeploymentRepository>,
    kept: KeptVersions,
    quotas: Quotas,
    context: ServiceContext,
}

impl Deployments {
    /// Returns the use cases over `applications` and `deployments`. The last `kept` versions can be rolled
    /// back to.
    pub fn new(
        applications: Arc<dyn ApplicationRepository>,
        deployments: Arc<dyn DeploymentRepository>,
        kept: KeptVersions,
        context: ServiceContext,
    ) -> Self {
        Self { applications, deployments, kept, quotas: Quotas::default(), context }
    }

    /// The same within `quotas`.
    #[must_use]
    pub fn within(mut self, quotas: Quotas) -> Self {
        self.quotas = quotas;
        self
    }

    /// Requests a deployment of the current source of an application.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the actor's organization has no such application,
    /// [`Error::QuotaExceeded`] when its images take as many bytes as they may, [`Error::Repeated`] when
    /// `key` was used, [`Error::Forbidden`] without the permission `deploy:create`.
    pub async fn redeploy(
        &self,
        actor: &Actor,
        id: ApplicationId,
        key: Option<IdempotencyKey>,
    ) -> Result<DeploymentDetail, Error> {
        self.deploy(actor, id, BuildCache::Use, key).await
    }

    /// Requests a deployment of the current source of an application, and runs every step of its build.
    ///
    /// # Errors
    /// As of [`redeploy`](Self::redeploy).
    pub async fn rebuild(
        &self,
        actor: &Actor,
        id: ApplicationId,
        key: Option<IdempotencyKey>,
    ) -> Result<DeploymentDetail, Error> {
        self.deploy(actor, id, BuildCache::Ignore, key).await
    }

    async fn deploy(
        &self,
        actor: &Actor,
        id: ApplicationId,
        cache: BuildCache,
        key: Option<IdempotencyKey>,
    ) -> Result<DeploymentDetail, Error> {
        let scope = actor.require(CREATE)?;
        let application = self.applications.get(scope, id).await?.ok_or(APPLICATION)?;
        let what = match cache {
            BuildCache::Use => format!("requested a deployment of {}", titled(&application.blueprint)),
            BuildCache::Ignore => {
                format!(
                    "requested a deployment of {} without the build cache",
                    titled(&application.blueprint)
                )
            }
        };
        let request = Request::of(&application, DeploymentKind::Fresh, &self.context).with_cache(cache);
        self.request(actor, &application, request, what, key).await
    }

    /// Requests a new deployment that makes the version of an earlier deployment live again.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the actor's organization has no such deployment, [`Error::Conflict`] when
    /// it never was live or is not kept any more, [`Error::Repeated`] when `key` was used,
    /// [`Error::Forbidden`] without the permission `deploy:create`.
    pub async fn roll_back(
        &self,
        actor: &Actor,
        to: DeploymentId,
        key: Option<IdempotencyKey>,
    ) -> Result<DeploymentDetail, Error> {
        let scope = actor.require(CREATE)?;
        let earlier = self.deployments.get(scope, to).await?.ok_or(DEPLOYMENT)?;
        if earlier.status.state != DeploymentState::Deployed {
            return Err(Error::Conflict(format!(
                "that deployment is {}: only a deployed one can be rolled back to",
                earlier.status.state.as_str()
            )));
        }
        let application = self.applications.get(scope, earlier.application_id).await?.ok_or(DEPLOYMENT)?;
        let retention_status = self.deployments.retention_status(&[to], self.kept).await?;
        if !retention_status.iter().any(|retention_status| retention_status.is_worth_keeping) {
            return Err(Error::Conflict(format!(
                "the version of that deployment was removed: only the newest {} versions are kept",
                self.kept.0
            )));
        }
        let what = format!("requested a rollback of {} to deployment {to}", titled(&application.blueprint));
        let request = Request::of(&application, DeploymentKind::Rollback { to }, &self.context);
        self.request(actor, &application, request, what, key).await
    }

    /// Cancels a deployment: at once if it is pending, otherwise through its worker.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the actor's organization has no such deployment, [`Error::Conflict`] when
    /// it has finished, [`Error::Forbidden`] without the permission `deploy:update`.
    pub async fn cancel(&self, actor: &Actor, id: DeploymentId) -> Result<DeploymentDetail, Error> {
        let scope = actor.require(UPDATE)?;
        let deployment = self.deployments.get(scope, id).await?.ok_or(DEPLOYMENT)?;
        let over =
            |state: DeploymentState| Error::Conflict(format!("the deployment is {} already", state.as_str()));
        if deployment.status.state.is_final() {
            return Err(over(deployment.status.state));
        }
        let at = self.context.clock.now();
        let event =
            Event::new(Did::Update, Audited::Deployment, id, format!("cancelled the deployment {id}"));
        let writes = vec![
            JobWrite::RequestCancel { scope, id: deployment.job_id, at }.into(),
            Write::FollowJobs { application: Some(deployment.application_id), at }.into(),
            self.context.record(actor.author(), event),
        ];
        match self.context.store.commit(writes).await {
            // It finished in the meantime.
            Err(StoreError::Stale) => {
                let state = self.deployments.get(scope, id).await?.map(|deployment| deployment.status.state);
                return Err(state.map_or(DEPLOYMENT, over));
            }
            outcome => outcome?,
        }
        self.context.wake.notify();
        self.written(actor, id).await
    }

    /// Returns a deployment of the actor's organization, with its related records.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Forbidden`] without the permission
    /// `deploy:read`.
    pub async fn detail(&self, actor: &Actor, id: DeploymentId) -> Result<DeploymentDetail, Error> {
        actor.require(READ)?;
        self.written(actor, id).await
    }

    /// Returns a deployment that the actor has just requested or cancelled, with its related records. That needs no
    /// further permission.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id.
    pub async fn written(&self, actor: &Actor, id: DeploymentId) -> Result<DeploymentDetail, Error> {
        self.deployments.detail(actor.organization()?, id).await?.ok_or(DEPLOYMENT)
    }

    /// Returns a page of the deployments of an application, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the actor's organization has no such application, [`Error::Forbidden`]
    /// without the permission `deploy:read`.
    pub async fn list(
        &self,
        actor: &Actor,
        application: ApplicationId,
        page: PageRequest,
    ) -> Result<Page<Deployment>, Error> {
        let scope = actor.require(READ)?;
        self.applications.get(scope, application).await?.ok_or(APPLICATION)?;
        Ok(self.deployments.page(scope, application, page).await?)
    }

    /// Returns the newest deployment of each of `applications`, in no order.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `deploy:read`.
    pub async fn newest(
        &self,
        actor: &Actor,
        applications: &[ApplicationId],
    ) -> Result<Vec<Deployment>, Error> {
        let scope = actor.require(READ)?;
        Ok(self.deployments.newest(scope, applications).await?)
    }

    async fn request(
        &self,
        actor: &Actor,
        application: &Application,
        request: Request,
        what: String,
        key: Option<IdempotencyKey>,
    ) -> Result<DeploymentDetail, Error> {
        let id = request.deployment.id;
        let event =
            Event::new(Did::Create, Audited::Deployment, id, what).with("application_id", application.id);
        let mut writes: Vec<_> = self.context.claim(key, id.into()).into_iter().collect();
        writes.extend(request.image_room(self.quotas, application, &self.context));
        writes.extend(request.writes(actor, &self.context));
        writes.push(self.context.record(actor.author(), event));
        self.context.commit(writes, APPLICATION).await?;
        self.context.wake.notify();
        self.written(actor, id).await
    }
}
