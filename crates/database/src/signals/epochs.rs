//! The counters that triggers advance in the database, as the writer of a SQLite file knows them.

use std::sync::atomic::{AtomicI64, Ordering};

use diesel::prelude::*;
use launchway_domain::signals::Signal;

use super::Publisher;
use crate::{
    connection::AnyConnection,
    error::QueryError,
    schema::{identity_epoch, jobs_epoch, routes_epoch},
};

/// The counters after the last commit.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    identities: AtomicI64,
    routes: AtomicI64,
    jobs: AtomicI64,
    signals: Publisher,
}

impl Epochs {
    pub(crate) fn identities(&self) -> i64 {
        self.identities.load(Ordering::Acquire)
    }

    pub(crate) fn routes(&self) -> i64 {
        self.routes.load(Ordering::Acquire)
    }

    /// Returns the publisher of the signals.
    pub(crate) fn signals(&self) -> &Publisher {
        &self.signals
    }

    /// Takes over the stored counters, and publishes the signals of those that have changed.
    pub(crate) fn publish(&self, stored: StoredEpochs) {
        self.identities.store(stored.identities, Ordering::Release);
        for (known, stored, signal) in
            [(&self.routes, stored.routes, Signal::Routes), (&self.jobs, stored.jobs, Signal::Jobs)]
        {
            if known.swap(stored, Ordering::AcqRel) != stored {
                self.signals.publish(signal);
            }
        }
    }
}

/// The counters in the database.
#[derive(Debug, Clone, Copy, Queryable)]
pub(crate) struct StoredEpochs {
    identities: i64,
    routes: i64,
    jobs: i64,
}

/// Returns the stored counters; `None` before the tables exist.
pub(crate) fn stored(connection: &mut AnyConnection) -> Result<Option<StoredEpochs>, QueryError> {
    let stored = identity_epoch::table
        .inner_join(routes_epoch::table.on(routes_epoch::id.eq(identity_epoch::id)))
        .inner_join(jobs_epoch::table.on(jobs_epoch::id.eq(identity_epoch::id)))
        .filter(identity_epoch::id.eq(1))
        .select((identity_epoch::value, routes_epoch::value, jobs_epoch::value))
        .first(connection);
    match stored.optional() {
        Err(diesel::result::Error::DatabaseError(_, information))
            if information.message().starts_with("no such table") =>
        {
            Ok(None)
        }
        epochs => Ok(epochs?),
    }
}
