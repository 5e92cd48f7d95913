//! Who works on a job, and for how long.

use super::Job;
use crate::ids::{BootId, InstanceId, JobId};

/// One of the workers of one run of a server process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkerId {
    /// Which server process.
    pub instance: InstanceId,
    /// Which run of it.
    pub boot: BootId,
    /// Which of its workers.
    pub worker: i32,
}

impl std::fmt::Display for WorkerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.instance, self.boot, self.worker)
    }
}

/// The right to work on a job. Whatever a worker does to the job carries it, so that one whose job
/// was taken from it meanwhile changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    /// On which job.
    pub job: JobId,
    /// For which attempt: no two leases on a job have the same.
    pub attempt: i32,
    /// Whose.
    pub worker: WorkerId,
}

/// How many jobs may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimLimits {
    /// In the whole installation.
    pub global: usize,
    /// Of one organization.
    pub per_organization: usize,
}

impl ClaimLimits {
    /// How many of them may be runs of extensions. What a run does may take as long as it likes, and
    /// whoever asks for many keeps nobody from deploying: one place is always left, if there are two.
    #[must_use]
    pub fn of_extensions(self) -> usize {
        self.global.saturating_sub(1).max(1)
    }
}

/// A job that a worker has just taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedJob {
    /// The job.
    pub job: Job,
    /// The right to work on it.
    pub lease: Lease,
}

/// What a worker learns when it says that it is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heartbeat {
    /// The lease holds.
    Held,
    /// The lease holds, and the work is not wanted any more.
    CancelRequested,
    /// The job is somebody else's, or over: stop, and change nothing.
    Lost,
}

/// A job that was taken from a lost worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescued {
    /// The job as it is now.
    pub job: Job,
    /// Who lost it.
    pub lost_by: WorkerId,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_worker_is_shown_by_its_instance_its_boot_and_its_number() {
        let [instance, boot] = [Uuid::from_u128(1), Uuid::from_u128(2)];
        let worker = WorkerId { instance: instance.into(), boot: boot.into(), worker: 3 };
        assert_eq!(worker.to_string(), format!("{instance}/{boot}/3"));
    }
}
