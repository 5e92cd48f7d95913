//! Model-based test of the queue: random operations in random order.

use std::collections::{BTreeMap, HashMap};

use launchway_database::Database;
use launchway_domain::{
    ids::{JobId, SubjectId},
    jobs::{ClaimLimits, Event, Heartbeat, Job, JobQueue as _, JobState, Lease, NewJob, Outcome, Write},
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

#[derive(Debug, Clone)]
enum Step {
    Enqueue {
        organization: usize,
        subject: usize,
        replaceable: bool,
        delay: i64,
    },
    Claim {
        builds: usize,
        per_organization: usize,
    },
    Heartbeat(Index),
    Settle(Index),
    Retry(Index, i64),
    Postpone(Index, i64),
    Release(Index),
    Cancel(Index),
    /// As the next boot of the workers' instance, or as another instance.
    Rescue {
        after_restart: bool,
    },
    Wait(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let enqueue = (0..ORGANIZATIONS, 0..SUBJECTS, any::<bool>(), 0..3_i64).prop_map(
        |(organization, subject, replaceable, delay)| Step::Enqueue {
            organization,
            subject,
            replaceable,
            delay,
        },
    );
    let claim = (1..5_usize, 1..3_usize)
        .prop_map(|(builds, per_organization)| Step::Claim { builds, per_organization });
    let step = prop_oneof![
        6 => enqueue,
        8 => claim,
        2 => any::<Index>().prop_map(Step::Heartbeat),
        2 => any::<Index>().prop_map(Step::Settle),
        2 => (any::<Index>(), 0..5_i64).prop_map(|(lease, delay)| Step::Retry(lease, delay)),
        1 => (any::<Index>(), 0..5_i64).prop_map(|(lease, delay)| Step::Postpone(lease, delay)),
        1 => any::<Index>().prop_map(Step::Release),
        2 => any::<Index>().prop_map(Step::Cancel),
        2 => any::<bool>().prop_map(|after_restart| Step::Rescue { after_restart }),
        2 => (1..20_i64).prop_map(Step::Wait),
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
        job.finished_at = job.state.is_over().then_some(now);
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
            Event::PutBack => job.run_at = at(run_at),
            _ => {}
        }
        job.state
    }

    fn next(&self, limits: ClaimLimits) -> Option<JobId> {
        let runs = |scope: Scope| self.running().filter(|job| job.scope == scope).count();
        if self.running().count() >= limits.builds {
            return None;
        }
        let may_run = self.jobs.values().filter(|job| {
            job.state == JobState::Queued
                && job.run_at <= at(self.now)
                && runs(job.scope) < limits.per_organization
                && self.running().all(|other| other.subject != job.subject)
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

    async fn claim(&mut self, limits: ClaimLimits) {
        let worker = worker(1, self.boot, 1);
        let expected = self.next(limits);
        let claimed = self.db.claim(&worker, limits, at(self.now), at(self.now + 10)).await.unwrap();
        assert_eq!(claimed.as_ref().map(|claimed| claimed.job.id), expected);
        let (Some(id), Some(claimed)) = (expected, claimed) else { return };
        self.change(id, Event::Claim);
        let now = at(self.now);
        let job = self.jobs.get_mut(&id).unwrap();
        job.attempt += 1;
        job.started_at.get_or_insert(now);
        assert_eq!(claimed.lease, Lease { job: id, attempt: job.attempt, worker });
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
        assert_eq!(cancelled.is_ok(), !state.is_over());
        match state {
            JobState::Queued => self.change(id, Event::Cancel),
            JobState::Running => {
                let now = at(self.now);
                self.jobs.get_mut(&id).unwrap().cancel_requested_at.get_or_insert(now);
            }
            _ => {}
        }
    }

    async fn rescue(&mut self, after_restart: bool) {
        self.boot += u128::from(after_restart);
        let rescuer = worker(if after_restart { 1 } else { 2 }, self.boot, 1);
        let is_lost =
            |(lease, until): &(Lease, i64)| *until <= self.now || lease.worker.instance == rescuer.instance;
        let mut lost: Vec<JobId> =
            self.held.iter().filter(|(_, held)| is_lost(held)).map(|(id, _)| *id).collect();
        lost.sort_unstable();
        let rescued = self.db.rescue(rescuer.instance, rescuer.boot, at(self.now)).await.unwrap();
        let mut taken: Vec<JobId> = rescued.iter().map(|rescued| rescued.job.id).collect();
        taken.sort_unstable();
        assert_eq!(taken, lost);
        for rescued in rescued {
            assert_eq!(self.interrupt(rescued.job.id, true, self.now), rescued.job.state);
        }
    }

    async fn take(&mut self, step: Step) {
        let lease = |index: &Index| (!self.leases.is_empty()).then(|| *index.get(&self.leases));
        match &step {
            Step::Enqueue { organization, subject, replaceable, delay } => {
                let new = a_job_on(self.scopes[*organization], self.subjects[*organization][*subject]);
                let (run_at, enqueued_at) = (at(self.now + delay), at(self.now));
                self.enqueue(NewJob { replaceable: *replaceable, run_at, enqueued_at, ..new }).await;
            }
            Step::Claim { builds, per_organization } => {
                let (builds, per_organization) = (*builds, *per_organization);
                self.claim(ClaimLimits { builds, operations: 0, per_organization }).await;
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
            Step::Rescue { after_restart } => self.rescue(*after_restart).await,
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
