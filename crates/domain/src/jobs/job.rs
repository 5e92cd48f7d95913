//! A job.

use chrono::TimeDelta;

use super::{Event, JobState, Pool};
use crate::{
    clock::Timestamp,
    ids::{JobId, SubjectId},
    organizations::Scope,
    value::InvalidValue,
};

/// The maximum number of attempts of a job that count. A job that kills its worker each time must not do so
/// forever.
pub const MAX_ATTEMPTS: i32 = 3;

/// The longest time that the queue looks ahead: more than any lease and any retry delay. A later time was
/// written by a clock that was ahead.
pub const HORIZON: TimeDelta = TimeDelta::minutes(10);

/// The time without a heartbeat after which a server counts as lost, with the jobs that are
/// [bound](JobKind::is_bound) to it. Until then it may come back.
pub const SERVER_LOST_AFTER: TimeDelta = TimeDelta::minutes(1);

/// The kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobKind {
    /// Deploys a version of an application.
    Deploy,
    /// Restarts the live version of an application.
    Restart,
    /// Stops an application.
    Stop,
    /// Removes the resources of a deleted application.
    Remove,
    /// Reconciles the engine with the record of an application.
    Reconcile,
    /// Runs an extension.
    RunExtension,
    /// Removes the objects that an extension created.
    UninstallExtension,
}

impl JobKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Deploy,
        Self::Restart,
        Self::Stop,
        Self::Remove,
        Self::Reconcile,
        Self::RunExtension,
        Self::UninstallExtension,
    ];

    /// Returns the name that is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deploy => "deploy",
            Self::Restart => "restart",
            Self::Stop => "stop",
            Self::Remove => "remove",
            Self::Reconcile => "reconcile",
            Self::RunExtension => "run_extension",
            Self::UninstallExtension => "uninstall_extension",
        }
    }
}

impl JobKind {
    /// Returns whether a lost attempt must be followed by another one in any case, and before other jobs of
    /// its subject, because that one reverts what was done.
    #[must_use]
    pub fn has_to_be_taken_back(self) -> bool {
        self == Self::RunExtension
    }

    /// Returns whether all attempts have to run on the server that claimed the job first, because its files
    /// are there.
    #[must_use]
    pub fn is_bound(self) -> bool {
        self == Self::RunExtension
    }
}

impl std::str::FromStr for JobKind {
    type Err = InvalidValue;

    fn from_str(raw: &str) -> Result<Self, InvalidValue> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == raw)
            .ok_or_else(|| InvalidValue::text("a kind of job", raw))
    }
}

impl TryFrom<String> for JobKind {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        raw.parse()
    }
}

/// A job to enqueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// The id of the job.
    pub id: JobId,
    /// The kind of the job.
    pub kind: JobKind,
    /// The organization.
    pub scope: Scope,
    /// The subject: at most one job of a subject runs. The id of a record, never from a caller.
    pub subject: SubjectId,
    /// True if a newer job of the same subject and kind supersedes it while it is queued, and it an older
    /// one.
    pub replaceable: bool,
    /// The input for the worker.
    pub payload: String,
    /// The pool of workers that runs it.
    pub pool: Pool,
    /// When it is due.
    pub run_at: Timestamp,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
}

/// A job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The id of the job.
    pub id: JobId,
    /// The kind of the job.
    pub kind: JobKind,
    /// The organization.
    pub scope: Scope,
    /// The subject: at most one job of a subject runs.
    pub subject: SubjectId,
    /// True if a newer job of the same subject and kind supersedes it while it is queued.
    pub replaceable: bool,
    /// The input for the worker.
    pub payload: String,
    /// The pool of workers that runs it.
    pub pool: Pool,
    /// The current state.
    pub state: JobState,
    /// The number of times that it was claimed. Only grows.
    pub attempt: i32,
    /// The number of attempts that do not count, because their worker had to stop.
    pub excused: i32,
    /// When it is due.
    pub run_at: Timestamp,
    /// When it was enqueued.
    pub enqueued_at: Timestamp,
    /// When it was first claimed.
    pub started_at: Option<Timestamp>,
    /// When it finished.
    pub finished_at: Option<Timestamp>,
    /// When cancellation was requested.
    pub cancel_requested_at: Option<Timestamp>,
    /// The job that superseded it.
    pub superseded_by: Option<JobId>,
    /// The reason why the last attempt failed.
    pub reason: Option<String>,
}

impl Job {
    /// The retention of finished jobs.
    pub const KEPT: chrono::TimeDelta = chrono::TimeDelta::days(30);

    /// Returns whether the current attempt is the last one.
    #[must_use]
    pub fn is_last_attempt(&self) -> bool {
        self.attempt - self.excused >= MAX_ATTEMPTS
    }

    /// Returns the event for a running job whose attempt ends without an outcome, given the [newer
    /// one](NewJob::replaceable) in the queue, if any, and whether the attempt counts.
    #[must_use]
    pub fn interrupted(&self, newer: Option<JobId>, counts: bool) -> Event {
        if self.cancel_requested_at.is_some() && !self.kind.has_to_be_taken_back() {
            Event::Cancel
        } else if self.replaceable && newer.is_some() {
            Event::Supersede
        } else if counts && self.is_last_attempt() {
            Event::Fail
        } else {
            Event::PutBack
        }
    }
}

impl From<NewJob> for Job {
    /// Returns the job in its initial state.
    fn from(new: NewJob) -> Self {
        Self {
            id: new.id,
            kind: new.kind,
            scope: new.scope,
            subject: new.subject,
            replaceable: new.replaceable,
            payload: new.payload,
            pool: new.pool,
            state: JobState::Queued,
            attempt: 0,
            excused: 0,
            run_at: new.run_at,
            enqueued_at: new.enqueued_at,
            started_at: None,
            finished_at: None,
            cancel_requested_at: None,
            superseded_by: None,
            reason: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const AT: Timestamp = Timestamp::UNIX_EPOCH;

    fn running(attempt: i32, excused: i32) -> Job {
        Job {
            id: Uuid::nil().into(),
            kind: JobKind::Deploy,
            scope: Scope::of_record(Uuid::nil().into()),
            subject: Uuid::nil().into(),
            replaceable: true,
            payload: String::new(),
            pool: Pool::Builds,
            state: JobState::Running,
            attempt,
            excused,
            run_at: AT,
            enqueued_at: AT,
            started_at: Some(AT),
            finished_at: None,
            cancel_requested_at: None,
            superseded_by: None,
            reason: None,
        }
    }

    #[test]
    fn retries_an_interrupted_job_until_the_last_attempt() {
        let events = [1, 2, 3, 4].map(|attempt| running(attempt, 0).interrupted(None, true));
        assert_eq!(events, [Event::PutBack, Event::PutBack, Event::Fail, Event::Fail]);
    }

    #[test]
    fn what_does_not_count_uses_up_no_attempt() {
        assert_eq!(running(3, 0).interrupted(None, false), Event::PutBack);
        assert_eq!(running(9, 7).interrupted(None, true), Event::PutBack);
        assert_eq!(running(9, 6).interrupted(None, true), Event::Fail);
    }

    #[test]
    fn a_newer_one_takes_the_place_of_what_is_replaceable_only() {
        let newer = Some(Uuid::from_u128(1).into());
        assert_eq!(running(1, 0).interrupted(newer, true), Event::Supersede);
        assert_eq!(running(3, 0).interrupted(newer, false), Event::Supersede);
        assert_eq!(Job { replaceable: false, ..running(1, 0) }.interrupted(newer, true), Event::PutBack);
    }

    #[test]
    fn cancels_an_interrupted_job_on_request_in_any_case() {
        let job = Job { cancel_requested_at: Some(AT), ..running(3, 0) };
        for newer in [None, Some(Uuid::from_u128(1).into())] {
            assert_eq!(job.interrupted(newer, true), Event::Cancel);
            assert_eq!(job.interrupted(newer, false), Event::Cancel);
        }
    }

    #[test]
    fn retries_a_cancelled_job_that_has_to_be_reverted() {
        let job = |attempt| Job {
            kind: JobKind::RunExtension,
            replaceable: false,
            cancel_requested_at: Some(AT),
            ..running(attempt, 0)
        };
        assert_eq!(job(1).interrupted(None, true), Event::PutBack);
        assert_eq!(job(3).interrupted(None, true), Event::Fail);
    }

    #[test]
    fn whatever_interrupts_a_running_job_is_a_legal_move() {
        for attempt in 1..=4 {
            for (newer, counts) in [(None, true), (None, false), (Some(Uuid::nil().into()), true)] {
                let event = running(attempt, 0).interrupted(newer, counts);
                assert!(JobState::Running.after(event).is_ok());
            }
        }
    }

    #[test]
    fn kinds_are_read_as_they_are_written() {
        for kind in JobKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert!("dance".parse::<JobKind>().is_err());
    }
}
