//! Metrics of applications: the resources that their containers use.

use std::time::Duration;

use async_trait::async_trait;

use crate::deployments::{ContainerId, StepError};

/// The resources that a container uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContainerUsage {
    /// The processor time since its start, of all processors together.
    pub cpu_time: Duration,
    /// The memory in bytes, without caches that the kernel can drop.
    pub memory: u64,
}

/// Reads the resources that containers use.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait ContainerStatistics: Send + Sync {
    /// Returns the current usage of a container; `None` if it does not run, or if the engine does not report it.
    ///
    /// # Errors
    /// [`StepError::Unavailable`] if the engine does not answer.
    async fn usage(&self, container: &ContainerId) -> Result<Option<ContainerUsage>, StepError>;
}
