//! The deploy key of an organization, for its private repositories.

use std::sync::Arc;

use launchway_domain::{
    audit::{Action as Did, Event, Resource as Audited},
    auth::Actor,
    organizations::{DeployKey, DeployKeyRepository, KeyMaker, Scope, Write},
    secret::SecretBox,
    store::StoreError,
};

use super::{ORGANIZATION, READ, UPDATE};
use crate::{Error, ServiceContext};

/// Reads and rotates deploy keys.
pub struct DeployKeys {
    keys: Arc<dyn DeployKeyRepository>,
    maker: Arc<dyn KeyMaker>,
    secrets: Arc<dyn SecretBox>,
    context: ServiceContext,
}

impl DeployKeys {
    /// Returns the use cases over `keys`, with new keys created by `maker`.
    pub fn new(
        keys: Arc<dyn DeployKeyRepository>,
        maker: Arc<dyn KeyMaker>,
        secrets: Arc<dyn SecretBox>,
        context: ServiceContext,
    ) -> Self {
        Self { keys, maker, secrets, context }
    }

    /// Returns the public key of the actor's current organization, which is created on first use.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `organization:read`.
    pub async fn public_key(&self, actor: &Actor) -> Result<String, Error> {
        let scope = actor.require(READ)?;
        if let Some(key) = self.keys.deploy_key(scope).await? {
            return Ok(key.public_key);
        }
        let key = self.make(scope)?;
        let writes = vec![
            Write::FirstDeployKey(key.clone()).into(),
            self.record(actor, scope, "created the deploy key"),
        ];
        match self.context.store.commit(writes).await {
            Ok(()) => Ok(key.public_key),
            // A concurrent request created a key first, and that one counts.
            Err(StoreError::Stale) => Ok(self.keys.deploy_key(scope).await?.ok_or(ORGANIZATION)?.public_key),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces the deploy key of the actor's current organization. Repositories that have only the old one
    /// reject Launchway from then on.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `organization:update`.
    pub async fn rotate(&self, actor: &Actor) -> Result<String, Error> {
        let scope = actor.require(UPDATE)?;
        let key = self.make(scope)?;
        let public_key = key.public_key.clone();
        let writes =
            vec![Write::ReplaceDeployKey(key).into(), self.record(actor, scope, "replaced the deploy key")];
        self.context.commit(writes, ORGANIZATION).await?;
        Ok(public_key)
    }

    fn make(&self, scope: Scope) -> Result<DeployKey, Error> {
        let pair = self.maker.make("launchway").map_err(|reason| Error::Internal(reason.into()))?;
        let place = DeployKey::associated_data(scope.id());
        let private_key = self.secrets.seal(&place, pair.private_key.expose().as_bytes())?;
        let created_at = self.context.clock.now();
        Ok(DeployKey { organization_id: scope.id(), public_key: pair.public_key, private_key, created_at })
    }

    fn record(&self, actor: &Actor, scope: Scope, what: &str) -> launchway_domain::store::Write {
        let event = Event::new(Did::Update, Audited::Organization, scope.id(), what)
            .with_changed_secret("deploy_key");
        self.context.record(actor.author(), event)
    }
}
