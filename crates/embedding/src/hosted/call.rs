//! Calls to a host: each has a time limit, and survives a panic of the host.

use std::{future::Future, time::Duration};

use launchway_domain::deployments::StepError;

use super::Hosted;
use crate::caught::{caught, message};

impl Hosted {
    /// Calls the host. Without a result after `limit` the call fails, and may be retried; a panic rejects
    /// the version.
    pub(super) async fn call<T>(
        &self,
        what: &str,
        limit: Duration,
        call: impl Future<Output = Result<T, StepError>>,
    ) -> Result<T, StepError> {
        match tokio::time::timeout(limit, caught(call)).await {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => {
                let reason = message(&*panic);
                tracing::error!(what, reason, "host panicked");
                Err(StepError::Rejected(format!("the host panicked when it had to {what}: {reason}")))
            }
            Err(_elapsed) => {
                let seconds = limit.as_secs_f64();
                Err(StepError::Retryable(format!("the host did not {what} within {seconds} s")))
            }
        }
    }
}
