//! Login and logout.

use std::sync::Arc;

use launchway_domain::{
    audit::{Action, Event, Resource},
    auth::{Actor, CredentialRepository, Credentials, Origin, PasswordHash, PasswordHasher, Session, Write},
    ids::SessionId,
    secret::{Secret, SecretBox},
    store::StoreError,
    users::{EmailAddress, UserRepository},
};

use super::{LoggedIn, LoginAttempts, author, new_session, second_factor};
use crate::{Error, ServiceContext};

/// The credentials and the origin of a login.
#[derive(Debug)]
pub struct LoginRequest {
    /// The email address of the account.
    pub email: EmailAddress,
    /// The password to check.
    pub password: Secret<String>,
    /// A TOTP code or a recovery code.
    pub totp_code: Option<Secret<String>>,
    /// The origin of the request.
    pub origin: Origin,
}

/// Opens and closes sessions.
pub struct Logins {
    credentials: Arc<dyn CredentialRepository>,
    users: Arc<dyn UserRepository>,
    hasher: Arc<dyn PasswordHasher>,
    secrets: Arc<dyn SecretBox>,
    login_attempts: LoginAttempts,
    context: ServiceContext,
}

impl Logins {
    /// Returns the use cases that check logins against `credentials`.
    pub fn new(
        credentials: Arc<dyn CredentialRepository>,
        users: Arc<dyn UserRepository>,
        hasher: Arc<dyn PasswordHasher>,
        secrets: Arc<dyn SecretBox>,
        login_attempts: LoginAttempts,
        context: ServiceContext,
    ) -> Self {
        Self { credentials, users, hasher, secrets, login_attempts, context }
    }

    /// Opens a session.
    ///
    /// # Errors
    /// [`Error::InvalidCredentials`], with the same message and timing for an unknown address, a wrong
    /// password and a wrong code; [`Error::TwoFactorRequired`] when only the code is missing;
    /// [`Error::RateLimited`] after too many failures.
    pub async fn log_in(&self, request: LoginRequest) -> Result<LoggedIn, Error> {
        let (email, address) = (request.email.clone(), request.origin.client.address);
        self.login_attempts.bounded(&email, address, self.attempt(request)).await
    }

    async fn attempt(&self, request: LoginRequest) -> Result<LoggedIn, Error> {
        let LoginRequest { email, password, totp_code, origin } = request;
        let (credentials, hash) = self.verified(&email, &password).await?.ok_or(WRONG)?;
        let user_id = credentials.user_id;
        let code_use = self.second_factor(&credentials, totp_code.as_ref())?;
        let profile = self.users.profile(user_id).await?.ok_or(WRONG)?;
        let (token, session) = new_session(&self.context, user_id, origin.client.clone());
        let login = Event::new(Action::Access, Resource::User, user_id, "logged in");
        let writes = [Write::ConfirmPassword { user_id, hash }]
            .into_iter()
            .chain(code_use)
            .chain([Write::OpenSession(session.clone())])
            .map(Into::into)
            .chain([self.context.record(author(&profile, origin), login)])
            .collect();
        // Stale if the password was changed in the meantime, or the code was used before.
        self.context.commit(writes, WRONG).await?;
        Ok(LoggedIn { token, session, profile })
    }

    /// Ends the actor's session.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for an API token, which is revoked instead.
    pub async fn log_out(&self, actor: &Actor) -> Result<(), Error> {
        let end = Write::EndSession { id: actor.session()?.id, at: self.context.clock.now() };
        let logout = Event::new(Action::Access, Resource::User, actor.user_id(), "logged out");
        let writes = vec![end.into(), self.context.record(actor.author(), logout)];
        match self.context.store.commit(writes).await {
            // Ended twice concurrently: the session has ended, which is what was requested.
            Ok(()) | Err(StoreError::Stale) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the open sessions of the actor, newest first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for an API token.
    pub async fn sessions(&self, actor: &Actor) -> Result<Vec<Session>, Error> {
        actor.session()?;
        Ok(self.credentials.sessions(actor.user_id(), self.context.clock.now()).await?)
    }

    /// Ends one of the actor's own sessions.
    ///
    /// # Errors
    /// [`Error::NotFound`] unless it is an open session of the actor, [`Error::Forbidden`] for an API token.
    pub async fn end_session(&self, actor: &Actor, id: SessionId) -> Result<(), Error> {
        const SESSION: Error = Error::NotFound("the session");
        let own = self.sessions(actor).await?;
        let session = own.into_iter().find(|session| session.id == id).ok_or(SESSION)?;
        let end = Write::EndSession { id, at: self.context.clock.now() };
        let event = Event::new(Action::Access, Resource::User, actor.user_id(), "ended a session")
            .with("client", session.client.address);
        self.context.commit(vec![end.into(), self.context.record(actor.author(), event)], SESSION).await
    }

    /// Ends every session of the actor, this one too.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for an API token.
    pub async fn log_out_everywhere(&self, actor: &Actor) -> Result<(), Error> {
        actor.session()?;
        let (user_id, at) = (actor.user_id(), self.context.clock.now());
        let event = Event::new(Action::Access, Resource::User, user_id, "logged out everywhere");
        let end = Write::EndSessions { user_id, keep: None, at };
        let writes = vec![end.into(), self.context.record(actor.author(), event)];
        Ok(self.context.store.commit(writes).await?)
    }

    async fn verified(
        &self,
        email: &EmailAddress,
        password: &Secret<String>,
    ) -> Result<Option<(Credentials, PasswordHash)>, Error> {
        let credentials = self.credentials.by_email(email).await?;
        let hash = credentials.as_ref().and_then(|credentials| credentials.password.clone());
        let is_right = self.hasher.verify(password, hash.clone()).await?;
        Ok(credentials.zip(hash).filter(|_| is_right))
    }

    fn second_factor(
        &self,
        credentials: &Credentials,
        code: Option<&Secret<String>>,
    ) -> Result<Option<Write>, Error> {
        let Some(factor) = credentials.two_factor.as_ref().filter(|factor| factor.enabled_at.is_some())
        else {
            return Ok(None);
        };
        let code = code.ok_or(Error::TwoFactorRequired)?;
        let now = self.context.clock.now();
        second_factor::use_code(&*self.secrets, credentials.user_id, factor, code.expose(), now)?
            .ok_or(WRONG)
            .map(Some)
    }
}

const WRONG: Error = Error::InvalidCredentials("the e-mail address, the password or the code is incorrect");
