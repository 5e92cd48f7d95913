//! Two-factor login.

use std::sync::Arc;

use launchway_domain::{
    audit::{Action, Event, Resource},
    auth::{Actor, CredentialRepository, RecoveryCode, TotpSecret, TwoFactor, Write},
    secret::{Secret, SecretBox},
};

use super::{LoginAttempts, second_factor};
use crate::{Error, ServiceContext};

/// The data for an authenticator, shown only once.
#[derive(Debug)]
pub struct TwoFactorSetup {
    /// The TOTP secret, to be typed in.
    pub secret: Secret<String>,
    /// The `otpauth` URL, to be scanned.
    pub otpauth_url: Secret<String>,
}

/// Enables and disables two-factor login for the caller.
pub struct TwoFactorLogin {
    credentials: Arc<dyn CredentialRepository>,
    secrets: Arc<dyn SecretBox>,
    login_attempts: LoginAttempts,
    context: ServiceContext,
}

impl TwoFactorLogin {
    /// Returns the use cases that encrypt TOTP secrets with `secrets`.
    pub fn new(
        credentials: Arc<dyn CredentialRepository>,
        secrets: Arc<dyn SecretBox>,
        login_attempts: LoginAttempts,
        context: ServiceContext,
    ) -> Self {
        Self { credentials, secrets, login_attempts, context }
    }

    /// Begins the setup, or restarts it. Logins do not need a code yet.
    ///
    /// # Errors
    /// [`Error::Conflict`] when two-factor login is on, [`Error::Forbidden`] without a session.
    pub async fn set_up(&self, actor: &Actor) -> Result<TwoFactorSetup, Error> {
        actor.session()?;
        let user_id = actor.user_id();
        let secret = TotpSecret::new(self.context.entropy.bits_256());
        let sealed = self.secrets.seal(&TotpSecret::associated_data(user_id), secret.as_bytes())?;
        let begin = Write::BeginTwoFactor { user_id, secret: sealed, at: self.context.clock.now() };
        let event = event(actor, "started the two-factor setup").with_changed_secret("two_factor_secret");
        self.commit(actor, begin, event, "two-factor login is on already; turn it off first").await?;
        Ok(TwoFactorSetup {
            otpauth_url: Secret::new(secret.otpauth_url(&actor.user().email)),
            secret: Secret::new(secret.to_base32()),
        })
    }

    /// Enables two-factor login if `code` is right, and returns the recovery codes.
    ///
    /// # Errors
    /// [`Error::InvalidCredentials`] for a wrong code, [`Error::Conflict`] when the set-up was not begun or
    /// is finished, [`Error::Forbidden`] without a session.
    pub async fn enable(&self, actor: &Actor, code: &str) -> Result<Vec<RecoveryCode>, Error> {
        actor.session()?;
        let user_id = actor.user_id();
        let factor = self
            .factor(actor, |factor| factor.enabled_at.is_none())
            .await?
            .ok_or_else(|| Error::Conflict("two-factor login is not being set up".to_owned()))?;
        let now = self.context.clock.now();
        let secret = second_factor::open_secret(&*self.secrets, user_id, &factor)?;
        let step = secret.matching_step(&second_factor::typed(code), now).ok_or(WRONG)?;
        let codes: Vec<_> =
            (0..RecoveryCode::COUNT).map(|_| RecoveryCode::new(self.context.entropy.bits_256())).collect();
        let enable = Write::EnableTwoFactor {
            user_id,
            secret: factor.secret,
            step,
            recovery_codes: codes.iter().map(|code| RecoveryCode::hash_of(code.expose())).collect(),
            at: now,
        };
        let event = event(actor, "turned two-factor login on");
        self.commit(actor, enable, event, "the two-factor setup was restarted in the meantime").await?;
        Ok(codes)
    }

    /// Disables two-factor login, given a TOTP code or a recovery code.
    ///
    /// # Errors
    /// [`Error::InvalidCredentials`] for a wrong code, [`Error::Conflict`] when it is off,
    /// [`Error::RateLimited`] after too many failures, [`Error::Forbidden`] without a session.
    pub async fn disable(&self, actor: &Actor, code: &str) -> Result<(), Error> {
        actor.session()?;
        let user_id = actor.user_id();
        let factor = self
            .factor(actor, |factor| factor.enabled_at.is_some())
            .await?
            .ok_or_else(|| Error::Conflict("two-factor login is off".to_owned()))?;
        let attempt = async {
            let now = self.context.clock.now();
            let code_use =
                second_factor::use_code(&*self.secrets, user_id, &factor, code, now)?.ok_or(WRONG)?;
            let writes = vec![
                code_use.into(),
                Write::DisableTwoFactor { user_id, at: now }.into(),
                self.context.record(actor.author(), event(actor, "turned two-factor login off")),
            ];
            self.context.commit(writes, WRONG).await
        };
        self.login_attempts.bounded(&actor.user().email, actor.origin().client.address, attempt).await
    }

    async fn factor(
        &self,
        actor: &Actor,
        wanted: impl Fn(&TwoFactor) -> bool,
    ) -> Result<Option<TwoFactor>, Error> {
        let credentials = self.credentials.by_user(actor.user_id()).await?;
        Ok(credentials.and_then(|found| found.two_factor).filter(|factor| wanted(factor)))
    }

    async fn commit(&self, actor: &Actor, write: Write, event: Event, when_stale: &str) -> Result<(), Error> {
        let writes = vec![write.into(), self.context.record(actor.author(), event)];
        self.context.commit(writes, Error::Conflict(when_stale.to_owned())).await
    }
}

fn event(actor: &Actor, what: &str) -> Event {
    Event::new(Action::Update, Resource::User, actor.user_id(), what)
}

const WRONG: Error = Error::InvalidCredentials("the code is incorrect or was already used");
