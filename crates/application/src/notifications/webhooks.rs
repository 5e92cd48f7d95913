//! Channels over HTTP: the endpoints of `/api/v1/notification/webhook`.

use launchway_domain::{
    audit::{Action as Did, Event as Entry, Resource as Audited},
    auth::Actor,
    idempotency::IdempotencyKey,
    ids::WebhookConfigId,
    notifications::{KeptSigningSecret, SigningSecret, WebhookConfig, WebhookKind, WebhookUrl, Write},
    organizations::Scope,
    secret::Sealed,
    store::{StoreError, Unique},
};

use super::{CREATE, DELETE, Notifications, ORGANIZATION, READ, UPDATE, refused};
use crate::Error;

const WEBHOOK: Error = Error::NotFound("the webhook configuration");

/// The request to create a webhook channel.
#[derive(Debug)]
pub struct NewWebhook {
    /// The kind of the receiver.
    pub kind: WebhookKind,
    /// The URL that messages are sent to.
    pub url: WebhookUrl,
    /// True if messages are sent from now on.
    pub is_active: bool,
}

/// A partial update of a webhook channel.
#[derive(Debug, Default)]
pub struct WebhookChange {
    /// The new URL.
    pub url: Option<WebhookUrl>,
    /// True to enable the channel, false to disable it.
    pub is_active: Option<bool>,
}

/// A webhook channel as the actor may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownWebhook {
    /// The configuration without the URL.
    pub config: WebhookConfig,
    /// The URL, in full only for actors who may change it.
    pub url: String,
}

impl Notifications {
    /// Creates a webhook channel of a kind.
    ///
    /// # Errors
    /// [`Error::Invalid`] when the URL may not be connected to, [`Error::WebhookConfigured`] when there is
    /// one of that kind, [`Error::Repeated`] when `key` was used, [`Error::NotFound`] when the organization
    /// was deleted, [`Error::Forbidden`] without the permission `notification:create`.
    pub async fn create_webhook(
        &self,
        actor: &Actor,
        new: NewWebhook,
        key: Option<IdempotencyKey>,
    ) -> Result<(), Error> {
        let scope = actor.require(CREATE)?;
        let NewWebhook { kind, url, is_active } = new;
        self.check(&url).await?;
        let id: WebhookConfigId = self.context.ids.next().into();
        let now = self.context.clock.now();
        let config = WebhookConfig {
            id,
            user_id: actor.user_id(),
            organization_id: scope.id(),
            kind,
            url: self.seal_url(id, &url)?,
            is_active,
            created_at: now,
            updated_at: now,
        };
        let what = format!("configured the webhook {} of type {}", url.masked(), kind.as_str());
        let entry = Entry::new(Did::Create, Audited::Notification, id, what).with("type", kind.as_str());
        let entry = entry.with_changed_secret("webhook_url");
        let mut writes: Vec<_> = self.context.claim(key, id.into()).into_iter().collect();
        writes.push(Write::InsertWebhook(config).into());
        writes.push(self.context.record(actor.author(), entry));
        self.context.store.commit(writes).await.map_err(|error| match error {
            StoreError::Taken(Unique::WebhookConfig) => Error::WebhookConfigured(kind),
            StoreError::Stale => ORGANIZATION,
            error => error.into(),
        })
    }

    /// Updates the webhook channel of a kind.
    ///
    /// # Errors
    /// As [`create_webhook`](Notifications::create_webhook), but [`Error::NotFound`] when there is none of
    /// that kind, and the permission is `notification:update`.
    pub async fn update_webhook(
        &self,
        actor: &Actor,
        kind: WebhookKind,
        change: WebhookChange,
    ) -> Result<ShownWebhook, Error> {
        let scope = actor.require(UPDATE)?;
        let config = self.webhook_config(scope, kind).await?;
        let WebhookChange { url, is_active } = change;
        let mut entry = Entry::new(
            Did::Update,
            Audited::Notification,
            config.id,
            format!("changed the webhook of type {}", kind.as_str()),
        );
        let sealed = match &url {
            Some(url) => {
                self.check(url).await?;
                entry = entry.with_changed_secret("webhook_url");
                Some(self.seal_url(config.id, url)?)
            }
            None => None,
        };
        if let Some(is_active) = is_active {
            entry = entry.with("is_active", is_active);
        }
        let at = self.context.clock.now();
        let update = Write::UpdateWebhook { scope, kind, url: sealed, is_active, at };
        let writes = vec![update.into(), self.context.record(actor.author(), entry)];
        self.context.commit(writes, WEBHOOK).await?;
        self.context.wake.notify();
        // An actor who may change the URL may see it, even without the permission to read.
        let config = self.webhook_config(scope, kind).await?;
        let url = self.open_url(&config)?.expose().to_owned();
        Ok(ShownWebhook { config, url })
    }

    /// Returns the organization's webhook channel of a kind.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none of that kind, [`Error::Forbidden`] without the permission
    /// `notification:read`.
    pub async fn webhook(&self, actor: &Actor, kind: WebhookKind) -> Result<ShownWebhook, Error> {
        let scope = actor.require(READ)?;
        let config = self.webhook_config(scope, kind).await?;
        let url = self.open_url(&config)?;
        let url = match actor.require(UPDATE) {
            Ok(_) => url.expose().to_owned(),
            Err(_) => url.masked(),
        };
        Ok(ShownWebhook { config, url })
    }

    /// Deletes the webhook channel of a kind.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none of that kind, [`Error::Forbidden`] without the permission
    /// `notification:delete`.
    pub async fn delete_webhook(&self, actor: &Actor, kind: WebhookKind) -> Result<(), Error> {
        let scope = actor.require(DELETE)?;
        let config = self.webhook_config(scope, kind).await?;
        let what = format!("deleted the webhook of type {}", kind.as_str());
        let entry = Entry::new(Did::Delete, Audited::Notification, config.id, what);
        let delete = Write::DeleteWebhook { scope, kind, at: self.context.clock.now() };
        let writes = vec![delete.into(), self.context.record(actor.author(), entry)];
        self.context.commit(writes, WEBHOOK).await
    }

    /// Rotates the secret that signs messages to the organization's generic webhook channel, or creates the
    /// first one. The previous one signs for [a day](KeptSigningSecret::GRACE) too.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no such receiver, [`Error::Forbidden`] without the permission
    /// `notification:update`.
    pub async fn rotate_signing_secret(&self, actor: &Actor) -> Result<SigningSecret, Error> {
        let (scope, kind) = (actor.require(UPDATE)?, WebhookKind::Generic);
        let config = self.webhook_config(scope, kind).await?;
        let (kept, secret) = self.make_secret()?;
        let entry = Entry::new(
            Did::Update,
            Audited::Notification,
            config.id,
            "rotated the signing secret of notifications",
        )
        .with_changed_secret("secret");
        let at = self.context.clock.now();
        let until = at + KeptSigningSecret::GRACE;
        let replace = Write::ReplaceSigningSecret { scope, kind, secret: kept, until, at };
        let writes = vec![replace.into(), self.context.record(actor.author(), entry)];
        self.context.commit(writes, WEBHOOK).await?;
        Ok(secret)
    }

    async fn webhook_config(&self, scope: Scope, kind: WebhookKind) -> Result<WebhookConfig, Error> {
        let now = self.context.clock.now();
        let found = self.ports.notifications.webhook(scope, kind, now).await?;
        found.map(|(config, _secrets)| config).ok_or(WEBHOOK)
    }

    /// Checks that `url` may be connected to.
    async fn check(&self, url: &WebhookUrl) -> Result<(), Error> {
        let (host, port) = (url.host().to_string(), url.port());
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let _place = self.place_for_check().await?;
        self.ports.guard.check(host, port).await.map_err(refused("webhook_url"))
    }

    fn make_secret(&self) -> Result<(KeptSigningSecret, SigningSecret), Error> {
        let secret = SigningSecret::new(self.context.entropy.bits_256());
        let id = self.context.ids.next().into();
        let place = KeptSigningSecret::associated_data(id);
        let sealed = self.ports.secrets.seal(&place, secret.expose().as_bytes())?;
        Ok((KeptSigningSecret { id, secret: sealed }, secret))
    }

    fn seal_url(&self, id: WebhookConfigId, url: &WebhookUrl) -> Result<Sealed, Error> {
        Ok(self.ports.secrets.seal(&WebhookConfig::associated_data(id), url.expose().as_bytes())?)
    }

    fn open_url(&self, config: &WebhookConfig) -> Result<WebhookUrl, Error> {
        let plain = self.ports.secrets.open(&WebhookConfig::associated_data(config.id), &config.url)?;
        let text = String::from_utf8_lossy(plain.expose()).into_owned();
        text.try_into().map_err(|error| Error::Internal(Box::new(error)))
    }
}
