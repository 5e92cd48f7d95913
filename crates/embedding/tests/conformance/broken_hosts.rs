//! Hosts that break one promise each.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex as StdMutex},
};

use async_trait::async_trait;
use launchway_embedding::{Host, ProbeTarget, StepError, Version, VersionId, conformance::check_host};

use super::found;

/// The fault of a host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// None: the suite must pass it.
    None,
    /// It does not list what it started.
    Hides,
    /// It lists what it ended.
    ShowsEnded,
    /// It forgets versions instead of ending them.
    NeverEnds,
    /// It runs one version of a deployment at a time.
    RunsOne,
    /// It forgets what runs when it is opened again.
    Forgets,
    /// An error for the end of what does not run.
    Complains,
    /// It never finishes a start.
    Hangs,
    /// It panics.
    Panics,
}

/// The versions that outlive a host: those that respond, and those that are listed.
type Machine = Arc<StdMutex<State>>;

#[derive(Default)]
struct State {
    up: BTreeMap<VersionId, SocketAddr>,
    listed: BTreeMap<VersionId, SocketAddr>,
}

struct Broken(Fault, Machine);

#[async_trait]
impl Host for Broken {
    async fn start(&self, version: &Version) -> Result<SocketAddr, StepError> {
        match self.0 {
            Fault::Hangs => std::future::pending().await,
            Fault::Panics => panic!("no idea"),
            _ => {}
        }
        let State { up, listed } = &mut *self.1.lock().unwrap();
        if self.0 == Fault::RunsOne {
            up.retain(|id, _| id.deployment != version.id.deployment);
            listed.retain(|id, _| id.deployment != version.id.deployment);
        }
        let address = SocketAddr::from(([127, 0, 0, 1], 3000 + u16::try_from(version.id.attempt).unwrap()));
        up.insert(version.id, address);
        if self.0 != Fault::Hides {
            listed.insert(version.id, address);
        }
        Ok(address)
    }

    async fn list(&self) -> Result<Vec<(VersionId, SocketAddr)>, StepError> {
        Ok(self.1.lock().unwrap().listed.iter().map(|(id, address)| (*id, *address)).collect())
    }

    async fn end(&self, id: VersionId) -> Result<(), StepError> {
        let State { up, listed } = &mut *self.1.lock().unwrap();
        if self.0 != Fault::ShowsEnded {
            listed.remove(&id);
        }
        let ended = if self.0 == Fault::NeverEnds { None } else { up.remove(&id) };
        match ended {
            None if self.0 == Fault::Complains => Err(StepError::Retryable("there is none".to_owned())),
            _ => Ok(()),
        }
    }

    async fn check(&self, target: &ProbeTarget) -> Result<(), String> {
        let is_up = self.1.lock().unwrap().up.values().any(|address| *address == target.address);
        if is_up { Ok(()) } else { Err("nothing listens".to_owned()) }
    }
}

async fn check(fault: Fault) -> Result<(), launchway_embedding::conformance::Failures> {
    let machine = Machine::default();
    let open = || async {
        if fault == Fault::Forgets {
            *machine.lock().unwrap() = State::default();
        }
        Broken(fault, Arc::clone(&machine))
    };
    check_host(open, "web:1".parse().unwrap()).await
}

#[tokio::test]
async fn a_host_that_works_passes() {
    check(Fault::None).await.unwrap();
}

#[tokio::test]
async fn a_version_that_is_not_listed_is_found() {
    found(check(Fault::Hides).await, "a started version is listed and healthy");
}

#[tokio::test]
async fn a_version_that_is_never_ended_is_found() {
    found(check(Fault::NeverEnds).await, "an ended version is not there");
}

#[tokio::test]
async fn a_version_that_is_listed_after_its_end_is_found() {
    found(check(Fault::ShowsEnded).await, "an ended version is not there");
}

#[tokio::test]
async fn attempts_that_replace_each_other_are_found() {
    found(check(Fault::RunsOne).await, "two attempts run beside each other");
}

#[tokio::test]
async fn a_host_that_forgets_is_found() {
    found(check(Fault::Forgets).await, "a version is found again by the next run");
}

#[tokio::test]
async fn a_host_that_complains_about_nothing_is_found() {
    found(check(Fault::Complains).await, "the end of an unknown version is no error");
}

#[tokio::test(start_paused = true)]
async fn a_host_that_hangs_is_found() {
    found(check(Fault::Hangs).await, "a started version is listed and healthy");
}

#[tokio::test]
async fn a_host_that_panics_is_found() {
    found(check(Fault::Panics).await, "a started version is listed and healthy");
}
