//! A cache of the identities behind tokens, which is never stale.
//!
//! Triggers in the schema increment the *identity epoch* with every change to data that an identity
//! consists of. A cached identity is valid only while the epoch is the one that was read before it was
//! loaded.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    auth::{Identity, IdentityRepository, TokenHash},
    store::StoreError,
};
use moka::sync::Cache;

use super::{
    Database, auth, connection::AnyConnection, dialect::each_backend, error::QueryError,
    schema::identity_epoch, users::profile_of,
};

/// The most cached identities.
const CAPACITY: u64 = 10_000;
/// The lifetime of a cached identity when there are replicas. They may extend a session, which does not
/// change the epoch, and the cached expiry must not come before the real one.
const LIFETIME_BESIDE_REPLICAS: Duration = Duration::from_secs(60);

/// The identities that were used recently.
pub(super) struct IdentityCache {
    remembered: Cache<TokenHash, CachedIdentity>,
}

#[derive(Clone)]
struct CachedIdentity {
    /// The epoch that was read before the identity was.
    epoch: i64,
    identity: Arc<Identity>,
}

impl IdentityCache {
    /// Returns a cache for a process that makes all changes itself.
    pub(super) fn of_the_only_process() -> Self {
        Self { remembered: Cache::new(CAPACITY) }
    }

    /// Returns a cache for one of several processes on one database.
    pub(super) fn shared_with_replicas() -> Self {
        let remembered =
            Cache::builder().max_capacity(CAPACITY).time_to_live(LIFETIME_BESIDE_REPLICAS).build();
        Self { remembered }
    }

    /// Makes the next call read the identity again.
    pub(super) fn forget(&self, hash: &TokenHash) {
        self.remembered.invalidate(hash);
    }

    fn get(&self, hash: &TokenHash, epoch: i64) -> Option<Arc<Identity>> {
        self.remembered.get(hash).filter(|entry| entry.epoch == epoch).map(|entry| entry.identity)
    }

    fn remember(&self, hash: TokenHash, epoch: i64, identity: Arc<Identity>) {
        self.remembered.insert(hash, CachedIdentity { epoch, identity });
    }
}

#[async_trait]
impl IdentityRepository for Database {
    async fn by_token(&self, hash: &TokenHash) -> Result<Option<Arc<Identity>>, StoreError> {
        let epoch = self.identity_epoch().await?;
        let cache = &self.shared.identities;
        if let Some(identity) = cache.get(hash, epoch) {
            return Ok(Some(identity));
        }
        let hash = *hash;
        let identity = self.read_point(move |connection| load(connection, &hash)).await?.map(Arc::new);
        // Unknown tokens are not cached: guesses could fill the memory.
        if let Some(identity) = &identity {
            cache.remember(hash, epoch, Arc::clone(identity));
        }
        Ok(identity)
    }
}

impl Database {
    /// Returns a number that changes with every change to data that identities consist of.
    ///
    /// On SQLite this process makes the changes and caches the number; on PostgreSQL, where replicas make
    /// changes as well, this is a read, which callers at the same time share.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    pub async fn identity_epoch(&self) -> Result<i64, StoreError> {
        match &self.shared.writer {
            Some(writer) => Ok(writer.epochs().identities()),
            None => self.shared.identity_epoch.get(self, Self::read_identity_epoch).await,
        }
    }

    async fn read_identity_epoch(self) -> Result<i64, StoreError> {
        self.read(|connection| {
            let epoch = identity_epoch::table.find(1).select(identity_epoch::value);
            Ok(each_backend!(connection, backend => epoch.first(backend))?)
        })
        .await
    }
}

fn load(connection: &mut AnyConnection, hash: &TokenHash) -> Result<Option<Identity>, QueryError> {
    let Some((user_id, credential)) = auth::credential_of(connection, hash)? else { return Ok(None) };
    let profile = profile_of(connection, user_id)?;
    Ok(profile.map(|profile| Identity { credential, profile: Arc::new(profile) }))
}
