//! Group commit of the one writer of a SQLite file.

mod on_postgres;

use std::sync::mpsc;

use diesel::connection::SimpleConnection as _;
use launchway_database::Database;
use launchway_domain::{
    store::{StoreError, UnitOfWork as _},
    users::{self, UserRepository as _},
};
use tokio::{
    sync::oneshot,
    task::{JoinSet, yield_now},
};

use crate::{
    builders::{Resident, a_user, at, audited, commit},
    fresh::{FILE, Fresh},
};

/// Blocks the writer until the gate is dropped, so that further writes are queued and wait for the next transaction.
async fn occupy(db: &Database, tasks: &mut JoinSet<Result<(), StoreError>>) -> mpsc::Sender<()> {
    let (gate, opened) = mpsc::channel::<()>();
    let (begin, begun) = oneshot::channel();
    let writer = db.clone();
    tasks.spawn(async move {
        let wait = move |_: &mut _| {
            begin.send(()).unwrap();
            opened.recv().unwrap_err();
            Ok(())
        };
        writer.write(wait).await
    });
    // A writer that has not begun yet would take what is queued meanwhile into the same transaction.
    begun.await.unwrap();
    gate
}

/// Waits until that many calls are queued at the writer.
async fn queued(db: &Database, commits: u64) {
    while db.statistics().commits < commits {
        yield_now().await;
    }
}

#[tokio::test]
async fn changes_that_wait_together_share_one_transaction() {
    let fresh = Fresh::on_sqlite().await;
    let db = &fresh.database;
    let mut tasks = JoinSet::new();
    let before = db.statistics();
    let gate = occupy(db, &mut tasks).await;
    for n in 0..50 {
        let db = db.clone();
        tasks.spawn(async move { db.commit(audited(Resident::called(&format!("user{n}")).writes())).await });
    }
    queued(db, before.commits + 51).await;
    drop(gate);
    assert!(tasks.join_all().await.iter().all(Result::is_ok));
    let after = db.statistics();
    assert_eq!(after.commits - before.commits, 51);
    assert_eq!(after.transactions - before.transactions, 2, "{after:?}");
}

#[tokio::test]
async fn a_transaction_that_cannot_be_committed_is_nobodys_success() {
    let fresh = Fresh::on_sqlite().await;
    let db = &fresh.database;
    let mut tasks = JoinSet::new();
    let before = db.statistics();
    let gate = occupy(db, &mut tasks).await;
    let grace = Resident::called("grace");
    let (writer, writes) = (db.clone(), audited(grace.writes()));
    tasks.spawn(async move { writer.commit(writes).await });
    queued(db, before.commits + 2).await;
    let poison = db.clone();
    tasks.spawn(async move {
        let dangling = "PRAGMA defer_foreign_keys = ON;
                        INSERT INTO passwords VALUES (zeroblob(16), 'hash', 0);";
        poison.write(move |connection| Ok(connection.batch_execute(dangling)?)).await
    });
    queued(db, before.commits + 3).await;
    drop(gate);
    let outcomes = tasks.join_all().await;
    let lost = outcomes.iter().filter(|outcome| matches!(outcome, Err(StoreError::Unavailable(_)))).count();
    assert_eq!(lost, 2, "{outcomes:?}");
    assert_eq!(db.profile(grace.user.id).await.unwrap(), None);
    db.commit(audited(grace.writes())).await.unwrap();
}

#[tokio::test]
async fn the_log_stays_small_with_many_commits_and_readers_around() {
    let fresh = Fresh::on_sqlite().await;
    let db = &fresh.database;
    let ada = Resident::of(db, "ada").await.user.id;
    let mut tasks = JoinSet::new();
    for writer in 0..16 {
        let db = db.clone();
        tasks.spawn(async move {
            for n in 0..200 {
                let mut user = a_user(&format!("user{writer}x{n}"));
                user.avatar = "x".repeat(2000);
                commit(&db, users::Write::Insert(user)).await.unwrap();
                let username = format!("{writer} {n}").parse().unwrap();
                commit(&db, users::Write::Rename { id: ada, username, at: at(n) }).await.unwrap();
                assert!(db.profile(ada).await.unwrap().is_some());
            }
        });
    }
    tasks.join_all().await;
    let log = fresh.folder().unwrap().join(format!("{FILE}-wal"));
    let size = std::fs::metadata(&log).unwrap().len();
    assert!(size < 16 * 1024 * 1024, "the log has {size} bytes");

    db.close().await;
    assert_eq!(std::fs::metadata(&log).map_or(0, |log| log.len()), 0);
}

#[tokio::test]
async fn dropping_the_database_finishes_what_was_accepted() {
    let fresh = Fresh::on_sqlite().await;
    let other = fresh.open_again();
    let ada = Resident::called("ada");
    let (writer, writes) = (other.clone(), audited(ada.writes()));
    let task = tokio::spawn(async move { writer.commit(writes).await });
    queued(&other, 1).await;
    drop(other);
    task.await.unwrap().unwrap();
    assert!(fresh.database.profile(ada.user.id).await.unwrap().is_some());
}
