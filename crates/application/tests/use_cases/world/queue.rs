//! The queue of the world.

use async_trait::async_trait;
use launchway_domain::{
    clock::Timestamp,
    deployments::Deployment,
    ids::{BootId, InstanceId, JobId, SubjectId},
    jobs::{
        ClaimLimits, ClaimedJob, Heartbeat, Job, JobKind, JobQueue, JobState, Lease, Pool, Rescued, WorkerId,
    },
    organizations::Scope,
    store::StoreError,
};
use launchway_testkit::{
    clock::{NEW_YEAR, moment},
    ids::id_of,
};

use super::{State, World};
use crate::ports::unavailable;

pub(crate) fn a_worker_id() -> WorkerId {
    WorkerId { instance: id_of("instance").into(), boot: id_of("boot").into(), worker: 1 }
}

/// Returns the job of `deployment`, or a job of another `kind` on its application, claimed for the n-th
/// time.
pub(crate) fn a_job(kind: JobKind, deployment: &Deployment, attempt: i32) -> ClaimedJob {
    let at = moment(NEW_YEAR);
    let job = Job {
        id: deployment.job_id,
        kind,
        scope: Scope::of_record(deployment.organization_id),
        subject: deployment.application_id.into(),
        replaceable: true,
        pool: if kind == JobKind::Deploy { Pool::Builds } else { Pool::Operations },
        payload: if kind == JobKind::Deploy { deployment.id.to_string() } else { String::new() },
        state: JobState::Running,
        attempt,
        excused: 0,
        run_at: at,
        enqueued_at: at,
        started_at: Some(at),
        finished_at: None,
        cancel_requested_at: None,
        superseded_by: None,
        reason: None,
    };
    let lease = Lease { job: job.id, attempt, worker: a_worker_id() };
    ClaimedJob { job, lease }
}

impl State {
    /// Ends the attempt at a job; returns the job.
    pub(super) fn give_back(&mut self, lease: &Lease) -> Option<Job> {
        let place = self.claimed.iter().position(|job| job.id == lease.job)?;
        Some(self.claimed.remove(place))
    }
}

/// Returns whether `job` is due and its pool has room.
fn may_run(state: &State, job: &Job, limits: ClaimLimits, now: Timestamp) -> bool {
    let in_pool = state.claimed.iter().filter(|claimed| claimed.pool == job.pool).count();
    let is_free = || state.claimed.iter().all(|claimed| claimed.subject != job.subject);
    job.run_at <= now && in_pool < limits.of(job.pool) && (!state.has_one_job_per_subject || is_free())
}

#[async_trait]
impl JobQueue for World {
    async fn claim(
        &self,
        worker: &WorkerId,
        limits: ClaimLimits,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        assert_eq!((*worker, (lease_until - now).num_seconds()), (a_worker_id(), 30));
        let mut state = self.state();
        if state.failing_claims > 0 {
            state.failing_claims -= 1;
            return Err(unavailable());
        }
        let next = state.waiting.iter().position(|waiting| may_run(&state, &waiting.job, limits, now));
        let claimed = next.and_then(|next| state.waiting.remove(next));
        state.claimed.extend(claimed.as_ref().map(|claimed| claimed.job.clone()));
        Ok(claimed)
    }

    async fn heartbeat(&self, _: &Lease, until: Timestamp) -> Result<Heartbeat, StoreError> {
        assert_eq!((until - self.now()).num_seconds(), 30);
        self.pass_time("heartbeat").await;
        let mut state = self.state();
        state.journal.push("heartbeat".to_owned());
        state.heartbeats.pop_front().unwrap_or(Ok(Heartbeat::Held))
    }

    async fn release(&self, lease: &Lease, _: Timestamp) -> Result<JobState, StoreError> {
        let mut state = self.state();
        state.journal.push(format!("release attempt {}", lease.attempt));
        state.give_back(lease);
        Ok(JobState::Queued)
    }

    async fn retry(
        &self,
        lease: &Lease,
        reason: &str,
        now: Timestamp,
        run_at: Timestamp,
    ) -> Result<JobState, StoreError> {
        let seconds = (run_at - now).num_seconds();
        let mut state = self.state();
        state.journal.push(format!("retry in {seconds} s ({reason})"));
        state.give_back(lease);
        Ok(JobState::Queued)
    }

    async fn postpone(
        &self,
        lease: &Lease,
        reason: &str,
        now: Timestamp,
        run_at: Timestamp,
    ) -> Result<JobState, StoreError> {
        let seconds = (run_at - now).num_seconds();
        let mut state = self.state();
        state.journal.push(format!("postpone by {seconds} s ({reason})"));
        let job = state.give_back(lease).ok_or(StoreError::Stale)?;
        let attempt = lease.attempt + 1;
        let (excused, reason) = (job.excused + 1, Some(reason.to_owned()));
        let job = Job { attempt, excused, reason, run_at, ..job };
        state.waiting.push_back(ClaimedJob { job, lease: Lease { attempt, ..*lease } });
        Ok(JobState::Queued)
    }

    async fn rescue(
        &self,
        instance: InstanceId,
        boot: BootId,
        _: Timestamp,
    ) -> Result<Vec<Rescued>, StoreError> {
        assert_eq!((instance, boot), (a_worker_id().instance, a_worker_id().boot));
        let mut state = self.state();
        state.journal.push("rescue".to_owned());
        if state.failing_claims > 0 {
            state.failing_claims -= 1;
            return Err(unavailable());
        }
        let rescued =
            state.waiting.drain(..).map(|claimed| Rescued { job: claimed.job, lost_by: a_worker_id() });
        Ok(rescued.collect())
    }

    async fn forget(&self, before: Timestamp) -> Result<usize, StoreError> {
        self.state().journal.push(format!("forget jobs {before}"));
        Ok(0)
    }

    async fn running(&self) -> Result<Vec<SubjectId>, StoreError> {
        let state = self.state();
        let claimed = state.claimed.iter().map(|job| job.subject);
        Ok(claimed.chain(state.busy.iter().copied()).collect())
    }

    async fn get(&self, _: Scope, _: JobId) -> Result<Option<Job>, StoreError> {
        unreachable!("no worker asks for one job")
    }
}
