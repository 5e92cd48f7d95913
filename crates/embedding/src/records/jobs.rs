//! The job queue of the records.

use launchway_domain::{
    clock::Timestamp,
    ids::{BootId, InstanceId, JobId},
    jobs::{
        ClaimLimits, ClaimedJob, Event, Heartbeat, Job, JobState, Lease, NewJob, Pool, Rescued, WorkerId,
        Write,
    },
    organizations::Scope,
    store::StoreError,
};

use super::Records;

/// A job with its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeptJob {
    pub(super) job: Job,
    pub(super) held: Option<(Lease, Timestamp)>,
}

impl KeptJob {
    fn is_held_by(&self, lease: &Lease) -> bool {
        self.held.is_some_and(|(held, _)| held == *lease)
    }

    /// Applies an event that ends the job, or its current attempt.
    fn meet(&mut self, event: Event, at: Timestamp) -> Result<JobState, StoreError> {
        self.job.state = self.job.state.after(event).map_err(|_illegal| StoreError::Stale)?;
        self.job.finished_at = self.job.state.is_final().then_some(at);
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
    pub(super) fn apply_job(&mut self, write: &Write) -> Result<(), StoreError> {
        match write {
            Write::Enqueue(new) => self.enqueue(new),
            Write::RequestCancel { scope, id, at } => {
                self.job(*scope, *id).ok_or(StoreError::Stale)?;
                self.edit_job(*id, |kept| kept.request_cancel(*at))
            }
            Write::RequestCancelAll { scope, subject, at } => {
                let of_subject = |job: &&Job| job.scope == *scope && job.subject == *subject;
                let open: Vec<JobId> = self.open_jobs().filter(of_subject).map(|job| job.id).collect();
                open.into_iter().try_for_each(|id| self.edit_job(id, |kept| kept.request_cancel(*at)))
            }
            Write::Prove(lease) => self.held(lease).map(|_held| ()),
            Write::Settle { lease, outcome, at } => {
                self.held(lease)?;
                self.edit_job(lease.job, |kept| {
                    kept.job.reason = outcome.reason().map(str::to_owned).or(kept.job.reason.take());
                    kept.meet(outcome.event(), *at).map(|_state| ())
                })
            }
        }
    }

    /// Stores a job, and its place in the index.
    pub(super) fn put_job(&mut self, kept: KeptJob) {
        let id = kept.job.id;
        if kept.job.state.is_final() {
            self.index.open_jobs.remove(&id);
        } else {
            self.index.open_jobs.insert(id, ());
        }
        self.jobs.insert(id, kept);
    }

    /// Changes a job.
    fn edit_job<T>(
        &mut self,
        id: JobId,
        edit: impl FnOnce(&mut KeptJob) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut kept = self.jobs.get(&id).ok_or(StoreError::Stale)?.clone();
        let edited = edit(&mut kept)?;
        self.put_job(kept);
        Ok(edited)
    }

    fn enqueue(&mut self, new: &NewJob) -> Result<(), StoreError> {
        let is_same = |job: &Job| job.subject == new.subject && job.kind == new.kind;
        if let Some(older) = self.waiting_like(new.replaceable, is_same) {
            self.edit_job(older, |older| {
                older.job.superseded_by = Some(new.id);
                older.meet(Event::Supersede, new.enqueued_at)
            })?;
        }
        self.put_job(KeptJob { job: new.clone().into(), held: None });
        Ok(())
    }

    /// Returns the queued replaceable job that matches `like`, if the new one is replaceable.
    fn waiting_like(&self, is_replaceable: bool, like: impl Fn(&Job) -> bool) -> Option<JobId> {
        let mut waiting = self.open_jobs().filter(|job| job.state == JobState::Queued);
        let found = waiting.find(|job| is_replaceable && job.replaceable && like(job));
        found.map(|job| job.id)
    }

    fn held(&self, lease: &Lease) -> Result<&KeptJob, StoreError> {
        self.jobs.get(&lease.job).filter(|kept| kept.is_held_by(lease)).ok_or(StoreError::Stale)
    }

    fn open_jobs(&self) -> impl Iterator<Item = &Job> {
        self.index.open_jobs.keys().filter_map(|id| self.jobs.get(id)).map(|kept| &kept.job)
    }

    /// Returns the running jobs.
    pub fn running(&self) -> impl Iterator<Item = &Job> {
        self.open_jobs().filter(|job| job.state == JobState::Running)
    }

    /// Claims the next due job, as [`JobQueue::claim`](launchway_domain::jobs::JobQueue::claim) promises.
    pub(crate) fn claim(
        &mut self,
        worker: WorkerId,
        limits: ClaimLimits,
        now: Timestamp,
        lease_until: Timestamp,
    ) -> Option<ClaimedJob> {
        let running_in = |pool: Pool| self.running().filter(move |job| job.pool == pool);
        let running_for = |job: &Job| running_in(job.pool).filter(|other| other.scope == job.scope).count();
        let is_own =
            |kept: &&KeptJob| kept.held.is_some_and(|(lease, _)| lease.worker.instance == worker.instance);
        let own = || self.index.open_jobs.keys().filter_map(|id| self.jobs.get(id)).filter(is_own);
        let has_room =
            |job: &&Job| own().filter(|own| own.job.pool == job.pool).count() < limits.of(job.pool);
        let is_free = |job: &&Job| !self.running().any(|running| running.subject == job.subject);
        let due = self.open_jobs();
        let due = due.filter(|job| job.state == JobState::Queued && job.run_at <= now).filter(is_free);
        let due = due.filter(has_room).filter(|job| running_for(job) < limits.of_organization(job.pool));
        let next = due.min_by_key(|job| {
            let turn = self.turns.get(&job.scope.id()).copied();
            (running_for(job), turn, job.run_at, job.enqueued_at, job.id)
        });
        let (id, organization) = next.map(|job| (job.id, job.scope.id()))?;
        let turn = self.turns.values().max().map_or(1, |last| last + 1);
        self.turns.insert(organization, turn);
        let claimed = self.edit_job(id, |kept| {
            kept.job.state = kept.job.state.after(Event::Claim).map_err(|_illegal| StoreError::Stale)?;
            kept.job.attempt += 1;
            kept.job.started_at.get_or_insert(now);
            let lease = Lease { job: id, attempt: kept.job.attempt, worker };
            kept.held = Some((lease, lease_until));
            Ok(ClaimedJob { job: kept.job.clone(), lease })
        });
        claimed.ok()
    }

    /// Extends a lease, and returns whether the job should continue.
    pub(crate) fn heartbeat(&mut self, lease: &Lease, until: Timestamp) -> Heartbeat {
        if self.held(lease).is_err() {
            return Heartbeat::Lost;
        }
        let renewed = self.edit_job(lease.job, |kept| {
            kept.held = Some((*lease, until));
            Ok(kept.job.cancel_requested_at)
        });
        match renewed {
            Ok(Some(_)) => Heartbeat::CancelRequested,
            Ok(None) => Heartbeat::Held,
            Err(_) => Heartbeat::Lost,
        }
    }

    /// Ends an attempt without an outcome, and returns the new state of the job. With `counts` the attempt
    /// counts.
    ///
    /// # Errors
    /// [`StoreError::Stale`] if the lease was lost.
    pub(crate) fn give_back(
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
        self.edit_job(lease.job, |kept| {
            kept.job.reason = Some(reason.to_owned());
            kept.job.excused += i32::from(!counts);
            kept.job.superseded_by = newer.filter(|_| event == Event::Supersede);
            if event == Event::PutBack {
                kept.job.run_at = run_at;
                kept.job.cancel_requested_at = None;
            }
            kept.meet(event, now)
        })
    }

    /// Takes jobs from lost workers, as [`JobQueue::rescue`](launchway_domain::jobs::JobQueue::rescue)
    /// promises for expired leases and earlier runs.
    pub(crate) fn rescue(&mut self, instance: InstanceId, boot: BootId, now: Timestamp) -> Vec<Rescued> {
        let is_lost = |(lease, until): &(Lease, Timestamp)| {
            *until <= now || (lease.worker.instance == instance && lease.worker.boot != boot)
        };
        let open = self.index.open_jobs.keys().filter_map(|id| self.jobs.get(id));
        let lost: Vec<Lease> =
            open.filter_map(|kept| kept.held).filter(is_lost).map(|(lease, _)| lease).collect();
        let mut rescued = Vec::new();
        for lease in lost {
            if self.give_back(&lease, JobState::WORKER_LOST, true, (now, now)).is_ok()
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
