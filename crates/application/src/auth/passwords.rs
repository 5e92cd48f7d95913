//! Changing a password.

use std::sync::Arc;

use launchway_domain::{
    audit::{Action, Author, Event, Resource},
    auth::{Actor, CredentialRepository, Origin, Password, PasswordHasher, TokenHash, Write},
    ids::SessionId,
    secret::Secret,
    users::{EmailAddress, UserRepository},
};

use super::{LoginAttempts, author};
use crate::{Error, ServiceContext};

/// The request of a user to change their password.
#[derive(Debug)]
pub struct PasswordChange {
    /// The current password to check.
    pub current: Secret<String>,
    /// The new password.
    pub new: Password,
}

/// The request of a new user to set their first password.
#[derive(Debug)]
pub struct PasswordSetupRequest {
    /// The setup token, which they got from the administrator who added them.
    pub token: Secret<String>,
    /// The new password.
    pub password: Password,
    /// The origin of the request.
    pub origin: Origin,
}

/// Changes passwords.
pub struct Passwords {
    credentials: Arc<dyn CredentialRepository>,
    users: Arc<dyn UserRepository>,
    hasher: Arc<dyn PasswordHasher>,
    login_attempts: LoginAttempts,
    context: ServiceContext,
}

impl Passwords {
    /// Returns the use cases that check the current password against `credentials`.
    pub fn new(
        credentials: Arc<dyn CredentialRepository>,
        users: Arc<dyn UserRepository>,
        hasher: Arc<dyn PasswordHasher>,
        login_attempts: LoginAttempts,
        context: ServiceContext,
    ) -> Self {
        Self { credentials, users, hasher, login_attempts, context }
    }

    /// Changes the actor's password and ends their other sessions.
    ///
    /// # Errors
    /// [`Error::InvalidCredentials`] when the current one is wrong, [`Error::RateLimited`] after too many
    /// failures, [`Error::Forbidden`] for an API token.
    pub async fn change(&self, actor: &Actor, change: PasswordChange) -> Result<(), Error> {
        let keep = Some(actor.session()?.id);
        let address = actor.origin().client.address;
        self.login_attempts.bounded(&actor.user().email, address, self.attempt(actor, keep, change)).await
    }

    async fn attempt(
        &self,
        actor: &Actor,
        keep: Option<SessionId>,
        change: PasswordChange,
    ) -> Result<(), Error> {
        let user_id = actor.user_id();
        let stored = self.credentials.by_user(user_id).await?.and_then(|found| found.password);
        let is_right = self.hasher.verify(&change.current, stored.clone()).await?;
        let verified = stored.filter(|_| is_right).ok_or(WRONG)?;
        let hash = self.hasher.hash(&change.new).await?;
        let at = self.context.clock.now();
        let event = Event::new(Action::Update, Resource::User, user_id, "changed their password");
        let writes = vec![
            Write::ConfirmPassword { user_id, hash: verified }.into(),
            Write::SetPassword { user_id, hash, at }.into(),
            Write::EndSessions { user_id, keep, at }.into(),
            self.context.record(actor.author(), event.with_changed_secret("password")),
        ];
        self.context.commit(writes, WRONG).await
    }

    /// Sets the first password of a new user, authenticated by their setup token.
    ///
    /// # Errors
    /// [`Error::InvalidCredentials`] for a token that is unknown, used or expired.
    pub async fn set_up(&self, request: PasswordSetupRequest) -> Result<(), Error> {
        let PasswordSetupRequest { token, password, origin } = request;
        let token = TokenHash::of(token.expose());
        let now = self.context.clock.now();
        let user_id = self.credentials.by_password_setup(&token, now).await?.ok_or(VOID)?;
        let profile = self.users.profile(user_id).await?.ok_or(VOID)?;
        let hash = self.hasher.hash(&password).await?;
        let at = self.context.clock.now();
        let event = Event::new(Action::Update, Resource::User, user_id, "set their first password");
        let writes = vec![
            Write::RedeemPasswordSetup { user_id, token, at }.into(),
            Write::SetPassword { user_id, hash, at }.into(),
            self.context.record(author(&profile, origin), event.with_changed_secret("password")),
        ];
        self.context.commit(writes, VOID).await
    }

    /// Sets a password without the current one, and ends all sessions of that user. It has no permission
    /// check: it is for administrators with access to the files of the server.
    ///
    /// # Errors
    /// [`Error::NotFound`] when no user has that address.
    pub async fn reset(&self, email: &EmailAddress, new: &Password) -> Result<(), Error> {
        let user = self
            .credentials
            .by_email(email)
            .await?
            .ok_or(Error::NotFound("a user with that e-mail address"))?;
        let hash = self.hasher.hash(new).await?;
        let at = self.context.clock.now();
        let user_id = user.user_id;
        let profile = self.users.profile(user_id).await?;
        let organization = profile.and_then(|profile| Some(profile.memberships.first()?.organization.id));
        let what = format!("reset the password of {email}");
        let event = Event::new(Action::Update, Resource::User, user_id, what).with_changed_secret("password");
        let writes = vec![
            Write::SetPassword { user_id, hash, at }.into(),
            Write::EndSessions { user_id, keep: None, at }.into(),
            self.context.record(Author::operator(organization.into()), event),
        ];
        Ok(self.context.store.commit(writes).await?)
    }
}

const VOID: Error = Error::InvalidCredentials(
    "this `token` is unknown, was used before or has expired: ask the admin who added you for a new one",
);

const WRONG: Error = Error::InvalidCredentials("`current_password` is incorrect");
