//! The states of applications.

use crate::{
    deployments::DeploymentState,
    value::{InvalidValue, parsed_by_conversion},
};

/// The state of an application.
///
/// ```
/// use launchway_domain::applications::ApplicationState;
///
/// assert_eq!("running".parse(), Ok(ApplicationState::Running));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApplicationState {
    /// The first version, or the first after a stop, is being deployed.
    InProgress(Progress),
    /// A version is live.
    Running,
    /// None is live, or the live one does not stay up.
    Failed,
    /// A user stopped it.
    Stopped,
}

/// The progress of a version that is not live yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Progress {
    /// It waits for a worker.
    Queued,
    /// Its source is fetched.
    Cloning,
    /// Its image is built.
    Building,
    /// It is started, checked and routed to.
    Deploying,
}

/// The health of a live version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// It is up and passes its check.
    Healthy,
    /// Some of its copies are up and pass their check, and others are not, with the reason.
    Degraded(String),
    /// It is down or fails its check, with the reason.
    Broken(String),
}

impl Health {
    /// Returns the state of an application whose live version has this health.
    #[must_use]
    pub fn state(&self) -> ApplicationState {
        match self {
            Self::Healthy | Self::Degraded(_) => ApplicationState::Running,
            Self::Broken(_) => ApplicationState::Failed,
        }
    }

    /// Returns the reason why it is broken, or degraded.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Healthy => None,
            Self::Degraded(reason) | Self::Broken(reason) => Some(reason),
        }
    }
}

impl ApplicationState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::InProgress(Progress::Queued),
        Self::InProgress(Progress::Cloning),
        Self::InProgress(Progress::Building),
        Self::InProgress(Progress::Deploying),
        Self::Running,
        Self::Failed,
        Self::Stopped,
    ];

    /// Returns the name used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InProgress(Progress::Queued) => "queued",
            Self::InProgress(Progress::Cloning) => "cloning",
            Self::InProgress(Progress::Building) => "building",
            Self::InProgress(Progress::Deploying) => "deploying",
            Self::Running => "running",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
        }
    }

    /// Returns the state of an application without a running version while its newest deployment is in the
    /// state `deployment`; `None` if the version just went live.
    #[must_use]
    pub fn without_a_running_version(deployment: DeploymentState, is_stopped: bool) -> Option<Self> {
        match deployment {
            DeploymentState::Queued => Some(Self::InProgress(Progress::Queued)),
            DeploymentState::Cloning => Some(Self::InProgress(Progress::Cloning)),
            DeploymentState::Building => Some(Self::InProgress(Progress::Building)),
            DeploymentState::Deploying => Some(Self::InProgress(Progress::Deploying)),
            DeploymentState::Deployed => None,
            DeploymentState::Failed | DeploymentState::Cancelled if is_stopped => Some(Self::Stopped),
            DeploymentState::Failed | DeploymentState::Cancelled => Some(Self::Failed),
        }
    }
}

parsed_by_conversion!(ApplicationState);

impl TryFrom<String> for ApplicationState {
    type Error = InvalidValue;

    fn try_from(raw: String) -> Result<Self, InvalidValue> {
        let name = raw.trim();
        Self::ALL.into_iter().find(|state| state.as_str() == name).ok_or_else(|| {
            InvalidValue::text(
                "one of queued, cloning, building, deploying, running, failed or stopped",
                name,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_they_are_written() {
        for state in ApplicationState::ALL {
            assert_eq!(ApplicationState::try_from(state.as_str().to_owned()), Ok(state));
        }
        assert!(ApplicationState::try_from("lost".to_owned()).is_err());
    }

    #[test]
    fn state_follows_the_deployment_without_a_running_version() {
        for deployment in DeploymentState::ALL {
            let state = ApplicationState::without_a_running_version(deployment, false);
            match deployment {
                DeploymentState::Deployed => assert_eq!(state, None),
                DeploymentState::Failed | DeploymentState::Cancelled => {
                    assert_eq!(state, Some(ApplicationState::Failed));
                }
                _ => assert_eq!(state.unwrap().as_str(), deployment.as_str()),
            }
        }
        for ended in [DeploymentState::Failed, DeploymentState::Cancelled] {
            let state = ApplicationState::without_a_running_version(ended, true);
            assert_eq!(state, Some(ApplicationState::Stopped));
        }
    }
}
