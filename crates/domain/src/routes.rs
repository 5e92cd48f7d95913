//! Routes: which names lead to which application, and where its traffic goes.

use std::{net::SocketAddr, path::PathBuf};

use async_trait::async_trait;

use crate::{
    deployments::{ContainerId, StepError},
    ids::{ApplicationId, SubjectId},
};

/// The names of one application, or of a container of an extension, and where they lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Whose traffic it is: what requests are counted by.
    pub subject: SubjectId,
    /// Its names, in lower case and in their ASCII form.
    pub hosts: Vec<String>,
    /// Where they lead.
    pub target: Target,
}

/// Where an application's traffic goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// To a container.
    Container {
        /// Which.
        id: ContainerId,
        /// Where it listens.
        address: SocketAddr,
    },
    /// To a published folder.
    Site(PathBuf),
    /// Nowhere: somebody stopped the application.
    Stopped,
    /// Nowhere: no version of it runs.
    Absent,
}

/// Leads traffic to the live version of each application.
///
/// Promises: a change is atomic, drops no request, and holds once the call has returned, also over a
/// restart of whoever leads the traffic; a request that is under way goes on to where it was led.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait TrafficRouter: Send + Sync {
    /// Whether there is somebody to tell. Where there is nobody, nobody has to read routes.
    fn is_there(&self) -> bool {
        true
    }

    /// Leads the names of an application there from now on, and no others to it.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the router is not there.
    async fn set(&self, route: &Route) -> Result<(), StepError>;

    /// Leads no name to `application` any more.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the router is not there.
    async fn remove(&self, application: ApplicationId) -> Result<(), StepError>;

    /// Knows these routes from now on, and no others.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the router is not there.
    async fn replace_all(&self, routes: &[Route]) -> Result<(), StepError>;

    /// True if the router is known to have all the routes that it was told. Where that is not known, it is told
    /// all of them again.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the router is not there.
    async fn is_current(&self) -> Result<bool, StepError> {
        Ok(false)
    }

    /// Returns when no request is under way any more to where the traffic of `application` went
    /// before, or when the router's time limit is over: to `container`, or to anything.
    ///
    /// # Errors
    /// [`StepError::Fault`] when the router is not there.
    async fn drain(
        &self,
        application: ApplicationId,
        container: Option<ContainerId>,
    ) -> Result<(), StepError>;
}
