//! The front proxy: applications are reachable, and stay so.

mod confinement;
mod copies;
mod load;
mod names;
mod pages;
mod sites;
mod survival;
mod tls;
mod wrk;

use launchway_testkit::server::WITH_A_FRONT;
use serde_json::{Value, json};

use crate::docker::deployments::{
    harness::{Harness, spec},
    repository::Repository,
};

/// A server with an engine and a front proxy.
fn harness() -> Harness {
    Harness::on_sqlite(&[WITH_A_FRONT])
}

/// The body of a request that publishes a repository's files.
pub(crate) fn site(name: &str, repository: &Repository) -> Value {
    let mut spec = spec(name, repository);
    spec["build_pack"] = json!("static");
    spec["health_check_path"] = json!("");
    spec
}

/// Returns the page at a host.
#[track_caller]
pub(crate) fn page(harness: &Harness, host: &str) -> String {
    let answer = harness.server.visitor(host).get("/");
    assert_eq!(answer.status, 200, "{host}: {answer:?}");
    answer.text.trim_end().to_owned()
}

/// Returns the status at a host.
fn status(harness: &Harness, host: &str) -> u16 {
    harness.server.visitor(host).get("/").status
}
