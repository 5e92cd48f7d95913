//! The states of deployments.
//!
//! **Invariant:** a deployment changes its state only by `DeploymentState::advance`.

use crate::value::{InvalidValue, parsed_by_conversion};

/// The state of a deployment.
///
/// ```
/// use launchway_domain::deployments::DeploymentState;
///
/// assert!(DeploymentState::Failed.is_final());
/// assert_eq!("deploying".parse(), Ok(DeploymentState::Deploying));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeploymentState {
    /// It waits for a worker.
    Queued,
    /// Its source is fetched.
    Cloning,
    /// Its image is built.
    Building,
    /// Its version is started, checked and routed to.
    Deploying,
    /// Its version is live, or was.
    Deployed,
    /// It failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

/// A state transition that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a deployment that is {} cannot become {}", from.as_str(), to.as_str())]
pub struct IllegalMove {
    /// The current state.
    pub from: DeploymentState,
    /// The state that is not reachable from it.
    pub to: DeploymentState,
}

impl DeploymentState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Cloning,
        Self::Building,
        Self::Deploying,
        Self::Deployed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Returns the name used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Cloning => "cloning",
            Self::Building => "building",
            Self::Deploying => "deploying",
            Self::Deployed => "deployed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns whether the state is final.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Deployed | Self::Failed | Self::Cancelled)
    }

    /// Returns whether a worker runs the deployment.
    #[must_use]
    pub fn is_in_progress(self) -> bool {
        matches!(self, Self::Cloning | Self::Building | Self::Deploying)
    }

    /// Moves to the state `to`.
    ///
    /// # Errors
    /// [`IllegalMove`] unless the transition is allowed: forward one by one, straight to `deploying` if
    /// nothing needs building, back to `queued` for another attempt, and to a final state.
    pub fn advance(self, to: Self) -> Result<Self, IllegalMove> {
        let is_legal = match to {
            Self::Queued => self.is_in_progress(),
            Self::Cloning => self == Self::Queued,
            Self::Building => self == Self::Cloning,
            Self::Deploying => matches!(self, Self::Queued | Self::Building),
            Self::Deployed => self == Self::Deploying,
            Self::Failed | Self::Cancelled => !self.is_final(),
        };
        if is_legal { Ok(to) } else { Err(IllegalMove { from: self, to }) }
    }

    /// Returns the states from which `to` is reachable.
    #[must_use]
    pub fn before(to: Self) -> Vec<Self> {
        Self::ALL.into_iter().filter(|from| from.advance(to).is_ok()).collect()
    }
}

parsed_by_conversion!(DeploymentState);

impl TryFrom<String> for DeploymentState {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        Self::ALL
            .into_iter()
            .find(|state| state.as_str() == raw)
            .ok_or_else(|| InvalidValue::text("the state of a deployment", &raw))
    }
}

#[cfg(test)]
mod tests {
    use super::{DeploymentState as S, *};

    const MOVES: [(S, S); 16] = [
        (S::Queued, S::Cloning),
        (S::Queued, S::Deploying),
        (S::Cloning, S::Building),
        (S::Building, S::Deploying),
        (S::Deploying, S::Deployed),
        (S::Cloning, S::Queued),
        (S::Building, S::Queued),
        (S::Deploying, S::Queued),
        (S::Queued, S::Failed),
        (S::Cloning, S::Failed),
        (S::Building, S::Failed),
        (S::Deploying, S::Failed),
        (S::Queued, S::Cancelled),
        (S::Cloning, S::Cancelled),
        (S::Building, S::Cancelled),
        (S::Deploying, S::Cancelled),
    ];

    #[test]
    fn sixteen_moves_are_legal_and_every_other_is_refused() {
        for from in S::ALL {
            for to in S::ALL {
                let expected =
                    if MOVES.contains(&(from, to)) { Ok(to) } else { Err(IllegalMove { from, to }) };
                assert_eq!(from.advance(to), expected);
                assert_eq!(S::before(to).contains(&from), expected.is_ok());
            }
        }
    }

    #[test]
    fn what_has_finished_never_changes() {
        for from in S::ALL.into_iter().filter(|state| state.is_final()) {
            assert!(S::ALL.into_iter().all(|to| from.advance(to).is_err()));
        }
    }

    #[test]
    fn states_are_read_as_they_are_written() {
        for state in S::ALL {
            assert_eq!(S::try_from(state.as_str().to_owned()), Ok(state));
        }
        assert!(S::try_from("lost".to_owned()).is_err());
    }
}
