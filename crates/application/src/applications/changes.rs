//! Use cases that update and delete an application.

use launchway_domain::{
    applications::{Application, ApplicationChange, ApplicationDetail, Blueprint, Repository, Write},
    audit::{Action as Did, Event, Resource as Audited},
    auth::Actor,
    clock::Timestamp,
    deployments::{DeploymentKind, Write as DeploymentWrite},
    ids::ApplicationId,
    jobs::{JobKind, Write as JobWrite},
    organizations::Scope,
    store::{self, StoreError},
};

use super::{APPLICATION, Applications, DELETE, ShownVariables, UPDATE, conflicts, titled};
use crate::{
    Error, ServiceContext,
    deployments::{Request, job_about},
};

/// The number of attempts at an update while the same application is changed concurrently.
const TRIES: u32 = 8;

/// The result of one attempt at an update.
#[derive(Debug, PartialEq, Eq)]
enum Made {
    Yes,
    /// Another request changed or deleted the application since it was read.
    ChangedMeanwhile,
}

impl Applications {
    /// Updates an application of the actor's organization, and requests a deployment of it unless `redeploy` is
    /// false, or is not given and only the number of copies changes: then they are started or stopped. Concurrent changes are kept: the update is then applied on top of them.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Invalid`] when nothing would change and
    /// `redeploy` is not true, [`Error::Invalid`] and [`Error::Conflict`] as for a new one, [`Error::QuotaExceeded`] when it is to be deployed and the images of the organization
    /// take as many bytes as they may, [`Error::Conflict`] when it was last changed at another time than
    /// `unchanged_since`, [`Error::Forbidden`] without the permission `deploy:update`.
    pub async fn update(
        &self,
        actor: &Actor,
        id: ApplicationId,
        change: ApplicationChange,
        redeploy: Option<bool>,
        unchanged_since: Option<Timestamp>,
    ) -> Result<(ApplicationDetail, ShownVariables), Error> {
        let scope = actor.require(UPDATE)?;
        for _ in 0..TRIES {
            let application = self.applications.get(scope, id).await?.ok_or(APPLICATION)?;
            if unchanged_since.is_some_and(|seen| seen != application.updated_at) {
                break;
            }
            if self.change(actor, scope, application, change.clone(), redeploy).await? == Made::Yes {
                return self.written(actor, id).await;
            }
        }
        Err(Error::Conflict("the application was changed in the meantime: read it again".to_owned()))
    }

    async fn change(
        &self,
        actor: &Actor,
        scope: Scope,
        application: Application,
        change: ApplicationChange,
        redeploy: Option<bool>,
    ) -> Result<Made, Error> {
        let id = application.id;
        let before = self.vault.open(&application)?;
        let mut blueprint = application.blueprint.clone().with(change.clone());
        let mut secrets = before.clone();
        if let Some(raw) = &change.repository {
            (blueprint.repository, secrets.credentials) = Repository::parse(raw, blueprint.build_pack)
                .map_err(|refused| Error::Invalid(format!("repository {refused}")))?;
        }
        let given = change.fields(&blueprint);
        let has_other_domain = change.domain.is_some();
        secrets.build_variables = change.build_variables.unwrap_or(secrets.build_variables);
        secrets.environment_variables = change.environment_variables.unwrap_or(secrets.environment_variables);
        let secrets = secrets.instead_of(&before);
        self.check(id, &blueprint)?;
        let is_same = blueprint == application.blueprint && secrets == before;
        if is_same && redeploy != Some(true) {
            return Err(Error::Invalid("there is nothing to change".to_owned()));
        }
        let former = Blueprint { copies: blueprint.copies, ..application.blueprint.clone() };
        let is_scaled = blueprint.copies != application.blueprint.copies;
        // Another number of copies needs no other version.
        let redeploy = redeploy.unwrap_or(!is_scaled || former != blueprint || secrets != before);
        let what = format!("changed {}", titled(&blueprint));
        let event = Event::new(Did::Update, Audited::Application, id, what);
        let event = given.into_iter().fold(event, |event, (name, value)| match value {
            Some(value) => event.with(name, value),
            None => event.with_changed_secret(name),
        });
        let conflict = conflicts(&blueprint);
        let update = Write::Update {
            scope,
            id,
            seen: Some(application.updated_at),
            blueprint: Box::new(blueprint),
            secrets: self.vault.seal(id, &secrets)?,
            at: self.context.clock.now(),
        };
        let mut writes = vec![update.into()];
        if redeploy {
            let request = Request::of(&application, DeploymentKind::Fresh, &self.context);
            writes.extend(request.image_room(self.policy.quotas, &application, &self.context));
            writes.extend(request.writes(actor, &self.context));
        } else if is_scaled && application.live.is_some() && !application.is_stopped {
            writes.push(JobWrite::Enqueue(job_about(&application, JobKind::Reconcile, &self.context)).into());
        }
        writes.push(self.context.record(actor.author(), event));
        match self.context.store.commit(writes).await {
            Err(StoreError::Stale) => return Ok(Made::ChangedMeanwhile),
            committed => committed.map_err(conflict)?,
        }
        self.context.wake.notify();
        if has_other_domain {
            self.update_routes(scope, id).await;
        }
        Ok(Made::Yes)
    }

    /// Deletes an application of the actor's organization, and its previews. Their resources on the engine are removed
    /// in the background.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none with that id, [`Error::Forbidden`] without the permission
    /// `deploy:delete`.
    pub async fn delete(&self, actor: &Actor, id: ApplicationId) -> Result<(), Error> {
        let scope = actor.require(DELETE)?;
        for _ in 0..TRIES {
            let application = self.applications.get(scope, id).await?.ok_or(APPLICATION)?;
            #[cfg(feature = "webhooks")]
            let previews = self.previews_of(scope, id).await?;
            #[cfg(not(feature = "webhooks"))]
            let previews: Vec<Application> = Vec::new();
            let mut writes = deletion(&application, &self.context);
            let mut entries = vec![self.context.record(actor.author(), deleted(&application))];
            for preview in &previews {
                writes.extend(deletion(preview, &self.context));
                let event = deleted(preview).with("preview_of", id);
                entries.push(self.context.record(actor.author(), event));
            }
            writes.extend(entries);
            match self.context.store.commit(writes).await {
                // One of the previews may have been deleted in the meantime.
                Err(StoreError::Stale) if !previews.is_empty() => {}
                Err(StoreError::Stale) => return Err(APPLICATION),
                committed => {
                    committed?;
                    self.context.wake.notify();
                    return Ok(());
                }
            }
        }
        Err(Error::Conflict("the previews of the application change too often: try again".to_owned()))
    }
}

/// Returns the writes that delete an application, without the entry of the audit log.
pub(crate) fn deletion(application: &Application, context: &ServiceContext) -> Vec<store::Write> {
    let (id, at) = (application.id, context.clock.now());
    let scope = Scope::of_record(application.organization_id);
    vec![
        // First, so that running jobs get the request to cancel before the application is deleted.
        JobWrite::RequestCancelAll { scope, subject: id.into(), at }.into(),
        DeploymentWrite::FollowJobs { application: Some(id), at }.into(),
        Write::Delete { scope, id, at }.into(),
        JobWrite::Enqueue(job_about(application, JobKind::Remove, context)).into(),
    ]
}

/// Returns the event of the deletion of an application.
pub(crate) fn deleted(application: &Application) -> Event {
    let what = format!("deleted {}", titled(&application.blueprint));
    Event::new(Did::Delete, Audited::Application, application.id, what)
}
