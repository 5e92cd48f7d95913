//! Control of a running attempt at a job: requests to stop it, and the errors that end it.

use std::sync::atomic::{AtomicBool, Ordering};

use launchway_domain::{deployments::StepError, store::StoreError};
use tokio::sync::watch;

/// The reason to stop an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    /// The job was cancelled.
    Cancel,
    /// The job exceeded its timeout.
    TimeIsUp,
}

/// The progress of an attempt, shared with the worker that may have to stop it.
pub(crate) struct Course {
    is_past: AtomicBool,
    winds_down: AtomicBool,
    wish: watch::Sender<Option<Wish>>,
}

impl Default for Course {
    fn default() -> Self {
        Self {
            is_past: AtomicBool::default(),
            winds_down: AtomicBool::default(),
            wish: watch::channel(None).0,
        }
    }
}

impl Course {
    /// Marks the attempt as committed: from here on it only goes forward.
    pub(crate) fn pass_the_point_of_no_return(&self) {
        self.is_past.store(true, Ordering::Release);
    }

    pub(crate) fn is_past_the_point_of_no_return(&self) -> bool {
        self.is_past.load(Ordering::Acquire)
    }

    /// Declares that the attempt polls for stop requests and rolls back its own work, so that it is not
    /// just dropped.
    pub(crate) fn wind_down_by_itself(&self) {
        self.winds_down.store(true, Ordering::Release);
    }

    /// Requests the attempt to stop. Returns `false` if it does not handle requests and has to be dropped.
    /// Only the first request counts.
    pub(crate) fn tell(&self, wish: Wish) -> bool {
        self.wish.send_if_modified(|told| {
            let is_new = told.is_none();
            told.get_or_insert(wish);
            is_new
        });
        self.winds_down.load(Ordering::Acquire)
    }

    /// Returns the request to stop, if there is one.
    pub(crate) fn wish(&self) -> Option<Wish> {
        *self.wish.borrow()
    }

    /// Waits for a request to stop.
    pub(crate) async fn wished(&self) -> Wish {
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
pub(crate) enum Stop {
    /// Another worker holds the lease by now.
    #[error("the lease does not hold any more")]
    Lost,
    /// The engine does not respond: the job is retried once it is back.
    #[error("{0}")]
    Unavailable(String),
    /// A fault of this machine or of the database: a retry may help.
    #[error("{0}")]
    Fault(String),
    /// The request cannot succeed.
    #[error("{0}")]
    Refused(String),
}

impl From<StepError> for Stop {
    fn from(error: StepError) -> Self {
        match error {
            StepError::Unavailable(reason) => Self::Unavailable(reason),
            StepError::Fault(reason) => Self::Fault(reason),
            StepError::Refused(reason) => Self::Refused(reason),
        }
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Stale => Self::Lost,
            error => {
                tracing::error!(%error, source = ?std::error::Error::source(&error), "database failed during a job");
                Self::Fault("the database is not available".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_wish_counts_and_is_told_to_who_listens() {
        let course = Course::default();
        assert_eq!((course.wish(), course.tell(Wish::TimeIsUp)), (None, false));
        course.wind_down_by_itself();
        assert!(course.tell(Wish::Cancel));
        assert_eq!((course.wish(), course.wished().await), (Some(Wish::TimeIsUp), Wish::TimeIsUp));
    }
}
