//! Contract of `Tables` and `copy`: a whole database as lines, also copied to PostgreSQL.

use std::{collections::BTreeSet, path::Path};

use diesel::{
    QueryableByName, RunQueryDsl as _, connection::SimpleConnection as _, sql_query, sql_types::Text,
};
use launchway_database::{
    AnyConnection, Database, DatabaseUrl, SchemaStatus, migrations,
    tables::{Filler, TableDigest, Tables, copy},
};
use launchway_domain::deployments::DeploymentKind;
use launchway_testkit::{builders::a_deployment, postgres::FreshDatabase};
use tempfile::TempDir;

use crate::{
    applications::{an_application_of, insert},
    builders::{Resident, execute, id},
    deployments::insert_deployment,
    fresh::Fresh,
};

contract!(
    a_copy_on_the_other_database_is_the_same_to_the_last_byte,
    every_table_is_listed_behind_those_that_it_refers_to,
    a_snapshot_does_not_show_what_is_written_meanwhile,
    tables_of_an_older_version_are_filled_as_they_were,
    a_database_that_is_not_empty_is_not_filled,
    what_is_not_kept_leaves_nothing,
    the_schema_status_is_reported_without_a_change,
);

/// An empty database of the other kind.
enum Other {
    File(TempDir),
    Server(FreshDatabase),
}

impl Other {
    fn of(fresh: &Fresh) -> Self {
        match fresh.folder() {
            Some(_) => Self::Server(FreshDatabase::create()),
            None => Self::File(tempfile::tempdir().unwrap()),
        }
    }

    fn url(&self) -> DatabaseUrl {
        match self {
            Self::File(folder) => file_in(folder.path()),
            Self::Server(server) => server.url().parse().unwrap(),
        }
    }
}

fn file_in(folder: &Path) -> DatabaseUrl {
    DatabaseUrl::Sqlite(folder.join("copy.db"))
}

fn digests(url: &DatabaseUrl) -> Vec<(String, TableDigest)> {
    let mut tables = Tables::snapshot(url).unwrap();
    let list = tables.list().unwrap();
    list.iter().map(|table| (table.name.clone(), tables.read(table, |_| Ok(())).unwrap())).collect()
}

fn rows(digests: &[(String, TableDigest)], table: &str) -> u64 {
    digests.iter().find(|(name, _)| name == table).unwrap().1.rows
}

/// Fills rows with values that are hard to serialize.
async fn fill(db: &Database) {
    let ada = Resident::of(db, "ada").await;
    ada.log_in(db, "token").await;
    ada.issue(db, "ci").await;
    let web = an_application_of(&ada).at_domain("web.example.com").build();
    insert(db, &web).await.unwrap();
    // One that goes back to another, which the order of ids puts behind it.
    let (back, first) = (id(), id());
    let first = launchway_domain::deployments::Deployment { id: first, ..a_deployment().of(&web).build() };
    insert_deployment(db, &first).await;
    let kind = DeploymentKind::Rollback { to: first.id };
    let back =
        launchway_domain::deployments::Deployment { id: back, kind, ..a_deployment().of(&web).build() };
    insert_deployment(db, &back).await;
    execute(
        db,
        "UPDATE organizations SET description = 'a \"quoted\" \\ back''slash %
 line, \u{1}, \u{7f}, \u{2028}, \u{1F511}, für';
         INSERT INTO job_turns (organization_id, last_turn) SELECT id, 9223372036854775807 FROM organizations;
         UPDATE users SET is_verified = (1 = 1), two_factor_enabled = (1 = 0);",
    )
    .await;
    // More than one statement takes, and moments from before 1970 and with every microsecond.
    db.write(|connection| {
        match connection {
            AnyConnection::Sqlite(sqlite) => sqlite.batch_execute(
                "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 3000)
                 INSERT INTO application_logs
                     (application_id, number, deployment_id, deployment_number, level, log, search, created_at)
                 SELECT applications.id, -n, applications.id, n, 'info', printf('%.1000c', 'x') || n, NULL,
                        1700000000000000 + n - (n % 2) * 1800000000000001
                 FROM numbers, applications",
            )?,
            AnyConnection::Postgres(postgres) => postgres.batch_execute(
                "INSERT INTO application_logs
                     (application_id, number, deployment_id, deployment_number, level, log, search, created_at)
                 SELECT applications.id, -n, applications.id, n, 'info', repeat('x', 1000) || n, NULL,
                        '2023-11-14 22:13:20+00'::timestamptz
                            + (n - (n % 2) * 1800000000000001) * interval '1 microsecond'
                 FROM generate_series(1, 3000) AS n, applications",
            )?,
        }
        Ok(())
    })
    .await
    .unwrap();
}

async fn a_copy_on_the_other_database_is_the_same_to_the_last_byte(fresh: &Fresh) {
    fill(&fresh.database).await;
    let before = digests(&fresh.url());
    assert_eq!((rows(&before, "application_logs"), rows(&before, "deployments")), (3000, 2));
    assert!(rows(&before, "audit_entries") > 0 && rows(&before, "identity_epoch") == 1);
    let other = Other::of(fresh);
    assert_eq!(copy(&fresh.url(), &other.url()).unwrap(), before);
    // Also when it was kept: triggers may act as late as that.
    assert_eq!(digests(&other.url()), before);
    assert_eq!(digests(&fresh.url()), before);
    // And back, and to another one of the same kind.
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(copy(&other.url(), &file_in(folder.path())).unwrap(), before);
    let server = FreshDatabase::create();
    assert_eq!(copy(&other.url(), &server.url().parse().unwrap()).unwrap(), before);
}

#[derive(QueryableByName)]
struct Name {
    #[diesel(sql_type = Text)]
    name: String,
}

async fn every_table_is_listed_behind_those_that_it_refers_to(fresh: &Fresh) {
    let found = fresh.database.read(|connection| {
        Ok::<Vec<Name>, _>(match connection {
            AnyConnection::Sqlite(sqlite) => {
                sql_query("SELECT name FROM sqlite_schema WHERE type = 'table'").load(sqlite)?
            }
            // A sequence would have to be set after rows were copied.
            AnyConnection::Postgres(postgres) => sql_query(
                "SELECT table_name::text AS name FROM information_schema.tables WHERE table_schema = 'public'
                 UNION ALL SELECT sequencename::text FROM pg_sequences",
            )
            .load(postgres)?,
        })
    });
    let mut found: BTreeSet<String> = found.await.unwrap().into_iter().map(|row| row.name).collect();
    let derived = ["site_archives", "site_archive_parts", "search_indexes", "search_postings"];
    for name in ["__diesel_schema_migrations"].into_iter().chain(derived) {
        assert!(found.remove(name), "{name}");
    }
    let list = Tables::snapshot(&fresh.url()).unwrap().list().unwrap();
    let names: Vec<&str> = list.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>(), found);
    let place = |name: &str| names.iter().position(|other| *other == name).unwrap();
    assert!(place("users") < place("applications") && place("applications") < place("deployments"));
    assert!(names.ends_with(&["jobs_epoch", "routes_epoch", "identity_epoch"]));
}

async fn a_snapshot_does_not_show_what_is_written_meanwhile(fresh: &Fresh) {
    Resident::of(&fresh.database, "ada").await;
    let mut tables = Tables::snapshot(&fresh.url()).unwrap();
    let list = tables.list().unwrap();
    Resident::of(&fresh.database, "grace").await;
    let users = list.iter().find(|table| table.name == "users").unwrap();
    assert_eq!(tables.read(users, |_| Ok(())).unwrap().rows, 1);
    assert_eq!(Tables::snapshot(&fresh.url()).unwrap().read(users, |_| Ok(())).unwrap().rows, 2);
}

async fn tables_of_an_older_version_are_filled_as_they_were(fresh: &Fresh) {
    let known = migrations::known();
    let other = Other::of(fresh);
    let mut tables = Tables::fresh(&other.url(), &known[0]).unwrap();
    assert_eq!(tables.schema().unwrap(), known[0]);
    let names: Vec<String> = tables.list().unwrap().into_iter().map(|table| table.name).collect();
    assert!(names.contains(&"users".to_owned()) && !names.contains(&"jobs".to_owned()));
    tables.keep().unwrap();
    assert_eq!(Tables::snapshot(&other.url()).unwrap().schema().unwrap(), known[0]);
    assert!(Tables::fresh(&Other::of(fresh).url(), "20991231000001").is_err());
}

async fn a_database_that_is_not_empty_is_not_filled(fresh: &Fresh) {
    Resident::of(&fresh.database, "ada").await;
    let before = digests(&fresh.url());
    let other = Other::of(fresh);
    copy(&fresh.url(), &other.url()).unwrap();
    assert!(copy(&other.url(), &fresh.url()).is_err());
    assert!(Tables::fresh(&fresh.url(), &migrations::known()[0]).is_err());
    assert_eq!(digests(&fresh.url()), before);
}

async fn what_is_not_kept_leaves_nothing(fresh: &Fresh) {
    let other = Other::of(fresh);
    let newest = migrations::known().pop().unwrap();
    let mut tables = Tables::fresh(&other.url(), &newest).unwrap();
    let table = tables.list().unwrap().into_iter().find(|table| table.name == "key_check").unwrap();
    let mut filler = Filler::of(table);
    filler.add(&mut tables, "[1,\"sealed\"]").unwrap();
    filler.finish(&mut tables).unwrap();
    assert_eq!(tables.key_check().unwrap().as_deref(), Some("sealed"));
    drop(tables);
    assert!(Tables::snapshot(&other.url()).is_err(), "it has no tables");
    // A row that the table refuses spoils everything.
    execute(&fresh.database, "INSERT INTO key_check (id, sealed) VALUES (1, 'sealed')").await;
    let third = Other::of(fresh);
    let mut tables = Tables::fresh(&third.url(), &newest).unwrap();
    let table = tables.list().unwrap().into_iter().find(|table| table.name == "key_check").unwrap();
    let mut filler = Filler::of(table);
    filler.add(&mut tables, "[2,\"sealed\"]").unwrap();
    assert!(filler.finish(&mut tables).is_err());
}

async fn the_schema_status_is_reported_without_a_change(fresh: &Fresh) {
    assert_eq!(fresh.database.schema_status().await.unwrap(), SchemaStatus::UpToDate);
    execute(&fresh.database, "INSERT INTO __diesel_schema_migrations (version) VALUES ('20991231000001')")
        .await;
    assert_eq!(
        fresh.database.schema_status().await.unwrap(),
        SchemaStatus::Ahead(vec!["20991231000001".to_owned()])
    );
    let refused = fresh.database.migrate().await.unwrap_err();
    assert!(format!("{refused:?}").contains("20991231000001"), "{refused:?}");
    execute(&fresh.database, "DELETE FROM __diesel_schema_migrations").await;
    let SchemaStatus::Behind(steps) = fresh.database.schema_status().await.unwrap() else {
        panic!("steps are missing")
    };
    assert_eq!(steps, migrations::known());
}
