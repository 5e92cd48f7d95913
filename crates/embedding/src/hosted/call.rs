//! Calls to a host: each has a time limit, and survives a panic of the host.

use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
    time::Duration,
};

use launchway_domain::deployments::StepError;

use super::Hosted;

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

/// Polls a future, and returns the payload of a panic.
async fn caught<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    poll_fn(move |context| {
        // The future is not polled again after a panic.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(output)) => Poll::Ready(Ok(output)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}
