//! The replicas of an installation, their leader, and what each of them has to drain.

mod drains;
mod rows;

use async_trait::async_trait;
use chrono::TimeDelta;
use diesel::prelude::*;
use launchway_domain::{
    clock::{Clock as _, Timestamp},
    ids::{BootId, InstanceId},
    jobs::JobState,
    replicas::{
        ALIVE_WITHIN, Drain, DrainScope, HeartbeatResponse, LEADERSHIP, REMEMBERED, RETURNS_WITHIN, Replica,
        ReplicaRegistry, ReplicaStatus, Term, Write,
    },
    store::StoreError,
};
use launchway_system::clock::SystemClock;

use self::rows::{LeadershipRow, ReplicaRow};
use super::{
    Database,
    columns::{DbId, DbTs, Ts},
    connection::AnyConnection,
    dialect::{Lock, each_backend, hold},
    error::{QueryError, guarded},
    schema::{jobs, leadership, replicas},
    statement::{StatementCache as _, literal},
};

impl Database {
    /// Returns the time by the clock of PostgreSQL; with SQLite, by that of this machine.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    pub async fn clock_time(&self) -> Result<Timestamp, StoreError> {
        self.read(database_now).await
    }
}

#[async_trait]
impl ReplicaRegistry for Database {
    async fn register(&self, replica: &Replica) -> Result<HeartbeatResponse, StoreError> {
        let replica = replica.clone();
        self.write(move |connection| {
            hold(connection, Lock::Replicas)?;
            let now = database_now(connection)?;
            register(connection, &replica, now)?;
            pulse(connection, &replica, now)
        })
        .await
    }

    async fn heartbeat(&self, replica: &Replica) -> Result<HeartbeatResponse, StoreError> {
        let replica = replica.clone();
        self.write(move |connection| {
            hold(connection, Lock::Replicas)?;
            let now = database_now(connection)?;
            renew(connection, &replica, now)?;
            pulse(connection, &replica, now)
        })
        .await
    }

    async fn leave(&self, id: InstanceId, boot: BootId) -> Result<(), StoreError> {
        self.write(move |connection| {
            hold(connection, Lock::Replicas)?;
            let now = DbTs(database_now(connection)?);
            diesel::update(leadership::table)
                .filter(leadership::replica.eq(DbId::from(id)).and(leadership::boot.eq(DbId::from(boot))))
                .set(leadership::valid_until.eq(now))
                .cached()
                .execute(connection)?;
            let own = replicas::id.eq(DbId::from(id)).and(replicas::boot.eq(DbId::from(boot)));
            // One that was refused at its start never had a route.
            diesel::delete(replicas::table)
                .filter(own.and(replicas::routes_seen.eq(0)))
                .execute(connection)?;
            diesel::update(replicas::table)
                .filter(own)
                .set(replicas::left_at.eq(now))
                .cached()
                .execute(connection)?;
            Ok(())
        })
        .await
    }

    async fn replicas(&self) -> Result<Vec<ReplicaStatus>, StoreError> {
        self.read(known).await
    }

    async fn routes_epoch(&self) -> Result<i64, StoreError> {
        Database::routes_epoch(self).await
    }

    async fn acknowledge_routes(&self, replica: InstanceId, epoch: i64) -> Result<(), StoreError> {
        self.write(move |connection| {
            diesel::update(replicas::table.find(DbId::from(replica)))
                .set(replicas::routes_seen.eq(epoch))
                .cached()
                .execute(connection)?;
            Ok(())
        })
        .await
    }

    async fn behind(&self, replica: InstanceId, epoch: i64) -> Result<usize, StoreError> {
        self.read(move |connection| {
            let now = database_now(connection)?;
            let behind: i64 = replicas::table
                .filter(replicas::id.ne(DbId::from(replica)))
                .filter(rows::seen_within(ALIVE_WITHIN, now))
                .filter(replicas::left_at.is_null())
                .filter(replicas::routes_seen.lt(epoch))
                .count()
                .get_result(connection)?;
            Ok(usize::try_from(behind).unwrap_or_default())
        })
        .await
    }

    async fn request_drain(
        &self,
        replica: InstanceId,
        drain: &Drain,
        drain_scope: DrainScope,
    ) -> Result<usize, StoreError> {
        let drain = drain.clone();
        self.write(move |connection| drains::request(connection, replica, &drain, drain_scope)).await
    }

    async fn undrained(&self, drain: &Drain, drain_scope: DrainScope) -> Result<usize, StoreError> {
        let drain = drain.clone();
        self.read(move |connection| drains::undrained(connection, &drain, drain_scope)).await
    }

    async fn forget_drain(&self, drain: &Drain) -> Result<(), StoreError> {
        let drain = drain.clone();
        self.write(move |connection| drains::forget(connection, &drain)).await
    }

    async fn drains(&self, replica: InstanceId) -> Result<Vec<Drain>, StoreError> {
        self.read_point(move |connection| drains::of(connection, replica)).await
    }

    async fn report_drained(&self, replica: InstanceId, drain: &Drain) -> Result<(), StoreError> {
        let drain = drain.clone();
        self.write(move |connection| drains::report(connection, replica, &drain)).await
    }
}

/// Returns every known replica.
pub(super) fn known(connection: &mut AnyConnection) -> Result<Vec<ReplicaStatus>, QueryError> {
    let now = database_now(connection)?;
    statuses(connection, now)
}

/// Carries out a write of the unit of work.
pub(super) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    let Write::Prove(term) = write;
    let held = leadership::table
        .filter(leadership::replica.eq(DbId::from(term.replica)))
        .filter(leadership::boot.eq(DbId::from(term.boot)))
        .filter(leadership::epoch.eq(term.epoch))
        .select(leadership::epoch);
    let rows: Vec<i64> = match connection {
        AnyConnection::Sqlite(sqlite) => held.load(sqlite)?,
        // A renewal of the same term waits for this transaction, and so does a new leader.
        AnyConnection::Postgres(postgres) => held.for_share().load(postgres)?,
    };
    guarded(rows.len())
}

/// Returns the time by the clock of the database.
pub(super) fn database_now(connection: &mut AnyConnection) -> Result<Timestamp, QueryError> {
    Ok(match connection {
        AnyConnection::Sqlite(_) => SystemClock.now(),
        AnyConnection::Postgres(postgres) => {
            let now: DbTs = diesel::select(literal::<Ts>("clock_timestamp()")).get_result(postgres)?;
            now.0
        }
    })
}

/// Inserts the row of a replica, in place of that of an earlier run.
fn register(connection: &mut AnyConnection, replica: &Replica, now: Timestamp) -> Result<(), QueryError> {
    let id = DbId::from(replica.id);
    let earlier: Option<(Option<String>, i64)> = replicas::table
        .find(id)
        .select((replicas::engine, replicas::routes_seen))
        .first(connection)
        .optional()?;
    diesel::delete(replicas::table.find(id)).execute(connection)?;
    // Its front proxy goes on with the routes that it had.
    let (engine, routes_seen) = earlier.unwrap_or_default();
    let engine = replica.engine.clone().or(engine);
    let replica = Replica { engine, started_at: now, ..replica.clone() };
    let row = ReplicaRow::new(&replica, now, routes_seen);
    diesel::insert_into(replicas::table).values(row).execute(connection)?;
    Ok(())
}

/// Renews the row of a replica: `Stale` if it is that of another run.
fn renew(connection: &mut AnyConnection, replica: &Replica, now: Timestamp) -> Result<(), QueryError> {
    let row = replicas::table.filter(replicas::id.eq(DbId::from(replica.id)));
    let row = row.filter(replicas::boot.eq(DbId::from(replica.boot))).filter(replicas::left_at.is_null());
    let renewed = match &replica.engine {
        Some(engine) => diesel::update(row)
            .set((replicas::seen_at.eq(DbTs(now)), replicas::engine.eq(engine)))
            .cached()
            .execute(connection)?,
        None => diesel::update(row).set(replicas::seen_at.eq(DbTs(now))).cached().execute(connection)?,
    };
    guarded(renewed)
}

/// Renews or takes the leadership if `replica` may, and returns what it has to know.
fn pulse(
    connection: &mut AnyConnection,
    replica: &Replica,
    now: Timestamp,
) -> Result<HeartbeatResponse, QueryError> {
    let term = take_leadership(connection, replica, now)?;
    if term.is_some() {
        diesel::delete(replicas::table)
            .filter(replicas::seen_at.lt(DbTs(now - REMEMBERED)))
            .execute(connection)?;
        drains::forget_old(connection, now)?;
        hand_over_jobs(connection, now)?;
    }
    Ok(HeartbeatResponse { now, term, replicas: statuses(connection, now)? })
}

/// Lets any server claim the queued jobs that are bound to one which does not come back.
fn hand_over_jobs(connection: &mut AnyConnection, now: Timestamp) -> Result<(), QueryError> {
    let known: Vec<DbId> = replicas::table
        .filter(replicas::seen_at.gt(DbTs(now - RETURNS_WITHIN)))
        .select(replicas::id)
        .load(connection)?;
    let handed_over = diesel::update(jobs::table)
        .filter(jobs::state.eq(JobState::Queued.as_str()))
        .filter(jobs::runs_on.is_not_null())
        .filter(jobs::runs_on.assume_not_null().ne_all(known))
        .set(jobs::runs_on.eq(None::<DbId>))
        .cached()
        .execute(connection)?;
    if handed_over > 0 {
        tracing::info!(jobs = handed_over, "jobs of a lost server can be claimed by others");
    }
    Ok(())
}

fn take_leadership(
    connection: &mut AnyConnection,
    replica: &Replica,
    now: Timestamp,
) -> Result<Option<Term>, QueryError> {
    let current: Option<LeadershipRow> =
        leadership::table.select(LeadershipRow::as_select()).first(connection).optional()?;
    let is_current = current.as_ref().is_some_and(|row| row.is_of(replica));
    // An earlier run of the same server has ended: another one has taken its place.
    if current.as_ref().is_some_and(|row| row.replica != replica.id.into() && row.is_held_at(now)) {
        return Ok(None);
    }
    let epoch = current.map_or(0, |row| row.epoch) + i64::from(!is_current);
    let row = LeadershipRow {
        singleton: 1,
        replica: replica.id.into(),
        boot: replica.boot.into(),
        epoch,
        valid_until: DbTs(now + TimeDelta::from_std(LEADERSHIP).unwrap_or_default()),
    };
    each_backend!(connection, backend => diesel::insert_into(leadership::table)
        .values(&row)
        .on_conflict(leadership::singleton)
        .do_update()
        .set(&row)
        .cached()
        .execute(backend))?;
    Ok(Some(Term { replica: replica.id, boot: replica.boot, epoch }))
}

fn statuses(connection: &mut AnyConnection, now: Timestamp) -> Result<Vec<ReplicaStatus>, QueryError> {
    let leader: Option<LeadershipRow> =
        leadership::table.select(LeadershipRow::as_select()).first(connection).optional()?;
    let leader = leader.filter(|row| row.is_held_at(now));
    let rows: Vec<ReplicaRow> = replicas::table
        .order((replicas::started_at.asc(), replicas::id.asc()))
        .select(ReplicaRow::as_select())
        .load(connection)?;
    Ok(rows.into_iter().map(|row| row.status(leader.as_ref(), now)).collect())
}
