//! Jobs: what takes longer than a request, kept in a durable queue and worked on under a lease.

mod job;
mod lease;
mod pool;
mod state;

use async_trait::async_trait;

pub use self::{
    job::{HORIZON, Job, JobKind, MAX_ATTEMPTS, NewJob},
    lease::{ClaimLimits, ClaimedJob, Heartbeat, Lease, Rescued, WorkerId},
    pool::Pool,
    state::{Event, IllegalMove, JobState, Outcome},
};
use crate::{
    clock::Timestamp,
    ids::{BootId, InstanceId, JobId, SubjectId},
    organizations::Scope,
    store::{self, StoreError},
};

/// The queue as its workers use it. It writes nothing but its own tables; what has to go together
/// with other changes is a [`Write`].
///
/// Promises:
/// - a job is claimed by one worker at a time, and of one subject at most one runs;
/// - of jobs that are replaceable and have the same subject and kind at most one waits, the newest;
/// - no claim goes beyond the limits, however many are made at once;
/// - within a [pool](Pool), who has the fewest running is served next, and of those who was served longest
///   ago; within an organization, who was to run first;
/// - a lease holds until it is given back, settled or [rescued](JobQueue::rescue); whoever lost it
///   changes nothing any more;
/// - an attempt that ends without an outcome leads back to the queue, unless the job was to be
///   cancelled and leaves nothing [to be taken back](JobKind::has_to_be_taken_back), a newer one waits in its place, or it had [`MAX_ATTEMPTS`].
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait JobQueue: Send + Sync {
    /// Takes the next job that is due, as an attempt more, with a lease until `lease_until`; `None`
    /// when there is none that may run.
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

    /// Extends the lease, and tells whether the work is still wanted.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn heartbeat(&self, lease: &Lease, until: Timestamp) -> Result<Heartbeat, StoreError>;

    /// Gives a job back unfinished, because the worker has to stop. The attempt does not count.
    /// Returns what has become of the job.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when the lease does not hold any more, [`StoreError::Unavailable`] or
    /// [`StoreError::Internal`].
    async fn release(&self, lease: &Lease, now: Timestamp) -> Result<JobState, StoreError>;

    /// Gives a job back to be tried again from `run_at` on, and says why. The attempt counts.
    /// Returns what has become of the job.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when the lease does not hold any more, [`StoreError::Unavailable`] or
    /// [`StoreError::Internal`].
    async fn retry(
        &self,
        lease: &Lease,
        reason: &str,
        now: Timestamp,
        run_at: Timestamp,
    ) -> Result<JobState, StoreError>;

    /// Gives a job back because something that it needs does not answer, to be tried again from
    /// `run_at` on. The attempt does not count. Returns what has become of the job.
    ///
    /// # Errors
    /// [`StoreError::Stale`] when the lease does not hold any more, [`StoreError::Unavailable`] or
    /// [`StoreError::Internal`].
    async fn postpone(
        &self,
        lease: &Lease,
        reason: &str,
        now: Timestamp,
        run_at: Timestamp,
    ) -> Result<JobState, StoreError>;

    /// Takes jobs from workers that are lost: those whose lease has ended by `now`, and at once
    /// those that `instance` held in another run than `boot`. The attempts count. All of them are
    /// taken together or none is.
    ///
    /// Also sets right what a clock wrote that was ahead, and was set back since: what waits for a
    /// moment beyond the [`HORIZON`] is due at once, and a lease that holds for longer
    /// ends soon without a sign of life.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn rescue(
        &self,
        instance: InstanceId,
        boot: BootId,
        now: Timestamp,
    ) -> Result<Vec<Rescued>, StoreError>;

    /// Forgets some of the jobs that were over before then, and says how many; none when there are none left. That an
    /// application was stopped stays known: whoever compares branches asks for it.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn forget(&self, before: Timestamp) -> Result<usize, StoreError>;

    /// The subjects of the jobs that run.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn running(&self) -> Result<Vec<SubjectId>, StoreError>;

    /// One job; `None` when the organization has none with that id.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn get(&self, scope: Scope, id: JobId) -> Result<Option<Job>, StoreError>;
}

/// Changes to jobs that go together with others: with what they are the work of, or with what came
/// of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A job more. If it is replaceable, one that waits, is replaceable and has the same subject and
    /// kind is [`Superseded`](JobState::Superseded) by it.
    Enqueue(NewJob),
    /// A job is not wanted any more: one that waits is [`Cancelled`](JobState::Cancelled) at once,
    /// the worker of one that runs learns it from its next heartbeat. `Stale` when the organization
    /// has no such job, or it is over.
    RequestCancel {
        /// Whose.
        scope: Scope,
        /// Which.
        id: JobId,
        /// When.
        at: Timestamp,
    },
    /// No job about a subject is wanted any more: as [`RequestCancel`](Write::RequestCancel) for
    /// each that is not over. There may be none.
    RequestCancelAll {
        /// Whose.
        scope: Scope,
        /// About what.
        subject: SubjectId,
        /// When.
        at: Timestamp,
    },
    /// Nothing, if the lease holds: what else is in the unit is done only by who has the job.
    /// `Stale` when it does not hold any more.
    Prove(Lease),
    /// How a job ended. `Stale` when the lease does not hold any more.
    Settle {
        /// Which, and by whom.
        lease: Lease,
        /// How.
        outcome: Outcome,
        /// When.
        at: Timestamp,
    },
}

impl Write {
    /// Whether the trail has to tell of it. A job comes from a change and ends in one, which the
    /// trail tells of; to cancel it is one by itself.
    #[must_use]
    pub fn needs_audit(&self) -> bool {
        matches!(self, Self::RequestCancel { .. } | Self::RequestCancelAll { .. })
    }
}

impl From<Write> for store::Write {
    fn from(write: Write) -> Self {
        Self::Job(write)
    }
}
