//! Maintenance: lost jobs, output of containers, routes, and what is too old.

mod lost_jobs;
mod routes;
mod runtime_logs;
mod sidecar_logs;
