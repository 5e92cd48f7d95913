//! The rows of replicas and of their leader.

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    replicas::{ALIVE_WITHIN, Replica, ReplicaStatus},
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
    pub(super) fn new(replica: &Replica, seen_at: Timestamp) -> Self {
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
            routes_seen: 0,
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
            is_alive: self.left_at.is_none() && self.seen_at.0 > now - ALIVE_WITHIN,
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
        self.valid_until.0 > now
    }
}
