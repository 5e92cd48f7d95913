//! The use cases, by what they are about. Every call acts for an actor, whose role and organization it
//! checks.

use launchway_application::{
    Error,
    applications::{ApplicationChange, NewApplication},
    logs::LogSubject,
};
use launchway_domain::{
    applications::{Application, ApplicationFilter, ImageRef},
    audit::{Entry, Filter},
    auth::Actor,
    deployments::Deployment,
    idempotency::IdempotencyKey,
    ids::{ApplicationId, DeploymentId},
    logs::{LogFilter, LogLine, LogLineId},
    page::{Page, PageRequest},
};

use crate::embedded::Embedded;

/// Creates, reads, updates and deletes applications.
///
/// ```
/// # use launchway_embedding::{Actor, Blueprint, Embedded};
/// # async fn create(platform: &Embedded, ada: &Actor) -> Result<(), Box<dyn std::error::Error>> {
/// let web = Blueprint::of_image("web".parse()?, "production".parse()?, "web:1".parse()?, 80.try_into()?);
/// let created = platform.applications().create(ada, web).await?;
/// platform.applications().restart(ada, created.application.id).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Applications<'a>(pub(crate) &'a Embedded);

/// A new application.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Created {
    /// The application.
    pub application: Application,
    /// Its first deployment, which is queued.
    pub deployment: Deployment,
}

impl Applications<'_> {
    /// Creates an application, and requests its first deployment.
    ///
    /// # Errors
    /// [`Error::Invalid`] for what cannot be deployed here, [`Error::Conflict`] if its name or domain is
    /// taken, [`Error::Forbidden`] without the permission `deploy:create`.
    pub async fn create(&self, actor: &Actor, new: impl Into<NewApplication>) -> Result<Created, Error> {
        self.create_once(actor, new, None).await
    }

    /// Creates an application, unless `key` was used already.
    ///
    /// # Errors
    /// As [`create`](Self::create), and [`Error::Repeated`] if `key` was used.
    pub async fn create_once(
        &self,
        actor: &Actor,
        new: impl Into<NewApplication>,
        key: Option<IdempotencyKey>,
    ) -> Result<Created, Error> {
        let new = new.into();
        self.0.repositories.know(actor).await?;
        let (detail, _) = self.0.applications.create(actor, new, key).await?;
        let deployment = detail.deployments.into_iter().next();
        let deployment = deployment.ok_or(Error::NotFound("the deployment"))?;
        Ok(Created { application: detail.summary.application, deployment })
    }

    /// Returns an application.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the actor's organization has none with that id, [`Error::Forbidden`] without
    /// the permission `deploy:read`.
    pub async fn get(&self, actor: &Actor, id: ApplicationId) -> Result<Application, Error> {
        Ok(self.0.applications.detail(actor, id).await?.0.summary.application)
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
    ) -> Result<Page<Application>, Error> {
        let Page { items, request, total } = self.0.applications.list(actor, filter, page).await?;
        let items = items.into_iter().map(|(summary, _)| summary.application).collect();
        Ok(Page { items, request, total })
    }

    /// Changes an application, and deploys it anew if the change concerns its version.
    ///
    /// # Errors
    /// As [`create`](Self::create) and [`get`](Self::get).
    pub async fn update(
        &self,
        actor: &Actor,
        id: ApplicationId,
        change: ApplicationChange,
    ) -> Result<Application, Error> {
        self.0.repositories.know(actor).await?;
        Ok(self.0.applications.update(actor, id, change, None, None).await?.0.summary.application)
    }

    /// Stops the live version. It stays the live one, and is started again by [`restart`](Self::restart) or
    /// a deployment.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`Error::Conflict`] if nothing is live.
    pub async fn stop(&self, actor: &Actor, id: ApplicationId) -> Result<(), Error> {
        self.0.applications.stop(actor, id).await.map(|_| ())
    }

    /// Restarts the live version: a second copy is started, checked and switched to before the first one
    /// ends.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`Error::Conflict`] if nothing is live.
    pub async fn restart(&self, actor: &Actor, id: ApplicationId) -> Result<(), Error> {
        self.0.applications.restart(actor, id).await.map(|_| ())
    }

    /// Deletes an application, and ends its versions.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn delete(&self, actor: &Actor, id: ApplicationId) -> Result<(), Error> {
        self.0.applications.delete(actor, id).await
    }
}

/// Requests, reads and cancels deployments.
///
/// ```
/// # use launchway_embedding::{Actor, ApplicationId, Embedded, Error, PageRequest};
/// # async fn deploy(platform: &Embedded, ada: &Actor, web: ApplicationId, page: PageRequest) -> Result<(), Error> {
/// let requested = platform.deployments().request(ada, web).await?;
/// platform.deployments().cancel(ada, requested.id).await?;
/// let first = platform.deployments().list(ada, web, page).await?.items.pop();
/// if let Some(earlier) = first {
///     platform.deployments().roll_back(ada, earlier.id).await?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Deployments<'a>(pub(crate) &'a Embedded);

impl Deployments<'_> {
    /// Requests a deployment of an application.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the actor's organization has no such application, [`Error::Forbidden`]
    /// without the permission `deploy:create`.
    pub async fn request(&self, actor: &Actor, application: ApplicationId) -> Result<Deployment, Error> {
        Ok(self.0.deployments.redeploy(actor, application, None).await?.deployment)
    }

    /// Requests a deployment that makes the version of an earlier one live again.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the actor's organization has no such deployment, [`Error::Conflict`] if it never
    /// was live or is not kept any more, [`Error::Forbidden`] without the permission `deploy:create`.
    pub async fn roll_back(&self, actor: &Actor, to: DeploymentId) -> Result<Deployment, Error> {
        Ok(self.0.deployments.roll_back(actor, to, None).await?.deployment)
    }

    /// Cancels a deployment that is not over.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the actor's organization has no such deployment, [`Error::Conflict`] if it is
    /// over, [`Error::Forbidden`] without the permission `deploy:update`.
    pub async fn cancel(&self, actor: &Actor, id: DeploymentId) -> Result<Deployment, Error> {
        Ok(self.0.deployments.cancel(actor, id).await?.deployment)
    }

    /// Returns a deployment.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the actor's organization has none with that id, [`Error::Forbidden`] without
    /// the permission `deploy:read`.
    pub async fn get(&self, actor: &Actor, id: DeploymentId) -> Result<Deployment, Error> {
        Ok(self.0.deployments.detail(actor, id).await?.deployment)
    }

    /// Returns the image that a deployment runs; `None` before it was obtained.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn artifact(&self, actor: &Actor, id: DeploymentId) -> Result<Option<ImageRef>, Error> {
        self.get(actor, id).await?;
        Ok(self.0.repositories.artifact(id).await?)
    }

    /// Returns a page of the deployments of an application, newest first.
    ///
    /// # Errors
    /// As [`request`](Self::request), with the permission `deploy:read`.
    pub async fn list(
        &self,
        actor: &Actor,
        application: ApplicationId,
        page: PageRequest,
    ) -> Result<Page<Deployment>, Error> {
        self.0.deployments.list(actor, application, page).await
    }
}

/// Reads the logs of applications and deployments.
///
/// ```
/// # use launchway_embedding::{Actor, DeploymentId, Embedded, Error};
/// # async fn follow(platform: &Embedded, ada: &Actor, id: DeploymentId) -> Result<(), Error> {
/// let mut last = None;
/// loop {
///     for line in platform.logs().of_deployment(ada, id, last, 100).await? {
///         println!("{}", line.text);
///         last = Some(line.id());
///     }
///     if platform.deployments().get(ada, id).await?.status.state.is_final() {
///         return Ok(());
///     }
///     tokio::time::sleep(std::time::Duration::from_secs(1)).await;
/// }
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Logs<'a>(pub(crate) &'a Embedded);

impl Logs<'_> {
    /// Returns the lines of a deployment after the line `after`, oldest first, at most `limit`. Start with
    /// `None`, and go on with the [id](LogLine::id) of the last line.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the actor's organization has no such deployment, [`Error::Forbidden`] without
    /// the permission `deploy:read`.
    pub async fn of_deployment(
        &self,
        actor: &Actor,
        id: DeploymentId,
        after: Option<LogLineId>,
        limit: i64,
    ) -> Result<Vec<LogLine>, Error> {
        self.lines(actor, LogSubject::Deployment(id), after, limit).await
    }

    /// Returns the lines of an application after the line `after`, as
    /// [`of_deployment`](Self::of_deployment) does.
    ///
    /// # Errors
    /// As there.
    pub async fn of_application(
        &self,
        actor: &Actor,
        id: ApplicationId,
        after: Option<LogLineId>,
        limit: i64,
    ) -> Result<Vec<LogLine>, Error> {
        self.lines(actor, LogSubject::Application(id), after, limit).await
    }

    async fn lines(
        &self,
        actor: &Actor,
        subject: LogSubject,
        after: Option<LogLineId>,
        limit: i64,
    ) -> Result<Vec<LogLine>, Error> {
        let log = self.0.logs.open(actor, subject, LogFilter::default()).await?;
        self.0.logs.lines_after(actor, &log, after, limit).await
    }
}

/// Reads the audit log.
///
/// ```
/// # use launchway_embedding::{Actor, Embedded, Error, PageRequest};
/// # async fn audit(platform: &Embedded, ada: &Actor, page: PageRequest) -> Result<(), Error> {
/// for entry in platform.audit().list(ada, &Default::default(), page).await?.items {
///     println!("{} {}", entry.at, entry.message);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct Audit<'a>(pub(crate) &'a Embedded);

impl Audit<'_> {
    /// Returns a page of the audit log of the actor's organization, newest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `audit:read`.
    pub async fn list(
        &self,
        actor: &Actor,
        filter: &Filter,
        page: PageRequest,
    ) -> Result<Page<Entry>, Error> {
        self.0.audit.list(actor, filter, page).await
    }
}
