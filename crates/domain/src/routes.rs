//! Routes: the host names of applications, and the targets of their traffic.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use async_trait::async_trait;

use crate::{
    deployments::{ContainerId, StepError},
    ids::{ApplicationId, SubjectId},
};

/// The host names of one application, or of a container of an extension, and their target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The application or extension that the traffic is counted for.
    pub subject: SubjectId,
    /// The host names, in lower case and in their ASCII form.
    pub hosts: Vec<String>,
    /// The target of their traffic.
    pub target: Target,
}

/// The target of an application's traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The copies of the application that serve, over which requests are balanced; at least one.
    Endpoints(Vec<Endpoint>),
    /// A published folder.
    Site(PathBuf),
    /// None: a user stopped the application.
    Stopped,
    /// None: no version of it runs.
    Absent,
}

/// One copy of an application that serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The id of the container.
    pub id: ContainerId,
    /// The address that it listens on.
    pub address: SocketAddr,
}

impl Target {
    /// Returns the target with a single container.
    #[must_use]
    pub fn container(id: ContainerId, address: SocketAddr) -> Self {
        Self::Endpoints(vec![Endpoint { id, address }])
    }
}

/// Routes traffic to the live version of each application.
///
/// Promises: a change is atomic, drops no request, and is effective once the call has returned, also over a
/// restart of the proxy; a request in progress continues to its old target.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait TrafficRouter: Send + Sync {
    /// Returns whether there is a router. Without one, routes need not be read.
    fn is_there(&self) -> bool {
        true
    }

    /// Routes the host names of an application to its target, and no others to it.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the router is unreachable.
    async fn set(&self, route: &Route) -> Result<(), StepError>;

    /// Removes the routes of `application`.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the router is unreachable.
    async fn remove(&self, application: ApplicationId) -> Result<(), StepError>;

    /// Replaces all routes by these.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the router is unreachable.
    async fn replace_all(&self, routes: &[Route]) -> Result<(), StepError>;

    /// Returns whether the router is known to have all routes that were set. If not, all of them are set
    /// again.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the router is unreachable.
    async fn is_current(&self) -> Result<bool, StepError> {
        Ok(false)
    }

    /// Lets the routes to containers expire `lease` after this call, unless it is repeated in time; without a
    /// lease, they do not expire. An expired route is not in use until all routes are set again, because its
    /// address may be that of another container by then.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the router is unreachable.
    async fn lease(&self, lease: Option<Duration>) -> Result<(), StepError> {
        let _ = lease;
        Ok(())
    }

    /// Waits until no request is in progress to the previous target of `application`, or until the router's
    /// time limit: to `container`, or to any.
    ///
    /// # Errors
    /// [`StepError::Retryable`] if the router is unreachable.
    async fn drain(
        &self,
        application: ApplicationId,
        container: Option<ContainerId>,
    ) -> Result<(), StepError>;
}
