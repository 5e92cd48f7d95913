//! Errors when connections are exhausted, die or are closed.

use std::{sync::mpsc, time::Duration};

use diesel::connection::SimpleConnection as _;
use launchway_database::{AnyConnection, Database, DatabaseOptions, DatabaseUrl, OpenError};
use launchway_domain::{
    auth::CredentialRepository as _,
    organizations::Scope,
    store::StoreError,
    users::{UserRepository as _, Write},
};
use tokio::sync::mpsc::unbounded_channel;

use crate::{
    builders::{Resident, a_user, commit, execute, id},
    fresh::Fresh,
};

contract!(
    reads_fail_in_time_when_all_connections_are_busy,
    readers_go_on_while_writers_wait_for_each_other,
    a_panic_while_reading_costs_nobody_a_connection,
    a_closed_database_is_not_available,
);

async fn reads_fail_in_time_when_all_connections_are_busy(fresh: &Fresh) {
    let db = fresh.open_with(|options| {
        options.connections = 1;
        options.max_wait = Duration::from_secs(2);
    });
    let (gate, opened) = mpsc::channel::<()>();
    let (entered, mut is_in) = unbounded_channel();
    let reader = db.clone();
    let long = tokio::spawn(async move {
        let wait = move |_: &mut _| {
            entered.send(()).unwrap();
            opened.recv().unwrap_err();
            Ok(())
        };
        reader.read(wait).await
    });
    is_in.recv().await.unwrap();
    let outcome = db.profile(id()).await;
    assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    let outcome = db.api_tokens(Scope::of_record(id()), id()).await;
    assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");

    drop(gate);
    long.await.unwrap().unwrap();
    assert_eq!(db.profile(id()).await.unwrap(), None);
}

async fn readers_go_on_while_writers_wait_for_each_other(fresh: &Fresh) {
    let db = fresh.open_with(|options| options.connections = 4);
    let (entered, mut is_in) = unbounded_channel();
    let (mut gates, mut writers) = (Vec::new(), Vec::new());
    for _ in 0..8 {
        let (gate, opened) = mpsc::channel::<()>();
        gates.push(gate);
        let (writer, entered) = (db.clone(), entered.clone());
        writers.push(tokio::spawn(async move {
            let wait = move |_: &mut _| {
                entered.send(()).unwrap();
                opened.recv().unwrap_err();
                Ok(())
            };
            writer.write(wait).await
        }));
    }
    // When the first has begun, all of them have asked.
    is_in.recv().await.unwrap();
    assert_eq!(db.profile(id()).await.unwrap(), None);

    drop(gates);
    for writer in writers {
        writer.await.unwrap().unwrap();
    }
}

async fn a_panic_while_reading_costs_nobody_a_connection(db: Database) {
    for _ in 0..10 {
        let outcome: Result<(), StoreError> = db.read(|_| panic!("as the test wants it")).await;
        assert!(matches!(outcome, Err(StoreError::Internal(_))), "{outcome:?}");
    }
    assert_eq!(db.profile(id()).await.unwrap(), None);
}

async fn a_closed_database_is_not_available(db: Database) {
    db.close().await;
    let outcome = db.profile(id()).await;
    assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    let outcome = commit(&db, Write::Insert(a_user("ada"))).await;
    assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
    db.close().await;
}

#[tokio::test]
async fn connections_that_postgres_cut_are_replaced_unnoticed() {
    let fresh = Fresh::on_postgres().await;
    let db = &fresh.database;
    let ada = Resident::of(db, "ada").await.user.id;
    let operator = fresh.open_with(|options| options.connections = 1);
    let cut = "DO $$ BEGIN PERFORM pg_terminate_backend(pid, 60000) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid(); END $$";
    execute(&operator, cut).await;
    assert!(db.profile(ada).await.unwrap().is_some());
    execute(&operator, cut).await;
    commit(db, Write::Insert(a_user("grace"))).await.unwrap();
}

#[tokio::test]
async fn a_reader_of_a_file_cannot_write() {
    let fresh = Fresh::on_sqlite().await;
    let write = |connection: &mut AnyConnection| Ok(connection.batch_execute("DELETE FROM users")?);
    assert!(matches!(fresh.database.read(write).await, Err(StoreError::Internal(_))));
}

#[tokio::test]
async fn only_the_owner_may_read_the_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let url = DatabaseUrl::Sqlite(folder.path().join("launchway.db"));
    let database = Database::open(DatabaseOptions::new(url)).unwrap();
    database.migrate().await.unwrap();
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
    assert!(files.iter().any(|file| file.file_name() == "launchway.db"));
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", file.path().display());
    }
}

#[tokio::test]
async fn a_file_in_a_folder_that_does_not_exist_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let url = DatabaseUrl::Sqlite(folder.path().join("missing/launchway.db"));
    let error = Database::open(DatabaseOptions::new(url)).unwrap_err();
    assert!(error.to_string().contains("missing/launchway.db"), "{error}");
}

#[tokio::test]
async fn a_file_that_must_exist_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["launchway.db", "missing/launchway.db"] {
        let path = folder.path().join(name);
        let options = DatabaseOptions::new(DatabaseUrl::Sqlite(path.clone()));
        let error = Database::open(DatabaseOptions { must_exist: true, ..options }).unwrap_err();
        let OpenError::File { path: refused, source } = error else { panic!("{error:?}") };
        assert_eq!((refused, source.to_string()), (path, "there is no database here".to_owned()));
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_file_that_must_exist_is_opened_when_it_does() {
    let fresh = Fresh::on_sqlite().await;
    let ada = Resident::of(&fresh.database, "ada").await.user.id;
    let again = fresh.open_with(|options| options.must_exist = true);
    assert!(again.profile(ada).await.unwrap().is_some());
}

#[tokio::test]
async fn a_server_that_does_not_answer_cannot_be_opened() {
    let url = "postgres://nobody@127.0.0.1:1/nothing".parse().unwrap();
    let options = DatabaseOptions { max_wait: Duration::from_millis(50), ..DatabaseOptions::new(url) };
    assert!(matches!(Database::open(options), Err(OpenError::Connect(_))));
}

#[derive(diesel::QueryableByName)]
struct Setting {
    #[diesel(sql_type = diesel::sql_types::Text)]
    value: String,
}

/// The locks of a server whose machine was lost, or that was frozen in the middle of a transaction, are released soon.
#[tokio::test]
async fn a_lost_session_ends_soon_on_postgres() {
    let fresh = Fresh::on_postgres().await;
    let limits = [
        ("tcp_keepalives_idle", "4"),
        ("tcp_keepalives_interval", "2"),
        ("tcp_keepalives_count", "3"),
        ("tcp_user_timeout", "10000"),
        ("idle_in_transaction_session_timeout", "30s"),
    ];
    for (name, expected) in limits {
        let query = format!("SELECT current_setting('{name}') AS value");
        let read = move |connection: &mut AnyConnection| {
            Ok(diesel::RunQueryDsl::get_result::<Setting>(diesel::sql_query(&query), connection)?)
        };
        assert_eq!(fresh.database.read(read).await.unwrap().value, expected, "{name}");
    }
}
