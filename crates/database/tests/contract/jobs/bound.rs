//! Jobs that are bound to the server that claimed them first.

use diesel::{RunQueryDsl as _, sql_query};
use launchway_database::{AnyConnection, Database};
use launchway_domain::{
    jobs::{ClaimedJob, JobKind, JobQueue as _, JobState, NewJob, Pool, Rescued, WorkerId, Write},
    organizations::Scope,
    replicas::{Replica, ReplicaRegistry},
};

use super::{a_job, claim, enqueue, job, somebody, worker};
use crate::builders::{at, commit};

contract!(
    a_run_of_an_extension_returns_to_its_server,
    any_server_continues_a_job_of_another_kind,
    a_restarted_server_takes_its_run_back_at_once,
    a_run_is_left_to_its_server_for_a_minute,
    a_run_of_a_lost_server_fails_even_if_it_was_cancelled,
    a_server_rescues_its_own_run_at_the_end_of_the_lease,
    a_waiting_run_of_another_server_holds_up_nobody,
    nothing_is_done_on_top_of_a_run_that_another_server_began,
    a_waiting_run_of_a_lost_server_is_handed_over,
);

fn a_job_of_kind(scope: Scope, kind: JobKind) -> NewJob {
    NewJob { kind, replaceable: false, pool: Pool::Extensions, ..a_job(scope) }
}

/// The server that claims first, and another one.
fn servers() -> [WorkerId; 2] {
    [worker(1, 1, 1), worker(2, 1, 1)]
}

/// A job of that kind which the first server runs until second 30.
async fn claimed(db: &Database, scope: Scope, kind: JobKind) -> ClaimedJob {
    enqueue(db, &a_job_of_kind(scope, kind)).await;
    claim(db, servers()[0], 0).await.unwrap()
}

async fn rescue(db: &Database, by: WorkerId, seconds: i64) -> Vec<Rescued> {
    db.rescue(by.instance, by.boot, at(seconds)).await.unwrap()
}

async fn a_run_of_an_extension_returns_to_its_server(db: Database) {
    let scope = somebody(&db).await;
    let [first, other] = servers();
    let mut run = claimed(&db, scope, JobKind::RunExtension).await;
    db.release(&run.lease, at(1)).await.unwrap();
    assert_eq!(claim(&db, other, 2).await, None);
    run = claim(&db, first, 2).await.unwrap();
    db.retry(&run.lease, "why", at(3), at(3)).await.unwrap();
    assert_eq!(claim(&db, other, 4).await, None);
    assert_eq!(claim(&db, worker(1, 2, 7), 4).await.unwrap().job.id, run.job.id, "in its next boot too");
}

async fn any_server_continues_a_job_of_another_kind(db: Database) {
    let scope = somebody(&db).await;
    let [_, other] = servers();
    for kind in JobKind::ALL.into_iter().filter(|kind| *kind != JobKind::RunExtension) {
        let released = claimed(&db, scope, kind).await;
        db.release(&released.lease, at(1)).await.unwrap();
        assert_eq!(claim(&db, other, 1).await.unwrap().job.id, released.job.id, "{}", kind.as_str());
        let lost = claimed(&db, scope, kind).await;
        assert_eq!(rescue(&db, other, 30).await[0].job.id, lost.job.id, "{}", kind.as_str());
        assert_eq!(claim(&db, other, 30).await.unwrap().job.id, lost.job.id, "{}", kind.as_str());
    }
}

async fn a_restarted_server_takes_its_run_back_at_once(db: Database) {
    let scope = somebody(&db).await;
    let [_, other] = servers();
    let run = claimed(&db, scope, JobKind::RunExtension).await;
    let restarted = worker(1, 2, 1);
    let rescued = rescue(&db, restarted, 1).await;
    assert_eq!((rescued[0].job.id, rescued[0].job.state), (run.job.id, JobState::Queued));
    assert_eq!(rescued[0].job.reason.as_deref(), Some(JobState::WORKER_LOST));
    assert_eq!(claim(&db, other, 1).await, None);
    assert_eq!(claim(&db, restarted, 1).await.unwrap().job.id, run.job.id);
}

async fn a_run_is_left_to_its_server_for_a_minute(db: Database) {
    let scope = somebody(&db).await;
    let [_, other] = servers();
    let run = claimed(&db, scope, JobKind::RunExtension).await;
    for seconds in [29, 30, 89] {
        assert_eq!(rescue(&db, other, seconds).await, []);
        assert_eq!(job(&db, scope, run.job.id).await.state, JobState::Running);
    }
    let rescued = rescue(&db, other, 90).await;
    let failed = job(&db, scope, run.job.id).await;
    assert_eq!(rescued, [Rescued { job: failed.clone(), lost_by: run.lease.worker }]);
    assert_eq!((failed.state, failed.finished_at), (JobState::Failed, Some(at(90))));
    let reason = "the server that ran it was lost: its files are on that machine";
    assert_eq!(failed.reason.as_deref(), Some(reason));
    assert!(db.release(&run.lease, at(91)).await.is_err(), "the lease is void");
}

async fn a_run_of_a_lost_server_fails_even_if_it_was_cancelled(db: Database) {
    let scope = somebody(&db).await;
    let run = claimed(&db, scope, JobKind::RunExtension).await;
    commit(&db, Write::RequestCancel { scope, id: run.job.id, at: at(1) }).await.unwrap();
    assert_eq!(rescue(&db, servers()[1], 90).await[0].job.state, JobState::Failed);
}

async fn a_server_rescues_its_own_run_at_the_end_of_the_lease(db: Database) {
    let scope = somebody(&db).await;
    let [first, _] = servers();
    let run = claimed(&db, scope, JobKind::RunExtension).await;
    assert_eq!(rescue(&db, first, 29).await, []);
    let rescued = rescue(&db, first, 300).await;
    assert_eq!((rescued[0].job.id, rescued[0].job.state), (run.job.id, JobState::Queued));
}

async fn a_waiting_run_of_another_server_holds_up_nobody(db: Database) {
    let scope = somebody(&db).await;
    let [_, other] = servers();
    let run = claimed(&db, scope, JobKind::RunExtension).await;
    db.release(&run.lease, at(1)).await.unwrap();
    let second = NewJob { enqueued_at: at(2), ..a_job_of_kind(scope, JobKind::RunExtension) };
    let second = enqueue(&db, &second).await;
    assert_eq!(claim(&db, other, 2).await.unwrap().job.id, second);
    assert_eq!(claim(&db, other, 2).await, None);
}

async fn nothing_is_done_on_top_of_a_run_that_another_server_began(db: Database) {
    let scope = somebody(&db).await;
    let [first, other] = servers();
    let run = claimed(&db, scope, JobKind::RunExtension).await;
    db.release(&run.lease, at(1)).await.unwrap();
    let subject = run.job.subject;
    let again = NewJob { subject, run_at: at(2), ..a_job_of_kind(scope, JobKind::RunExtension) };
    let again = enqueue(&db, &again).await;
    assert_eq!(claim(&db, other, 3).await, None);
    let run = claim(&db, first, 3).await.unwrap();
    assert_eq!(claim(&db, other, 3).await, None);
    super::settle(&db, run.lease, launchway_domain::jobs::Outcome::Succeeded, 4).await.unwrap();
    assert_eq!(claim(&db, other, 5).await.unwrap().job.id, again);
}

async fn a_waiting_run_of_a_lost_server_is_handed_over(db: Database) {
    let scope = somebody(&db).await;
    let [first, other] = servers();
    let replica = |worker: WorkerId| Replica {
        id: worker.instance,
        boot: worker.boot,
        version: "1.0.0".to_owned(),
        hostname: "host".to_owned(),
        address: "127.0.0.1:8080".to_owned(),
        engine: None,
        started_at: at(0),
    };
    db.register(&replica(other)).await.unwrap();
    db.register(&replica(first)).await.unwrap();
    let run = claimed(&db, scope, JobKind::RunExtension).await;
    db.release(&run.lease, at(1)).await.unwrap();
    db.acknowledge_routes(first.instance, 1).await.unwrap();
    db.leave(first.instance, first.boot).await.unwrap();
    ReplicaRegistry::heartbeat(&db, &replica(other)).await.unwrap();
    assert_eq!(claim(&db, other, 2).await, None, "it may come back");
    db.write(move |connection| {
        let lost = "DELETE FROM replicas WHERE left_at IS NOT NULL";
        match connection {
            AnyConnection::Sqlite(sqlite) => sql_query(lost).execute(sqlite)?,
            AnyConnection::Postgres(postgres) => sql_query(lost).execute(postgres)?,
        };
        Ok(())
    })
    .await
    .unwrap();
    ReplicaRegistry::heartbeat(&db, &replica(other)).await.unwrap();
    assert_eq!(claim(&db, other, 3).await.unwrap().job.id, run.job.id);
}
