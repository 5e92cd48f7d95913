//! Use cases that stop and restart an application.

use launchway_domain::{
    applications::{Application, ApplicationDetail, Write},
    audit::{Action as Did, Author, Chain, Event, Resource as Audited},
    auth::Actor,
    deployments::Write as DeploymentWrite,
    ids::{ApplicationId, OrganizationId},
    jobs::{JobKind, Write as JobWrite},
    organizations::Scope,
    store,
};

use super::{APPLICATION, Applications, ShownVariables, UPDATE, titled};
use crate::{Error, deployments::job_about};

impl Applications {
    /// Stops an application of the actor's organization. A deployment that is pending or running is
    /// cancelled.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Conflict`] when no version of it is
    /// live, [`Error::Forbidden`] without the permission `deploy:update`.
    pub async fn stop(
        &self,
        actor: &Actor,
        id: ApplicationId,
    ) -> Result<(ApplicationDetail, ShownVariables), Error> {
        let scope = actor.require(UPDATE)?;
        let application = self.with_a_live_version(actor, id).await?;
        let now = self.context.clock.now();
        let writes = vec![
            JobWrite::RequestCancelAll { scope, subject: id.into(), at: now }.into(),
            DeploymentWrite::FollowJobs { application: Some(id), at: now }.into(),
            Write::SetStopped { scope, id, is_stopped: true, at: now }.into(),
            JobWrite::Enqueue(job_about(&application, JobKind::Stop, &self.context)).into(),
            self.record_operation(actor, &application, "stopped"),
        ];
        self.carry_out(actor, id, writes).await
    }

    /// Restarts the live version of an application of the actor's organization.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Conflict`] when no version of it is
    /// live, [`Error::Forbidden`] without the permission `deploy:update`.
    pub async fn restart(
        &self,
        actor: &Actor,
        id: ApplicationId,
    ) -> Result<(ApplicationDetail, ShownVariables), Error> {
        actor.require(UPDATE)?;
        let application = self.with_a_live_version(actor, id).await?;
        let writes = vec![
            JobWrite::Enqueue(job_about(&application, JobKind::Restart, &self.context)).into(),
            self.record_operation(actor, &application, "restarted"),
        ];
        self.carry_out(actor, id, writes).await
    }

    /// Restarts live versions for the maintenance of a machine that they run on, as the operator. A stopped application, or
    /// one that was deleted, is left out. Returns the number of those that are restarted.
    ///
    /// # Errors
    /// [`Error::Unavailable`] or [`Error::Internal`] when the database fails.
    pub async fn restart_for_maintenance(
        &self,
        applications: &[(OrganizationId, ApplicationId)],
    ) -> Result<usize, Error> {
        let mut restarted = 0;
        for (organization, id) in applications {
            let found = self.applications.get(Scope::of_record(*organization), *id).await?;
            let Some(application) = found.filter(|found| found.live.is_some() && !found.is_stopped) else {
                continue;
            };
            let what =
                format!("restarted {} for the maintenance of a machine", titled(&application.blueprint));
            let event = Event::new(Did::Update, Audited::Application, application.id, what);
            let writes = vec![
                JobWrite::Enqueue(job_about(&application, JobKind::Restart, &self.context)).into(),
                self.context.record(Author::operator(Chain::Organization(*organization)), event),
            ];
            self.context.commit(writes, APPLICATION).await?;
            restarted += 1;
        }
        self.context.wake.notify();
        Ok(restarted)
    }

    async fn with_a_live_version(&self, actor: &Actor, id: ApplicationId) -> Result<Application, Error> {
        let application = self.applications.get(actor.organization()?, id).await?.ok_or(APPLICATION)?;
        if application.live.is_none() {
            return Err(Error::Conflict(
                "no version of this application is live: deploy it first".to_owned(),
            ));
        }
        Ok(application)
    }

    fn record_operation(&self, actor: &Actor, application: &Application, what: &str) -> store::Write {
        let what = format!("{what} {}", titled(&application.blueprint));
        let event = Event::new(Did::Update, Audited::Application, application.id, what);
        self.context.record(actor.author(), event)
    }

    async fn carry_out(
        &self,
        actor: &Actor,
        id: ApplicationId,
        writes: Vec<store::Write>,
    ) -> Result<(ApplicationDetail, ShownVariables), Error> {
        self.context.commit(writes, APPLICATION).await?;
        self.context.wake.notify();
        self.written(actor, id).await
    }
}
