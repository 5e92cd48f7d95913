//! Who holds a token: from memory when nothing has changed, and never stale.
//!
//! Triggers in the schema move the *identity epoch* with every change to something that an
//! identity is made of. A remembered identity counts only while the epoch is the one that was
//! read before it was loaded.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    auth::{Identity, IdentityRepository, TokenHash},
    store::StoreError,
};
use moka::sync::Cache;

use super::{
    Database, auth, connection::AnyConnection, error::QueryError, schema::identity_epoch, users::profile_of,
};

/// How many identities are remembered.
const CAPACITY: u64 = 10_000;
/// How long an identity is remembered beside replicas. They may extend a session, which does not
/// move the epoch, and the end that is remembered must not come before the real one.
const LIFETIME_BESIDE_REPLICAS: Duration = Duration::from_secs(60);

/// The identities that were met lately.
pub(super) struct IdentityCache {
    remembered: Cache<TokenHash, Remembered>,
}

#[derive(Clone)]
struct Remembered {
    /// The epoch that was read before the identity was.
    epoch: i64,
    identity: Arc<Identity>,
}

impl IdentityCache {
    /// For a process that makes all changes itself.
    pub(super) fn of_the_only_process() -> Self {
        Self { remembered: Cache::new(CAPACITY) }
    }

    /// For a process among several on one database.
    pub(super) fn shared_with_replicas() -> Self {
        let remembered =
            Cache::builder().max_capacity(CAPACITY).time_to_live(LIFETIME_BESIDE_REPLICAS).build();
        Self { remembered }
    }

    /// Makes the next call read the identity anew.
    pub(super) fn forget(&self, hash: &TokenHash) {
        self.remembered.invalidate(hash);
    }

    fn get(&self, hash: &TokenHash, epoch: i64) -> Option<Arc<Identity>> {
        self.remembered.get(hash).filter(|entry| entry.epoch == epoch).map(|entry| entry.identity)
    }

    fn remember(&self, hash: TokenHash, epoch: i64, identity: Arc<Identity>) {
        self.remembered.insert(hash, Remembered { epoch, identity });
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
        // Tokens that nobody holds are not remembered: whoever guesses could fill the memory.
        if let Some(identity) = &identity {
            cache.remember(hash, epoch, Arc::clone(identity));
        }
        Ok(identity)
    }
}

impl Database {
    /// A number that moves with every change to something that identities are made of.
    ///
    /// On SQLite this process makes the changes and remembers it; on PostgreSQL, where replicas
    /// do as well, this is a read.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    pub async fn identity_epoch(&self) -> Result<i64, StoreError> {
        match &self.shared.writer {
            Some(writer) => Ok(writer.identity_epoch()),
            None => {
                self.read(|connection| {
                    Ok(identity_epoch::table.find(1).select(identity_epoch::value).first(connection)?)
                })
                .await
            }
        }
    }
}

fn load(connection: &mut AnyConnection, hash: &TokenHash) -> Result<Option<Identity>, QueryError> {
    let Some((user_id, credential)) = auth::credential_of(connection, hash)? else { return Ok(None) };
    let profile = profile_of(connection, user_id)?;
    Ok(profile.map(|profile| Identity { credential, profile: Arc::new(profile) }))
}

/// The epoch as it is stored; `None` before the tables are there.
pub(super) fn stored_epoch(connection: &mut AnyConnection) -> Result<Option<i64>, QueryError> {
    let stored = identity_epoch::table.find(1).select(identity_epoch::value).first(connection);
    match stored.optional() {
        Err(diesel::result::Error::DatabaseError(_, information))
            if information.message().starts_with("no such table") =>
        {
            Ok(None)
        }
        epoch => Ok(epoch?),
    }
}
