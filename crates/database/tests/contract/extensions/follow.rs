//! Runs whose state no longer matches their job.

use launchway_database::Database;
use launchway_domain::{
    extensions::{Extension, Write},
    jobs::{self, ClaimLimits, ClaimedJob, JobKind, JobQueue as _, NewJob, Outcome, WorkerId},
    store::{self, UnitOfWork as _},
};
use uuid::Uuid;

use super::{Execution, RunWithSteps, S, a_run_of, an_entry, begin, begin_step, finish, now, quietly};
use crate::builders::{Resident, at, audited, id};

contract!(
    what_is_where_its_job_is_stays,
    a_run_whose_job_waits_again_stays,
    a_run_whose_job_was_cancelled_is_cancelled,
    a_run_whose_job_failed_fails_and_says_why,
    a_run_whose_server_was_lost_fails_and_says_why,
    a_run_that_its_job_left_behind_fails,
    a_run_whose_job_was_superseded_fails,
    what_has_finished_does_not_follow,
    more_than_a_thousand_runs_follow_one_call_after_the_other,
    who_follow_at_once_do_not_wait_crosswise,
);

fn job_of(run: &Execution) -> NewJob {
    NewJob {
        id: run.job_id,
        kind: JobKind::RunExtension,
        scope: run.scope,
        subject: Uuid::from(run.id).into(),
        replaceable: false,
        payload: String::new(),
        pool: jobs::Pool::Extensions,
        run_at: at(0),
        enqueued_at: at(0),
    }
}

fn requested((execution, steps): &RunWithSteps) -> [store::Write; 2] {
    let (run, steps) = (Box::new(execution.clone()), steps.clone());
    let request = Write::Request { execution: run, steps, installs: false, home: None };
    [request.into(), jobs::Write::Enqueue(job_of(execution)).into()]
}

/// A pending run with its job.
pub(crate) async fn queued(
    db: &Database,
    resident: &Resident,
    entry: &Extension,
    number: u32,
) -> RunWithSteps {
    let run = a_run_of(resident, entry).numbered(number).with_steps();
    db.commit(audited(requested(&run).to_vec())).await.unwrap();
    run
}

pub(crate) async fn claim(db: &Database) -> ClaimedJob {
    let limits = ClaimLimits { builds: 100, operations: 100, per_organization: 100 };
    let worker = WorkerId { instance: Uuid::nil().into(), boot: Uuid::nil().into(), worker: 1 };
    db.claim(&worker, limits, at(1), at(100)).await.unwrap().unwrap()
}

/// A run that a worker executes: in its second step.
async fn running(db: &Database) -> (RunWithSteps, ClaimedJob) {
    let ada = Resident::of(db, "ada").await;
    let (run, _) = queued(db, &ada, &an_entry(db).await, 1).await;
    let claimed = claim(db).await;
    begin(db, run.id).await.unwrap();
    for order in [1, 2] {
        begin_step(db, run.id, order).await.unwrap();
        if order == 1 {
            super::end_step(db, run.id, 1, S::Completed).await.unwrap();
        }
    }
    (now(db, &run).await, claimed)
}

pub(crate) async fn settle(db: &Database, claimed: &ClaimedJob, outcome: Outcome) {
    let settle = jobs::Write::Settle { lease: claimed.lease, outcome, at: at(5) };
    db.commit(vec![settle.into()]).await.unwrap();
}

pub(crate) async fn follow(db: &Database) {
    quietly(db, Write::FollowJobs { at: at(9) }).await.unwrap();
}

/// Asserts that a run in its second step ended so, and its steps with it.
async fn assert_ended(db: &Database, (mut run, mut steps): RunWithSteps, state: S, why: &str) {
    run.state = state;
    run.error_message = why.to_owned();
    run.completed_at = Some(at(9));
    (steps[1].state, steps[1].completed_at) = (state, Some(at(9)));
    (steps[2].state, steps[2].completed_at) = (S::Cancelled, Some(at(9)));
    assert_eq!(now(db, &run).await, (run, steps));
}

async fn what_is_where_its_job_is_stays(db: Database) {
    let (run, _) = running(&db).await;
    let bob = Resident::of(&db, "bob").await;
    let waiting = queued(&db, &bob, &an_entry(&db).await, 2).await;
    follow(&db).await;
    for run in [run, waiting] {
        assert_eq!(now(&db, &run.0).await, run);
    }
}

async fn a_run_whose_job_waits_again_stays(db: Database) {
    let (run, claimed) = running(&db).await;
    db.retry(&claimed.lease, "no disk", at(5), at(5)).await.unwrap();
    follow(&db).await;
    assert_eq!(now(&db, &run.0).await, run);
}

async fn a_run_whose_job_was_cancelled_is_cancelled(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (run, _) = queued(&db, &ada, &an_entry(&db).await, 1).await;
    let cancel = jobs::Write::RequestCancel { scope: run.scope, id: run.job_id, at: at(5) };
    let follow = Write::FollowJobs { at: at(9) };
    db.commit(audited(vec![cancel.into(), follow.into()])).await.unwrap();
    let (after, steps) = now(&db, &run).await;
    let expected = Execution { state: S::Cancelled, completed_at: Some(at(9)), ..run };
    assert_eq!(after, expected);
    assert!(steps.iter().all(|step| step.state == S::Cancelled && step.completed_at == Some(at(9))));
}

async fn a_run_whose_job_failed_fails_and_says_why(db: Database) {
    let (run, claimed) = running(&db).await;
    settle(&db, &claimed, Outcome::Failed { reason: "no \u{1b}[1mdisk\u{7}".to_owned() }).await;
    follow(&db).await;
    assert_ended(&db, run.clone(), S::Failed, "no disk\\u{7}").await;
    quietly(&db, Write::FollowJobs { at: at(20) }).await.unwrap();
    assert_ended(&db, run, S::Failed, "no disk\\u{7}").await;
}

async fn a_run_whose_server_was_lost_fails_and_says_why(db: Database) {
    let (run, claimed) = running(&db).await;
    let rescued = db.rescue(id(), id(), at(160)).await.unwrap();
    assert_eq!(rescued[0].job.id, claimed.job.id);
    follow(&db).await;
    assert_ended(&db, run, S::Failed, jobs::JobState::SERVER_LOST).await;
}

async fn a_run_that_its_job_left_behind_fails(db: Database) {
    let (run, claimed) = running(&db).await;
    settle(&db, &claimed, Outcome::Succeeded).await;
    follow(&db).await;
    assert_ended(&db, run, S::Failed, "its job ended without an outcome").await;
}

async fn a_run_whose_job_was_superseded_fails(db: Database) {
    let ada = Resident::of(&db, "ada").await;
    let (run, steps) = a_run_of(&ada, &an_entry(&db).await).with_steps();
    let replaceable = NewJob { replaceable: true, ..job_of(&run) };
    let mut writes = requested(&(run.clone(), steps)).to_vec();
    writes[1] = jobs::Write::Enqueue(replaceable.clone()).into();
    writes.push(jobs::Write::Enqueue(NewJob { id: id(), ..replaceable }).into());
    db.commit(audited(writes)).await.unwrap();
    follow(&db).await;
    let (after, _) = now(&db, &run).await;
    assert_eq!((after.state, after.error_message.as_str()), (S::Failed, "its job ended without an outcome"));
}

async fn what_has_finished_does_not_follow(db: Database) {
    let (run, claimed) = running(&db).await;
    finish(&db, run.0.id, S::Completed).await.unwrap();
    settle(&db, &claimed, Outcome::Failed { reason: "late".to_owned() }).await;
    let before = now(&db, &run.0).await;
    follow(&db).await;
    assert_eq!(now(&db, &run.0).await, before);
}

/// Runs whose jobs were cancelled while they were queued.
async fn strays(db: &Database, many: u32) -> Vec<Execution> {
    let ada = Resident::of(db, "ada").await;
    let entry = an_entry(db).await;
    let a_stray = |number: u32| a_run_of(&ada, &entry).numbered(number).created_at(at(number.into()));
    let strays: Vec<_> = (1..=many).map(|number| a_stray(number).with_steps()).collect();
    let mut writes: Vec<store::Write> = Vec::new();
    for stray in &strays {
        writes.extend(requested(stray));
        let cancel = jobs::Write::RequestCancel { scope: ada.scope(), id: stray.0.job_id, at: at(2) };
        writes.push(cancel.into());
    }
    db.commit(audited(writes)).await.unwrap();
    strays.into_iter().map(|(run, _)| run).collect()
}

async fn more_than_a_thousand_runs_follow_one_call_after_the_other(db: Database) {
    let strays = strays(&db, 1001).await;
    let state = async |stray: &Execution| now(&db, stray).await.0.state;
    follow(&db).await;
    assert_eq!((state(&strays[0]).await, state(&strays[999]).await), (S::Cancelled, S::Cancelled));
    assert_eq!(state(&strays[1000]).await, S::Pending);
    follow(&db).await;
    assert_eq!(state(&strays[1000]).await, S::Cancelled);
}

async fn who_follow_at_once_do_not_wait_crosswise(db: Database) {
    let strays = strays(&db, 40).await;
    tokio::join!(follow(&db), follow(&db), follow(&db), follow(&db));
    for stray in &strays {
        assert_eq!(now(&db, stray).await.0.state, S::Cancelled);
    }
}
