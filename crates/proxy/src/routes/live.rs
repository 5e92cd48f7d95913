//! The routes in memory: read by every request, changed by the control plane.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard},
    task::spawn_blocking,
    time::{Instant, timeout},
};

use super::Route;
use crate::{
    store::{Kept, KeptRoute, Store},
    table::{SharedState, Table},
    traffic::Snapshot,
    upstream::{Destination, Upstream},
};

/// The current table, and the previous targets.
#[derive(Debug)]
pub(crate) struct LiveRoutes {
    table: ArcSwap<Table>,
    retired: Mutex<HashMap<String, Vec<Weak<Upstream>>>>,
    ground: SharedState,
    /// The time at which routes to containers expire; `None` if they do not.
    expiry: Mutex<Option<Instant>>,
    // Held by each change, and for ever once another process owns the routes.
    changes: Arc<AsyncMutex<Store>>,
}

/// The reason why routes did not change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChangeError {
    /// The routes are invalid.
    Refused(String),
    /// The routes could not be stored.
    Unkept(String),
}

impl LiveRoutes {
    /// Loads the stored routes. Routes with a lease are continued if the proxy takes over from a running one;
    /// otherwise nobody knows for how long they were not confirmed, and they have expired.
    pub(crate) fn load(store: Store, is_taken_over: bool) -> Self {
        let ground = SharedState::default();
        let mut kept = store.load();
        if kept.lease.is_some() && !is_taken_over {
            kept.expire();
        }
        let expiry = Mutex::new(kept.lease.map(expiry_of));
        let table = Table::new(kept, &Table::default(), &ground).unwrap_or_else(|error| {
            tracing::warn!(error, "stored routes are invalid, waiting for new ones");
            Table::default()
        });
        let changes = Arc::new(AsyncMutex::new(store));
        Self { table: ArcSwap::from_pointee(table), retired: Mutex::default(), ground, expiry, changes }
    }

    /// Returns the current table. Drop it soon: requests hold their target, not the table.
    pub(crate) fn table(&self) -> Guard<Arc<Table>> {
        self.table.load()
    }

    /// Returns the traffic counters of each application.
    pub(crate) fn traffic(&self) -> Snapshot {
        self.ground.traffic.snapshot()
    }

    pub(crate) async fn set(&self, route: Route) -> Result<(), ChangeError> {
        self.change(|old| old.with(route, &self.ground)).await
    }

    pub(crate) async fn remove(&self, application: &str) -> Result<(), ChangeError> {
        self.change(|old| Ok(old.without(application))).await
    }

    pub(crate) async fn replace_all(&self, routes: Vec<Route>) -> Result<(), ChangeError> {
        self.change_kept(|kept| {
            kept.is_complete = true;
            kept.routes = routes.into_iter().map(|route| (KeptRoute::new(route), true)).collect();
        })
        .await
    }

    /// Lets the routes to containers expire after this many seconds, unless the call is repeated in time.
    /// Without a lease they do not expire.
    pub(crate) async fn lease(&self, lease: Option<u64>) -> Result<(), ChangeError> {
        // Most calls only renew: the table stays as it is.
        if self.table.load().lease() != lease {
            self.change_kept(|kept| kept.lease = lease).await?;
        }
        *self.expiry() = lease.map(expiry_of);
        Ok(())
    }

    /// Expires the routes to containers if their lease has ended: until they are set again, an address may be
    /// that of another container.
    pub(crate) async fn expire(&self) {
        if self.expiry().is_none_or(|expiry| Instant::now() < expiry) {
            return;
        }
        tracing::warn!("routes were not confirmed in time, containers wait for new ones");
        match self.change_kept(Kept::expire).await {
            Ok(()) => *self.expiry() = None,
            Err(error) => tracing::error!(?error, "routes did not expire"),
        }
    }

    fn expiry(&self) -> MutexGuard<'_, Option<Instant>> {
        self.expiry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks all changes until the guard is dropped. Every earlier change is on disk.
    pub(crate) async fn freeze(&self) -> OwnedMutexGuard<Store> {
        Arc::clone(&self.changes).lock_owned().await
    }

    /// Returns whether, within the limit, no request to the application's previous targets is in flight any
    /// more: to `container`, or to any target.
    pub(crate) async fn drain(&self, application: &str, container: Option<&str>, limit: Duration) -> bool {
        let drained = async {
            loop {
                let gone = self.ground.gone.notified();
                if !self.has_retired(application, container) {
                    return;
                }
                gone.await;
            }
        };
        timeout(limit, drained).await.is_ok()
    }

    /// Makes a change that may concern all routes.
    async fn change_kept(&self, change: impl FnOnce(&mut Kept)) -> Result<(), ChangeError> {
        self.change(|old| {
            let mut kept = old.kept();
            change(&mut kept);
            Table::new(kept, old, &self.ground)
        })
        .await
    }

    async fn change(&self, change: impl FnOnce(&Table) -> Result<Table, String>) -> Result<(), ChangeError> {
        let store = self.freeze().await;
        let old = self.table.load_full();
        let new = change(&old).map_err(ChangeError::Refused)?;
        let (before, after) = (old.kept(), new.kept());
        if before != after {
            // On disk first: an acknowledged change must survive, an unacknowledged one may.
            let disk = store.clone();
            let saved = spawn_blocking(move || disk.save(&after)).await;
            let saved = saved.map_err(io::Error::other).flatten();
            saved.map_err(|error| ChangeError::Unkept(error.to_string()))?;
            self.swap(&old, new);
        }
        Ok(())
    }

    fn swap(&self, old: &Table, new: Table) {
        // Before the swap: afterwards the last request may end before it is registered.
        self.retire(old, &new);
        self.table.store(Arc::new(new));
    }

    fn retire(&self, old: &Table, new: &Table) {
        let mut retired = self.retired();
        for (place, stays) in old.changed_in(new) {
            let name = &place.application.name;
            for upstream in place.balancer.upstreams() {
                if !stays.is_some_and(|balancer| balancer.contains(upstream)) {
                    retired.entry(name.to_string()).or_default().push(Arc::downgrade(upstream));
                }
            }
        }
    }

    fn has_retired(&self, application: &str, container: Option<&str>) -> bool {
        let mut retired = self.retired();
        retired.retain(|_, upstreams| {
            upstreams.retain(|upstream| upstream.strong_count() > 0);
            !upstreams.is_empty()
        });
        let is_it = |upstream: &Weak<Upstream>| match (container, upstream.upgrade()) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(container), Some(upstream)) => {
                matches!(&upstream.destination, Destination::Container(endpoint) if endpoint.id == container)
            }
        };
        retired.get(application).is_some_and(|upstreams| upstreams.iter().any(is_it))
    }

    fn retired(&self) -> MutexGuard<'_, HashMap<String, Vec<Weak<Upstream>>>> {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn expiry_of(lease: u64) -> Instant {
    Instant::now() + Duration::from_secs(lease)
}
