//! Runs of extensions: their states, values and steps.

use super::Extension;
use crate::{
    clock::Timestamp,
    ids::{ExecutionId, ExecutionStepId, ExtensionId, JobId, UserId},
    jobs::JobState,
    logs::{Level, clean},
    organizations::Scope,
    secret::Sealed,
    value::named,
};

named!(
    /// The state of a run, or of one of its steps.
    ExecutionState,
    "the state of a run",
    {
        Pending => "pending",
        Running => "running",
        Completed => "completed",
        Failed => "failed",
        Cancelled => "cancelled",
    }
);

/// A state transition that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run that is {} cannot become {}", from.as_str(), to.as_str())]
pub struct IllegalMove {
    /// The current state.
    pub from: ExecutionState,
    /// The state that is not reachable from it.
    pub to: ExecutionState,
}

impl ExecutionState {
    /// Returns whether the state is final.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Moves to the state `to`.
    ///
    /// # Errors
    /// [`IllegalMove`] unless the transition is allowed. A run that never started ends as failed or
    /// cancelled.
    pub fn advance(self, to: Self) -> Result<Self, IllegalMove> {
        let is_legal = match to {
            Self::Pending => false,
            Self::Running => self == Self::Pending,
            Self::Completed => self == Self::Running,
            Self::Failed | Self::Cancelled => !self.is_final(),
        };
        if is_legal { Ok(to) } else { Err(IllegalMove { from: self, to }) }
    }

    /// Returns the states from which `to` is reachable.
    #[must_use]
    pub fn before(to: Self) -> Vec<Self> {
        Self::ALL.iter().copied().filter(|from| from.advance(to).is_ok()).collect()
    }
}

named!(
    /// The phase of a run that a step belongs to.
    Phase,
    "`run` or `validate`",
    {
        Run => "run",
        Validate => "validate",
    }
);

/// A run of an extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// The id of the execution.
    pub id: ExecutionId,
    /// The organization that it belongs to.
    pub scope: Scope,
    /// The id of the extension.
    pub extension_id: ExtensionId,
    /// The user who requested it.
    pub user_id: UserId,
    /// The job that runs it.
    pub job_id: JobId,
    /// The current state.
    pub state: ExecutionState,
    /// The machine that runs it; empty before one does.
    pub server_hostname: String,
    /// The exit code of the step that failed; 0 otherwise.
    pub exit_code: i32,
    /// The reason of the failure; empty otherwise.
    pub error_message: String,
    /// The values of its variables, as JSON, without secrets.
    pub shown_values: String,
    /// The values of its variables, as JSON, encrypted.
    pub sealed_values: Sealed,
    /// The definition at the time of the request.
    pub definition: String,
    /// The number of its last log line.
    pub log_seq: i64,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it finished.
    pub completed_at: Option<Timestamp>,
    /// When it was requested.
    pub created_at: Timestamp,
}

impl Execution {
    /// Returns the associated data (AEAD) of [`sealed_values`](Execution::sealed_values).
    #[must_use]
    pub fn associated_data(id: ExecutionId) -> String {
        format!("executions.sealed_values:{id}")
    }
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionEnd {
    /// Completed, failed or cancelled.
    pub state: ExecutionState,
    /// The exit code of the step that failed; 0 otherwise.
    pub exit_code: i32,
    /// The reason of the failure; empty otherwise.
    pub error_message: String,
}

impl ExecutionEnd {
    /// Returns the outcome of a run whose job finished without it.
    #[must_use]
    pub fn after_job(job: JobState, reason: Option<&str>) -> Self {
        let (state, error_message) = match job {
            JobState::Cancelled => (ExecutionState::Cancelled, String::new()),
            JobState::Failed => {
                (ExecutionState::Failed, clean(reason.unwrap_or(JobState::WORKER_LOST).as_bytes()))
            }
            // A worker ends a run together with its job, and no other job supersedes a run's job.
            JobState::Succeeded | JobState::Superseded | JobState::Queued | JobState::Running => {
                (ExecutionState::Failed, JobState::NO_OUTCOME.to_owned())
            }
        };
        Self { state, exit_code: 0, error_message }
    }
}

/// A step of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionStep {
    /// The id of the execution step.
    pub id: ExecutionStepId,
    /// The id of the run.
    pub execution_id: ExecutionId,
    /// The name of the step.
    pub name: String,
    /// Its position, counted from 1 over both phases.
    pub order: i32,
    /// The phase of the run that it belongs to.
    pub phase: Phase,
    /// The current state.
    pub state: ExecutionState,
    /// The exit code of its program; 0 before it exits.
    pub exit_code: i32,
    /// When it started.
    pub started_at: Option<Timestamp>,
    /// When it finished.
    pub completed_at: Option<Timestamp>,
    /// When it was requested.
    pub created_at: Timestamp,
}

/// A step with its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedStep {
    /// The step.
    pub step: ExecutionStep,
    /// Its log lines, each with a line break: the newest [`ExecutionDetail::SHOWN`] bytes.
    pub output: String,
}

/// A run with its extension, steps and log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionDetail {
    /// The run.
    pub execution: Execution,
    /// The extension, with its variables.
    pub extension: Extension,
    /// Its steps in their order.
    pub steps: Vec<PrintedStep>,
    /// Its log lines, each with a line break: the newest [`ExecutionDetail::SHOWN`] bytes.
    pub log: String,
}

impl ExecutionDetail {
    /// The number of bytes of a log that are shown with a run.
    pub const SHOWN: usize = 64 * 1024;
}

/// A line of a run's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionLine {
    /// Its number in the log of its run, counted from 1 consecutively.
    pub seq: i64,
    /// The step that it came from; `None` for lines between the steps.
    pub step_id: Option<ExecutionStepId>,
    /// The level of the line.
    pub level: Level,
    /// The text of the line.
    pub text: String,
    /// When it was written.
    pub at: Timestamp,
}

/// A line to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewExecutionLine {
    /// The step that it came from.
    pub step_id: Option<ExecutionStepId>,
    /// The level of the line.
    pub level: Level,
    /// The text of the line.
    pub text: String,
    /// When it was written.
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::{ExecutionState as S, *};

    #[test]
    fn six_moves_are_legal_and_every_other_is_refused() {
        let legal = [
            (S::Pending, S::Running),
            (S::Pending, S::Failed),
            (S::Pending, S::Cancelled),
            (S::Running, S::Completed),
            (S::Running, S::Failed),
            (S::Running, S::Cancelled),
        ];
        for from in S::ALL.iter().copied() {
            for to in S::ALL.iter().copied() {
                let expected =
                    if legal.contains(&(from, to)) { Ok(to) } else { Err(IllegalMove { from, to }) };
                assert_eq!(from.advance(to), expected);
                assert_eq!(S::before(to).contains(&from), expected.is_ok());
            }
        }
    }

    #[test]
    fn a_run_ends_as_its_job_did() {
        for (job, reason, state, message) in [
            (JobState::Cancelled, Some("no port"), S::Cancelled, ""),
            (JobState::Failed, Some("no port"), S::Failed, "no port"),
            (JobState::Failed, None, S::Failed, "the worker was lost"),
            (JobState::Succeeded, None, S::Failed, "its job ended without an outcome"),
            (JobState::Superseded, None, S::Failed, "its job ended without an outcome"),
        ] {
            let end = ExecutionEnd { state, exit_code: 0, error_message: message.to_owned() };
            assert_eq!(ExecutionEnd::after_job(job, reason), end, "{job:?}");
        }
    }

    #[test]
    fn what_has_finished_never_changes() {
        for from in S::ALL.iter().copied().filter(|state| state.is_final()) {
            assert!(S::ALL.iter().all(|to| from.advance(*to).is_err()));
        }
    }
}
