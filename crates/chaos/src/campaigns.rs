//! The campaigns, by their names.

mod canaries;
mod clock_jumps;
mod conformance;
mod crash_points;
mod engine;
mod full_disk;
mod hostile_tenant;
mod hung_engine;
mod injections;
mod kills;
mod login_attempts;
mod outages;
mod power_cuts;
mod replicas;
mod restarts;
mod slow_clients;
mod swarm;

use crate::{options::Options, section::Section};

/// Runs a campaign to its end, and returns its section of the report.
type Campaign = fn(&Options) -> Section;

/// In the order of the report.
pub(crate) const CAMPAIGNS: [(&str, Campaign); 18] = [
    ("kills-sqlite", kills::on_sqlite),
    ("kills-postgres", kills::on_postgres),
    ("crash-points", crash_points::run),
    ("full-disk", full_disk::run),
    ("power-cuts", power_cuts::run),
    ("outages", outages::run),
    ("clock-jumps", clock_jumps::run),
    ("engine", engine::run),
    ("hung-engine", hung_engine::run),
    ("restarts", restarts::run),
    ("replicas", replicas::run),
    ("swarm", swarm::run),
    ("tenants", hostile_tenant::run),
    ("slow-clients", slow_clients::run),
    ("guesses", login_attempts::run),
    ("canaries", canaries::run),
    ("injections", injections::run),
    ("conformance", conformance::run),
];

/// Returns true for a campaign that starts a Docker engine of its own, which needs namespaces.
pub(crate) fn needs_isolation(name: &str) -> bool {
    ["engine", "hung-engine", "replicas", "restarts", "tenants"].contains(&name)
}
