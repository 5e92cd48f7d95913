//! Servers share a PostgreSQL database; commands that change all of it have it alone.

use std::{path::Path, process::Command, thread, time::Instant};

use launchway_testkit::server::{ADMIN_EMAIL, ADMIN_PASSWORD, TestServer};
use serde_json::json;

use super::{id_in, refused};
use crate::{administration::with_input, backups::words, wait::until};

/// A command from a data directory of its own, on the database of a server.
fn elsewhere(server: &TestServer, data: &Path, arguments: &[&str]) -> Command {
    let mut command = server.command(arguments);
    command
        .env("LAUNCHWAY_DATA_DIR", data)
        .env("LAUNCHWAY_SECRET_KEY_FILE", server.data_dir().join("secret.key"));
    command
}

#[test]
fn commands_that_have_to_be_alone_are_refused() {
    let server = TestServer::on_postgres();
    let admin = server.admin();
    let verbs: [&[&str]; 2] = [&["migrate"], &["key", "rotate"]];
    let started = Instant::now();
    thread::scope(|scope| {
        let refusals = verbs.map(|verb| {
            let server = &server;
            scope.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                (verb, refused(elsewhere(server, folder.path(), verb)))
            })
        });
        for refusal in refusals {
            let (verb, reported) = refusal.join().unwrap();
            let holder = format!("pid {}", server.process_id());
            let id = id_in(server.data_dir());
            for expected in
                ["another Launchway process", &holder, &id, "LAUNCHWAY_DATABASE_URL", "have to be alone"]
            {
                assert!(reported.contains(expected), "{verb:?}: {expected} is not in: {reported}");
            }
        }
    });
    // The wait for a server that was killed is bounded.
    assert!((15..60).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    admin.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})).success();
}

#[test]
fn offline_verbs_go_on_beside_a_server_on_postgres() {
    let server = TestServer::on_postgres();
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let create = ["admin", "create", "--email", ADMIN_EMAIL, "--username", "ada"];
    let output = with_input(elsewhere(&server, &data, &create), ADMIN_PASSWORD);
    assert!(output.status.success(), "{}", words(&output));
    server.log_in(ADMIN_EMAIL, ADMIN_PASSWORD);
    let backup = folder.path().join("backup").display().to_string();
    for verb in [&["backup", "create", &backup][..], &["audit", "verify"]] {
        let output = elsewhere(&server, &data, verb).output().unwrap();
        assert!(output.status.success(), "{verb:?}: {}", words(&output));
    }
}

#[test]
fn a_lock_is_taken_again_after_its_connection_was_lost() {
    let mut server = TestServer::on_postgres();
    let admin = server.admin();
    server.end_server_lock();
    until("the lock", || server.log().contains("database lock taken again").then_some(()));
    admin.patch("/api/v1/user/settings/theme", &json!({"theme": "dark"})).success();
    let folder = tempfile::tempdir().unwrap();
    let message = refused(elsewhere(&server, folder.path(), &["migrate"]));
    assert!(message.contains("another Launchway process"), "{message}");
    assert!(server.terminate().success());
}

#[test]
fn a_server_whose_lock_another_one_took_stops() {
    let mut server = TestServer::on_postgres();
    let admin = server.admin();
    let taken = server.steal_server_lock();
    assert_eq!(server.wait().code(), Some(1));
    let log = server.log();
    for expected in ["database lock lost", "another server uses the database", "has taken the database"] {
        assert!(log.contains(expected), "{expected} is not in: {log}");
    }
    drop(taken);
    server.restart();
    admin.at(server.url()).get("/api/v1/user").success();
}
