//! `--adopt`: a data directory and a database that are joined on purpose.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    process::{Command, Stdio},
};

use launchway_testkit::server::TestServer;

use super::{Empty, Stopped, command_with, database_of, id_in, release_in};

crate::on_both_databases!(
    an_adopted_empty_database_takes_the_id_of_the_data_directory,
    an_adopting_data_directory_takes_the_id_of_the_database,
);

/// Starts a server, stops it when it listens, and returns its log.
#[track_caller]
pub(super) fn started(mut command: Command) -> String {
    started_until(&mut command, || ())
}

#[track_caller]
fn started_until(command: &mut Command, is_done: impl FnOnce()) -> String {
    let mut process =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut announcement = String::new();
    while !announcement.contains("/docs\n") && output.read_line(&mut announcement).unwrap() > 0 {}
    is_done();
    let id = process.id().to_string();
    Command::new("kill").args(["-s", "TERM", &id]).status().unwrap();
    let mut log = String::new();
    process.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert!(process.wait().unwrap().success() && announcement.contains("listening"), "{announcement}{log}");
    log
}

fn an_adopted_empty_database_takes_the_id_of_the_data_directory(server: TestServer) {
    let stopped = Stopped::new(server);
    let empty = Empty::like(&stopped.server);
    let url = empty.url();
    let wrong = [("LAUNCHWAY_DATABASE_URL", url.as_str())];
    let release = release_in(stopped.server.data_dir());
    let mut command = command_with(&stopped.server, &["serve", "--adopt"], &wrong);
    command.env("LAUNCHWAY_ORPHAN_GRACE", "1s");
    // Longer than the grace period of a recorded orphan.
    let log = started_until(&mut command, || std::thread::sleep(std::time::Duration::from_secs(5)));
    assert!(release.exists() && !stopped.engine.networks().is_empty(), "what no record knows is left alone");
    assert!(
        log.contains("database adopted the id of the data directory") && log.contains(&stopped.id),
        "{log}"
    );
    assert_eq!(id_in(stopped.server.data_dir()), stopped.id);
    // From now on they belong together.
    started(command_with(&stopped.server, &[], &wrong));
}

fn an_adopting_data_directory_takes_the_id_of_the_database(server: TestServer) {
    let other = if server.is_on_sqlite() { TestServer::on_sqlite() } else { TestServer::on_postgres() };
    let (stopped, other) = (Stopped::new(server), Stopped::new(other));
    let url = database_of(&other.server);
    let wrong = [("LAUNCHWAY_DATABASE_URL", url.as_str())];
    // Without the command `serve`, and rejected without the key.
    let message = super::refused(command_with(&stopped.server, &["--adopt"], &wrong));
    assert!(message.contains("is not the one that encrypted the secrets of this database"), "{message}");
    stopped.is_untouched();
    other.is_untouched();
    let key = other.server.data_dir().join("secret.key");
    fs::copy(key, stopped.server.data_dir().join("secret.key")).unwrap();
    let log = started(command_with(&stopped.server, &["--adopt"], &wrong));
    assert!(log.contains("data directory adopted the id of the database"), "{log}");
    assert!(log.contains(&stopped.id) && log.contains(&other.id), "{log}");
    assert_eq!(id_in(stopped.server.data_dir()), other.id);
    // Resources of the previous installation on the engine have no owner now, and stay.
    assert_eq!((stopped.engine.containers().len(), stopped.engine.networks().len()), (1, 1));
    started(command_with(&stopped.server, &[], &wrong));
}

#[test]
fn adopt_is_for_serve_alone() {
    let server = TestServer::on_sqlite();
    for arguments in [&["--adopt", "migrate"][..], &["migrate", "--adopt"], &["--adopt", "config"]] {
        let output = server.command(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    }
}
