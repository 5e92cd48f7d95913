//! The port to the place where versions run.

#[cfg(feature = "docker")]
mod docker;
mod process;

use std::{collections::BTreeMap, fmt, net::SocketAddr, str::FromStr, sync::Arc, time::Duration};

use async_trait::async_trait;
use launchway_domain::{
    applications::{Application, ImageRef, Port, Variables},
    clock::Timestamp,
    deployments::{PrintedLine, ProbeTarget, StepError},
    ids::{DeploymentId, InvalidId},
    routes::Route,
};

#[cfg(feature = "docker")]
pub use self::docker::DockerHost;
pub use self::process::{ProcessHost, ProcessHostBuilder, ProcessSpec};

/// The id of a running version: a deployment may be attempted several times, and a restart runs two copies
/// of one deployment beside each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VersionId {
    /// The deployment.
    pub deployment: DeploymentId,
    /// The number of the attempt, from 1.
    pub attempt: i32,
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.deployment, self.attempt)
    }
}

impl FromStr for VersionId {
    type Err = InvalidId;

    fn from_str(raw: &str) -> Result<Self, InvalidId> {
        let (deployment, attempt) = raw.split_once('.').ok_or(InvalidId)?;
        Ok(Self { deployment: deployment.parse()?, attempt: attempt.parse().map_err(|_invalid| InvalidId)? })
    }
}

/// A version to run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Version {
    /// The id of the version.
    pub id: VersionId,
    /// The application of the version.
    pub application: Application,
    /// The artifact to run. For a rollback, it is the one of the earlier deployment.
    pub image: ImageRef,
    /// The environment variables.
    pub environment: Variables,
    /// The port that the application asks for. A host may assign another one.
    pub port: Port,
}

impl Version {
    /// Returns labels that identify the version, for a host that has labels.
    #[must_use]
    pub fn labels(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([
            ("organization", self.application.organization_id.to_string()),
            ("application", self.application.id.to_string()),
            ("deployment", self.id.deployment.to_string()),
            ("attempt", self.id.attempt.to_string()),
        ])
    }
}

/// Runs versions.
///
/// Implementations guarantee that every call is idempotent, that a dropped [`start`](Host::start) leaves
/// nothing that [`list`](Host::list) does not return, and that versions are found again after a restart of
/// the service. Every call is made with a time limit, and a panic counts as a failed call.
///
/// The feature `conformance` has tests of these guarantees.
///
/// ```
/// use std::{collections::BTreeMap, net::SocketAddr, sync::Mutex};
/// use async_trait::async_trait;
/// use launchway_embedding::{Host, StepError, Version, VersionId};
///
/// /// Runs nothing, and says that it did.
/// #[derive(Default)]
/// struct Pretended(Mutex<BTreeMap<VersionId, SocketAddr>>);
///
/// #[async_trait]
/// impl Host for Pretended {
///     async fn start(&self, version: &Version) -> Result<SocketAddr, StepError> {
///         let address = SocketAddr::from(([127, 0, 0, 1], version.port.get()));
///         self.0.lock().unwrap().insert(version.id, address);
///         Ok(address)
///     }
///
///     async fn list(&self) -> Result<Vec<(VersionId, SocketAddr)>, StepError> {
///         Ok(self.0.lock().unwrap().iter().map(|(id, address)| (*id, *address)).collect())
///     }
///
///     async fn end(&self, id: VersionId) -> Result<(), StepError> {
///         self.0.lock().unwrap().remove(&id);
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Host: Send + Sync {
    /// Starts a version beside whatever else runs, and returns the address that it listens on. A running one
    /// with the same id is replaced.
    ///
    /// # Errors
    /// [`StepError::Rejected`] when it cannot be run, [`StepError::Retryable`] when a retry may help.
    async fn start(&self, version: &Version) -> Result<SocketAddr, StepError>;

    /// Returns every version that runs.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when that cannot be determined now.
    async fn list(&self) -> Result<Vec<(VersionId, SocketAddr)>, StepError>;

    /// Ends a version, if it runs: asks it to finish its last requests, waits, and then kills it.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when a retry may help.
    async fn end(&self, id: VersionId) -> Result<(), StepError>;

    /// Checks the health of a version once. By default, it has to accept a connection, and to respond with a
    /// status below 400 if the application has a health check path.
    ///
    /// # Errors
    /// A sentence that describes the response.
    async fn check(&self, target: &ProbeTarget) -> Result<(), String> {
        crate::probe::probe(target).await
    }

    /// Routes the host names of an application to a target. By default, versions are reached at their own
    /// address only.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when a retry may help.
    async fn route(&self, _route: &Route) -> Result<(), StepError> {
        Ok(())
    }

    /// Returns the lines that a version printed after `since`, oldest first, at most `limit`. By default,
    /// none.
    ///
    /// # Errors
    /// [`StepError::Retryable`] when they cannot be read now.
    async fn printed(
        &self,
        _id: VersionId,
        _since: Option<Timestamp>,
        _limit: usize,
    ) -> Result<Vec<PrintedLine>, StepError> {
        Ok(Vec::new())
    }

    /// Returns when a version may have ended by itself. By default never: versions are listed every few
    /// seconds anyway.
    async fn changed(&self) {
        std::future::pending().await
    }
}

macro_rules! forward {
    ($($pointer:ty),+) => {
        $(#[async_trait]
        impl<H: Host + ?Sized> Host for $pointer {
            async fn start(&self, version: &Version) -> Result<SocketAddr, StepError> {
                (**self).start(version).await
            }

            async fn list(&self) -> Result<Vec<(VersionId, SocketAddr)>, StepError> {
                (**self).list().await
            }

            async fn end(&self, id: VersionId) -> Result<(), StepError> {
                (**self).end(id).await
            }

            async fn check(&self, target: &ProbeTarget) -> Result<(), String> {
                (**self).check(target).await
            }

            async fn route(&self, route: &Route) -> Result<(), StepError> {
                (**self).route(route).await
            }

            async fn printed(
                &self,
                id: VersionId,
                since: Option<Timestamp>,
                limit: usize,
            ) -> Result<Vec<PrintedLine>, StepError> {
                (**self).printed(id, since, limit).await
            }

            async fn changed(&self) {
                (**self).changed().await
            }
        })+
    };
}
forward!(Arc<H>, Box<H>);

/// The time limits of calls to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostLimits {
    /// The time that a start may take.
    pub start: Duration,
    /// The time that the end of a version may take.
    pub end: Duration,
    /// The time that one health check may take.
    pub check: Duration,
    /// The time that every other call may take.
    pub call: Duration,
}

impl Default for HostLimits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            end: Duration::from_secs(30),
            check: Duration::from_secs(5),
            call: Duration::from_secs(10),
        }
    }
}
