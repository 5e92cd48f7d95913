//! Where traffic goes while there is no front proxy.

use async_trait::async_trait;
use launchway_domain::{
    deployments::StepError,
    ids::ApplicationId,
    routes::{Route, TrafficRouter},
};

/// Leads no traffic anywhere: an application is reached at its container's own address, which its
/// log tells, and a site in its folder.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectAddresses;

#[async_trait]
impl TrafficRouter for DirectAddresses {
    async fn set(&self, route: &Route) -> Result<(), StepError> {
        tracing::info!(application.id = %route.application, route.target = ?route.target, "an application is reached here");
        Ok(())
    }

    async fn remove(&self, application: ApplicationId) -> Result<(), StepError> {
        tracing::info!(application.id = %application, "an application is not reached any more");
        Ok(())
    }

    async fn replace_all(&self, _: &[Route]) -> Result<(), StepError> {
        Ok(())
    }

    async fn drain(&self, _: ApplicationId) -> Result<(), StepError> {
        Ok(())
    }
}
