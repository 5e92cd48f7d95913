//! The states of jobs.

use crate::value::InvalidValue;

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobState {
    /// It waits for a worker.
    Queued,
    /// A worker runs it.
    Running,
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
    /// A newer job superseded it.
    Superseded,
}

/// A state transition of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A worker claims it.
    Claim,
    /// It goes back to the queue for a retry.
    PutBack,
    /// It succeeds.
    Succeed,
    /// It fails.
    Fail,
    /// It is cancelled.
    Cancel,
    /// A newer job supersedes it.
    Supersede,
}

impl Event {
    /// Every event.
    pub const ALL: [Self; 6] =
        [Self::Claim, Self::PutBack, Self::Succeed, Self::Fail, Self::Cancel, Self::Supersede];
}

/// An event that is not possible in the state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a job that is {} cannot handle {event:?}", state.as_str())]
pub struct IllegalMove {
    /// The current state.
    pub state: JobState,
    /// The event.
    pub event: Event,
}

impl JobState {
    /// The reason of a failure whose worker gave none.
    pub const WORKER_LOST: &'static str = "the worker was lost";
    /// The reason of a failure whose job was [bound](super::JobKind::is_bound) to a server that was lost.
    pub const SERVER_LOST: &'static str = "the server that ran it was lost: its files are on that machine";
    /// The reason of a failure whose job finished without an outcome for its subject.
    pub const NO_OUTCOME: &'static str = "its job ended without an outcome";

    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::Succeeded, Self::Failed, Self::Cancelled, Self::Superseded];

    /// Returns the name that is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
        }
    }

    /// Returns whether the state is final.
    #[must_use]
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }

    /// Returns the state after `event`.
    ///
    /// # Errors
    /// [`IllegalMove`] if it is not possible.
    pub fn after(self, event: Event) -> Result<Self, IllegalMove> {
        match (self, event) {
            (Self::Queued, Event::Claim) => Ok(Self::Running),
            (Self::Running, Event::PutBack) => Ok(Self::Queued),
            (Self::Running, Event::Succeed) => Ok(Self::Succeeded),
            (Self::Running, Event::Fail) => Ok(Self::Failed),
            (Self::Queued | Self::Running, Event::Cancel) => Ok(Self::Cancelled),
            (Self::Queued | Self::Running, Event::Supersede) => Ok(Self::Superseded),
            (state, event) => Err(IllegalMove { state, event }),
        }
    }
}

impl std::str::FromStr for JobState {
    type Err = InvalidValue;

    fn from_str(raw: &str) -> Result<Self, InvalidValue> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == raw)
            .ok_or_else(|| InvalidValue::text("the state of a job", raw))
    }
}

impl TryFrom<String> for JobState {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        raw.parse()
    }
}

/// The outcome of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed {
        /// The reason.
        reason: String,
    },
    /// It was cancelled.
    Cancelled,
}

impl Outcome {
    /// Returns the event of the outcome.
    #[must_use]
    pub fn event(&self) -> Event {
        match self {
            Self::Succeeded => Event::Succeed,
            Self::Failed { .. } => Event::Fail,
            Self::Cancelled => Event::Cancel,
        }
    }

    /// Returns the reason of a failure.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed { reason } => Some(reason),
            Self::Succeeded | Self::Cancelled => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::select};

    use super::*;

    const MOVES: [(JobState, Event, JobState); 8] = [
        (JobState::Queued, Event::Claim, JobState::Running),
        (JobState::Queued, Event::Cancel, JobState::Cancelled),
        (JobState::Queued, Event::Supersede, JobState::Superseded),
        (JobState::Running, Event::PutBack, JobState::Queued),
        (JobState::Running, Event::Succeed, JobState::Succeeded),
        (JobState::Running, Event::Fail, JobState::Failed),
        (JobState::Running, Event::Cancel, JobState::Cancelled),
        (JobState::Running, Event::Supersede, JobState::Superseded),
    ];

    #[test]
    fn eight_moves_are_legal_and_every_other_is_refused() {
        for state in JobState::ALL {
            for event in Event::ALL {
                let legal = MOVES.iter().find(|(from, by, _)| (*from, *by) == (state, event));
                let expected = legal.map(|(.., to)| *to).ok_or(IllegalMove { state, event });
                assert_eq!(state.after(event), expected);
            }
        }
    }

    #[test]
    fn a_refused_transition_names_state_and_event() {
        let refused = JobState::Failed.after(Event::Claim).unwrap_err();
        assert_eq!(refused.to_string(), "a job that is failed cannot handle Claim");
    }

    #[test]
    fn states_are_read_as_they_are_written() {
        for state in JobState::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        assert!("lost".parse::<JobState>().is_err());
    }

    #[test]
    fn every_outcome_ends_a_running_job_and_only_a_failure_says_why() {
        let failed = Outcome::Failed { reason: "no such branch".to_owned() };
        for (outcome, state, reason) in [
            (Outcome::Succeeded, JobState::Succeeded, None),
            (failed, JobState::Failed, Some("no such branch")),
            (Outcome::Cancelled, JobState::Cancelled, None),
        ] {
            assert_eq!(JobState::Running.after(outcome.event()), Ok(state));
            assert_eq!(outcome.reason(), reason);
        }
    }

    proptest! {
        #[test]
        fn what_has_finished_never_changes_and_the_rest_can_end(
            events in proptest::collection::vec(select(Event::ALL.to_vec()), 0..40)
        ) {
            let mut state = JobState::Queued;
            let (mut claims, mut returns) = (0, 0);
            for event in events {
                let after = state.after(event);
                prop_assert_eq!(state.is_final() && after.is_ok(), false);
                if let Ok(next) = after {
                    claims += i32::from(event == Event::Claim);
                    returns += i32::from(event == Event::PutBack);
                    state = next;
                }
                // A running job was claimed once more than it was put back.
                if !state.is_final() {
                    prop_assert_eq!(claims - returns, i32::from(state == JobState::Running));
                }
                prop_assert_eq!(state.after(Event::Cancel).is_ok(), !state.is_final());
            }
        }
    }
}
