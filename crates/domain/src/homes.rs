//! Homes: the servers whose machines run what is stateful.
//!
//! On several machines, the volumes of an application with a compose file are on one of them. That machine is its home. The
//! extensions of an organization have a home too, under the id of the organization, and each of them as subject of its jobs.
//!
//! **Invariant:** the machine of a subject never changes until it is forgotten, and no other server than that of its home runs
//! a job of it. So nothing that is stateful is started on a machine without its files.

use async_trait::async_trait;

use crate::{
    ids::{ApplicationId, DeploymentId, ExecutionId, InstanceId, SubjectId},
    nodes::NodeId,
    store_error::StoreError,
};

/// A machine of a Swarm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The id of its engine, which it keeps when it leaves the Swarm. Machines that were cloned may share it.
    pub engine: String,
    /// The node that it is, until it leaves the Swarm.
    pub node: NodeId,
    /// Its name.
    pub hostname: String,
}

/// The server whose machine runs a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The subject of the jobs that run there only.
    pub subject: SubjectId,
    /// The server.
    pub server: InstanceId,
    /// Its machine.
    pub machine: Machine,
}

/// Stores homes.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait HomeRepository: Send + Sync {
    /// Returns every home, in no order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn homes(&self) -> Result<Vec<Home>, StoreError>;

    /// Stores `home` unless its subject has one. Returns the home that the subject has.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], [`StoreError::StorageFull`] or [`StoreError::Internal`].
    async fn assign(&self, home: &Home) -> Result<Home, StoreError>;

    /// Records the server, the node and the name of a machine in the homes on its node, except in those of another server that is
    /// `alive`, and in the homes of `server` on its engine by its name. Returns the number of homes that changed.
    ///
    /// A restored data directory is another server, and a machine that left the Swarm and joined it again is another node.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], [`StoreError::StorageFull`] or [`StoreError::Internal`].
    async fn renew(
        &self,
        server: InstanceId,
        machine: &Machine,
        alive: &[InstanceId],
    ) -> Result<usize, StoreError>;

    /// Deletes the homes on a node, and returns them in no order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn forget_node(&self, node: &NodeId) -> Result<Vec<Home>, StoreError>;

    /// Deletes the home of a subject of which nothing is left there.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn forget(&self, subject: SubjectId) -> Result<(), StoreError>;

    /// Returns the deployments that are queued for the homes on `server`, with their applications, in no order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn waiting_for(&self, server: InstanceId)
    -> Result<Vec<(ApplicationId, DeploymentId)>, StoreError>;

    /// Returns the runs of extensions that are queued for the homes on `server`, each with the subject of its job, in no
    /// order.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn runs_waiting_for(&self, server: InstanceId)
    -> Result<Vec<(SubjectId, ExecutionId)>, StoreError>;
}
