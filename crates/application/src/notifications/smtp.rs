//! The mail channel of an organization: the endpoints of `/api/v1/notification/smtp`.

use launchway_domain::{
    audit::{Action as Did, Event as Entry, Resource as Audited},
    auth::Actor,
    idempotency::IdempotencyKey,
    ids::SmtpConfigId,
    notifications::{MailHost, MailSecurity, MailUsername, Recipients, SenderName, SmtpConfig, Write},
    organizations::Scope,
    secret::{Sealed, Secret},
    store::{StoreError, Unique},
    users::EmailAddress,
};

use super::{CREATE, DELETE, Notifications, ORGANIZATION, READ, UPDATE, refused};
use crate::Error;

const SMTP: Error = Error::NotFound("the SMTP configuration");

/// The request to configure a mail server.
#[derive(Debug)]
pub struct NewSmtp {
    /// The host name of the server.
    pub host: MailHost,
    /// The port; if absent, the default of the security mode.
    pub port: Option<u16>,
    /// The transport security.
    pub security: MailSecurity,
    /// The user name of the login.
    pub username: Option<MailUsername>,
    /// The password of the login.
    pub password: Option<Secret<String>>,
    /// The address of the sender.
    pub from_email: EmailAddress,
    /// The name of the sender.
    pub from_name: SenderName,
    /// The recipients; if empty, the admins.
    pub to: Recipients,
}

/// A partial update of the mail server.
#[derive(Debug, Default)]
pub struct SmtpChange {
    /// The host name of the server.
    pub host: Option<MailHost>,
    /// The port.
    pub port: Option<u16>,
    /// The transport security.
    pub security: Option<MailSecurity>,
    /// The user name of the login.
    pub username: Option<MailUsername>,
    /// The password of the login.
    pub password: Option<Secret<String>>,
    /// The address of the sender.
    pub from_email: Option<EmailAddress>,
    /// The name of the sender.
    pub from_name: Option<SenderName>,
    /// The recipients.
    pub to: Option<Recipients>,
    /// True if mail is sent.
    pub is_active: Option<bool>,
}

impl Notifications {
    /// Configures the mail server of the organization.
    ///
    /// # Errors
    /// [`Error::Invalid`] when its parts do not fit together or the server may not be connected to,
    /// [`Error::MailServerConfigured`] when there is one, [`Error::Repeated`] when `key` was used,
    /// [`Error::NotFound`] when the organization is gone, [`Error::Forbidden`] without the permission
    /// `notification:create`.
    pub async fn create_smtp(
        &self,
        actor: &Actor,
        new: NewSmtp,
        key: Option<IdempotencyKey>,
    ) -> Result<SmtpConfig, Error> {
        let scope = actor.require(CREATE)?;
        let NewSmtp { host, port, security, username, password, from_email, from_name, to } = new;
        let id: SmtpConfigId = self.context.ids.next().into();
        let now = self.context.clock.now();
        let config = SmtpConfig {
            id,
            user_id: actor.user_id(),
            organization_id: scope.id(),
            port: port.unwrap_or_else(|| security.usual_port()),
            host,
            security,
            username,
            password: self.seal_password(id, password.as_ref())?,
            from_email,
            from_name,
            to,
            is_active: true,
            created_at: now,
            updated_at: now,
        };
        self.check_smtp(&config).await?;
        let what = format!("configured the mail server {}", config.host);
        let entry = Entry::new(Did::Create, Audited::SmtpConfig, id, what);
        let insert = Write::InsertSmtp(Box::new(config.clone()));
        let mut writes: Vec<_> = self.context.claim(key, id.into()).into_iter().collect();
        writes.push(insert.into());
        writes.push(self.context.record(actor.author(), entry));
        self.context.store.commit(writes).await.map_err(|error| match error {
            StoreError::Taken(Unique::SmtpConfig) => Error::MailServerConfigured,
            StoreError::Stale => ORGANIZATION,
            error => error.into(),
        })?;
        Ok(config)
    }

    /// Returns the mail server of the organization.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none, [`Error::Forbidden`] without the permission
    /// `notification:read`.
    pub async fn smtp(&self, actor: &Actor) -> Result<SmtpConfig, Error> {
        self.smtp_config(actor.require(READ)?).await
    }

    /// Updates the mail server of the organization.
    ///
    /// # Errors
    /// As [`create_smtp`](Notifications::create_smtp), but [`Error::NotFound`] when there is none, and the
    /// permission is `notification:update`.
    pub async fn update_smtp(&self, actor: &Actor, change: SmtpChange) -> Result<SmtpConfig, Error> {
        let scope = actor.require(UPDATE)?;
        let kept = self.smtp_config(scope).await?;
        let SmtpChange { host, port, security, username, password, from_email, from_name, to, is_active } =
            change;
        let security = security.unwrap_or(kept.security);
        // A change of the security mode changes the port too if it was the default of the old mode.
        let had_usual_port = kept.port == kept.security.usual_port();
        let kept_port = if had_usual_port { security.usual_port() } else { kept.port };
        let port = port.unwrap_or(kept_port);
        let goes_elsewhere = host.as_ref().is_some_and(|host| *host != kept.host)
            || (port, security) != (kept.port, kept.security);
        let mut entry = Entry::new(Did::Update, Audited::SmtpConfig, kept.id, "changed the mail server");
        let password = match password {
            Some(password) => {
                entry = entry.with_changed_secret("password");
                self.seal_password(kept.id, Some(&password))?
            }
            // To send a password to another server, the actor has to know it: it is never shown.
            None if kept.password.is_some() && goes_elsewhere => {
                return Err(Error::Invalid(
                    "password: is needed again when `host`, `port` or `security` changes".to_owned(),
                ));
            }
            None => kept.password,
        };
        let config = SmtpConfig {
            host: host.unwrap_or(kept.host),
            port,
            security,
            username: username.or(kept.username),
            password,
            from_email: from_email.unwrap_or(kept.from_email),
            from_name: from_name.unwrap_or(kept.from_name),
            to: to.unwrap_or(kept.to),
            is_active: is_active.unwrap_or(kept.is_active),
            updated_at: self.context.clock.now(),
            ..kept
        };
        self.check_smtp(&config).await?;
        let entry = entry.with("host", &config.host).with("is_active", config.is_active);
        let update = Write::UpdateSmtp(Box::new(config.clone()));
        let writes = vec![update.into(), self.context.record(actor.author(), entry)];
        self.context.commit(writes, SMTP).await?;
        self.context.wake.notify();
        Ok(config)
    }

    /// Deletes a mail server: the one with that id, or the organization's only one.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none, [`Error::Forbidden`] without the permission
    /// `notification:delete`.
    pub async fn delete_smtp(&self, actor: &Actor, id: Option<SmtpConfigId>) -> Result<(), Error> {
        let scope = actor.require(DELETE)?;
        let config = self.smtp_config(scope).await?;
        if id.is_some_and(|id| id != config.id) {
            return Err(SMTP);
        }
        let what = format!("deleted the mail server {}", config.host);
        let entry = Entry::new(Did::Delete, Audited::SmtpConfig, config.id, what);
        let delete = Write::DeleteSmtp { scope, id: config.id, at: self.context.clock.now() };
        let writes = vec![delete.into(), self.context.record(actor.author(), entry)];
        self.context.commit(writes, SMTP).await
    }

    async fn smtp_config(&self, scope: Scope) -> Result<SmtpConfig, Error> {
        self.ports.notifications.smtp(scope).await?.ok_or(SMTP)
    }

    /// Checks that the settings are consistent and that the server may be connected to.
    async fn check_smtp(&self, config: &SmtpConfig) -> Result<(), Error> {
        if config.username.is_some() != config.password.is_some() {
            return Err(Error::Invalid(
                "`username` and `password` go together: give both, or neither".to_owned(),
            ));
        }
        let (host, port) = (config.host.as_str(), config.port);
        let _place = self.place_for_check().await?;
        match config.security {
            MailSecurity::StartTls | MailSecurity::Tls => {
                self.ports.guard.check(host, port).await.map_err(refused("host"))
            }
            MailSecurity::None => {
                self.ports.guard.check_unencrypted(host, port).await.map_err(refused("security"))
            }
        }
    }

    fn seal_password(
        &self,
        id: SmtpConfigId,
        password: Option<&Secret<String>>,
    ) -> Result<Option<Sealed>, Error> {
        let place = SmtpConfig::associated_data(id);
        let seal = |password: &Secret<String>| self.ports.secrets.seal(&place, password.expose().as_bytes());
        Ok(password.map(seal).transpose()?)
    }
}
