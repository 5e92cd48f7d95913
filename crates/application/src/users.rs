//! The caller's own name and settings.

use std::sync::Arc;

use launchway_domain::{
    auth::Actor,
    store::StoreError,
    users::{Profile, Settings, SettingsChange, UserRepository, Username, Write},
};

use crate::{Error, Tools};

/// Settings and whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsDetail {
    /// The settings.
    pub settings: Settings,
    /// The user, with memberships.
    pub profile: Arc<Profile>,
}

/// Shows and changes what users may change of themselves.
pub struct Users {
    users: Arc<dyn UserRepository>,
    tools: Tools,
}

impl Users {
    /// Reads from `users`.
    pub fn new(users: Arc<dyn UserRepository>, tools: Tools) -> Self {
        Self { users, tools }
    }

    /// Gives the actor another name.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a database.
    pub async fn rename(&self, actor: &Actor, username: Username) -> Result<Profile, Error> {
        let rename = Write::Rename { id: actor.user_id(), username, at: self.tools.clock.now() };
        self.tools.store.commit(vec![rename.into()]).await.map_err(|error| match error {
            // Deleted between the token's check and now.
            StoreError::Stale => Error::Unauthenticated,
            error => error.into(),
        })?;
        self.profile_now(actor).await
    }

    /// The actor's settings, made with defaults on first use.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a database.
    pub async fn settings(&self, actor: &Actor) -> Result<SettingsDetail, Error> {
        match &actor.profile().settings {
            Some(settings) => {
                Ok(SettingsDetail { settings: settings.clone(), profile: Arc::clone(actor.profile()) })
            }
            None => self.change_settings(actor, Vec::new()).await,
        }
    }

    /// Changes what `changes` names of the actor's settings, and nothing else.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a database.
    pub async fn change_settings(
        &self,
        actor: &Actor,
        changes: Vec<SettingsChange>,
    ) -> Result<SettingsDetail, Error> {
        let change = Write::ChangeSettings {
            user_id: actor.user_id(),
            new_id: self.tools.ids.next().into(),
            changes,
            at: self.tools.clock.now(),
        };
        self.tools.store.commit(vec![change.into()]).await?;
        let profile = self.profile_now(actor).await?;
        let settings = profile
            .settings
            .clone()
            .ok_or_else(|| Error::Internal("settings are gone right after they were written".into()))?;
        Ok(SettingsDetail { settings, profile: Arc::new(profile) })
    }

    async fn profile_now(&self, actor: &Actor) -> Result<Profile, Error> {
        // Gone means deleted between the token's check and now.
        self.users.profile(actor.user_id()).await?.ok_or(Error::Unauthenticated)
    }
}
