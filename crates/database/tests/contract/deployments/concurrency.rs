//! Concurrent users who deploy and cancel, workers, and cleanup.

use launchway_database::Database;
use launchway_domain::{
    applications::{Application, ApplicationState},
    deployments::{Deployment, DeploymentState as S, Progress, Write},
    jobs::{self, ClaimLimits, ClaimedJob, JobQueue as _, Lease, Outcome, WorkerId},
    logs::{self, LogSink as _},
    store::{self, StoreError, UnitOfWork as _},
};
use launchway_testkit::builders::{a_deployment, a_log_line};
use tokio::task::JoinSet;

use super::{jobs::job_of, page, scope};
use crate::{
    applications::{again, stored},
    builders::{Resident, at, audited, id},
    fresh::Fresh,
    logs::lines_of,
};

contract!(nobody_gets_in_the_way_of_others_and_all_states_fit_together);

const APPLICATIONS: usize = 3;
const CALLERS: usize = 8;
const ROUNDS: usize = 20;

/// A caller that makes changes of all kinds.
struct Caller {
    db: Database,
    applications: Vec<Application>,
    number: usize,
}

impl Caller {
    async fn act(&self, round: usize) {
        let application = &self.applications[(self.number * 2 + round / 5) % APPLICATIONS];
        match (self.number + round) % 5 {
            0 => self.deploy(application).await,
            1 => self.work().await,
            2 => self.commit(vec![follow(None)]).await,
            3 => self.cancel(application).await,
            _ => self.print().await,
        }
    }

    /// Concurrent changes may make this one stale; no other error is allowed.
    async fn commit(&self, writes: Vec<store::Write>) {
        let outcome = self.db.commit(audited(writes)).await;
        assert!(matches!(outcome, Ok(()) | Err(StoreError::Stale)), "{outcome:?}");
    }

    async fn deploy(&self, application: &Application) {
        let deployment = a_deployment().of(application).by_job(id()).created_at(at(self.seconds()));
        let deployment = Deployment { id: id(), ..deployment.build() };
        let job = jobs::Write::Enqueue(job_of(&deployment));
        self.commit(vec![Write::Insert(deployment).into(), job.into(), follow(Some(application))]).await;
    }

    async fn cancel(&self, application: &Application) {
        let newest = page(&self.db, scope(application), application.id, (1, 1)).await.items.pop();
        let Some(deployment) = newest else { return };
        let (scope, at) = (scope(application), at(self.seconds()));
        let cancel = jobs::Write::RequestCancel { scope, id: deployment.job_id, at };
        self.commit(vec![cancel.into(), follow(Some(application))]).await;
    }

    async fn work(&self) {
        let worker = WorkerId { instance: id(), boot: id(), worker: 1 };
        let limits = ClaimLimits { builds: 100, operations: 100, per_organization: 100 };
        let claimed = self.db.claim(&worker, limits, at(self.seconds()), at(1_000_000)).await.unwrap();
        let Some(ClaimedJob { job, lease }) = claimed else { return };
        let all: Vec<Deployment> = self.deployments().await;
        let Some(deployment) = all.into_iter().find(|deployment| deployment.job_id == job.id) else { return };
        for (round, to) in [S::Cloning, S::Building, S::Deploying].into_iter().enumerate() {
            let line = logs::Write::Append(vec![a_log_line().of(&deployment).new_line()]);
            let mut unit = vec![prove(lease), self.advance(&deployment, to), line.into()];
            unit.rotate_left(round);
            self.commit(unit).await;
        }
        match self.number % 3 {
            0 => drop(self.db.retry(&lease, "again", at(1), at(1)).await),
            1 => self.commit(vec![self.advance(&deployment, S::Failed), settle(lease)]).await,
            _ => self.commit(vec![settle(lease), follow(None)]).await,
        }
    }

    async fn print(&self) {
        let all = self.deployments().await;
        let lines = all.iter().map(|deployment| a_log_line().of(deployment).new_line());
        self.db.append(lines.collect()).await.unwrap();
    }

    async fn deployments(&self) -> Vec<Deployment> {
        let mut all = Vec::new();
        for application in &self.applications {
            all.extend(page(&self.db, scope(application), application.id, (1, 100)).await.items);
        }
        all
    }

    fn advance(&self, deployment: &Deployment, to: S) -> store::Write {
        let progress = Progress { state: Some(to), ..Progress::default() };
        Write::Advance { id: deployment.id, progress, at: at(self.seconds()) }.into()
    }

    fn seconds(&self) -> i64 {
        i64::try_from(self.number).unwrap()
    }
}

fn follow(application: Option<&Application>) -> store::Write {
    Write::FollowJobs { application: application.map(|one| one.id), at: at(99) }.into()
}

fn prove(lease: Lease) -> store::Write {
    jobs::Write::Prove(lease).into()
}

fn settle(lease: Lease) -> store::Write {
    let outcome = Outcome::Failed { reason: "no disk".to_owned() };
    jobs::Write::Settle { lease, outcome, at: at(9) }.into()
}

async fn nobody_gets_in_the_way_of_others_and_all_states_fit_together(fresh: &Fresh) {
    let db = fresh.database.clone();
    let ada = Resident::of(&db, "ada").await;
    let mut applications = Vec::new();
    for name in ["a", "b", "c"] {
        applications.push(stored(&db, &ada, name).await);
    }
    let replica = if fresh.folder().is_some() { db.clone() } else { fresh.open_again() };
    let mut tasks = JoinSet::new();
    for number in 0..CALLERS {
        let db = if number % 2 == 0 { db.clone() } else { replica.clone() };
        let caller = Caller { db, applications: applications.clone(), number };
        tasks.spawn(async move {
            for round in 0..ROUNDS {
                caller.act(round).await;
            }
        });
    }
    tasks.join_all().await;
    db.commit(vec![follow(None)]).await.unwrap();
    for application in &applications {
        assert_fits(&db, application).await;
    }
}

/// Asserts that an application has the state of its newest open deployment, and that each deployment and
/// its job have finished together.
async fn assert_fits(db: &Database, application: &Application) {
    let deployments = page(db, scope(application), application.id, (1, 100)).await.items;
    assert!(!deployments.is_empty());
    let mut newest_open = None;
    for deployment in deployments.iter().rev() {
        let state = deployment.status.state;
        let job = db.get(scope(application), deployment.job_id).await.unwrap().unwrap();
        assert_eq!(state.is_final(), job.state.is_final(), "{deployment:?} {job:?}");
        if !state.is_final() {
            newest_open = Some(state);
        }
        let lines = lines_of(db, deployment).await;
        assert!(lines.is_sorted_by_key(|line| line.number));
    }
    let state = newest_open.unwrap_or(S::Failed);
    let expected = ApplicationState::without_a_running_version(state, false);
    assert_eq!(Some(again(db, application).await.status.state), expected);
}
