//! Where traffic goes while there is no front proxy.

use async_trait::async_trait;
use launchway_domain::{
    deployments::{StepError, Target, TrafficRouter},
    ids::ApplicationId,
};

/// Leads no traffic anywhere: an application is reached at its container's own address, which its
/// log tells, and a site in its folder.
#[derive(Debug, Clone, Copy, Default)]
pub struct DirectAddresses;

#[async_trait]
impl TrafficRouter for DirectAddresses {
    async fn switch(&self, application: ApplicationId, target: &Target) -> Result<(), StepError> {
        tracing::info!(application.id = %application, ?target, "the live version is reached here");
        Ok(())
    }

    async fn withdraw(&self, application: ApplicationId) -> Result<(), StepError> {
        tracing::info!(application.id = %application, "no version is reached any more");
        Ok(())
    }
}
