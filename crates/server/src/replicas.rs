//! Registers this server among the replicas of its installation.

use std::{error::Error, sync::Arc};

use launchway_application::replicas::{ReplicaEnd, ReplicaMonitor, ReplicaMonitorPorts};
use launchway_domain::{clock::Clock as _, ids::BootId, replicas::Replica};
use launchway_infrastructure::{
    clock::{SharedClock, SystemClock},
    database::DatabaseUrl,
};

use crate::{
    config::{Config, shown_database},
    engine::Engine,
    installation::{Installation, hostname},
};

/// Registers this server in its run `boot`, and corrects `clock` by that of the database. A SQLite file has one server, which
/// is not registered.
///
/// # Errors
/// When another replica uses another engine, or the database does not respond.
pub(crate) async fn register(
    config: &Config,
    installation: &Installation,
    boot: BootId,
    clock: &SharedClock,
) -> Result<Option<ReplicaMonitor>, Box<dyn Error>> {
    let DatabaseUrl::Postgres(_) = &config.database else { return Ok(None) };
    let replica = Replica {
        id: installation.server,
        boot,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hostname: hostname(),
        address: config.bind.to_string(),
        engine: None,
        started_at: SystemClock.now(),
    };
    let shared = clock.clone();
    let ports = ReplicaMonitorPorts {
        registry: Arc::new(installation.database.clone()),
        engine: Engine::new(config, installation.id).identity(),
        clock: Arc::new(SystemClock),
        on_clock_offset: Box::new(move |offset| shared.correct(offset)),
    };
    match ReplicaMonitor::register(ports, replica).await? {
        Ok(monitor) => Ok(Some(monitor)),
        Err(end) => Err(in_words(config, &end)),
    }
}

/// Returns the error for a server that must not go on.
pub(crate) fn in_words(config: &Config, end: &ReplicaEnd) -> Box<dyn Error> {
    let database = shown_database(&config.database);
    match end {
        ReplicaEnd::OtherEngine(other) => format!(
            "another server ({}, {}) uses the database {database} with another container engine ({}). Servers of one \
             installation have to use the same engine: stop the other one, or give this one a database of its own by \
             LAUNCHWAY_DATABASE_URL",
            other.hostname,
            other.address,
            other.engine.as_deref().unwrap_or("unknown")
        ),
        ReplicaEnd::SameId => format!(
            "another process was registered in the database {database} with the id of this server: its data directory is a \
             copy of this one. Delete the file `server-id` of the copy, and start it again"
        ),
    }
    .into()
}
