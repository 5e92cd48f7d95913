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
    wish: watch::Sender<Option<StopRequest>>,
}

impl Default for JobControl {
    fn default() -> Self {
        Self {
            is_past: AtomicBool::default(),
            handles_cancellation: AtomicBool::default(),
            wish: watch::channel(None).0,
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

    /// Declares that the attempt polls for stop requests and rolls back its own work, so that it is not
    /// just dropped.
    pub(crate) fn handles_cancellation(&self) {
        self.handles_cancellation.store(true, Ordering::Release);
    }

    /// Requests the attempt to stop. Returns `false` if it does not handle requests and has to be dropped.
    /// Only the first request counts.
    pub(crate) fn tell(&self, wish: StopRequest) -> bool {
        self.wish.send_if_modified(|told| {
            let is_new = told.is_none();
            told.get_or_insert(wish);
            is_new
        });
        self.handles_cancellation.load(Ordering::Acquire)
    }

    /// Returns the request to stop, if there is one.
    pub(crate) fn wish(&self) -> Option<StopRequest> {
        *self.wish.borrow()
    }

    /// Waits for a request to stop.
    pub(crate) async fn wished(&self) -> StopRequest {
        let mut wish = self.wish.subscribe();
        loop {
            if let Some(wish) = *wish.borrow_and_update() {
                return wish;
            }
            if wish.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// The error that ended an attempt without an outcome.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobError {
    /// Another worker holds the lease by now.
    #[error("the lease does not hold any more")]
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
        match error {
            StepError::Unavailable(reason) => Self::Unavailable(reason),
            StepError::Retryable(reason) => Self::Retryable(reason),
            StepError::Rejected(reason) => Self::Permanent(reason),
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

    #[tokio::test]
    async fn the_first_wish_counts_and_is_told_to_who_listens() {
        let job_control = JobControl::default();
        assert_eq!((job_control.wish(), job_control.tell(StopRequest::Timeout)), (None, false));
        job_control.handles_cancellation();
        assert!(job_control.tell(StopRequest::Cancel));
        assert_eq!(
            (job_control.wish(), job_control.wished().await),
            (Some(StopRequest::Timeout), StopRequest::Timeout)
        );
    }
}
