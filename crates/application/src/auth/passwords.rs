//! Changing a password.

use std::sync::Arc;

use launchway_domain::{
    auth::{Actor, Client, CredentialRepository, Password, PasswordHasher, Write},
    ids::{SessionId, UserId},
    secret::Secret,
    store::StoreError,
    users::EmailAddress,
};

use super::Guesses;
use crate::{Error, Tools};

/// A caller's wish for another password.
#[derive(Debug)]
pub struct PasswordChange {
    /// The one that they have, perhaps.
    pub current: Secret<String>,
    /// The one that they want.
    pub new: Password,
    /// Where they are.
    pub client: Client,
}

/// Changes passwords.
pub struct Passwords {
    credentials: Arc<dyn CredentialRepository>,
    hasher: Arc<dyn PasswordHasher>,
    guesses: Guesses,
    tools: Tools,
}

impl Passwords {
    /// Checks the present password against `credentials`.
    pub fn new(
        credentials: Arc<dyn CredentialRepository>,
        hasher: Arc<dyn PasswordHasher>,
        guesses: Guesses,
        tools: Tools,
    ) -> Self {
        Self { credentials, hasher, guesses, tools }
    }

    /// Changes the actor's password and ends their other sessions.
    ///
    /// # Errors
    /// [`Error::InvalidCredentials`] when the present one is wrong, [`Error::RateLimited`] after
    /// too many failures, [`Error::Forbidden`] for an API token.
    pub async fn change(&self, actor: &Actor, change: PasswordChange) -> Result<(), Error> {
        let keep = Some(actor.session()?.id);
        let address = change.client.address;
        self.guesses.bounded(&actor.user().email, address, self.attempt(actor.user_id(), keep, change)).await
    }

    async fn attempt(
        &self,
        user_id: UserId,
        keep: Option<SessionId>,
        change: PasswordChange,
    ) -> Result<(), Error> {
        let stored = self.credentials.by_user(user_id).await?.and_then(|found| found.password);
        let is_right = self.hasher.verify(&change.current, stored.clone()).await?;
        let verified = stored.filter(|_| is_right).ok_or(WRONG)?;
        let hash = self.hasher.hash(&change.new).await?;
        let at = self.tools.clock.now();
        let writes = vec![
            Write::ConfirmPassword { user_id, hash: verified }.into(),
            Write::SetPassword { user_id, hash, at }.into(),
            Write::EndSessions { user_id, keep, at }.into(),
        ];
        self.tools.store.commit(writes).await.map_err(|error| match error {
            StoreError::Stale => WRONG,
            error => error.into(),
        })
    }

    /// Sets a password without knowing the present one, and ends all sessions of that user: for
    /// who has the server's files.
    ///
    /// # Errors
    /// [`Error::NotFound`] when nobody has that address.
    pub async fn reset(&self, email: &EmailAddress, new: &Password) -> Result<(), Error> {
        let user = self
            .credentials
            .by_email(email)
            .await?
            .ok_or(Error::NotFound("a user with that e-mail address"))?;
        let hash = self.hasher.hash(new).await?;
        let at = self.tools.clock.now();
        let user_id = user.user_id;
        let writes = vec![
            Write::SetPassword { user_id, hash, at }.into(),
            Write::EndSessions { user_id, keep: None, at }.into(),
        ];
        Ok(self.tools.store.commit(writes).await?)
    }
}

const WRONG: Error = Error::InvalidCredentials("`current_password` is not right");
