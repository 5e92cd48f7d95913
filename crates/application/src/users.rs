//! The name and the settings of the caller.

use std::sync::Arc;

use launchway_domain::{
    audit::{Action, Author, Chain, Event, Resource},
    auth::Actor,
    users::{Profile, Settings, SettingsChange, UserRepository, Username, Write},
};

use crate::{Error, ServiceContext};

/// Settings with their user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsDetail {
    /// The settings of the user.
    pub settings: Settings,
    /// The user with their memberships.
    pub profile: Arc<Profile>,
}

/// Reads and updates the user's own profile and settings.
pub struct Users {
    users: Arc<dyn UserRepository>,
    context: ServiceContext,
}

impl Users {
    /// Returns the use cases over `users`.
    pub fn new(users: Arc<dyn UserRepository>, context: ServiceContext) -> Self {
        Self { users, context }
    }

    /// Renames the actor.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a database.
    pub async fn rename(&self, actor: &Actor, username: Username) -> Result<Profile, Error> {
        let id = actor.user_id();
        let event =
            Event::new(Action::Update, Resource::User, id, format!("changed their username to `{username}`"))
                .with("username", &username);
        let rename = Write::Rename { id, username, at: self.context.clock.now() };
        // The audit log of every organization that they are a member of gets an entry, not only of the
        // current one.
        let chains =
            actor.profile().memberships.iter().map(|detail| Chain::Organization(detail.organization.id));
        let chains: Vec<Chain> = if chains.len() == 0 { vec![Chain::Installation] } else { chains.collect() };
        let told = chains
            .into_iter()
            .map(|chain| self.context.record(Author { chain, ..actor.author() }, event.clone()));
        let writes = [rename.into()].into_iter().chain(told).collect();
        // Stale if the user was deleted after the token was checked.
        self.context.commit(writes, Error::Unauthenticated).await?;
        self.profile_now(actor).await
    }

    /// Returns the actor's settings, which are created with defaults on first use.
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

    /// Applies `changes` to the actor's settings, and nothing else.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a database.
    pub async fn change_settings(
        &self,
        actor: &Actor,
        changes: Vec<SettingsChange>,
    ) -> Result<SettingsDetail, Error> {
        let event = changed(actor, &changes);
        let change = Write::ChangeSettings {
            user_id: actor.user_id(),
            new_id: self.context.ids.next().into(),
            changes,
            at: self.context.clock.now(),
        };
        let mut writes = vec![change.into()];
        writes.extend(event.map(|event| self.context.record(actor.author(), event)));
        self.context.store.commit(writes).await?;
        let profile = self.profile_now(actor).await?;
        let settings = profile
            .settings
            .clone()
            .ok_or_else(|| Error::Internal("settings are gone right after they were written".into()))?;
        Ok(SettingsDetail { settings, profile: Arc::new(profile) })
    }

    async fn profile_now(&self, actor: &Actor) -> Result<Profile, Error> {
        // Stale if the user was deleted after the token was checked.
        self.users.profile(actor.user_id()).await?.ok_or(Error::Unauthenticated)
    }
}

/// Returns the audit event; `None` if nothing changes.
fn changed(actor: &Actor, changes: &[SettingsChange]) -> Option<Event> {
    let named: Vec<(&str, String)> = changes
        .iter()
        .map(|change| match change {
            SettingsChange::AutoUpdate(on) => ("auto_update", on.to_string()),
            SettingsChange::Theme(theme) => ("theme", theme.to_string()),
            SettingsChange::FontFamily(family) => ("font_family", family.to_string()),
            SettingsChange::FontSize(size) => ("font_size", size.get().to_string()),
            SettingsChange::Language(language) => ("language", language.to_string()),
        })
        .collect();
    let what: Vec<String> = named.iter().map(|(name, value)| format!("{name} to `{value}`")).collect();
    let event = Event::new(
        Action::Update,
        Resource::User,
        actor.user_id(),
        format!("changed {}", what.join(" and ")),
    );
    let with_all = named.iter().fold(event, |event, (name, value)| event.with(name, value));
    (!changes.is_empty()).then_some(with_all)
}
