//! The conformance suite passes what ships, and finds what is broken.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod broken_hosts;
mod broken_stores;

use std::sync::Arc;

use launchway_embedding::{
    FileStore, MemoryStore, ProcessHost, ProcessSpec, SqliteStore, Version,
    conformance::{Durability, Failures, check_host, check_store},
};
use tempfile::TempDir;

/// Checks that the suite finds a failure in the test `name`, and returns all failures.
#[track_caller]
fn found(checked: Result<(), Failures>, name: &str) {
    let failures = checked.unwrap_err();
    assert!(failures.names().any(|failed| failed == name), "{failures}");
}

#[tokio::test]
async fn a_store_in_memory_conforms() {
    let store = Arc::new(MemoryStore::new());
    check_store(|| async { Arc::clone(&store) }, Durability::Volatile).await.unwrap();
}

#[tokio::test]
async fn a_store_in_a_file_conforms() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("records");
    check_store(|| async { FileStore::open(&path).await.unwrap() }, Durability::Survives).await.unwrap();
}

#[tokio::test]
async fn a_host_of_processes_conforms() {
    let folder = TempDir::new().unwrap();
    let serve = |_: &Version| {
        Ok(ProcessSpec::new("busybox").arguments(["sh", "-c", "exec busybox httpd -f -p $HOST:$PORT"]))
    };
    let open = || async { ProcessHost::builder(folder.path(), serve).open().unwrap() };
    check_host(open, "web:1".parse().unwrap()).await.unwrap();
}

#[tokio::test]
async fn a_store_in_sqlite_conforms() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("records.db");
    check_store(|| async { SqliteStore::open(&path).await.unwrap() }, Durability::Survives).await.unwrap();
}

#[tokio::test]
async fn a_sqlite_file_has_one_user_and_keeps_other_tables() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("records.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let second = SqliteStore::open(&path).await.err().unwrap();
    assert_eq!(second.to_string(), format!("{} is used by another process", path.display()));
    drop(store);
    SqliteStore::open(&path).await.unwrap();
    let foreign = folder.path().join("foreign.db");
    std::fs::write(&foreign, "no database, but text that is long enough to be taken for one").unwrap();
    let refused = SqliteStore::open(&foreign).await.err().unwrap();
    assert!(refused.to_string().contains("not a database"), "{refused}");
}
