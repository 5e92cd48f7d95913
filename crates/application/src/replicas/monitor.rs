//! The heartbeats of this server.

use std::{
    convert::Infallible,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use chrono::TimeDelta;
use launchway_domain::{
    clock::{Clock, Timestamp},
    replicas::{EngineIdentity, HeartbeatResponse, LEADERSHIP, Replica, ReplicaRegistry, conflict},
    store::StoreError,
};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

use super::{OwnReplica, Shared};

/// The interval of heartbeats.
const HEARTBEAT: Duration = Duration::from_secs(1);
/// The interval after a heartbeat that failed.
const RETRY: Duration = Duration::from_millis(250);
/// The timeout of a heartbeat: several fit into a term.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(2);
/// The time before the end of a term at which this server stops to act as the leader.
const MARGIN: Duration = Duration::from_secs(2);
/// The interval at which the engine is identified again.
const IDENTIFY: Duration = Duration::from_secs(30);
/// The longest answer by which clocks are compared.
const LONGEST_SAMPLE: Duration = Duration::from_secs(1);
/// The timeout of identifying the engine.
const ENGINE_TIMEOUT: Duration = Duration::from_secs(2);

/// The ports of the monitor.
pub struct ReplicaMonitorPorts {
    /// Registers replicas.
    pub registry: Arc<dyn ReplicaRegistry>,
    /// Identifies the engine.
    pub engine: Arc<dyn EngineIdentity>,
    /// The clock of this machine.
    pub clock: Arc<dyn Clock>,
    /// Gets the difference between the clock of the database and `clock`.
    pub on_clock_offset: Box<dyn Fn(TimeDelta) + Send + Sync>,
}

/// The reason why this server must not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplicaEnd {
    /// Another replica started earlier, and uses another engine.
    OtherEngine(Box<Replica>),
    /// Another process was registered with the id of this server.
    SameId,
}

/// Registers this server, and sends its heartbeats.
pub struct ReplicaMonitor {
    ports: ReplicaMonitorPorts,
    shared: Arc<Shared>,
    replica: Replica,
    /// The engine answered at the start.
    is_identified: bool,
    /// The clocks were compared.
    has_sample: bool,
}

impl ReplicaMonitor {
    /// Registers `replica`.
    ///
    /// # Errors
    /// [`StoreError`] if the registry does not respond; [`ReplicaEnd`] if it must not run, and then it is not registered.
    pub async fn register(
        ports: ReplicaMonitorPorts,
        replica: Replica,
    ) -> Result<Result<Self, ReplicaEnd>, StoreError> {
        let engine = timeout(ENGINE_TIMEOUT, ports.engine.engine_id()).await.ok().flatten();
        let is_identified = engine.is_some();
        let replica = Replica { engine, ..replica };
        let shared = Arc::new(Shared::new(replica.clone(), Arc::clone(&ports.registry)));
        let mut monitor = Self { ports, shared, replica, is_identified, has_sample: false };
        let (sent, local) = (Instant::now(), monitor.ports.clock.now());
        let pulse = monitor.ports.registry.register(&monitor.replica).await?;
        Ok(match monitor.accept(&pulse, sent, local) {
            None => Ok(monitor),
            Some(end) => {
                monitor.leave().await;
                Err(end)
            }
        })
    }

    /// Returns this server as one of the replicas.
    #[must_use]
    pub fn own(&self) -> OwnReplica {
        OwnReplica(Some(Arc::clone(&self.shared)))
    }

    /// Sends heartbeats until `stop` is true, and then ends the registration. Returns early if this server must not go on.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) -> Option<ReplicaEnd> {
        let (found, engine) = watch::channel(None);
        // An engine that does not answer must not delay heartbeats.
        let identification = identify(Arc::clone(&self.ports.engine), self.is_identified, found);
        let end = tokio::select! {
            end = self.send_heartbeats(engine) => Some(end),
            never = identification => match never {},
            _ = stop.wait_for(|stop| *stop) => None,
        };
        self.leave().await;
        end
    }

    /// Sends heartbeats until this server must not go on.
    async fn send_heartbeats(&mut self, engine: watch::Receiver<Option<String>>) -> ReplicaEnd {
        let mut pause = HEARTBEAT;
        loop {
            sleep(pause).await;
            if let Some(engine) = engine.borrow().clone() {
                self.replica.engine = Some(engine);
            }
            let (sent, local) = (Instant::now(), self.ports.clock.now());
            match timeout(HEARTBEAT_TIMEOUT, self.ports.registry.heartbeat(&self.replica)).await {
                Ok(Ok(pulse)) => match self.accept(&pulse, sent, local) {
                    Some(end) => return end,
                    None => pause = HEARTBEAT,
                },
                Ok(Err(StoreError::Stale)) => return ReplicaEnd::SameId,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "heartbeat failed");
                    pause = RETRY;
                }
                Err(_elapsed) => {
                    tracing::warn!("heartbeat timed out");
                    pause = RETRY;
                }
            }
        }
    }

    /// Takes the answer to a heartbeat that was sent at `sent`, which was `local` by the clock of this machine.
    fn accept(&mut self, pulse: &HeartbeatResponse, sent: Instant, local: Timestamp) -> Option<ReplicaEnd> {
        if let Some(other) = conflict(&self.registered(pulse), &pulse.replicas) {
            return Some(ReplicaEnd::OtherEngine(Box::new(other.clone())));
        }
        let round_trip = sent.elapsed();
        self.shared.publish(pulse, sent + LEADERSHIP - MARGIN);
        // The longer an answer took, the less is known of the moment at which its time was read.
        if round_trip <= LONGEST_SAMPLE || !self.has_sample {
            let offset = pulse.now - (local + round_trip / 2);
            self.has_sample = true;
            self.shared.clock_offset.store(offset.num_microseconds().unwrap_or(i64::MAX), Ordering::Relaxed);
            (self.ports.on_clock_offset)(offset);
        }
        None
    }

    /// Returns the own record, which may know the engine from an earlier run.
    fn registered(&self, pulse: &HeartbeatResponse) -> Replica {
        let own = pulse.replicas.iter().find(|one| one.replica.id == self.replica.id);
        own.map_or_else(|| self.replica.clone(), |own| own.replica.clone())
    }

    async fn leave(&mut self) {
        self.shared.leadership.send_replace(None);
        if let Err(error) = self.ports.registry.leave(self.replica.id, self.replica.boot).await {
            tracing::warn!(%error, "registration of this replica could not be ended");
        }
    }
}

/// Identifies the engine from time to time: it may be another one after its restart.
async fn identify(
    engine: Arc<dyn EngineIdentity>,
    mut is_identified: bool,
    found: watch::Sender<Option<String>>,
) -> Infallible {
    loop {
        sleep(if is_identified { IDENTIFY } else { HEARTBEAT }).await;
        let id = timeout(ENGINE_TIMEOUT, engine.engine_id()).await.ok().flatten();
        is_identified = id.is_some();
        if is_identified {
            found.send_replace(id);
        }
    }
}
