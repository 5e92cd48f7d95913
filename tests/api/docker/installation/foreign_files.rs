//! Files that Launchway did not create stay unchanged.

use std::{fs, path::Path};

use diesel::{Connection as _, SqliteConnection, connection::SimpleConnection as _};
use launchway_testkit::server::command;

use super::{files_in, refused};

/// Every command that opens the configured database.
const VERBS: [&[&str]; 9] = [
    &["serve"],
    &["serve", "--adopt"],
    &["migrate"],
    &["upgrade", "check"],
    &["audit", "verify"],
    &["admin", "create", "--email", "ada@example.com", "--username", "ada"],
    &["key", "rotate"],
    &["backup", "create", "/nowhere/at/all"],
    &["database", "move", "--to", "sqlite:///nowhere/at/all.db"],
];

#[track_caller]
fn stays_as_it_is(folder: &Path, expected: &str) {
    let data = tempfile::tempdir().unwrap();
    let before = files_in(folder);
    let url = format!("sqlite://{}", folder.join("music.db").display());
    for verb in VERBS {
        let mut command = command(data.path(), &[("LAUNCHWAY_DATABASE_URL".to_owned(), url.clone())]);
        command.args(verb);
        let reported = if verb[0] == "admin" {
            let output = crate::administration::with_input(command, "correct horse battery");
            assert!(!output.status.success(), "{output:?}");
            crate::backups::words(&output)
        } else {
            refused(command)
        };
        assert!(reported.contains(expected) && reported.contains("music.db"), "{verb:?}: {reported}");
        assert!(files_in(folder) == before, "{verb:?} changed the file, or left others beside it");
    }
    assert!(!data.path().join("instance-id").exists() && !data.path().join("secret.key").exists());
}

fn library(folder: &Path, statements: &str) {
    let path = folder.join("music.db");
    let mut connection = SqliteConnection::establish(path.to_str().unwrap()).unwrap();
    connection.batch_execute(statements).unwrap();
}

#[test]
fn a_database_of_another_program_keeps_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path(), "CREATE TABLE albums (title TEXT); INSERT INTO albums VALUES ('Abbey Road');");
    stays_as_it_is(folder.path(), "was not made by Launchway");
}

#[test]
fn another_programs_database_in_wal_mode_keeps_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    library(folder.path(), "PRAGMA journal_mode = WAL; CREATE TABLE albums (title TEXT);");
    assert_eq!(files_in(folder.path()).len(), 1);
    stays_as_it_is(folder.path(), "was not made by Launchway");
}

#[test]
fn another_programs_diesel_database_keeps_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    library(
        folder.path(),
        "CREATE TABLE albums (title TEXT);
         CREATE TABLE __diesel_schema_migrations (version VARCHAR(50) PRIMARY KEY NOT NULL,
             run_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);
         INSERT INTO __diesel_schema_migrations (version) VALUES ('20240101000000');",
    );
    stays_as_it_is(folder.path(), "was not made by Launchway");
}

#[test]
fn a_file_that_is_no_database_keeps_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("music.db"), "dear diary").unwrap();
    stays_as_it_is(folder.path(), "is not a SQLite database");
}
