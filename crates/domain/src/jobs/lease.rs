//! Workers and their leases on jobs.

use super::{Job, Pool};
use crate::ids::{BootId, InstanceId, JobId};

/// A worker of one run of a server process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WorkerId {
    /// The server process.
    pub instance: InstanceId,
    /// The run of the server process.
    pub boot: BootId,
    /// The number of the worker.
    pub worker: i32,
}

impl std::fmt::Display for WorkerId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.instance, self.boot, self.worker)
    }
}

/// A lease on a job. Every change of the job by a worker carries it, so that a worker that lost the job
/// meanwhile changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lease {
    /// The id of the job.
    pub job: JobId,
    /// The number of the attempt: no two leases on a job have the same.
    pub attempt: i32,
    /// The worker that holds it.
    pub worker: WorkerId,
}

/// The maximum numbers of concurrent jobs. Those of a pool count for each server, that of an organization
/// for all servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimLimits {
    /// In [`Pool::Builds`], and in [`Pool::Sites`] beside them.
    pub builds: usize,
    /// In [`Pool::Operations`].
    pub operations: usize,
    /// Of one organization in [`Pool::Builds`]; see [`of_organization`](ClaimLimits::of_organization)
    /// for the other pools.
    pub per_organization: usize,
}

impl ClaimLimits {
    /// Returns the maximum number of concurrent jobs in `pool`. A run of an extension may take arbitrarily
    /// long and load the machine as a build does: they have one slot less than builds, if there are two.
    #[must_use]
    pub fn of(self, pool: Pool) -> usize {
        match pool {
            Pool::Builds | Pool::Sites => self.builds,
            Pool::Operations => self.operations,
            Pool::Extensions => self.builds.saturating_sub(1).max(1),
        }
    }

    /// Returns the maximum number of concurrent jobs of one organization in `pool`. Runs of extensions have
    /// one slot less than builds here too. Operations are short, and after an outage of the engine there
    /// are many: an organization has all slots for them but one.
    #[must_use]
    pub fn of_organization(self, pool: Pool) -> usize {
        match pool {
            Pool::Builds | Pool::Sites => self.per_organization,
            Pool::Operations => self.per_organization.max(self.operations.saturating_sub(1)),
            Pool::Extensions => self.per_organization.saturating_sub(1).max(1),
        }
    }

    /// Returns the maximum number of concurrent jobs in all pools.
    #[must_use]
    pub fn total(self) -> usize {
        Pool::ALL.iter().map(|pool| self.of(*pool)).sum()
    }
}

/// A job that a worker has just claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedJob {
    /// The job.
    pub job: Job,
    /// The lease on it.
    pub lease: Lease,
}

/// The response to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heartbeat {
    /// The lease holds.
    Held,
    /// The lease holds, and cancellation was requested.
    CancelRequested,
    /// Another worker has the job, or it has finished: stop, and change nothing.
    Lost,
}

/// A job that was taken from a lost worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rescued {
    /// The job in its new state.
    pub job: Job,
    /// The worker that lost it.
    pub lost_by: WorkerId,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn extensions_have_one_place_less_than_builds() {
        let limits = |builds| ClaimLimits { builds, operations: 5, per_organization: 1 };
        let of = |builds| {
            let pools = Pool::ALL.iter();
            pools.map(|pool| (pool.as_str(), limits(builds).of(*pool))).collect::<Vec<_>>()
        };
        assert_eq!(of(4), [("builds", 4), ("sites", 4), ("operations", 5), ("extensions", 3)]);
        assert_eq!(of(1), [("builds", 1), ("sites", 1), ("operations", 5), ("extensions", 1)]);
        assert_eq!((limits(4).total(), limits(1).total()), (16, 8));
    }

    #[test]
    fn an_organization_never_has_every_place() {
        let of = |builds, per_organization| {
            let limits = ClaimLimits { builds, operations: 8, per_organization };
            let pools = Pool::ALL.iter();
            pools.map(|pool| (limits.of(*pool), limits.of_organization(*pool))).collect::<Vec<_>>()
        };
        assert_eq!(of(4, 3), [(4, 3), (4, 3), (8, 7), (3, 2)]);
        assert_eq!(of(2, 1), [(2, 1), (2, 1), (8, 7), (1, 1)]);
        assert_eq!(of(1, 1), [(1, 1), (1, 1), (8, 7), (1, 1)]);
        assert!(of(4, usize::MAX).iter().all(|(places, most)| most >= places));
    }

    #[test]
    fn a_worker_is_shown_by_its_instance_its_boot_and_its_number() {
        let [instance, boot] = [Uuid::from_u128(1), Uuid::from_u128(2)];
        let worker = WorkerId { instance: instance.into(), boot: boot.into(), worker: 3 };
        assert_eq!(worker.to_string(), format!("{instance}/{boot}/3"));
    }
}
