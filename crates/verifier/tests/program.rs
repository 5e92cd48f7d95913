//! Tests of the program, as campaigns call it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    path::Path,
    process::{Command, Output},
};

use diesel::{Connection as _, SqliteConnection, connection::SimpleConnection as _};
use launchway_verifier::{
    figures::Figures,
    ledger::{Fact, Ledger},
};

const ID: &str = "01980000-0000-7000-8000-00000000000b";
const TABLES: &str = "
    CREATE TABLE applications (id BLOB, live_deployment_id BLOB, deleted_at INTEGER);
    CREATE TABLE deployments (id BLOB, status TEXT, container_id TEXT);
    CREATE TABLE jobs (id BLOB, state TEXT);
    CREATE TABLE application_logs (application_id BLOB, number INTEGER, log TEXT);
    INSERT INTO deployments VALUES (X'0198000000007000800000000000000b', 'deployed', NULL);
";

fn verify(folder: &Path, more: &[&str]) -> Output {
    let database = format!("sqlite:{}", folder.join("launchway.db").display());
    Command::new(env!("CARGO_BIN_EXE_launchway-verify"))
        .arg("--ledger")
        .arg(folder.join("ledger"))
        .args(["--database", &database])
        .args(more)
        .output()
        .unwrap()
}

#[test]
fn a_loss_is_reported_as_a_figure_and_as_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("launchway.db").display().to_string();
    SqliteConnection::establish(&file).unwrap().batch_execute(TABLES).unwrap();
    let ledger = Ledger::open(&folder.path().join("ledger")).unwrap();
    ledger.note(Fact::Accepted { deployment: ID.to_owned() }).unwrap();
    let well = verify(folder.path(), &["--at-rest", "0"]);
    assert_eq!(well.status.code(), Some(0), "{well:?}");

    ledger.note(Fact::Accepted { deployment: ID.replace('b', "c") }).unwrap();
    let lost = verify(folder.path(), &[]);
    assert_eq!(lost.status.code(), Some(1), "{lost:?}");
    let figures: Figures = serde_json::from_slice(&lost.stdout).unwrap();
    assert_eq!((figures.accepted, figures.lost, figures.succeeded), (2, 1, 1));
}

#[test]
fn what_cannot_be_read_is_neither_well_nor_lost() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(verify(folder.path(), &[]).status.code(), Some(3));
    assert_eq!(verify(folder.path(), &["--dance", "1"]).status.code(), Some(2));
}
