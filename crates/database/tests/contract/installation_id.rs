//! Contract of `Database::claim_for_installation` and of `inspect`.

use std::fs;

use launchway_database::{Database, Inspection, SchemaStatus, inspect, migrations};
use launchway_domain::ids::InstanceId;
use launchway_testkit::postgres::FreshDatabase;
use tokio::task::JoinSet;

use crate::{
    builders::{at, id},
    fresh::Fresh,
};

contract!(
    a_new_database_has_no_id,
    the_first_id_stays,
    servers_that_start_at_once_get_the_same_id,
    an_inspection_shows_the_id_and_the_key_check,
    an_inspection_reads_a_database_without_the_table,
);

async fn a_new_database_has_no_id(db: Database) {
    assert_eq!(db.installation_id().await.unwrap(), None);
}

async fn the_first_id_stays(fresh: &Fresh) {
    let db = &fresh.database;
    let (first, second) = (id(), id());
    assert_eq!(db.claim_for_installation(first, at(0)).await.unwrap(), first);
    assert_eq!(db.claim_for_installation(second, at(1)).await.unwrap(), first);
    assert_eq!(fresh.open_again().installation_id().await.unwrap(), Some(first));
}

async fn servers_that_start_at_once_get_the_same_id(fresh: &Fresh) {
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let (db, own) = (fresh.open_again(), id());
        tasks.spawn(async move { db.claim_for_installation(own, at(0)).await.unwrap() });
    }
    let ids: Vec<InstanceId> = tasks.join_all().await;
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

async fn an_inspection_shows_the_id_and_the_key_check(fresh: &Fresh) {
    let db = &fresh.database;
    let before =
        Inspection::Usable { schema_status: SchemaStatus::UpToDate, installation: None, key_check: None };
    assert_eq!(inspect(&fresh.url()).unwrap(), before);
    let own = db.claim_for_installation(id(), at(0)).await.unwrap();
    db.remember_key_check("sealed".to_owned()).await.unwrap();
    let after = Inspection::Usable {
        schema_status: SchemaStatus::UpToDate,
        installation: Some(own),
        key_check: Some("sealed".to_owned()),
    };
    assert_eq!(inspect(&fresh.url()).unwrap(), after);
}

async fn an_inspection_reads_a_database_without_the_table(fresh: &Fresh) {
    let db = &fresh.database;
    db.remember_key_check("sealed".to_owned()).await.unwrap();
    crate::builders::execute(
        db,
        "DROP TABLE installation_identity;
         DELETE FROM __diesel_schema_migrations WHERE version = '20261116000001';",
    )
    .await;
    let schema_status = SchemaStatus::Behind(vec!["20261116000001".to_owned()]);
    let expected =
        Inspection::Usable { schema_status, installation: None, key_check: Some("sealed".to_owned()) };
    assert_eq!(inspect(&fresh.url()).unwrap(), expected);
}

#[test]
fn an_inspection_of_nothing_makes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("launchway.db").display()).parse().unwrap();
    assert_eq!(inspect(&url).unwrap(), Inspection::Missing);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_inspection_of_an_empty_database_makes_nothing_on_postgres() {
    let server = FreshDatabase::create();
    let empty = Inspection::Usable {
        schema_status: SchemaStatus::Behind(migrations::known()),
        installation: None,
        key_check: None,
    };
    for _ in 0..2 {
        assert_eq!(inspect(&server.url().parse().unwrap()).unwrap(), empty);
    }
}
