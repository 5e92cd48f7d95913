//! The end of a deployment, as its job decides it.

use super::DeploymentState;
use crate::{ids::DeploymentId, jobs::JobState, logs::clean};

impl DeploymentState {
    /// Returns the state of a deployment that follows its job. One whose version is live only goes forward,
    /// whatever the end of its job.
    #[must_use]
    pub fn after_job(job: JobState, is_live: bool) -> Self {
        match job {
            _ if is_live => Self::Deployed,
            JobState::Queued | JobState::Running => Self::Queued,
            JobState::Cancelled | JobState::Superseded => Self::Cancelled,
            JobState::Failed | JobState::Succeeded => Self::Failed,
        }
    }
}

/// The cause of a deployment's end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndCause {
    /// The state of its job; `None` if there is no such job any more.
    pub job: Option<JobState>,
    /// The reason why the last attempt of the job failed.
    pub reason: Option<String>,
    /// The deployment whose job superseded it.
    pub replaced_by: Option<DeploymentId>,
}

impl EndCause {
    /// Returns the reason why a deployment ended in `state`, for users; empty if there is none to give.
    #[must_use]
    pub fn describe(&self, state: DeploymentState) -> String {
        let reason = self.reason.as_deref();
        match (state, self.job) {
            (DeploymentState::Cancelled, Some(JobState::Superseded)) => match self.replaced_by {
                Some(id) => format!("replaced by deployment {id}"),
                None => "replaced by a newer one".to_owned(),
            },
            (DeploymentState::Failed, Some(JobState::Succeeded)) => JobState::NO_OUTCOME.to_owned(),
            (DeploymentState::Failed, Some(JobState::Failed)) => {
                clean(reason.unwrap_or(JobState::WORKER_LOST).as_bytes())
            }
            (DeploymentState::Failed, _) => clean(reason.unwrap_or_default().as_bytes()),
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{DeploymentState as S, *};

    #[test]
    fn a_deployment_follows_its_job_unless_it_is_live() {
        for (job, to) in [
            (JobState::Queued, S::Queued),
            (JobState::Running, S::Queued),
            (JobState::Succeeded, S::Failed),
            (JobState::Failed, S::Failed),
            (JobState::Cancelled, S::Cancelled),
            (JobState::Superseded, S::Cancelled),
        ] {
            assert_eq!(S::after_job(job, false), to, "{job:?}");
            assert_eq!(S::after_job(job, true), S::Deployed, "{job:?}");
        }
    }

    #[test]
    fn the_reason_of_an_end_depends_on_its_job() {
        let (no_port, newer) = (Some("no\u{1b}[1m port"), Some(Uuid::nil().into()));
        for (state, job, reason, replaced_by, expected) in [
            (S::Cancelled, Some(JobState::Superseded), None, None, "replaced by a newer one"),
            (
                S::Cancelled,
                Some(JobState::Superseded),
                None,
                newer,
                "replaced by deployment 00000000-0000-0000-0000-000000000000",
            ),
            (S::Cancelled, Some(JobState::Cancelled), no_port, None, ""),
            (S::Failed, Some(JobState::Succeeded), no_port, None, "its job ended without an outcome"),
            (S::Failed, Some(JobState::Failed), no_port, None, "no port"),
            (S::Failed, Some(JobState::Failed), None, None, "the worker was lost"),
            (S::Failed, Some(JobState::Running), no_port, None, "no port"),
            (S::Failed, Some(JobState::Running), None, None, ""),
            (S::Failed, None, None, None, ""),
            (S::Deployed, Some(JobState::Failed), no_port, newer, ""),
        ] {
            let cause = EndCause { job, reason: reason.map(str::to_owned), replaced_by };
            assert_eq!(cause.describe(state), expected, "{state:?} {cause:?}");
        }
    }
}
