//! Enqueuing jobs.

use launchway_database::Database;
use launchway_domain::{
    auth,
    jobs::{Job, JobKind, JobQueue as _, JobState, NewJob, Pool, Write},
    store::UnitOfWork as _,
};
use tokio::task::JoinSet;

use super::{a_job, a_job_on, a_worker, claim, enqueue, job, somebody, state};
use crate::{
    builders::{Resident, at, audited, id, is_stale},
    fresh::Fresh,
};

contract!(
    a_job_is_there_as_it_was_enqueued_for_every_process,
    a_job_comes_with_its_cause_or_not_at_all,
    a_newer_job_supersedes_the_one_that_waits,
    what_is_not_replaceable_neither_supersedes_nor_is_superseded,
    another_kind_or_subject_is_not_superseded,
    a_running_job_is_not_superseded_by_a_newer_one,
    of_many_pushes_at_once_the_last_one_alone_waits,
    nobody_sees_the_jobs_of_another_organization,
);

async fn a_job_is_there_as_it_was_enqueued_for_every_process(fresh: &Fresh) {
    let scope = somebody(&fresh.database).await;
    let new = NewJob { kind: JobKind::RunExtension, run_at: at(5), enqueued_at: at(3), ..a_job(scope) };
    enqueue(&fresh.database, &new).await;
    let expected = Job {
        id: new.id,
        kind: new.kind,
        scope,
        subject: new.subject,
        replaceable: true,
        payload: new.payload,
        pool: Pool::Builds,
        state: JobState::Queued,
        attempt: 0,
        excused: 0,
        run_at: at(5),
        enqueued_at: at(3),
        started_at: None,
        finished_at: None,
        cancel_requested_at: None,
        superseded_by: None,
        reason: None,
    };
    assert_eq!(fresh.open_again().get(scope, new.id).await.unwrap(), Some(expected));
}

async fn a_job_comes_with_its_cause_or_not_at_all(db: Database) {
    let scope = somebody(&db).await;
    let older = a_job(scope);
    enqueue(&db, &older).await;
    let new = a_job_on(scope, older.subject);
    let fails = auth::Write::EndSession { id: id(), at: at(0) };
    let writes = vec![Write::Enqueue(new.clone()).into(), fails.into()];
    assert!(is_stale(&db.commit(audited(writes)).await));
    assert_eq!(db.get(scope, new.id).await.unwrap(), None);
    assert_eq!(state(&db, scope, older.id).await, JobState::Queued);

    let grace = Resident::called("grace");
    let mut writes = grace.writes();
    writes.push(Write::Enqueue(a_job_on(grace.scope(), id())).into());
    writes.push(Write::Enqueue(new.clone()).into());
    db.commit(audited(writes)).await.unwrap();
    assert_eq!(state(&db, scope, new.id).await, JobState::Queued);
}

async fn a_newer_job_supersedes_the_one_that_waits(db: Database) {
    let scope = somebody(&db).await;
    let first = a_job(scope);
    let second = NewJob { enqueued_at: at(2), ..a_job_on(scope, first.subject) };
    let third = NewJob { enqueued_at: at(3), ..a_job_on(scope, first.subject) };
    for new in [&first, &second, &third] {
        enqueue(&db, new).await;
    }
    for (old, new, seconds) in [(&first, &second, 2), (&second, &third, 3)] {
        let old = job(&db, scope, old.id).await;
        assert_eq!((old.state, old.superseded_by), (JobState::Superseded, Some(new.id)));
        assert_eq!(old.finished_at, Some(at(seconds)));
    }
    assert_eq!(claim(&db, a_worker(), 5).await.unwrap().job.id, third.id);
    assert_eq!(claim(&db, a_worker(), 5).await, None);
}

async fn what_is_not_replaceable_neither_supersedes_nor_is_superseded(db: Database) {
    let scope = somebody(&db).await;
    let push = a_job(scope);
    let rollback = NewJob { replaceable: false, ..a_job_on(scope, push.subject) };
    let another = NewJob { replaceable: false, ..a_job_on(scope, push.subject) };
    for new in [&push, &rollback, &another] {
        enqueue(&db, new).await;
    }
    for new in [&push, &rollback, &another] {
        assert_eq!(state(&db, scope, new.id).await, JobState::Queued);
    }
    let newer = a_job_on(scope, push.subject);
    enqueue(&db, &newer).await;
    assert_eq!(state(&db, scope, push.id).await, JobState::Superseded);
    assert_eq!(state(&db, scope, rollback.id).await, JobState::Queued);
}

async fn another_kind_or_subject_is_not_superseded(db: Database) {
    let scope = somebody(&db).await;
    let deploy = a_job(scope);
    let other_kind = NewJob { kind: JobKind::Restart, ..a_job_on(scope, deploy.subject) };
    let other_subject = a_job(scope);
    for new in [&deploy, &other_kind, &other_subject] {
        enqueue(&db, new).await;
    }
    for new in [&deploy, &other_kind, &other_subject] {
        assert_eq!(state(&db, scope, new.id).await, JobState::Queued);
    }
}

async fn a_running_job_is_not_superseded_by_a_newer_one(db: Database) {
    let scope = somebody(&db).await;
    let old = a_job(scope);
    enqueue(&db, &old).await;
    claim(&db, a_worker(), 0).await.unwrap();
    let new = a_job_on(scope, old.subject);
    enqueue(&db, &new).await;
    assert_eq!(state(&db, scope, old.id).await, JobState::Running);
    assert_eq!(state(&db, scope, new.id).await, JobState::Queued);
}

async fn of_many_pushes_at_once_the_last_one_alone_waits(db: Database) {
    let scope = somebody(&db).await;
    let subject = id();
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let db = db.clone();
        tasks.spawn(async move { enqueue(&db, &a_job_on(scope, subject)).await });
    }
    let mut waiting = 0;
    for id in tasks.join_all().await {
        let job = job(&db, scope, id).await;
        waiting += i32::from(job.state == JobState::Queued);
        assert_eq!(job.superseded_by.is_some(), job.state == JobState::Superseded);
    }
    assert_eq!(waiting, 1);
}

async fn nobody_sees_the_jobs_of_another_organization(db: Database) {
    let scope = somebody(&db).await;
    let other = Resident::of(&db, "grace").await.scope();
    let id = enqueue(&db, &a_job(scope)).await;
    assert_eq!(db.get(other, id).await.unwrap(), None);
    let cancel = Write::RequestCancel { scope: other, id, at: at(1) };
    assert!(is_stale(&crate::builders::commit(&db, cancel).await));
    assert_eq!(state(&db, scope, id).await, JobState::Queued);
}
