//! Replicas: the servers of one installation that share a database, and the one that leads.
//!
//! **Invariant:** a change that only the leader may make begins with [`Write::Prove`], which fails once
//! another replica leads. So a server that was suspended and continues later changes nothing.

use std::{fmt, str::FromStr, time::Duration};

use async_trait::async_trait;

use crate::{
    clock::Timestamp,
    deployments::ContainerId,
    ids::{ApplicationId, BootId, InstanceId},
    store_error::StoreError,
};

/// The time without a heartbeat after which a replica counts as dead.
pub const ALIVE_WITHIN: Duration = Duration::from_secs(15);
/// The time within which a replica that was stopped or died is expected to be back.
pub const RETURNS_WITHIN: Duration = Duration::from_secs(60);
/// The time without a confirmation after which a front proxy stops routing to containers. Even the front proxy of a server
/// that is dead, restarted in between, ends before [`RETURNS_WITHIN`], for which the addresses of removed containers are kept.
pub const ROUTE_LEASE: Duration = Duration::from_secs(20);
/// The longest drain that a replica is waited for: a front proxy ends each before that.
pub const LONGEST_DRAIN: Duration = Duration::from_secs(25 * 60 * 60);
/// The duration of a leadership without a heartbeat.
pub const LEADERSHIP: Duration = Duration::from_secs(8);
/// The time after which the record of a dead replica is deleted.
pub const REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);
/// The largest difference between the clocks of a server and of the database with which it is ready.
pub const CLOCK_TOLERANCE: Duration = Duration::from_secs(10);

/// A server in one of its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// The id of the server.
    pub id: InstanceId,
    /// The id of its run.
    pub boot: BootId,
    /// The version of Launchway.
    pub version: String,
    /// The name of its machine.
    pub hostname: String,
    /// The address of its API.
    pub address: String,
    /// The id of its container engine; `None` while it is unknown.
    pub engine: Option<String>,
    /// The time of its start, by the clock of the database once it is registered.
    pub started_at: Timestamp,
}

/// A replica as the others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// The replica.
    pub replica: Replica,
    /// The time of its last heartbeat, by the clock of the database.
    pub seen_at: Timestamp,
    /// True if that was less than [`ALIVE_WITHIN`] ago.
    pub is_alive: bool,
    /// True if it leads.
    pub is_leader: bool,
    /// The routes epoch that its front proxy has.
    pub routes_seen: i64,
}

/// The leadership of one replica, until another one leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// The leader.
    pub replica: InstanceId,
    /// The run of the leader.
    pub boot: BootId,
    /// The number of the term, which grows with every change of the leader.
    pub epoch: i64,
}

/// The response to a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeartbeatResponse {
    /// The time by the clock of the database.
    pub now: Timestamp,
    /// The term of the replica that sent the heartbeat; `None` if another one leads.
    pub term: Option<Term>,
    /// Every known replica, itself included, sorted by its start.
    pub replicas: Vec<ReplicaStatus>,
}

/// A request to a replica to drain the previous target of an application.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Drain {
    /// The application.
    pub application: ApplicationId,
    /// The container; `None` for any previous target.
    pub container: Option<ContainerId>,
}

/// The replicas that a drain waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DrainScope {
    /// Those that are alive.
    Living,
    /// Also those that were seen within [`RETURNS_WITHIN`]: their front proxies go on with the routes that they have.
    Returning,
}

/// The registry of replicas. All times are those of the clock of the database.
///
/// Promises: at most one replica has a term at any time, and the epoch of a later term is greater; a leader that stops
/// sending heartbeats is replaced after [`LEADERSHIP`], one that leaves or is started again at once.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ReplicaRegistry: Send + Sync {
    /// Registers a replica at its start, in place of an earlier run of it. An unknown engine is taken from that run.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn register(&self, replica: &Replica) -> Result<HeartbeatResponse, StoreError>;

    /// Renews the registration of a replica, and its leadership; makes it the leader if there is none.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if another run of the replica was registered, [`StoreError::Unavailable`] or
    /// [`StoreError::Internal`].
    async fn heartbeat(&self, replica: &Replica) -> Result<HeartbeatResponse, StoreError>;

    /// Ends the leadership of a replica, which is not alive from now on. Another run of it is left alone.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn leave(&self, id: InstanceId, boot: BootId) -> Result<(), StoreError>;

    /// Returns every known replica, sorted by its start.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn replicas(&self) -> Result<Vec<ReplicaStatus>, StoreError>;

    /// Returns the current routes epoch, which grows with every change of what a route is made of.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn routes_epoch(&self) -> Result<i64, StoreError>;

    /// Records that the front proxy of `replica` has the routes of `epoch`.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn acknowledge_routes(&self, replica: InstanceId, epoch: i64) -> Result<(), StoreError>;

    /// Returns the number of living replicas other than `replica` whose front proxies do not have the routes of `epoch` yet.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn behind(&self, replica: InstanceId, epoch: i64) -> Result<usize, StoreError>;

    /// Requests the replicas of a scope other than `replica` to drain a target. Returns their number.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn request_drain(
        &self,
        replica: InstanceId,
        drain: &Drain,
        drain_scope: DrainScope,
    ) -> Result<usize, StoreError>;

    /// Returns the number of the replicas of a scope that have not drained a target yet.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn undrained(&self, drain: &Drain, drain_scope: DrainScope) -> Result<usize, StoreError>;

    /// Deletes the requests to drain a target.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn forget_drain(&self, drain: &Drain) -> Result<(), StoreError>;

    /// Returns what `replica` has to drain.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn drains(&self, replica: InstanceId) -> Result<Vec<Drain>, StoreError>;

    /// Records that `replica` has drained a target.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn report_drained(&self, replica: InstanceId, drain: &Drain) -> Result<(), StoreError>;
}

/// Identifies the container engine of this server.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait EngineIdentity: Send + Sync {
    /// Returns the id of the engine; `None` while it does not respond.
    async fn engine_id(&self) -> Option<String>;
}

/// Guards for changes that only the leader may make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Fails with `Stale` unless the term is the current one. Another replica cannot begin a term before this change is
    /// committed.
    Prove(Term),
}

/// Returns the replica with another engine because of which `own` must not run: of two such replicas, the one that started
/// later stops. Their starts are times of the database, so that the clocks of the machines do not matter.
#[must_use]
pub fn conflict<'a>(own: &Replica, replicas: &'a [ReplicaStatus]) -> Option<&'a Replica> {
    let engine = own.engine.as_ref()?;
    let others = replicas.iter().filter(|other| other.is_alive && other.replica.id != own.id);
    let others = others.map(|other| &other.replica);
    others
        .filter(|other| other.engine.as_ref().is_some_and(|other| other != engine))
        .find(|other| (other.started_at, other.id) < (own.started_at, own.id))
}

/// The version of a release, by which the older of two is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReleaseVersion {
    major: u32,
    minor: u32,
    patch: u32,
}

/// The error for a text that is no version of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a version such as 1.4.0")]
pub struct InvalidReleaseVersion;

impl FromStr for ReleaseVersion {
    type Err = InvalidReleaseVersion;

    /// Ignores what follows a `-` or `+`.
    fn from_str(text: &str) -> Result<Self, InvalidReleaseVersion> {
        let numbers = text.split(['-', '+']).next().unwrap_or_default();
        let mut numbers = numbers.split('.').map(str::parse);
        match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch)), None) => Ok(Self { major, minor, patch }),
            _ => Err(InvalidReleaseVersion),
        }
    }
}

impl ReleaseVersion {
    /// Returns whether servers of both versions may share a database: this one is the same, an older one, or the next one.
    #[must_use]
    pub fn can_follow(self, other: Self) -> bool {
        let next = (other.major, other.minor + 1);
        (self.major, self.minor) <= next || (self.major, self.minor) == (other.major + 1, 0)
    }
}

impl fmt::Display for ReleaseVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use uuid::Uuid;

    use super::*;

    fn a_replica(number: u128, engine: Option<&str>, started: i64) -> Replica {
        Replica {
            id: Uuid::from_u128(number).into(),
            boot: Uuid::from_u128(number).into(),
            version: "1.0.0".to_owned(),
            hostname: format!("host-{number}"),
            address: "127.0.0.1:8080".to_owned(),
            engine: engine.map(str::to_owned),
            started_at: Timestamp::UNIX_EPOCH + TimeDelta::seconds(started),
        }
    }

    fn seen(replica: Replica, is_alive: bool) -> ReplicaStatus {
        let seen_at = Timestamp::UNIX_EPOCH;
        ReplicaStatus { replica, seen_at, is_alive, is_leader: false, routes_seen: 0 }
    }

    #[test]
    fn the_later_of_two_with_different_engines_stops() {
        let (first, second) = (a_replica(1, Some("A"), 10), a_replica(2, Some("B"), 20));
        let all = [seen(first.clone(), true), seen(second.clone(), true)];
        assert_eq!(conflict(&first, &all), None);
        assert_eq!(conflict(&second, &all), Some(&first));
        let same_time = a_replica(3, Some("C"), 10);
        assert_eq!(conflict(&same_time, &all), Some(&first), "of two at once, the one with the greater id");
    }

    #[test]
    fn replicas_of_one_engine_or_of_unknown_ones_run_together() {
        let second = a_replica(2, Some("A"), 20);
        for (engine, is_alive) in [(Some("A"), true), (None, true), (Some("B"), false)] {
            assert_eq!(conflict(&second, &[seen(a_replica(1, engine, 10), is_alive)]), None);
        }
        let unknown = a_replica(2, None, 20);
        assert_eq!(conflict(&unknown, &[seen(a_replica(1, Some("A"), 10), true)]), None);
    }

    #[test]
    fn only_the_next_version_runs_beside_another() {
        let version = |text: &str| text.parse::<ReleaseVersion>().unwrap();
        for (own, other, can) in [
            ("1.4.0", "1.4.9", true),
            ("1.5.2", "1.4.0", true),
            ("1.6.0", "1.4.9", false),
            ("2.0.3", "1.9.0", true),
            ("2.1.0", "1.9.0", false),
            ("1.3.0", "1.4.0", true),
        ] {
            assert_eq!(version(own).can_follow(version(other)), can, "{own} {other}");
        }
    }

    #[test]
    fn versions_are_compared_by_number() {
        let version = |text: &str| text.parse::<ReleaseVersion>().unwrap();
        assert!(version("0.9.12") < version("0.10.0"));
        assert!(version("1.0.0") > version("0.99.99"));
        assert_eq!(version("1.2.3-rc.1"), version("1.2.3"));
        assert_eq!(version("1.2.3+linux").to_string(), "1.2.3");
        for text in ["", "1", "1.2", "1.2.3.4", "a.b.c", "1.2.-3"] {
            assert_eq!(text.parse::<ReleaseVersion>(), Err(InvalidReleaseVersion), "{text}");
        }
    }
}
