//! Jobs: work that takes longer than a request, in a durable queue, processed under a lease.

mod job;
mod lease;
mod pool;
mod state;

use async_trait::async_trait;

pub use self::{
    job::{HORIZON, Job, JobKind, MAX_ATTEMPTS, NewJob, SERVER_LOST_AFTER},
    lease::{ClaimLimits, ClaimedJob, Heartbeat, Lease, Rescued, WorkerId},
    pool::Pool,
    state::{Event, IllegalMove, JobState, Outcome},
};
use crate::{
    clock::Timestamp,
    ids::{BootId, InstanceId, JobId, SubjectId},
    organizations::Scope,
    store_error::StoreError,
};

/// The queue as its workers use it. It writes nothing but its own tables; changes that have to be atomic
/// with others are a [`Write`].
///
/// Promises:
/// - a job is claimed by one worker at a time, and of one subject at most one runs;
/// - of replaceable jobs with the same subject and kind at most one is queued, the newest;
/// - no claim exceeds the limits, however many are made at once: the limit of a pool counts the jobs that the
///   [instance](WorkerId::instance) of the worker runs, that of an organization those of all instances;
/// - a job of a kind that is [bound](JobKind::is_bound) is claimed again only by the instance that claimed it
///   first;
/// - within a [pool](Pool), the organization with the fewest running jobs is served next, and of those the
///   one that was served longest ago; within an organization, the job that was due first;
/// - a lease holds until it is released, settled or [rescued](JobQueue::rescue); a worker that lost it
///   cannot change anything any more;
/// - an attempt that ends without an outcome puts the job back into the queue, unless the job was to be
///   cancelled and leaves nothing [to be reverted](JobKind::has_to_be_taken_back), a newer one is queued in
///   its place, or it had [`MAX_ATTEMPTS`].
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait JobQueue: Send + Sync {
    /// Claims the next due job as another attempt, with a lease until `lease_until`; `None` if no job may
    /// run.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn claim(
        &self,
        worker: &WorkerId,
        limits: ClaimLimits,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<Option<ClaimedJob>, StoreError>;

    /// Extends the lease, and returns whether the job should continue.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn heartbeat(&self, lease: &Lease, until: Timestamp) -> Result<Heartbeat, StoreError>;

    /// Releases a job unfinished, because the worker has to stop. The attempt does not count. Returns the
    /// new state of the job.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if the lease was lost, [`StoreError::Unavailable`] or
    /// [`StoreError::Internal`].
    async fn release(&self, lease: &Lease, now: Timestamp) -> Result<JobState, StoreError>;

    /// Releases a job for a retry from `run_at` on, with the reason. The attempt counts. Returns the new
    /// state of the job.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if the lease was lost, [`StoreError::Unavailable`] or
    /// [`StoreError::Internal`].
    async fn retry(
        &self,
        lease: &Lease,
        reason: &str,
        now: Timestamp,
        run_at: Timestamp,
    ) -> Result<JobState, StoreError>;

    /// Releases a job for a retry from `run_at` on, because a dependency of it does not answer. The attempt
    /// does not count. Returns the new state of the job.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if the lease was lost, [`StoreError::Unavailable`] or
    /// [`StoreError::Internal`].
    async fn postpone(
        &self,
        lease: &Lease,
        reason: &str,
        now: Timestamp,
        run_at: Timestamp,
    ) -> Result<JobState, StoreError>;

    /// Takes jobs from lost workers: those whose lease has expired by `now`, and at once those that
    /// `instance` held in another run than `boot`. The attempts count. All of them are taken together or
    /// none is. A job that is [bound](JobKind::is_bound) to another instance is left alone for
    /// [`SERVER_LOST_AFTER`], and then fails.
    ///
    /// Also repairs records of a clock that was ahead and was set back since: a job that waits for a time
    /// beyond the [`HORIZON`] is due at once, and a lease that holds for longer expires soon without a
    /// heartbeat.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn rescue(
        &self,
        instance: InstanceId,
        boot: BootId,
        now: Timestamp,
    ) -> Result<Vec<Rescued>, StoreError>;

    /// Deletes some of the jobs that had finished before then, and returns their number; 0 when none is
    /// left. The fact that an application was stopped is kept: the branch poller needs it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn forget(&self, before: Timestamp) -> Result<usize, StoreError>;

    /// Returns the subjects of the running jobs.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn running(&self) -> Result<Vec<SubjectId>, StoreError>;

    /// Returns one job; `None` if the organization has none with that id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn get(&self, scope: Scope, id: JobId) -> Result<Option<Job>, StoreError>;
}

/// The jobs of one kind that have not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepth {
    /// The kind.
    pub kind: JobKind,
    /// The jobs that wait, for a worker or for the time of their next attempt.
    pub waiting: u64,
    /// The jobs that run.
    pub running: u64,
    /// The time at which the oldest waiting job was enqueued.
    pub oldest_waiting: Option<Timestamp>,
}

/// Reads the depth of the queue.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait QueueStatistics: Send + Sync {
    /// Returns the unfinished jobs of the installation by their kind, in the order of [`JobKind::ALL`]. A kind without
    /// such jobs is left out.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn depths(&self) -> Result<Vec<QueueDepth>, StoreError>;
}

/// Changes to jobs that are atomic with others: with their request or with their result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// Enqueues a job. If it is replaceable, a queued and replaceable one with the same subject and kind is
    /// [`Superseded`](JobState::Superseded) by it.
    Enqueue(NewJob),
    /// Requests cancellation: a queued job is [`Cancelled`](JobState::Cancelled) at once, the worker of a
    /// running one learns it from its next heartbeat. `Stale` if the organization has no such job, or it
    /// has finished.
    RequestCancel {
        /// The organization that it belongs to.
        scope: Scope,
        /// The id of the job.
        id: JobId,
        /// The time of the change.
        at: Timestamp,
    },
    /// Requests cancellation of all jobs of a subject: as [`RequestCancel`](Write::RequestCancel) for each
    /// that has not finished. There may be none.
    RequestCancelAll {
        /// The organization that it belongs to.
        scope: Scope,
        /// The subject.
        subject: SubjectId,
        /// The time of the change.
        at: Timestamp,
    },
    /// Changes nothing, but makes the unit conditional on the lease: `Stale` if it was lost.
    Prove(Lease),
    /// Settles a job with its outcome. `Stale` if the lease was lost.
    Settle {
        /// The lease on the job.
        lease: Lease,
        /// The outcome.
        outcome: Outcome,
        /// The time of the change.
        at: Timestamp,
    },
}

impl Write {
    /// Returns whether the change requires an entry in the audit log. A job begins and ends with a change
    /// that has an entry of its own; only a cancellation needs one.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        matches!(self, Self::RequestCancel { .. } | Self::RequestCancelAll { .. })
    }
}
