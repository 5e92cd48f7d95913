//! Stores that break one promise each.

use std::sync::{Arc, Mutex as StdMutex};

use async_trait::async_trait;
use launchway_embedding::{
    Change, Query, Records, Row, Store, StoreError,
    conformance::{Durability, check_store},
};
use tokio::sync::Mutex;

use super::found;

/// The fault of a store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It stores only every second transaction.
    LosesWrites,
    /// It stores only the first row of a transaction.
    TearsWrites,
    /// It stores transactions in the wrong order.
    Reorders,
    /// Its queries see an old copy.
    ReadsStale,
    /// It keeps what a failed transaction changed.
    KeepsFailures,
    /// It forgets that rows were removed.
    Resurrects,
    /// It never finishes a transaction.
    Hangs,
    /// It panics.
    Panics,
    /// It runs transactions on copies, so that one of two at once is lost.
    Races,
}

/// The rows that outlive a store.
type Disk = Arc<StdMutex<Vec<Vec<Row>>>>;

struct Broken {
    fault: Fault,
    disk: Disk,
    records: Mutex<Records>,
    old: Records,
}

impl Broken {
    fn open(fault: Fault, disk: &Disk) -> Self {
        let mut stored = disk.lock().unwrap().clone();
        match fault {
            Fault::LosesWrites => stored = stored.into_iter().step_by(2).collect(),
            Fault::TearsWrites => stored.iter_mut().for_each(|rows| rows.truncate(1)),
            Fault::Reorders => stored.reverse(),
            Fault::Resurrects => stored.iter_mut().for_each(|rows| rows.retain(|row| row.value.is_some())),
            _ => {}
        }
        let format = Row { key: "format".to_owned(), value: Some("1".to_owned()) };
        let rows = stored.into_iter().flatten().chain([format]);
        let records = Records::load(rows).unwrap();
        let old = records.clone();
        Self { fault, disk: Arc::clone(disk), records: Mutex::new(records), old }
    }
}

#[async_trait]
impl Store for Broken {
    async fn read(&self, query: Query<'_>) -> Result<(), StoreError> {
        match self.fault {
            Fault::ReadsStale => query(&self.old),
            _ => query(&*self.records.lock().await),
        }
        Ok(())
    }

    async fn change(&self, change: Change<'_>) -> Result<(), StoreError> {
        let store = |rows: &[Row]| {
            self.disk.lock().unwrap().push(rows.to_vec());
            Ok(())
        };
        match self.fault {
            Fault::Hangs => std::future::pending().await,
            Fault::Panics => panic!("no idea"),
            Fault::Races => {
                let mut copy = self.records.lock().await.clone();
                tokio::task::yield_now().await;
                let changed = copy.transaction(change, store);
                tokio::task::yield_now().await;
                *self.records.lock().await = copy;
                changed
            }
            Fault::KeepsFailures => {
                let mut records = self.records.lock().await;
                let mut failure = None;
                let kept = records.transaction(
                    |records| {
                        failure = change(records).err();
                        Ok(())
                    },
                    store,
                );
                failure.map_or(kept, Err)
            }
            _ => self.records.lock().await.transaction(change, store),
        }
    }
}

async fn finds(fault: Fault, name: &str) {
    let disk = Disk::default();
    // The store in front of it works: most faults show when it is opened again.
    found(check_store(|| async { Broken::open(fault, &disk) }, Durability::Survives).await, name);
}

#[tokio::test]
async fn lost_writes_are_found() {
    finds(Fault::LosesWrites, "a change survives").await;
}

#[tokio::test]
async fn torn_writes_are_found() {
    finds(Fault::TearsWrites, "a change survives whole").await;
}

#[tokio::test]
async fn reordered_writes_are_found() {
    finds(Fault::Reorders, "of two changes the later one survives").await;
}

#[tokio::test]
async fn stale_reads_are_found() {
    finds(Fault::ReadsStale, "a change is seen by the next query").await;
}

#[tokio::test]
async fn kept_failures_are_found() {
    finds(Fault::KeepsFailures, "a failed change changes nothing").await;
}

#[tokio::test]
async fn removed_records_that_come_back_are_found() {
    finds(Fault::Resurrects, "a removed record does not come back").await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_found() {
    finds(Fault::Hangs, "a change is seen by the next query").await;
}

#[tokio::test]
async fn a_store_that_panics_is_found() {
    finds(Fault::Panics, "a change is seen by the next query").await;
}

#[tokio::test]
async fn transactions_that_overwrite_each_other_are_found() {
    finds(Fault::Races, "changes are made one after the other").await;
}
