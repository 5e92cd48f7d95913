//! The rows of replicas and of their leader.

use std::time::Duration;

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    replicas::{ALIVE_WITHIN, LEADERSHIP, Replica, ReplicaStatus},
};

use crate::{
    columns::{DbId, DbTs},
    connection::MultiBackend,
    schema::{leadership, replicas},
};

#[derive(Queryable, Selectable, Insertable)]
#[diesel(table_name = replicas, check_for_backend(MultiBackend))]
pub(super) struct ReplicaRow {
    id: DbId,
    boot: DbId,
    version: String,
    hostname: String,
    address: String,
    engine: Option<String>,
    started_at: DbTs,
    seen_at: DbTs,
    left_at: Option<DbTs>,
    routes_seen: i64,
}

impl ReplicaRow {
    pub(super) fn new(replica: &Replica, seen_at: Timestamp, routes_seen: i64) -> Self {
        Self {
            id: replica.id.into(),
            boot: replica.boot.into(),
            version: replica.version.clone(),
            hostname: replica.hostname.clone(),
            address: replica.address.clone(),
            engine: replica.engine.clone(),
            started_at: replica.started_at.into(),
            seen_at: seen_at.into(),
            left_at: None,
            routes_seen,
        }
    }

    pub(super) fn status(self, leader: Option<&LeadershipRow>, now: Timestamp) -> ReplicaStatus {
        let replica = Replica {
            id: self.id.into(),
            boot: self.boot.into(),
            version: self.version,
            hostname: self.hostname,
            address: self.address,
            engine: self.engine,
            started_at: self.started_at.into(),
        };
        ReplicaStatus {
            seen_at: self.seen_at.0,
            is_alive: self.left_at.is_none() && was_within(self.seen_at.0, ALIVE_WITHIN, now),
            is_leader: leader.is_some_and(|leader| leader.is_of(&replica)),
            routes_seen: self.routes_seen,
            replica,
        }
    }
}

#[derive(Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = leadership, check_for_backend(MultiBackend))]
pub(super) struct LeadershipRow {
    pub(super) singleton: i32,
    pub(super) replica: DbId,
    pub(super) boot: DbId,
    pub(super) epoch: i64,
    pub(super) valid_until: DbTs,
}

impl LeadershipRow {
    pub(super) fn is_of(&self, replica: &Replica) -> bool {
        (self.replica, self.boot) == (replica.id.into(), replica.boot.into())
    }

    pub(super) fn is_held_at(&self, now: Timestamp) -> bool {
        // After a step back of the clock, a term would otherwise hold until the clock has caught up.
        self.valid_until.0 > now && self.valid_until.0 <= now + 2 * LEADERSHIP
    }
}

/// Returns whether `time` is less than `limit` before `now`. One far in the future is from before a step back of the
/// clock.
fn was_within(time: Timestamp, limit: Duration, now: Timestamp) -> bool {
    time > now - limit && time < now + limit
}

/// The condition of [`was_within`] for the last heartbeat.
#[diesel::dsl::auto_type(no_type_alias)]
pub(super) fn seen_within(limit: Duration, now: Timestamp) -> _ {
    let (from, until): (DbTs, DbTs) = (DbTs(now - limit), DbTs(now + limit));
    replicas::seen_at.gt(from).and(replicas::seen_at.lt(until))
}
