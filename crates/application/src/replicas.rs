//! Replicas: this server as one of several of its installation.

mod monitor;
#[cfg(test)]
mod tests;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use chrono::TimeDelta;
use launchway_domain::{
    auth::Actor,
    ids::InstanceId,
    replicas::{
        CLOCK_TOLERANCE, Drain, DrainScope, HeartbeatResponse, LONGEST_DRAIN, ROUTE_LEASE, Replica,
        ReplicaRegistry, ReplicaStatus, Term,
    },
    store::StoreError,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

pub use self::monitor::{ReplicaEnd, ReplicaMonitor, ReplicaMonitorPorts};
use crate::Error;

/// The longest wait for the front proxies of the other replicas.
const SWITCH_LIMIT: Duration = Duration::from_secs(10);
/// The interval at which the other replicas are polled.
const POLL: Duration = Duration::from_millis(50);
/// The interval at which the drains of the other replicas are polled.
const DRAIN_POLL: Duration = Duration::from_millis(250);

/// This server as one of the replicas of its installation. By default it is the only one, which leads. Cheap to clone.
#[derive(Clone, Default)]
pub struct OwnReplica(Option<Arc<Shared>>);

struct Shared {
    replica: Replica,
    registry: Arc<dyn ReplicaRegistry>,
    leadership: watch::Sender<Option<Held>>,
    /// The clock of the database minus that of this server, in microseconds.
    clock_offset: AtomicI64,
    /// The installation has, or had recently, other replicas.
    has_others: AtomicBool,
}

/// A term, and the time until which it holds even if no heartbeat succeeds.
#[derive(Debug, Clone, Copy)]
struct Held {
    term: Term,
    until: Instant,
}

/// The replicas of an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStatus {
    /// The replica that answers; `None` if the installation has one server and registers none.
    pub own: Option<InstanceId>,
    /// Every known replica, sorted by its start.
    pub replicas: Vec<ReplicaStatus>,
    /// The current routes epoch.
    pub routes_epoch: i64,
    /// The clock of the database minus that of this server.
    pub clock_offset: TimeDelta,
}

impl OwnReplica {
    /// Returns whether this server leads: it alone reconciles, polls branches and enforces retention.
    #[must_use]
    pub fn is_leader(&self) -> bool {
        self.0.as_ref().is_none_or(|shared| shared.term().is_some())
    }

    /// Waits until this server leads.
    pub async fn wait_for_leadership(&self) {
        let Some(shared) = &self.0 else { return };
        let mut leadership = shared.leadership.subscribe();
        while shared.term().is_none() {
            // A term that has expired is renewed by the next heartbeat, or not at all.
            if leadership.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Returns the term to prove in a commit; `None` if there is only one server.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if another replica leads.
    pub(crate) fn term(&self) -> Result<Option<Term>, StoreError> {
        match &self.0 {
            None => Ok(None),
            Some(shared) => shared.term().map(Some).ok_or(StoreError::Stale),
        }
    }

    /// Returns a sentence about the clock of this server if it differs too much from that of the database.
    #[must_use]
    pub fn clock_problem(&self) -> Option<String> {
        let offset = TimeDelta::microseconds(self.0.as_ref()?.clock_offset.load(Ordering::Relaxed));
        let is_off = offset.abs().to_std().is_ok_and(|offset| offset > CLOCK_TOLERANCE);
        is_off.then(|| {
            let direction = if offset > TimeDelta::zero() { "behind" } else { "ahead of" };
            format!(
                "the clock of this server is {} s {direction} that of the database: synchronize both, for example by NTP",
                offset.abs().num_seconds()
            )
        })
    }

    /// Returns the replicas of the installation, for its administrators.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for everyone else, and the errors of the store.
    pub async fn show(&self, actor: &Actor) -> Result<ClusterStatus, Error> {
        actor.require_metrics()?;
        let Some(shared) = &self.0 else {
            let clock_offset = TimeDelta::zero();
            return Ok(ClusterStatus { own: None, replicas: Vec::new(), routes_epoch: 0, clock_offset });
        };
        Ok(ClusterStatus {
            own: Some(shared.replica.id),
            replicas: shared.registry.replicas().await?,
            routes_epoch: shared.registry.routes_epoch().await?,
            clock_offset: TimeDelta::microseconds(shared.clock_offset.load(Ordering::Relaxed)),
        })
    }

    /// Returns the time after which the routes of the own front proxy to containers expire unless this server confirms
    /// them; `None` if there is only one server. Others remove containers while this server is dead, and their addresses
    /// are assigned again.
    pub(crate) fn route_lease(&self) -> Option<Duration> {
        self.has_others().then_some(ROUTE_LEASE)
    }

    /// Returns whether the installation has, or had recently, other replicas.
    pub(crate) fn has_others(&self) -> bool {
        self.0.as_ref().is_some_and(|shared| shared.has_others.load(Ordering::Relaxed))
    }

    /// Returns the routes epoch; `None` if there is only one server.
    pub(crate) async fn routes_epoch(&self) -> Result<Option<i64>, StoreError> {
        match &self.0 {
            None => Ok(None),
            Some(shared) => shared.registry.routes_epoch().await.map(Some),
        }
    }

    /// Records that the own front proxy has the routes of `epoch`.
    pub(crate) async fn acknowledge_routes(&self, epoch: i64) -> Result<(), StoreError> {
        match &self.0 {
            None => Ok(()),
            Some(shared) => shared.registry.acknowledge_routes(shared.replica.id, epoch).await,
        }
    }

    /// Waits until the front proxies of all other living replicas have the current routes, or for ten seconds.
    pub(crate) async fn wait_for_routes(&self) {
        let Some(shared) = &self.0 else { return };
        if timeout(SWITCH_LIMIT, shared.wait_for_routes()).await.is_err() {
            tracing::warn!("another replica did not switch its routes in time");
        }
    }

    /// Waits until the other replicas of a scope have drained a target. Each has its own time limit.
    pub(crate) async fn drain_others(&self, drain: &Drain, drain_scope: DrainScope) {
        let Some(shared) = &self.0 else { return };
        if timeout(LONGEST_DRAIN, shared.drain_others(drain, drain_scope)).await.is_err() {
            tracing::warn!("another replica did not drain in time");
        }
        if let Err(error) = shared.registry.forget_drain(drain).await {
            tracing::warn!(%error, "request to drain could not be deleted");
        }
    }

    /// Returns what this replica has to drain for others.
    pub(crate) async fn drains(&self) -> Result<Vec<Drain>, StoreError> {
        match &self.0 {
            None => Ok(Vec::new()),
            Some(shared) => shared.registry.drains(shared.replica.id).await,
        }
    }

    /// Records that this replica has drained a target.
    pub(crate) async fn report_drained(&self, drain: &Drain) -> Result<(), StoreError> {
        match &self.0 {
            None => Ok(()),
            Some(shared) => shared.registry.report_drained(shared.replica.id, drain).await,
        }
    }
}

impl Shared {
    fn new(replica: Replica, registry: Arc<dyn ReplicaRegistry>) -> Self {
        let leadership = watch::Sender::new(None);
        Self {
            replica,
            registry,
            leadership,
            clock_offset: AtomicI64::default(),
            has_others: AtomicBool::default(),
        }
    }

    fn term(&self) -> Option<Term> {
        self.leadership.borrow().filter(|held| Instant::now() < held.until).map(|held| held.term)
    }

    /// Publishes the answer to a heartbeat. Its term is certain until `until`.
    fn publish(&self, pulse: &HeartbeatResponse, until: Instant) {
        let was_leader = self.leadership.borrow().is_some();
        self.leadership.send_replace(pulse.term.map(|term| Held { term, until }));
        match (was_leader, pulse.term) {
            (false, Some(term)) => tracing::info!(epoch = term.epoch, "this replica leads"),
            (true, None) => tracing::warn!("another replica leads"),
            _ => {}
        }
        let has_others = pulse.replicas.iter().any(|other| other.replica.id != self.replica.id);
        self.has_others.store(has_others, Ordering::Relaxed);
    }

    async fn wait_for_routes(&self) {
        let epoch = loop {
            match answered(self.registry.routes_epoch().await) {
                Some(epoch) => break epoch,
                None => sleep(POLL).await,
            }
        };
        while answered(self.registry.behind(self.replica.id, epoch).await) != Some(0) {
            sleep(POLL).await;
        }
    }

    async fn drain_others(&self, drain: &Drain, drain_scope: DrainScope) {
        let requested = loop {
            match answered(self.registry.request_drain(self.replica.id, drain, drain_scope).await) {
                Some(requested) => break requested,
                None => sleep(DRAIN_POLL).await,
            }
        };
        if requested == 0 {
            return;
        }
        while answered(self.registry.undrained(drain, drain_scope).await) != Some(0) {
            sleep(DRAIN_POLL).await;
        }
    }
}

/// Returns the answer about other replicas, if there is one: a database that does not respond for a moment does not end
/// a wait.
fn answered<T>(answer: Result<T, StoreError>) -> Option<T> {
    answer.inspect_err(|error| tracing::debug!(%error, "other replicas could not be read")).ok()
}
