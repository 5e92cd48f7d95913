//! The stored form of the records, and their retention.

use super::*;

#[test]
fn a_transaction_that_is_not_stored_did_not_happen() {
    let mut records = records();
    let before = records.snapshot();
    let full = |_rows: &[Row]| Err(StoreError::StorageFull("no space".into()));
    let done = records.transaction(|records| records.commit(&request(11, 1, 1)), full);
    assert!(matches!(done, Err(StoreError::StorageFull(_))));
    assert_eq!(records.snapshot(), before);
    assert!(records.claim(worker(1), LIMITS, NOW, NOW).is_none());
}

#[test]
fn changed_rows_lead_to_the_same_records() {
    let mut stored = Vec::new();
    let mut records = Records::default();
    let mut change = |change: &mut dyn FnMut(&mut Records) -> Result<(), StoreError>| {
        let append = |rows: &[Row]| {
            stored.extend_from_slice(rows);
            Ok(())
        };
        records.transaction(change, append).unwrap();
    };
    change(&mut |records| {
        records.know(&somebody(1));
        records.commit(&[insert(application(1, 1, "web")), entry()])
    });
    change(&mut |records| records.commit(&request(11, 1, 1)));
    change(&mut |records| records.claim(worker(1), LIMITS, NOW, NOW).map(|_| ()).ok_or(StoreError::Stale));
    change(&mut |records| {
        records.record_artifact(id(11).into(), "nginx:1".parse().unwrap());
        records.commit(&[advance(11, DeploymentState::Deploying), go_live(11)])
    });
    change(&mut |records| {
        records.commit(&[
            ApplicationWrite::Delete { scope: scope(1), id: id(1).into(), at: NOW }.into(),
            entry(),
        ])
    });
    assert_eq!(Records::load(stored).unwrap().snapshot(), records.snapshot());
}

#[test]
fn a_transaction_that_changes_nothing_stores_nothing() {
    let mut records = records();
    let stored = records.transaction(
        |records| {
            assert!(records.claim(worker(1), LIMITS, NOW, NOW).is_none());
            records.commit(&[follow()])
        },
        |rows| panic!("{rows:?}"),
    );
    stored.unwrap();
}

#[test]
fn rows_that_are_not_valid_are_named() {
    let row = |key: &str, value: &str| Row { key: key.to_owned(), value: Some(value.to_owned()) };
    let read = |rows: Vec<Row>| Records::load(rows).unwrap_err().to_string();
    let newer = read(vec![row("format", "2")]);
    assert_eq!(newer, "the record `format` cannot be read: version 2 is newer than 1: use a newer release");
    assert!(read(vec![row("user/1", "{}")]).starts_with("the record `user/1` cannot be read: missing field"));
    assert!(read(vec![row("format", "1"), row("cow/1", "{}")]).contains("no known kind"));
    let mut rows = records().snapshot();
    rows.remove(0);
    assert!(read(rows).contains("these are not records of Launchway"));
}

#[test]
fn what_is_older_than_its_retention_is_deleted() {
    let mut records = records();
    for number in 11..=16 {
        records.unit(&request(number, 1, 1)).unwrap();
        let claimed = records.claim(worker(1), LIMITS, NOW, NOW).unwrap();
        records.keep();
        let state = if number == 12 { DeploymentState::Failed } else { DeploymentState::Deploying };
        let mut writes = vec![advance(number, state), settle(&claimed, Outcome::Succeeded)];
        if number != 12 {
            writes.extend([go_live(number), advance(number, DeploymentState::Deployed)]);
        }
        records.unit(&writes).unwrap();
    }
    let retention = Retention { deployments: 1, ..Retention::default() };
    let year = chrono::TimeDelta::days(366);
    let mut trim = |kept: u16| {
        records
            .transaction(|records| Ok(records.trim(retention, KeptVersions(kept), NOW + year)), |_| Ok(()))
            .unwrap();
        let mut left: Vec<u128> = records.deployments().map(|one| Uuid::from(one.id).as_u128()).collect();
        left.sort_unstable();
        (left, records.counts()["jobs"], records.counts()["audit entries"])
    };
    assert_eq!(trim(3), (vec![14, 15, 16], 0, 0), "those that can be rolled back to");
    assert_eq!(trim(1), (vec![16], 0, 0));
}
