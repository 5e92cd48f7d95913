//! The retention of records.

use chrono::TimeDelta;
use launchway_domain::{
    clock::Timestamp,
    deployments::{Deployment, KeptVersions},
    idempotency::IdempotencyKey,
    ids::{ApplicationId, DeploymentId, JobId},
    jobs::{Job, JobKind},
};

use super::Records;

/// The time that records are kept. The size of the records is bounded by these numbers and the number of
/// applications.
///
/// ```
/// use launchway_embedding::Retention;
///
/// let mut retention = Retention::default();
/// retention.audit = chrono::TimeDelta::days(3650);
/// assert_eq!((retention.log_lines, retention.deployments), (10_000, 100));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// The newest log lines that each application keeps.
    pub log_lines: i64,
    /// The newest finished deployments that each application keeps; versions that can be rolled back to, and
    /// the live one, are kept beside them.
    pub deployments: usize,
    /// The time that a finished job is kept.
    pub jobs: TimeDelta,
    /// The time that an entry of the audit log is kept.
    pub audit: TimeDelta,
}

impl Default for Retention {
    fn default() -> Self {
        Self { log_lines: 10_000, deployments: 100, jobs: Job::KEPT, audit: TimeDelta::days(365) }
    }
}

impl Records {
    /// Deletes what is older than its retention, and returns the number of deleted records.
    pub(crate) fn trim(&mut self, retention: Retention, kept: KeptVersions, now: Timestamp) -> usize {
        self.trim_lines(retention.log_lines)
            + self.trim_deployments(retention, kept, now)
            + self.forget_jobs(now - retention.jobs)
            + self.trim_audit_log(now - retention.audit)
            + self.forget_requests(now - IdempotencyKey::KEPT)
    }

    /// Deletes the oldest lines of every application, so that each keeps the newest `keep`, and those of
    /// deleted applications; returns their number.
    pub(crate) fn trim_lines(&mut self, keep: i64) -> usize {
        let mut old = Vec::new();
        let mut next = self.lines.keys().next().copied();
        while let Some((application, _)) = next {
            let last = self.lines_of(application).next_back().map_or(0, |line| line.number);
            let bound = if self.applications.contains(&application) { last - keep } else { i64::MAX };
            let range = (application, i64::MIN)..=(application, bound);
            old.extend(self.lines.range(range).map(|(key, _)| *key));
            next = self.lines.range((application, i64::MAX)..).next().map(|(key, _)| *key);
        }
        for key in &old {
            self.lines.remove(key);
        }
        old.len()
    }

    /// Deletes the jobs that had finished before then, and returns their number; those that stopped an
    /// application are kept, as [`JobQueue::forget`](launchway_domain::jobs::JobQueue::forget) promises.
    pub(crate) fn forget_jobs(&mut self, before: Timestamp) -> usize {
        let is_old = |job: &Job| job.finished_at.is_some_and(|finished| finished < before);
        let jobs = self.jobs.values().map(|kept| &kept.job);
        let old: Vec<JobId> =
            jobs.filter(|job| job.kind != JobKind::Stop && is_old(job)).map(|job| job.id).collect();
        for id in &old {
            self.jobs.remove(id);
        }
        old.len()
    }

    fn trim_deployments(&mut self, retention: Retention, kept: KeptVersions, now: Timestamp) -> usize {
        let mut owners: Vec<ApplicationId> = Vec::new();
        for (application, ..) in self.index.by_application.keys() {
            if owners.last() != Some(application) {
                owners.push(*application);
            }
        }
        let mut old: Vec<DeploymentId> = Vec::new();
        for owner in owners {
            let over = self.deployments_of(owner).filter(|one| one.status.state.is_final());
            let over: Vec<&Deployment> = match self.applications.contains(&owner) {
                true => over.skip(retention.deployments).collect(),
                // They tell what a deleted application left on the host, until that was removed.
                false => over.filter(|one| one.updated_at < now - retention.jobs).collect(),
            };
            let is_needed = |one: &&Deployment| {
                (self.index.standing.contains(&one.id) && self.applications.contains(&owner))
                    || self.retention_status(one.id, kept).is_some_and(|status| status.is_worth_keeping)
            };
            old.extend(over.iter().filter(|one| !is_needed(one)).map(|one| one.id));
        }
        old.iter().for_each(|id| self.remove_deployment(*id));
        old.len()
    }

    fn trim_audit_log(&mut self, before: Timestamp) -> usize {
        let entries = self.audit_log.iter();
        let old: Vec<u64> =
            entries.take_while(|(_, entry)| entry.at < before).map(|(number, _)| *number).collect();
        for number in &old {
            self.audit_log.remove(number);
        }
        old.len()
    }

    fn forget_requests(&mut self, before: Timestamp) -> usize {
        let requests = self.requests.iter().filter(|(_, at)| **at < before);
        let old: Vec<String> = requests.map(|(key, _)| key.clone()).collect();
        for key in &old {
            self.requests.remove(key);
        }
        old.len()
    }
}
