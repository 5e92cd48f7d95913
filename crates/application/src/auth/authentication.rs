//! Authentication of the caller of a request.

use std::sync::Arc;

use launchway_domain::{
    auth::{Actor, Credential, Identity, IdentityRepository, Origin, TokenHash, Write},
    clock::Timestamp,
    ids::OrganizationId,
    store::StoreError,
};

use crate::{Error, ServiceContext};

/// Authenticates callers by their bearer tokens.
pub struct Authentication {
    identities: Arc<dyn IdentityRepository>,
    context: ServiceContext,
}

impl Authentication {
    /// Returns the use case over `identities`.
    pub fn new(identities: Arc<dyn IdentityRepository>, context: ServiceContext) -> Self {
        Self { identities, context }
    }

    /// Returns the holder of `token` as an actor of `organization`, or of their own organization, for the
    /// request `origin`.
    ///
    /// A session in use is extended, at most once an hour.
    ///
    /// # Errors
    /// [`Error::Unauthenticated`] for a token that is not valid now, [`Error::Forbidden`] for an
    /// organization that the holder is not in.
    pub async fn authenticate(
        &self,
        token: &str,
        organization: Option<OrganizationId>,
        origin: Origin,
    ) -> Result<Actor, Error> {
        let found = self.identities.by_token(&TokenHash::of(token)).await?;
        let identity = found.ok_or(Error::Unauthenticated)?;
        let now = self.context.clock.now();
        if identity.is_expired(now) {
            return Err(Error::Unauthenticated);
        }
        self.extend(&identity, now).await?;
        identity.act_in(organization, origin)?.ok_or(Error::Unauthenticated)
    }

    async fn extend(&self, identity: &Identity, now: Timestamp) -> Result<(), Error> {
        let Credential::Session(session) = &identity.credential else {
            return Ok(());
        };
        let Some(expires_at) = session.extension(now) else {
            return Ok(());
        };
        let extension = Write::ExtendSession { id: session.id, at: now, expires_at };
        match self.context.store.commit(vec![extension.into()]).await {
            Err(StoreError::Stale) => Err(Error::Unauthenticated),
            Err(error) => {
                // The session is still valid; a later request extends it.
                tracing::warn!(session.id = %session.id, error = &error as &dyn std::error::Error, "session extension failed");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }
}
