//! Group commit of the units of one audit chain on PostgreSQL.

use std::sync::mpsc;

use diesel::connection::SimpleConnection as _;
use launchway_database::Database;
use launchway_domain::{
    audit::{self, AuditRepository as _, Chain, LinkHash},
    store::{StoreError, UnitOfWork as _, Write},
    users::{self, UserRepository as _},
};
use tokio::{
    sync::oneshot,
    task::{JoinSet, yield_now},
};

use crate::{
    builders::{a_user, an_entry, at, id},
    fresh::Fresh,
};

/// Returns a unit with an entry of `chain`.
fn unit(chain: Chain, write: users::Write) -> Vec<Write> {
    vec![write.into(), audit::Write::Append(an_entry(chain)).into()]
}

/// A chain with one entry.
async fn a_chain(db: &Database) -> Chain {
    let chain = Chain::Organization(id());
    db.commit(unit(chain, users::Write::Insert(a_user("first")))).await.unwrap();
    chain
}

/// Locks the heads of all chains until the gate is dropped.
async fn lock_heads(db: &Database, tasks: &mut JoinSet<Result<(), StoreError>>) -> mpsc::Sender<()> {
    let (gate, opened) = mpsc::channel::<()>();
    let (begin, begun) = oneshot::channel();
    let writer = db.clone();
    tasks.spawn(async move {
        let wait = move |connection: &mut launchway_database::AnyConnection| {
            connection.batch_execute("SELECT 1 FROM audit_chains FOR UPDATE")?;
            begin.send(()).unwrap();
            opened.recv().unwrap_err();
            Ok(())
        };
        writer.write(wait).await
    });
    begun.await.unwrap();
    gate
}

/// Commits each unit in a task of its own. They are queued when this returns, because all tasks share one thread.
async fn queue(db: &Database, tasks: &mut JoinSet<Result<(), StoreError>>, units: Vec<Vec<Write>>) {
    for unit in units {
        let db = db.clone();
        tasks.spawn(async move { db.commit(unit).await });
        yield_now().await;
    }
}

fn inserts(chain: Chain, count: usize) -> Vec<Vec<Write>> {
    (0..count).map(|n| unit(chain, users::Write::Insert(a_user(&format!("user{n}"))))).collect()
}

/// Checks the hashes of a chain, and returns its length.
async fn verified_length(db: &Database, chain: Chain) -> i64 {
    let (mut hash, mut number) = (LinkHash::ROOT, 0);
    for link in db.links(chain, 0, 1000).await.unwrap() {
        number += 1;
        hash = hash.next(number, &link.entry);
        assert_eq!((link.number, link.hash), (number, hash));
    }
    let head = db.heads().await.unwrap().into_iter().find(|head| head.chain == chain).unwrap();
    assert_eq!((head.number, head.hash), (number, hash));
    number
}

#[tokio::test]
async fn units_of_a_chain_that_wait_share_one_transaction() {
    let fresh = Fresh::on_postgres().await;
    let db = &fresh.database;
    let chain = a_chain(db).await;
    let mut tasks = JoinSet::new();
    let gate = lock_heads(db, &mut tasks).await;
    let before = db.statistics();
    queue(db, &mut tasks, inserts(chain, 51)).await;
    drop(gate);
    let outcomes = tasks.join_all().await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
    let after = db.statistics();
    // The one that held the lock, the first unit, and all others.
    assert_eq!((after.commits - before.commits, after.transactions - before.transactions), (51, 3));
    assert_eq!(verified_length(db, chain).await, 52);
}

#[tokio::test]
async fn a_unit_that_fails_fails_alone() {
    let fresh = Fresh::on_postgres().await;
    let db = &fresh.database;
    let chain = a_chain(db).await;
    let mut tasks = JoinSet::new();
    let gate = lock_heads(db, &mut tasks).await;
    let mut units = inserts(chain, 10);
    // One that repeats an address, and one whose guard does not hold.
    units.insert(4, unit(chain, users::Write::Insert(a_user("user2"))));
    let rename = users::Write::Rename { id: id(), username: "nobody".parse().unwrap(), at: at(1) };
    units.insert(7, unit(chain, rename));
    queue(db, &mut tasks, units).await;
    drop(gate);
    let outcomes = tasks.join_all().await;
    let count = |is: fn(&StoreError) -> bool| {
        outcomes.iter().filter(|outcome| outcome.as_ref().is_err_and(is)).count()
    };
    assert_eq!(count(|error| matches!(error, StoreError::Taken(_))), 1, "{outcomes:?}");
    assert_eq!(count(|error| matches!(error, StoreError::Stale)), 1, "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 11, "{outcomes:?}");
    assert_eq!(verified_length(db, chain).await, 11);
}

#[tokio::test]
async fn callers_that_stop_waiting_stop_no_unit() {
    let fresh = Fresh::on_postgres().await;
    let db = &fresh.database;
    let chain = a_chain(db).await;
    let (mut tasks, mut holder) = (JoinSet::new(), JoinSet::new());
    let gate = lock_heads(db, &mut holder).await;
    queue(db, &mut tasks, inserts(chain, 3)).await;
    tasks.shutdown().await;
    let last = a_user("last");
    let last_id = last.id;
    queue(db, &mut tasks, vec![unit(chain, users::Write::Insert(last))]).await;
    drop(gate);
    assert!(tasks.join_all().await.iter().all(Result::is_ok));
    assert_eq!(verified_length(db, chain).await, 5);
    assert!(db.profile(last_id).await.unwrap().is_some());
}

#[tokio::test]
async fn units_of_another_chain_do_not_wait() {
    let fresh = Fresh::on_postgres().await;
    let db = &fresh.database;
    let chain = a_chain(db).await;
    let mut tasks = JoinSet::new();
    let gate = lock_heads(db, &mut tasks).await;
    queue(db, &mut tasks, inserts(chain, 2)).await;
    // A chain that did not exist when the heads were locked.
    let other = Chain::Organization(id());
    db.commit(unit(other, users::Write::Insert(a_user("other")))).await.unwrap();
    assert_eq!(verified_length(db, other).await, 1);
    drop(gate);
    assert!(tasks.join_all().await.iter().all(Result::is_ok));
}
