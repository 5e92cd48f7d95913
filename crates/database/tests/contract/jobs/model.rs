//! Model-based test of the queue: random operations in random order.

use std::collections::{BTreeMap, HashMap};

use launchway_database::Database;
use launchway_domain::{
    ids::{InstanceId, JobId, SubjectId},
    jobs::{
        ClaimLimits, Event, Heartbeat, Job, JobKind, JobQueue as _, JobState, Lease, NewJob, Outcome,
        SERVER_LOST_AFTER, Write,
    },
    organizations::Scope,
    store::StoreError,
};
use proptest::{prelude::*, sample::Index, test_runner::Config};
use uuid::Uuid;

use super::{a_job_on, enqueue, settle, worker};
use crate::{
    builders::{Resident, at, commit, id},
    fresh::Fresh,
};

const ORGANIZATIONS: usize = 3;
const SUBJECTS: usize = 2;
const INSTANCES: u128 = 2;

#[derive(Debug, Clone)]
enum Step {
    Enqueue {
        organization: usize,
        subject: usize,
        replaceable: bool,
        /// True for a run of an extension, which is not replaceable.
        is_bound: bool,
        delay: i64,
    },
    Claim {
        instance: u128,
        builds: usize,
        per_organization: usize,
    },
    Heartbeat(Index),
    Settle(Index),
    Retry(Index, i64),
    Postpone(Index, i64),
    Release(Index),
    Cancel(Index),
    /// As the next boot of an instance, or as the current one.
    Rescue {
        instance: u128,
        after_restart: bool,
    },
    Wait(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let enqueue = (0..ORGANIZATIONS, 0..SUBJECTS, any::<bool>(), any::<bool>(), 0..3_i64).prop_map(
        |(organization, subject, replaceable, is_bound, delay)| Step::Enqueue {
            organization,
            subject,
            replaceable: replaceable && !is_bound,
            is_bound,
            delay,
        },
    );
    let claim = (1..=INSTANCES, 1..5_usize, 1..3_usize)
        .prop_map(|(instance, builds, per_organization)| Step::Claim { instance, builds, per_organization });
    let rescue = (1..=INSTANCES, any::<bool>())
        .prop_map(|(instance, after_restart)| Step::Rescue { instance, after_restart });
    let step = prop_oneof![
        6 => enqueue,
        8 => claim,
        2 => any::<Index>().prop_map(Step::Heartbeat),
        2 => any::<Index>().prop_map(Step::Settle),
        2 => (any::<Index>(), 0..5_i64).prop_map(|(lease, delay)| Step::Retry(lease, delay)),
        1 => (any::<Index>(), 0..5_i64).prop_map(|(lease, delay)| Step::Postpone(lease, delay)),
        1 => any::<Index>().prop_map(Step::Release),
        2 => any::<Index>().prop_map(Step::Cancel),
        2 => rescue,
        2 => (1..20_i64).prop_map(Step::Wait),
        1 => (60..90_i64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..50)
}

/// The expected state of the database.
struct Model {
    db: Database,
    now: i64,
    boot: u128,
    scopes: Vec<Scope>,
    subjects: Vec<[SubjectId; SUBJECTS]>,
    jobs: BTreeMap<JobId, Job>,
    /// The valid leases, and when they expire.
    held: HashMap<JobId, (Lease, i64)>,
    /// The instances that jobs are bound to.
    bound: HashMap<JobId, InstanceId>,
    /// Every lease so far.
    leases: Vec<Lease>,
    turns: HashMap<Uuid, usize>,
}

impl Model {
    async fn of(db: &Database) -> Self {
        let mut scopes = vec![];
        for name in ["ada", "grace", "alan"] {
            scopes.push(Resident::of(db, name).await.scope());
        }
        Self {
            db: db.clone(),
            now: 0,
            boot: 1,
            scopes,
            subjects: (0..ORGANIZATIONS).map(|_| [id(), id()]).collect(),
            jobs: BTreeMap::new(),
            held: HashMap::new(),
            bound: HashMap::new(),
            leases: vec![],
            turns: HashMap::new(),
        }
    }

    fn running(&self) -> impl Iterator<Item = &Job> {
        self.jobs.values().filter(|job| job.state == JobState::Running)
    }

    fn waiting_in_place_of(&self, job: &Job) -> Option<JobId> {
        let mut waiting = self.jobs.values().filter(|other| {
            other.state == JobState::Queued && other.replaceable && other.subject == job.subject
        });
        waiting.next().map(|other| other.id)
    }

    fn change(&mut self, id: JobId, event: Event) {
        let now = at(self.now);
        let job = self.jobs.get_mut(&id).unwrap();
        job.state = job.state.after(event).unwrap();
        job.finished_at = job.state.is_final().then_some(now);
        if job.state != JobState::Running {
            self.held.remove(&id);
        }
    }

    fn interrupt(&mut self, id: JobId, counts: bool, run_at: i64) -> JobState {
        let newer = self.waiting_in_place_of(&self.jobs[&id]);
        let event = self.jobs[&id].interrupted(newer, counts);
        self.change(id, event);
        let job = self.jobs.get_mut(&id).unwrap();
        job.excused += i32::from(!counts);
        match event {
            Event::Supersede => job.superseded_by = newer,
            Event::PutBack if job.kind.has_to_be_taken_back() => job.cancel_requested_at = None,
            Event::PutBack => job.run_at = at(run_at),
            _ => {}
        }
        job.state
    }

    fn next(&self, instance: InstanceId, limits: ClaimLimits) -> Option<JobId> {
        let runs = |scope: Scope| self.running().filter(|job| job.scope == scope).count();
        let own = self.held.values().filter(|(lease, _)| lease.worker.instance == instance);
        if own.count() >= limits.builds {
            return None;
        }
        // Begun by another server, which has to revert them first.
        let begun_elsewhere = |job: &&Job| {
            let bound = self.bound.get(&job.id);
            job.state == JobState::Queued && bound.is_some_and(|bound| *bound != instance)
        };
        let may_run = self.jobs.values().filter(|job| {
            job.state == JobState::Queued
                && job.run_at <= at(self.now)
                && runs(job.scope) < limits.per_organization
                && self.bound.get(&job.id).is_none_or(|bound| *bound == instance)
                && self.running().all(|other| other.subject != job.subject)
                && self.jobs.values().filter(begun_elsewhere).all(|other| other.subject != job.subject)
        });
        let turn = |job: &Job| self.turns.get(&job.scope.id().into()).copied().unwrap_or_default();
        may_run
            .min_by_key(|job| {
                (runs(job.scope), turn(job), job.scope.id(), job.run_at, job.enqueued_at, job.id)
            })
            .map(|job| job.id)
    }

    async fn enqueue(&mut self, new: NewJob) {
        enqueue(&self.db, &new).await;
        let job = Job::from(new);
        if let Some(older) = self.waiting_in_place_of(&job).filter(|_| job.replaceable) {
            self.change(older, Event::Supersede);
            self.jobs.get_mut(&older).unwrap().superseded_by = Some(job.id);
        }
        self.jobs.insert(job.id, job);
    }

    async fn claim(&mut self, instance: u128, limits: ClaimLimits) {
        let worker = worker(instance, self.boot, 1);
        let expected = self.next(worker.instance, limits);
        let claimed = self.db.claim(&worker, limits, at(self.now), at(self.now + 10)).await.unwrap();
        assert_eq!(claimed.as_ref().map(|claimed| claimed.job.id), expected);
        let (Some(id), Some(claimed)) = (expected, claimed) else { return };
        self.change(id, Event::Claim);
        let now = at(self.now);
        let job = self.jobs.get_mut(&id).unwrap();
        job.attempt += 1;
        job.started_at.get_or_insert(now);
        assert_eq!(claimed.lease, Lease { job: id, attempt: job.attempt, worker });
        if job.kind.is_bound() {
            self.bound.insert(id, worker.instance);
        }
        let organization = job.scope.id().into();
        self.leases.push(claimed.lease);
        self.held.insert(id, (claimed.lease, self.now + 10));
        self.turns.insert(organization, self.leases.len());
    }

    fn holds(&self, lease: &Lease) -> bool {
        self.held.get(&lease.job).is_some_and(|(held, _)| held == lease)
    }

    async fn heartbeat(&mut self, lease: Lease) {
        let expected = match (self.holds(&lease), &self.jobs[&lease.job].cancel_requested_at) {
            (false, _) => Heartbeat::Lost,
            (true, Some(_)) => Heartbeat::CancelRequested,
            (true, None) => Heartbeat::Held,
        };
        assert_eq!(self.db.heartbeat(&lease, at(self.now + 10)).await.unwrap(), expected);
        if expected != Heartbeat::Lost {
            self.held.insert(lease.job, (lease, self.now + 10));
        }
    }

    async fn settle(&mut self, lease: Lease) {
        let settled = settle(&self.db, lease, Outcome::Succeeded, self.now).await;
        assert_eq!(settled.is_ok(), self.holds(&lease));
        if self.holds(&lease) {
            self.change(lease.job, Event::Succeed);
        }
    }

    fn gave_back(&mut self, lease: Lease, counts: bool, run_at: i64, returned: Result<JobState, StoreError>) {
        let expected = self.holds(&lease).then(|| self.interrupt(lease.job, counts, run_at));
        assert_eq!(returned.ok(), expected);
    }

    async fn cancel(&mut self, id: JobId) {
        let Job { scope, state, .. } = self.jobs[&id];
        let cancelled = commit(&self.db, Write::RequestCancel { scope, id, at: at(self.now) }).await;
        assert_eq!(cancelled.is_ok(), !state.is_final());
        match state {
            JobState::Queued => self.change(id, Event::Cancel),
            JobState::Running => {
                let now = at(self.now);
                self.jobs.get_mut(&id).unwrap().cancel_requested_at.get_or_insert(now);
            }
            _ => {}
        }
    }

    async fn rescue(&mut self, instance: u128, after_restart: bool) {
        self.boot += u128::from(after_restart);
        let rescuer = worker(instance, self.boot, 1);
        let is_elsewhere = |lease: &Lease| {
            let bound = self.bound.get(&lease.job);
            bound.is_some_and(|bound| *bound != rescuer.instance)
        };
        let is_lost = |(lease, until): &(Lease, i64)| match is_elsewhere(lease) {
            true => *until <= self.now - SERVER_LOST_AFTER.num_seconds(),
            false => {
                let is_own = lease.worker.instance == rescuer.instance;
                *until <= self.now || is_own && lease.worker.boot != rescuer.boot
            }
        };
        let mut lost: Vec<JobId> =
            self.held.iter().filter(|(_, held)| is_lost(held)).map(|(id, _)| *id).collect();
        let failed: Vec<JobId> = lost.iter().copied().filter(|id| is_elsewhere(&self.held[id].0)).collect();
        lost.sort_unstable();
        let rescued = self.db.rescue(rescuer.instance, rescuer.boot, at(self.now)).await.unwrap();
        let mut taken: Vec<JobId> = rescued.iter().map(|rescued| rescued.job.id).collect();
        taken.sort_unstable();
        assert_eq!(taken, lost);
        for rescued in rescued {
            let id = rescued.job.id;
            if failed.contains(&id) {
                self.change(id, Event::Fail);
            } else {
                self.interrupt(id, true, self.now);
            }
            assert_eq!(self.jobs[&id].state, rescued.job.state);
        }
    }

    async fn take(&mut self, step: Step) {
        let lease = |index: &Index| (!self.leases.is_empty()).then(|| *index.get(&self.leases));
        match &step {
            Step::Enqueue { organization, subject, replaceable, is_bound, delay } => {
                let new = a_job_on(self.scopes[*organization], self.subjects[*organization][*subject]);
                let (run_at, enqueued_at) = (at(self.now + delay), at(self.now));
                let kind = if *is_bound { JobKind::RunExtension } else { new.kind };
                self.enqueue(NewJob { kind, replaceable: *replaceable, run_at, enqueued_at, ..new }).await;
            }
            Step::Claim { instance, builds, per_organization } => {
                let (builds, per_organization) = (*builds, *per_organization);
                self.claim(*instance, ClaimLimits { builds, operations: 0, per_organization }).await;
            }
            Step::Heartbeat(index) => {
                if let Some(lease) = lease(index) {
                    self.heartbeat(lease).await;
                }
            }
            Step::Settle(index) => {
                if let Some(lease) = lease(index) {
                    self.settle(lease).await;
                }
            }
            Step::Retry(index, delay) => {
                if let Some(lease) = lease(index) {
                    let run_at = self.now + delay;
                    let returned = self.db.retry(&lease, "again", at(self.now), at(run_at)).await;
                    self.gave_back(lease, true, run_at, returned);
                }
            }
            Step::Postpone(index, delay) => {
                if let Some(lease) = lease(index) {
                    let run_at = self.now + delay;
                    let returned = self.db.postpone(&lease, "away", at(self.now), at(run_at)).await;
                    self.gave_back(lease, false, run_at, returned);
                }
            }
            Step::Release(index) => {
                if let Some(lease) = lease(index) {
                    let returned = self.db.release(&lease, at(self.now)).await;
                    self.gave_back(lease, false, self.now, returned);
                }
            }
            Step::Cancel(index) => {
                let ids: Vec<JobId> = self.jobs.keys().copied().collect();
                if !ids.is_empty() {
                    self.cancel(*index.get(&ids)).await;
                }
            }
            Step::Rescue { instance, after_restart } => self.rescue(*instance, *after_restart).await,
            Step::Wait(seconds) => self.now += seconds,
        }
    }

    /// Compares everything but the text of reasons.
    async fn assert_is_stored(&self) {
        for job in self.jobs.values() {
            let stored = self.db.get(job.scope, job.id).await.unwrap().unwrap();
            assert_eq!(&Job { reason: None, ..stored }, job);
        }
        let mut running = self.db.running().await.unwrap();
        running.sort_unstable();
        let mut expected: Vec<SubjectId> = self.running().map(|job| job.subject).collect();
        expected.sort_unstable();
        assert_eq!(running, expected);
    }
}

proptest! {
    #![proptest_config(Config { cases: 48, failure_persistence: None, ..Config::default() })]

    #[test]
    fn the_queue_does_what_its_model_does(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let fresh = Fresh::on_sqlite().await;
            let mut model = Model::of(&fresh.database).await;
            for step in steps {
                model.take(step).await;
                model.assert_is_stored().await;
            }
        });
    }
}
