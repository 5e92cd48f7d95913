//! Runs of extensions: where they are, what they were told, and what came of each step.

use super::Extension;
use crate::{
    clock::Timestamp,
    ids::{ExecutionId, ExecutionStepId, ExtensionId, JobId, UserId},
    logs::Level,
    organizations::Scope,
    secret::Sealed,
    value::named,
};

named!(
    /// Where a run is, or one of its steps.
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

/// A move that no run and no step makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run that is {} cannot become {}", from.as_str(), to.as_str())]
pub struct IllegalMove {
    /// Where it is.
    pub from: ExecutionState,
    /// Where it cannot go.
    pub to: ExecutionState,
}

impl ExecutionState {
    /// Whether nothing can happen any more.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Moves on.
    ///
    /// # Errors
    /// [`IllegalMove`] for what the contract does not know. What never began ends as failed or
    /// cancelled.
    pub fn advance(self, to: Self) -> Result<Self, IllegalMove> {
        let is_legal = match to {
            Self::Pending => false,
            Self::Running => self == Self::Pending,
            Self::Completed => self == Self::Running,
            Self::Failed | Self::Cancelled => !self.is_over(),
        };
        if is_legal { Ok(to) } else { Err(IllegalMove { from: self, to }) }
    }

    /// The states that may move on to `to`.
    #[must_use]
    pub fn before(to: Self) -> Vec<Self> {
        Self::ALL.iter().copied().filter(|from| from.advance(to).is_ok()).collect()
    }
}

named!(
    /// Which part of a run a step belongs to.
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
    /// Which.
    pub id: ExecutionId,
    /// Whose.
    pub scope: Scope,
    /// Of which extension.
    pub extension_id: ExtensionId,
    /// Who asked for it.
    pub user_id: UserId,
    /// The job that does it.
    pub job_id: JobId,
    /// Where it is.
    pub state: ExecutionState,
    /// The machine that runs it; empty before one does.
    pub server_hostname: String,
    /// How the step ended that it failed by; 0 otherwise.
    pub exit_code: i32,
    /// Why it failed; empty otherwise.
    pub error_message: String,
    /// What it was told, as JSON, without secrets.
    pub shown_values: String,
    /// What it was told, as JSON.
    pub sealed_values: Sealed,
    /// The definition as it was when it was asked for.
    pub definition: String,
    /// The number of its last line.
    pub log_seq: i64,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it was over.
    pub completed_at: Option<Timestamp>,
    /// When it was asked for.
    pub created_at: Timestamp,
}

impl Execution {
    /// The place that [`sealed_values`](Execution::sealed_values) are sealed for.
    #[must_use]
    pub fn place(id: ExecutionId) -> String {
        format!("executions.sealed_values:{id}")
    }
}

/// A step of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionStep {
    /// Which.
    pub id: ExecutionStepId,
    /// Of which run.
    pub execution_id: ExecutionId,
    /// What it is called.
    pub name: String,
    /// Its place, from 1, over both phases.
    pub order: i32,
    /// Which part of the run it belongs to.
    pub phase: Phase,
    /// Where it is.
    pub state: ExecutionState,
    /// How its program ended; 0 before that.
    pub exit_code: i32,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it was over.
    pub completed_at: Option<Timestamp>,
    /// When it was asked for.
    pub created_at: Timestamp,
}

/// A step with what it printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrintedStep {
    /// The step.
    pub step: ExecutionStep,
    /// Its lines, each with its end: the newest [`ExecutionDetail::SHOWN`] bytes.
    pub output: String,
}

/// A run with everything around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionDetail {
    /// The run.
    pub execution: Execution,
    /// Of what, with its variables.
    pub extension: Extension,
    /// Its steps in their order.
    pub steps: Vec<PrintedStep>,
    /// Its lines, each with its end: the newest [`ExecutionDetail::SHOWN`] bytes.
    pub log: String,
}

impl ExecutionDetail {
    /// How much of a log is shown with a run, in bytes.
    pub const SHOWN: usize = 64 * 1024;
}

/// A line of a run's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionLine {
    /// Its place among the lines of its run, from 1 without a gap.
    pub seq: i64,
    /// The step that it came from; none for what was said around the steps.
    pub step_id: Option<ExecutionStepId>,
    /// What kind of line it is.
    pub level: Level,
    /// What it says.
    pub text: String,
    /// When.
    pub at: Timestamp,
}

/// A line that is to be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewExecutionLine {
    /// The step that it came from.
    pub step_id: Option<ExecutionStepId>,
    /// What kind of line it is.
    pub level: Level,
    /// What it says.
    pub text: String,
    /// When.
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
    fn what_is_over_never_changes() {
        for from in S::ALL.iter().copied().filter(|state| state.is_over()) {
            assert!(S::ALL.iter().all(|to| from.advance(*to).is_err()));
        }
    }
}
