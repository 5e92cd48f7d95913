//! Control of a running attempt at a job: requests to stop it, and the errors that end it.

use std::sync::atomic::{AtomicBool, Ordering};

use launchway_domain::{deployments::StepError, store::StoreError};
use tokio::sync::watch;

/// The reason to stop an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopRequest {
    /// The job was cancelled.
    Cancel,
    /// The job exceeded its timeout.
    Timeout,
}

/// The progress of an attempt, shared with the worker that may have to stop it.
pub(crate) struct JobControl {
    is_past: AtomicBool,
    handles_cancellation: AtomicBool,
    request: watch::Sender<Option<StopRequest>>,
}

impl Default for JobControl {
    fn default() -> Self {
        Self {
            is_past: AtomicBool::default(),
            handles_cancellation: AtomicBool::default(),
            request: watch::channel(None).0,
        }
    }
}

impl JobControl {
    /// Marks the attempt as committed: from here on it only goes forward.
    pub(crate) fn mark_committed(&self) {
        self.is_past.store(true, Ordering::Release);
    }

    pub(crate) fn is_committed(&self) -> bool {
        self.is_past.load(Ordering::Acquire)
    }

    /// Requests the attempt to stop. Returns `false` if it does not handle requests and has to be dropped.
    /// Only the first request counts.
    pub(crate) fn request_stop(&self, request: StopRequest) -> bool {
        self.request.send_if_modified(|known| {
            let is_new = known.is_none();
            known.get_or_insert(request);
            is_new
        });
        self.handles_cancellation.load(Ordering::Acquire)
    }
}

/// Only runs of extensions handle requests.
#[cfg(feature = "extensions")]
impl JobControl {
    /// Declares that the attempt polls for stop requests and rolls back its own work, so that it is not
    /// just dropped.
    pub(crate) fn handles_cancellation(&self) {
        self.handles_cancellation.store(true, Ordering::Release);
    }

    /// Returns the request to stop, if there is one.
    pub(crate) fn stop_request(&self) -> Option<StopRequest> {
        *self.request.borrow()
    }

    /// Waits for a request to stop.
    pub(crate) async fn stop_requested(&self) -> StopRequest {
        let mut request = self.request.subscribe();
        loop {
            if let Some(request) = *request.borrow_and_update() {
                return request;
            }
            if request.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// The error that ended an attempt without an outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    /// Another worker holds the lease by now.
    #[error("the lease was lost")]
    LeaseLost,
    /// The engine does not respond: the job is retried once it is back.
    #[error("{0}")]
    Unavailable(String),
    /// A fault of this machine or of the database: a retry may help.
    #[error("{0}")]
    Retryable(String),
    /// The request cannot succeed.
    #[error("{0}")]
    Permanent(String),
}

impl From<StepError> for JobError {
    fn from(error: StepError) -> Self {
        if let Some(source) = std::error::Error::source(&error) {
            tracing::error!(%error, ?source, "step of a job failed");
        }
        match error {
            StepError::Unavailable(reason) => Self::Unavailable(reason),
            StepError::Rejected(reason) => Self::Permanent(reason),
            error => Self::Retryable(error.to_string()),
        }
    }
}

impl From<StoreError> for JobError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Stale => Self::LeaseLost,
            error => {
                tracing::error!(%error, source = ?std::error::Error::source(&error), "database failed during a job");
                Self::Retryable("the database is not available".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_failed_is_retried_with_its_text() {
        let error = StepError::failed("the checkout cannot be read", std::io::Error::other("no disk"));
        assert!(std::error::Error::source(&error).is_some());
        let text = "the checkout cannot be read: no disk";
        assert!(matches!(error.into(), JobError::Retryable(reason) if reason == text));
    }

    #[tokio::test]
    async fn the_first_stop_request_counts_and_reaches_listeners() {
        let job_control = JobControl::default();
        assert_eq!(
            (job_control.stop_request(), job_control.request_stop(StopRequest::Timeout)),
            (None, false)
        );
        job_control.handles_cancellation();
        assert!(job_control.request_stop(StopRequest::Cancel));
        assert_eq!(
            (job_control.stop_request(), job_control.stop_requested().await),
            (Some(StopRequest::Timeout), StopRequest::Timeout)
        );
    }
}
