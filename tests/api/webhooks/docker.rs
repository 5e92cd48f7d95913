//! Webhooks of applications that the Docker engine runs.

mod branch_poller;
mod canary;
mod deployments;
mod forks;
mod watch_paths;
