//! The resources that containers use.

use std::time::Duration;

use async_trait::async_trait;
use launchway_domain::{
    deployments::{ContainerId, StepError},
    metrics::{ContainerStatistics, ContainerUsage},
};
use serde::Deserialize;

use crate::{
    DockerEngine,
    errors::EngineError,
    socket::{Socket, SocketError},
};

/// The statistics of a container, as the engine reports them. Those of one that does not run are empty.
#[derive(Debug, Default, Deserialize)]
struct Statistics {
    #[serde(default)]
    cpu_stats: CpuStatistics,
    #[serde(default)]
    memory_stats: MemoryStatistics,
}

#[derive(Debug, Default, Deserialize)]
struct CpuStatistics {
    #[serde(default)]
    cpu_usage: CpuUsage,
}

#[derive(Debug, Default, Deserialize)]
struct CpuUsage {
    /// In nanoseconds.
    #[serde(default)]
    total_usage: u64,
}

#[derive(Debug, Default, Deserialize)]
struct MemoryStatistics {
    usage: Option<u64>,
    #[serde(default)]
    stats: MemoryDetails,
}

/// The part of the memory that the kernel can drop at any time, by the names of both versions of control groups.
#[derive(Debug, Default, Deserialize)]
struct MemoryDetails {
    inactive_file: Option<u64>,
    total_inactive_file: Option<u64>,
}

impl Statistics {
    /// Returns the usage as `docker stats` counts it; `None` for a container that does not run.
    fn usage(&self) -> Option<ContainerUsage> {
        let details = &self.memory_stats.stats;
        let droppable = details.total_inactive_file.or(details.inactive_file).unwrap_or_default();
        Some(ContainerUsage {
            cpu_time: Duration::from_nanos(self.cpu_stats.cpu_usage.total_usage),
            memory: self.memory_stats.usage?.saturating_sub(droppable),
        })
    }
}

#[async_trait]
impl ContainerStatistics for DockerEngine {
    async fn usage(&self, container: &ContainerId) -> Result<Option<ContainerUsage>, StepError> {
        // The client of the command line takes two samples, and a second.
        let Some(socket) = self.docker.socket().await else { return Ok(None) };
        read(socket, container).await.map_err(|error| EngineError::from(error).or_fault())
    }
}

async fn read(socket: &Socket, container: &ContainerId) -> Result<Option<ContainerUsage>, SocketError> {
    match socket.statistics(container).await {
        Ok(body) => {
            let found: Statistics =
                serde_json::from_slice(&body).map_err(|_not_json| SocketError::Unreadable)?;
            Ok(found.usage())
        }
        Err(SocketError::Status(hyper::StatusCode::NOT_FOUND)) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(json: &str) -> Option<ContainerUsage> {
        serde_json::from_str::<Statistics>(json).unwrap().usage()
    }

    #[test]
    fn memory_is_counted_without_droppable_caches() {
        for name in ["inactive_file", "total_inactive_file"] {
            let found = usage(&format!(
                r#"{{"cpu_stats": {{"cpu_usage": {{"total_usage": 1500000000}}, "online_cpus": 2}},
                    "memory_stats": {{"usage": 1000, "stats": {{"{name}": 300, "anon": 1}}, "limit": 5000}}}}"#
            ));
            let expected = ContainerUsage { cpu_time: Duration::from_millis(1500), memory: 700 };
            assert_eq!(found, Some(expected), "{name}");
        }
    }

    #[test]
    fn a_stopped_container_has_no_usage() {
        assert_eq!(usage(r#"{"cpu_stats": {"cpu_usage": {"total_usage": 0}}, "memory_stats": {}}"#), None);
        assert_eq!(usage("{}"), None);
    }
}
