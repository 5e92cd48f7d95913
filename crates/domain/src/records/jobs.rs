//! The job queue of the records.

use super::Records;
use crate::{
    clock::Timestamp,
    ids::{BootId, InstanceId, JobId},
    jobs::{
        ClaimLimits, ClaimedJob, Event, Heartbeat, Job, JobKind, JobState, Lease, NewJob, Pool, Rescued,
        WorkerId, Write,
    },
    organizations::Scope,
    store_error::StoreError,
};

/// A job with its lease.
#[derive(Debug, Clone)]
pub(super) struct KeptJob {
    pub(super) job: Job,
    held: Option<(Lease, Timestamp)>,
}

impl KeptJob {
    fn is_held_by(&self, lease: &Lease) -> bool {
        self.held.is_some_and(|(held, _)| held == *lease)
    }

    /// Applies an event that ends the job, or its current attempt.
    fn meet(&mut self, event: Event, at: Timestamp) -> Result<JobState, StoreError> {
        self.job.state = self.job.state.after(event).map_err(|_illegal| StoreError::Stale)?;
        self.job.finished_at = self.job.state.is_over().then_some(at);
        self.held = None;
        Ok(self.job.state)
    }

    /// Requests cancellation: at once if it is queued, else its worker learns it from a heartbeat.
    fn request_cancel(&mut self, at: Timestamp) -> Result<(), StoreError> {
        match self.job.state {
            JobState::Queued => self.meet(Event::Cancel, at).map(|_state| ()),
            JobState::Running => {
                self.job.cancel_requested_at.get_or_insert(at);
                Ok(())
            }
            _ => Err(StoreError::Stale),
        }
    }
}

impl Records {
    /// Deletes the jobs that had finished before then, and returns their number; those that stopped an
    /// application are kept, as [`JobQueue::forget`](crate::jobs::JobQueue::forget) promises.
    pub fn forget_jobs(&mut self, before: Timestamp) -> usize {
        let count = self.jobs.len();
        let is_old = |job: &Job| job.finished_at.is_some_and(|finished| finished < before);
        self.jobs.retain(|_, kept| kept.job.kind == JobKind::Stop || !is_old(&kept.job));
        count - self.jobs.len()
    }

    pub(super) fn apply_job(&mut self, write: &Write) -> Result<(), StoreError> {
        match write {
            Write::Enqueue(new) => self.enqueue(new),
            Write::RequestCancel { scope, id, at } => {
                let job = self.jobs.get_mut(id).filter(|kept| kept.job.scope == *scope);
                job.ok_or(StoreError::Stale)?.request_cancel(*at)
            }
            Write::RequestCancelAll { scope, subject, at } => {
                let of_subject =
                    |kept: &&mut KeptJob| kept.job.scope == *scope && kept.job.subject == *subject;
                let mut open =
                    self.jobs.values_mut().filter(of_subject).filter(|kept| !kept.job.state.is_over());
                open.try_for_each(|kept| kept.request_cancel(*at))
            }
            Write::Prove(lease) => self.held(lease).map(|_held| ()),
            Write::Settle { lease, outcome, at } => {
                let kept = self.held(lease)?;
                kept.job.reason = outcome.reason().map(str::to_owned).or(kept.job.reason.take());
                kept.meet(outcome.event(), *at).map(|_state| ())
            }
        }
    }

    fn enqueue(&mut self, new: &NewJob) -> Result<(), StoreError> {
        if let Some(older) =
            self.waiting_like(new.replaceable, |job| job.subject == new.subject && job.kind == new.kind)
            && let Some(older) = self.jobs.get_mut(&older)
        {
            older.job.superseded_by = Some(new.id);
            older.meet(Event::Supersede, new.enqueued_at)?;
        }
        self.jobs.insert(new.id, KeptJob { job: new.clone().into(), held: None });
        Ok(())
    }

    /// Returns the queued replaceable job that matches `like`, if the new one is replaceable.
    fn waiting_like(&self, is_replaceable: bool, like: impl Fn(&Job) -> bool) -> Option<JobId> {
        let mut waiting =
            self.jobs.values().map(|kept| &kept.job).filter(|job| job.state == JobState::Queued);
        let found = waiting.find(|job| is_replaceable && job.replaceable && like(job));
        found.map(|job| job.id)
    }

    fn held(&mut self, lease: &Lease) -> Result<&mut KeptJob, StoreError> {
        self.jobs.get_mut(&lease.job).filter(|kept| kept.is_held_by(lease)).ok_or(StoreError::Stale)
    }

    /// Returns the running jobs.
    pub fn running(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().map(|kept| &kept.job).filter(|job| job.state == JobState::Running)
    }

    /// Claims the next due job, as [`JobQueue::claim`](crate::jobs::JobQueue::claim) promises.
    pub fn claim(
        &mut self,
        worker: WorkerId,
        limits: ClaimLimits,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Option<ClaimedJob> {
        let running_in = |pool: Pool| self.running().filter(move |job| job.pool == pool);
        let running_for = |job: &Job| running_in(job.pool).filter(|other| other.scope == job.scope).count();
        let has_room = |job: &&Job| running_in(job.pool).count() < limits.of(job.pool);
        let is_free = |job: &&Job| !self.running().any(|running| running.subject == job.subject);
        let due = self.jobs.values().map(|kept| &kept.job);
        let due = due.filter(|job| job.state == JobState::Queued && job.run_at <= now).filter(is_free);
        let due = due.filter(has_room).filter(|job| running_for(job) < limits.of_organization(job.pool));
        let next = due.min_by_key(|job| {
            let turn = self.turns.get(&job.scope.id()).copied();
            (running_for(job), turn, job.run_at, job.enqueued_at, job.id)
        });
        let (id, organization) = next.map(|job| (job.id, job.scope.id()))?;
        let turn = self.turns.values().max().map_or(1, |last| last + 1);
        self.turns.insert(organization, turn);
        let kept = self.jobs.get_mut(&id)?;
        kept.job.state = kept.job.state.after(Event::Claim).ok()?;
        kept.job.attempt += 1;
        kept.job.started_at.get_or_insert(now);
        let lease = Lease { job: id, attempt: kept.job.attempt, worker };
        kept.held = Some((lease, lease_until));
        Some(ClaimedJob { job: kept.job.clone(), lease })
    }

    /// Extends a lease, and returns whether the job should continue.
    pub fn heartbeat(&mut self, lease: &Lease, until: Timestamp) -> Heartbeat {
        let Ok(kept) = self.held(lease) else { return Heartbeat::Lost };
        kept.held = Some((*lease, until));
        match kept.job.cancel_requested_at {
            Some(_) => Heartbeat::CancelRequested,
            None => Heartbeat::Held,
        }
    }

    /// Ends an attempt without an outcome, and returns the new state of the job. With `counts` the attempt
    /// counts.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if the lease was lost.
    pub fn give_back(
        &mut self,
        lease: &Lease,
        reason: &str,
        counts: bool,
        (now, run_at): (Timestamp, Timestamp),
    ) -> Result<JobState, StoreError> {
        let job = self.held(lease)?.job.clone();
        let like = |other: &Job| other.subject == job.subject && other.kind == job.kind;
        let newer = self.waiting_like(job.replaceable, like);
        let event = job.interrupted(newer, counts);
        let kept = self.held(lease)?;
        kept.job.reason = Some(reason.to_owned());
        kept.job.excused += i32::from(!counts);
        kept.job.superseded_by = newer.filter(|_| event == Event::Supersede);
        if event == Event::PutBack {
            kept.job.run_at = run_at;
            kept.job.cancel_requested_at = None;
        }
        kept.meet(event, now)
    }

    /// Takes jobs from lost workers, as [`JobQueue::rescue`](crate::jobs::JobQueue::rescue) promises for
    /// expired leases and earlier runs.
    pub fn rescue(&mut self, instance: InstanceId, boot: BootId, now: Timestamp) -> Vec<Rescued> {
        let is_lost = |(lease, until): &(Lease, Timestamp)| {
            *until <= now || (lease.worker.instance == instance && lease.worker.boot != boot)
        };
        let lost = self.jobs.values().filter_map(|kept| kept.held).filter(is_lost);
        let lost: Vec<Lease> = lost.map(|(lease, _)| lease).collect();
        let mut rescued = Vec::new();
        for lease in lost {
            if self.give_back(&lease, "the worker was lost", true, (now, now)).is_ok()
                && let Some(kept) = self.jobs.get(&lease.job)
            {
                rescued.push(Rescued { job: kept.job.clone(), lost_by: lease.worker });
            }
        }
        rescued
    }

    /// Returns one job; `None` if the organization has none with that id.
    #[must_use]
    pub fn job(&self, scope: Scope, id: JobId) -> Option<&Job> {
        self.jobs.get(&id).map(|kept| &kept.job).filter(|job| job.scope == scope)
    }
}
