//! A piece of work.

use chrono::TimeDelta;

use super::{Event, JobState, Pool};
use crate::{
    clock::Timestamp,
    ids::{JobId, SubjectId},
    organizations::Scope,
    value::InvalidValue,
};

/// How many attempts that count a job has. One that kills its worker each time must not do so for
/// ever.
pub const MAX_ATTEMPTS: i32 = 3;

/// How far ahead the queue looks: further than a lease ever holds, and than a job ever waits to be
/// tried again. What is to happen later was written by a clock that was ahead.
pub const HORIZON: TimeDelta = TimeDelta::minutes(10);

/// What kind of work it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobKind {
    /// Bringing a version of an application to life.
    Deploy,
    /// Starting the live version of an application anew.
    Restart,
    /// Letting an application stand still.
    Stop,
    /// Removing what is left of a deleted application.
    Remove,
    /// Making the engine follow the record of an application.
    Reconcile,
    /// Running an extension.
    RunExtension,
    /// Removing what an extension made.
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

    /// The name that is stored.
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
    /// Whether an attempt that is lost has to be followed by another one in any case, and before
    /// others of its subject, because that one takes back what was done.
    #[must_use]
    pub fn has_to_be_taken_back(self) -> bool {
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

/// A piece of work that is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// Which.
    pub id: JobId,
    /// What kind of work.
    pub kind: JobKind,
    /// For whom.
    pub scope: Scope,
    /// What it works on: of one subject at most one job runs. The id of a record, never a caller's.
    pub subject: SubjectId,
    /// Whether a newer one of the same subject and kind takes its place while it waits, and it the
    /// place of an older one.
    pub replaceable: bool,
    /// What the worker has to know.
    pub payload: String,
    /// The workers that it waits for.
    pub pool: Pool,
    /// Not before this moment.
    pub run_at: Timestamp,
    /// When it came.
    pub enqueued_at: Timestamp,
}

/// A piece of work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Which.
    pub id: JobId,
    /// What kind of work.
    pub kind: JobKind,
    /// For whom.
    pub scope: Scope,
    /// What it works on: of one subject at most one job runs.
    pub subject: SubjectId,
    /// Whether a newer one of the same subject and kind takes its place while it waits.
    pub replaceable: bool,
    /// What the worker has to know.
    pub payload: String,
    /// The workers that it waits for.
    pub pool: Pool,
    /// Where it is.
    pub state: JobState,
    /// How often it was claimed. Only grows.
    pub attempt: i32,
    /// How many of the attempts do not count, because their worker had to stop.
    pub excused: i32,
    /// Not before this moment.
    pub run_at: Timestamp,
    /// When it came.
    pub enqueued_at: Timestamp,
    /// When it was first claimed.
    pub started_at: Option<Timestamp>,
    /// When it was over.
    pub finished_at: Option<Timestamp>,
    /// When somebody asked the worker to stop.
    pub cancel_requested_at: Option<Timestamp>,
    /// Which one took its place.
    pub superseded_by: Option<JobId>,
    /// Why the last attempt came to nothing.
    pub reason: Option<String>,
}

impl Job {
    /// How long it is kept once it is over.
    pub const KEPT: chrono::TimeDelta = chrono::TimeDelta::days(30);

    /// Whether an attempt that fails now is the last one.
    #[must_use]
    pub fn is_last_attempt(&self) -> bool {
        self.attempt - self.excused >= MAX_ATTEMPTS
    }

    /// What has to happen to a running job whose attempt ends without an outcome, given the
    /// [newer one](NewJob::replaceable) that waits, if any, and whether the attempt counts.
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
    /// The job as it waits for the first time.
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
    fn an_interrupted_job_is_tried_again_until_its_attempts_are_used_up() {
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
    fn what_is_not_wanted_any_more_is_cancelled_whatever_else_is_true() {
        let job = Job { cancel_requested_at: Some(AT), ..running(3, 0) };
        for newer in [None, Some(Uuid::from_u128(1).into())] {
            assert_eq!(job.interrupted(newer, true), Event::Cancel);
            assert_eq!(job.interrupted(newer, false), Event::Cancel);
        }
    }

    #[test]
    fn what_has_to_be_taken_back_is_tried_again_although_nobody_wants_it() {
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
