//! Reads the logs of applications.

mod follower;
mod streams;

use std::sync::Arc;

use launchway_domain::{
    applications::{Application, ApplicationRepository},
    auth::{Action, Actor, Permission, Resource},
    deployments::{Deployment, DeploymentRepository},
    ids::{ApplicationId, DeploymentId},
    logs::{LogFilter, LogLine, LogLineId, LogReader},
    page::{Page, PageRequest},
};

pub use self::{
    follower::{Followed, LogFollower},
    streams::{LogStreams, StreamPermit},
};
use crate::{Error, applications::APPLICATION, runtime_logs::LogFreshness};

const READ: Permission = Permission::new(Resource::Deploy, Action::Read);

/// The resource whose log is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogSubject {
    /// An application.
    Application(ApplicationId),
    /// A deployment.
    Deployment(DeploymentId),
}

/// A log that the actor may read: the application, and the filter.
#[derive(Debug, Clone)]
pub struct OpenLog {
    /// The application of the log.
    pub application: Application,
    filter: LogFilter,
}

/// A page of log lines with their deployments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPage {
    /// The application of the log.
    pub application: Application,
    /// The deployments of the lines.
    pub deployments: Vec<Deployment>,
    /// The page of lines.
    pub lines: Page<LogLine>,
}

/// Reads the logs of applications and deployments.
pub struct Logs {
    applications: Arc<dyn ApplicationRepository>,
    deployments: Arc<dyn DeploymentRepository>,
    reader: Arc<dyn LogReader>,
    freshness: LogFreshness,
}

impl Logs {
    /// Returns the use cases over `reader`. Output that is stale by `freshness` is collected before a read.
    pub fn new(
        applications: Arc<dyn ApplicationRepository>,
        deployments: Arc<dyn DeploymentRepository>,
        reader: Arc<dyn LogReader>,
        freshness: LogFreshness,
    ) -> Self {
        Self { applications, deployments, reader, freshness }
    }

    /// Opens the log of `subject`, narrowed by `filter`.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the actor's organization has no such application or deployment,
    /// [`Error::Forbidden`] without the permission `deploy:read`.
    pub async fn open(
        &self,
        actor: &Actor,
        subject: LogSubject,
        mut filter: LogFilter,
    ) -> Result<OpenLog, Error> {
        let scope = actor.require(READ)?;
        let id = match subject {
            LogSubject::Application(id) => id,
            LogSubject::Deployment(id) => {
                const DEPLOYMENT: Error = Error::NotFound("the deployment");
                let deployment = self.deployments.get(scope, id).await?.ok_or(DEPLOYMENT)?;
                filter.deployment = Some(id);
                deployment.application_id
            }
        };
        let application = self.applications.get(scope, id).await?.ok_or(APPLICATION)?;
        Ok(OpenLog { application, filter })
    }

    /// Returns a page of a log, newest first.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the application was deleted in the meantime.
    pub async fn page(&self, actor: &Actor, log: OpenLog, page: PageRequest) -> Result<LogPage, Error> {
        let scope = actor.require(READ)?;
        self.freshness.refresh(log.application.id).await;
        let lines =
            self.reader.page(scope, log.application.id, &log.filter, page).await?.ok_or(APPLICATION)?;
        self.with_deployments(actor, log.application, lines).await
    }

    /// Returns the lines of a log after `after`, or from its beginning, oldest first, up to the size of a
    /// page. The total is that of this page.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a line of another application, [`Error::NotFound`] when the application was
    /// deleted in the meantime.
    pub async fn after(
        &self,
        actor: &Actor,
        log: OpenLog,
        after: Option<LogLineId>,
        page: PageRequest,
    ) -> Result<LogPage, Error> {
        let lines = self.lines_after(actor, &log, after, page.size()).await?;
        let total = i64::try_from(lines.len()).unwrap_or(i64::MAX);
        self.with_deployments(actor, log.application, Page { items: lines, request: page, total }).await
    }

    /// Returns the same lines alone, at most `limit`, for a follower that polls.
    ///
    /// # Errors
    /// As [`after`](Logs::after).
    pub async fn lines_after(
        &self,
        actor: &Actor,
        log: &OpenLog,
        after: Option<LogLineId>,
        limit: i64,
    ) -> Result<Vec<LogLine>, Error> {
        let scope = actor.require(READ)?;
        let id = log.application.id;
        let number = match after {
            Some(line) => line.number_in(id).ok_or_else(|| {
                Error::Invalid("after must be the id of a line of this application's log".to_owned())
            })?,
            None => 0,
        };
        self.freshness.refresh(id).await;
        self.reader.after(scope, id, &log.filter, number, limit).await?.ok_or(APPLICATION)
    }

    /// Returns whether a deployment has finished and its log is complete. The log of an application never
    /// ends.
    ///
    /// # Errors
    /// [`Error::NotFound`] when the deployment was deleted in the meantime.
    pub async fn is_complete(&self, actor: &Actor, log: &OpenLog) -> Result<bool, Error> {
        let scope = actor.require(READ)?;
        let Some(id) = log.filter.deployment else { return Ok(false) };
        let deployment = self.deployments.get(scope, id).await?.ok_or(APPLICATION)?;
        let application = self.applications.get(scope, log.application.id).await?.ok_or(APPLICATION)?;
        Ok(deployment.status.state.is_final() && application.live != Some(id))
    }

    async fn with_deployments(
        &self,
        actor: &Actor,
        application: Application,
        lines: Page<LogLine>,
    ) -> Result<LogPage, Error> {
        let scope = actor.require(READ)?;
        let mut ids: Vec<DeploymentId> = lines.items.iter().map(|line| line.deployment_id).collect();
        ids.sort_unstable();
        ids.dedup();
        let deployments = self.deployments.many(scope, &ids).await?;
        Ok(LogPage { application, deployments, lines })
    }
}
