//! The webhook secrets of repositories.

use launchway_domain::{
    applications::Repository,
    audit::{Action as Did, Event, Resource as Audited},
    auth::{Action, Actor, Permission, Resource},
    ids::ApplicationId,
    organizations::Scope,
    store::{self, StoreError},
    webhooks::{KeptSecret, RepositoryKey, WebhookSecret, Write},
};

use super::Webhooks;
use crate::{Error, applications::APPLICATION};

/// The permission for webhook secrets, which only admins have.
const UPDATE: Permission = Permission::new(Resource::Organization, Action::Update);

impl Webhooks {
    /// Returns the webhook secret of the repository of an application of the actor's organization, which is
    /// created on first use.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is no application with that id, [`Error::Conflict`] when it has no
    /// repository, [`Error::Forbidden`] without the permission `organization:update`.
    pub async fn secret(&self, actor: &Actor, id: ApplicationId) -> Result<WebhookSecret, Error> {
        let scope = actor.require(UPDATE)?;
        let repository = self.repository_of(scope, id).await?;
        if let Some(kept) = self.ports.webhooks.secret(scope, &repository).await? {
            return self.show(actor, kept).await;
        }
        let (kept, secret) = self.make(scope, &repository)?;
        let told = self.record(actor, Did::Create, &kept, "created");
        match self.context.store.commit(vec![Write::FirstSecret(kept).into(), told]).await {
            Ok(()) => Ok(secret),
            // A concurrent request created a secret first, and that one counts.
            Err(StoreError::Stale) => {
                let kept = self.ports.webhooks.secret(scope, &repository).await?.ok_or(APPLICATION)?;
                self.show(actor, kept).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Rotates that secret. The old one stays valid for [a day](KeptSecret::GRACE).
    ///
    /// # Errors
    /// As [`secret`](Webhooks::secret).
    pub async fn rotate(&self, actor: &Actor, id: ApplicationId) -> Result<WebhookSecret, Error> {
        let scope = actor.require(UPDATE)?;
        let repository = self.repository_of(scope, id).await?;
        let (kept, secret) = self.make(scope, &repository)?;
        let told = self.record(actor, Did::Update, &kept, "replaced");
        let until = kept.created_at + KeptSecret::GRACE;
        let replace = Write::ReplaceSecret { secret: kept, until };
        self.context.commit(vec![replace.into(), told], APPLICATION).await?;
        Ok(secret)
    }

    /// Decrypts a stored secret.
    pub(super) fn open(&self, kept: &KeptSecret) -> Result<WebhookSecret, Error> {
        let plain = self.ports.secrets.open(&KeptSecret::associated_data(kept.id), &kept.secret)?;
        let text = String::from_utf8_lossy(plain.expose()).into_owned();
        text.try_into().map_err(|error| Error::Internal(Box::new(error)))
    }

    async fn repository_of(&self, scope: Scope, id: ApplicationId) -> Result<RepositoryKey, Error> {
        let application = self.ports.applications.get(scope, id).await?.ok_or(APPLICATION)?;
        match &application.blueprint.repository {
            Repository::Git(url) => Ok(RepositoryKey::of(url)),
            Repository::Image(_) => Err(Error::Conflict(
                "this application is deployed from an image: it has no webhook secret".to_owned(),
            )),
        }
    }

    /// Returns a secret, and records the access in the audit log.
    async fn show(&self, actor: &Actor, kept: KeptSecret) -> Result<WebhookSecret, Error> {
        let secret = self.open(&kept)?;
        let what = format!("read the webhook secret of {}", kept.repository);
        let event = Event::new(Did::Access, Audited::Webhook, kept.id, what);
        self.context.store.commit(vec![self.context.record(actor.author(), event)]).await?;
        Ok(secret)
    }

    fn make(&self, scope: Scope, repository: &RepositoryKey) -> Result<(KeptSecret, WebhookSecret), Error> {
        let secret = WebhookSecret::new(self.context.entropy.bits_256());
        let id = self.context.ids.next().into();
        let sealed = self.ports.secrets.seal(&KeptSecret::associated_data(id), secret.expose().as_bytes())?;
        let kept = KeptSecret {
            id,
            organization_id: scope.id(),
            repository: repository.clone(),
            secret: sealed,
            created_at: self.context.clock.now(),
            confirmed_at: None,
        };
        Ok((kept, secret))
    }

    fn record(&self, actor: &Actor, action: Did, kept: &KeptSecret, did: &str) -> store::Write {
        let what = format!("{did} the webhook secret of {}", kept.repository);
        let event = Event::new(action, Audited::Webhook, kept.id, what).with_changed_secret("secret");
        self.context.record(actor.author(), event)
    }
}
