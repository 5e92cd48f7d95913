//! Cleanup of containers after a call that did not finish.

use std::time::Duration;

use data_encoding::HEXLOWER;
use launchway_domain::secret::Entropy as _;
use launchway_system::clock::SystemEntropy;
use tokio::{runtime::Handle, time::sleep};

use crate::{command::Docker, labels::Label};

/// The delays before looking for the container of a dropped call: the engine may still be creating it at
/// first.
const LOOKS: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5)];

/// A guard for a call that creates a container, or a service that runs one. If it is dropped before it has ended, its container is
/// removed in the background. If this process ends too, the container is found by its labels later.
#[derive(Debug)]
pub(crate) struct ContainerGuard {
    docker: Docker,
    label: Label,
    is_service: bool,
    has_ended: bool,
}

impl ContainerGuard {
    pub(crate) fn new(docker: &Docker) -> Self {
        Self::called(docker, &HEXLOWER.encode(&SystemEntropy.bits_256()[..8]))
    }

    /// Returns the guard of a call that creates a service.
    pub(crate) fn of_service(docker: &Docker) -> Self {
        let mut guard = Self::new(docker);
        guard.is_service = true;
        guard
    }

    /// Returns the guard of one of several calls that create the same containers: each of them continues
    /// with the containers of an earlier one.
    pub(crate) fn called(docker: &Docker, call: &str) -> Self {
        Self { docker: docker.clone(), label: Label::of_call(call), is_service: false, has_ended: false }
    }

    /// Returns the label of this call's container.
    pub(crate) fn label(&self) -> Label {
        self.label.clone()
    }

    /// Ends the call, and removes its container unless it stays.
    pub(crate) async fn end(mut self, stays: bool) {
        if !stays && !remove(&self.docker, &self.label, self.is_service).await {
            tracing::warn!(label = self.label.as_str(), "container removal failed");
        }
        self.has_ended = true;
    }
}

impl Drop for ContainerGuard {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let (docker, label, is_service) = (self.docker.clone(), self.label.clone(), self.is_service);
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                for pause in LOOKS {
                    sleep(pause).await;
                    remove(&docker, &label, is_service).await;
                }
            });
        }
    }
}

async fn remove(docker: &Docker, label: &Label, is_service: bool) -> bool {
    if is_service {
        return match docker.services(std::slice::from_ref(label)).await {
            Ok(found) => docker.remove_services(&found).await.is_ok(),
            Err(_unreachable) => false,
        };
    }
    match docker.containers(std::slice::from_ref(label)).await {
        Ok(found) => docker.remove(&found).await.is_ok(),
        Err(_unreachable) => false,
    }
}
