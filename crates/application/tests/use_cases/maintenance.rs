//! Maintenance: lost jobs, output of containers, routes and retention.

mod lost_jobs;
mod routes;
mod runtime_logs;
mod sidecar_logs;
