//! The preview settings of applications.

use launchway_domain::{
    applications::{Application, Repository, VariableNames, Variables},
    audit::{Action as Did, Event, Resource as Audited},
    auth::Actor,
    ids::ApplicationId,
    organizations::Scope,
    previews::{PreviewLifetime, PreviewLimit, PreviewSettings, Write},
    store::StoreError,
};

use super::{ATTEMPTS, Previews, READ, UPDATE};
use crate::{
    Error,
    applications::{APPLICATION, ShownVariables, titled},
};

const BUILD: &str = "build_variables";
const ENVIRONMENT: &str = "environment_variables";

/// A partial update of preview settings. Absent fields keep their values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PreviewChange {
    /// True if requests get previews.
    pub enabled: Option<bool>,
    /// The maximum number of previews at once.
    pub limit: Option<PreviewLimit>,
    /// The time to live of a preview.
    pub lifetime: Option<PreviewLifetime>,
    /// The variables of the application that its previews have too.
    pub shared: Option<VariableNames>,
    /// True if previews run the commands of the application.
    pub run_commands: Option<bool>,
    /// The variables of the builds of previews.
    pub build_variables: Option<Variables>,
    /// The environment variables of previews.
    pub environment_variables: Option<Variables>,
}

/// The preview settings of an application, with the variables that the actor is allowed to see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPreviewSettings {
    /// The settings.
    pub settings: PreviewSettings,
    /// The variables of previews.
    pub variables: ShownVariables,
}

impl Previews {
    /// Returns the preview settings of an application of the actor's organization. Only an actor who may update it sees
    /// the variables.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no application with that id, [`Error::Forbidden`] without the permission
    /// `deploy:read`.
    pub async fn settings(&self, actor: &Actor, id: ApplicationId) -> Result<ShownPreviewSettings, Error> {
        let scope = actor.require(READ)?;
        self.ports.applications.get(scope, id).await?.ok_or(APPLICATION)?;
        let settings = match self.stored(scope, id).await? {
            Some(settings) => settings,
            None => self.usual(id)?,
        };
        let variables = match actor.require(UPDATE) {
            Ok(_) => self.variables(&settings)?,
            Err(_) => ShownVariables::default(),
        };
        Ok(ShownPreviewSettings { settings, variables })
    }

    /// Changes the preview settings of an application of the actor's organization. Previews that run get other
    /// variables with their next deployment.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no application with that id, [`Error::Conflict`] when it cannot have previews,
    /// [`Error::Forbidden`] without the permission `deploy:update`.
    pub async fn change(
        &self,
        actor: &Actor,
        id: ApplicationId,
        change: PreviewChange,
    ) -> Result<ShownPreviewSettings, Error> {
        let scope = actor.require(UPDATE)?;
        for _ in 0..ATTEMPTS {
            let application = self.ports.applications.get(scope, id).await?.ok_or(APPLICATION)?;
            self.require_requests(scope, &application).await?;
            let stored = self.stored(scope, id).await?;
            let seen = stored.as_ref().map(|settings| settings.updated_at);
            let before = match stored {
                Some(settings) => settings,
                None => self.usual(id)?,
            };
            let (settings, event) = self.changed(&application, before, change.clone())?;
            let variables = self.variables(&settings)?;
            let write = Write::SetSettings { scope, settings: settings.clone(), seen };
            let writes = vec![write.into(), self.context.record(actor.author(), event)];
            match self.context.store.commit(writes).await {
                Ok(()) => return Ok(ShownPreviewSettings { settings, variables }),
                Err(StoreError::Stale) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::Conflict("the preview settings were changed in the meantime: read them again".to_owned()))
    }

    /// Fails unless the requests of an application can get previews.
    async fn require_requests(&self, scope: Scope, application: &Application) -> Result<(), Error> {
        let refused = |reason: &str| Err(Error::Conflict(reason.to_owned()));
        match &application.blueprint.repository {
            Repository::Image(_) => {
                refused("this application is deployed from an image: it has no requests to preview")
            }
            Repository::Git(url) if url.hosted_for().is_some() => {
                refused("this application is deployed from this server: it has no requests to preview")
            }
            Repository::Git(_) => match self.ports.previews.is_preview(scope, application.id).await? {
                true => refused("this application is a preview itself"),
                false => Ok(()),
            },
        }
    }

    /// Returns the stored settings of an application.
    pub(super) async fn stored(
        &self,
        scope: Scope,
        id: ApplicationId,
    ) -> Result<Option<PreviewSettings>, StoreError> {
        Ok(self.ports.previews.settings(scope, &[id]).await?.into_iter().next())
    }

    /// Returns the settings of an application without stored ones.
    fn usual(&self, application: ApplicationId) -> Result<PreviewSettings, Error> {
        let none = Variables::default();
        let seal = |column| self.vault.seal_at(&PreviewSettings::associated_data(application, column), &none);
        Ok(PreviewSettings {
            application,
            is_enabled: false,
            limit: PreviewLimit::default(),
            lifetime: PreviewLifetime::default(),
            shared: VariableNames::default(),
            runs_commands: false,
            build_variables: seal(BUILD)?,
            environment_variables: seal(ENVIRONMENT)?,
            updated_at: self.context.clock.now(),
        })
    }

    /// Decrypts the variables of previews.
    pub(super) fn variables(&self, settings: &PreviewSettings) -> Result<ShownVariables, Error> {
        let place = |column| PreviewSettings::associated_data(settings.application, column);
        Ok(ShownVariables {
            build: self.vault.open_at(&place(BUILD), &settings.build_variables)?,
            environment: self.vault.open_at(&place(ENVIRONMENT), &settings.environment_variables)?,
        })
    }

    /// Returns the settings after a change, and its event.
    fn changed(
        &self,
        application: &Application,
        before: PreviewSettings,
        change: PreviewChange,
    ) -> Result<(PreviewSettings, Event), Error> {
        let (id, title) = (application.id, titled(&application.blueprint));
        let what = format!("changed the preview settings of {title}");
        let mut event = Event::new(Did::Update, Audited::Application, id, what);
        let mut settings = PreviewSettings { updated_at: self.context.clock.now(), ..before };
        if let Some(enabled) = change.enabled {
            settings.is_enabled = enabled;
            event = event.with("enabled", enabled);
        }
        if let Some(limit) = change.limit {
            settings.limit = limit;
            event = event.with("limit", limit.get());
        }
        if let Some(lifetime) = change.lifetime {
            settings.lifetime = lifetime;
            event = event.with("lifetime_hours", lifetime.hours());
        }
        if let Some(shared) = change.shared {
            event = event.with("shared_variables", shared.iter().collect::<Vec<_>>().join(", "));
            settings.shared = shared;
        }
        if let Some(run_commands) = change.run_commands {
            settings.runs_commands = run_commands;
            event = event.with("run_commands", run_commands);
        }
        let place = |column| PreviewSettings::associated_data(id, column);
        if let Some(variables) = change.build_variables {
            settings.build_variables = self.vault.seal_at(&place(BUILD), &variables)?;
            event = event.with_changed_secret(BUILD);
        }
        if let Some(variables) = change.environment_variables {
            settings.environment_variables = self.vault.seal_at(&place(ENVIRONMENT), &variables)?;
            event = event.with_changed_secret(ENVIRONMENT);
        }
        Ok((settings, event))
    }
}
