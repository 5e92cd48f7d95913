//! The resources that containers use.

use std::time::Duration;

use launchway_domain::{
    deployments::Deployer as _,
    metrics::{ContainerStatistics as _, ContainerUsage},
};

use crate::installation::{Installation, owner};

#[tokio::test]
async fn a_busy_container_uses_processor_time_and_memory() {
    let installation = Installation::new();
    let container = installation.container(owner(), "while true; do :; done").await;
    let usage = async || installation.engine.usage(&container.id).await.unwrap();
    let first: ContainerUsage = usage().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let second = usage().await.unwrap();
    assert!(second.cpu_time > first.cpu_time, "{first:?} {second:?}");
    assert!((1..1 << 30).contains(&second.memory), "{second:?}");
    installation.engine.stop(&container.id).await.unwrap();
    assert_eq!(usage().await, None, "it does not run");
    let unknown = "0".repeat(64).parse().unwrap();
    assert_eq!(installation.engine.usage(&unknown).await, Ok(None));
}
