//! One server at a time uses a SQLite file.

use std::{fs, os::unix::fs::symlink, process::Command};

use launchway_testkit::server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer};

use super::refused;
use crate::{administration::with_input, backups::words};

/// A command from a data directory of its own, on the SQLite file of a server by another name.
fn elsewhere(server: &TestServer, data: &std::path::Path, file: &str, arguments: &[&str]) -> Command {
    let mut command = server.command(arguments);
    command
        .env("LAUNCHWAY_DATA_DIR", data)
        .env("LAUNCHWAY_SECRET_KEY_FILE", server.data_dir().join("secret.key"))
        .env("LAUNCHWAY_DATABASE_URL", format!("sqlite://{file}"));
    command
}

#[test]
fn a_second_server_on_a_sqlite_file_is_refused() {
    let mut server = TestServer::on_sqlite();
    let folder = tempfile::tempdir().unwrap();
    let file = server.data_dir().join("launchway.db");
    let [soft, hard] = ["soft.db", "hard.db"].map(|name| folder.path().join(name));
    symlink(&file, &soft).unwrap();
    fs::hard_link(&file, &hard).unwrap();
    let verbs: [&[&str]; 5] = [&["serve"], &[], &["serve", "--adopt"], &["migrate"], &["key", "rotate"]];
    for (name, verbs) in [(&file, verbs.as_slice()), (&soft, &verbs[..1]), (&hard, &verbs[..1])] {
        let name = name.to_str().unwrap();
        for verb in verbs {
            let message = refused(elsewhere(&server, &folder.path().join("data"), name, verb));
            let expected = format!("another Launchway server uses the database file `{name}`");
            assert!(message.contains(&expected), "{verb:?}: {message}");
        }
    }
    // Beside a server an offline verb goes on, but not by a name with another log.
    let create = ["admin", "create", "--email", ADMIN_EMAIL, "--username", "ada"];
    let data = folder.path().join("data");
    let output = with_input(elsewhere(&server, &data, hard.to_str().unwrap(), &create), ADMIN_PASSWORD);
    assert!(!output.status.success() && words(&output).contains("several names"), "{}", words(&output));
    let admin = server.admin();
    // A kill leaves no lock behind.
    server.kill();
    server.restart();
    admin.at(server.url()).get("/api/v1/user").success();
}

#[test]
fn offline_verbs_go_on_beside_a_server_elsewhere() {
    let server = TestServer::on_sqlite();
    let folder = tempfile::tempdir().unwrap();
    let file = server.data_dir().join("launchway.db");
    let file = file.to_str().unwrap();
    let data = folder.path().join("data");
    let create = ["admin", "create", "--email", ADMIN_EMAIL, "--username", "ada"];
    let output = with_input(elsewhere(&server, &data, file, &create), ADMIN_PASSWORD);
    assert!(output.status.success(), "{}", words(&output));
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
    let backup = folder.path().join("backup").display().to_string();
    let output = elsewhere(&server, &data, file, &["backup", "create", &backup]).output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    let output = elsewhere(&server, &data, file, &["audit", "verify"]).output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    server.client().get("/ready").success();
}
