//! The command line and the configuration.

use std::{
    net::{TcpListener, TcpStream},
    process::{Output, Stdio},
};

use launchway_testkit::server::{TestServer, command};
use tempfile::TempDir;

#[test]
fn prints_the_effective_configuration_with_masked_password() {
    let output = launchway(
        &["config"],
        &[("LAUNCHWAY_DATABASE_URL", "postgres://ada:hunter2@db.example.com/launchway")],
    );
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("LAUNCHWAY_DATABASE_URL=postgres://ada:***@db.example.com/launchway\n"), "{text}");
    assert!(text.contains("LAUNCHWAY_BIND=127.0.0.1:0\n"), "{text}");
    assert!(!text.contains("hunter2") && output.stderr.is_empty());
    assert!(text.lines().all(|line| line.starts_with("LAUNCHWAY_") && line.contains('=')), "{text}");
}

#[test]
fn reports_all_configuration_errors_at_once() {
    let wrong = [
        ("LAUNCHWAY_BIND", "everywhere"),
        ("LAUNCHWAY_DATABASE_URL", "mysql://ada:hunter2@db/x"),
        ("LAUNCHWAY_PUBLIC_URL", "deploy.example.com"),
        ("LAUNCHWAY_TRUSTED_PROXIES", "10.0.0.0/99"),
        ("LAUNCHWAY_BODY_TIMEOUT", "soon"),
        ("LAUNCHWAY_LOG_FORMAT", "xml"),
        ("LAUNCHWAY_TRUSTED_PROXY", "127.0.0.1"),
    ];
    for verb in [&["serve"][..], &["migrate"], &["config"], &["admin", "reset-password", "--email", "a@b"]] {
        let output = launchway(verb, &wrong);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let words = String::from_utf8(output.stderr).unwrap();
        for (name, _) in wrong {
            assert!(words.contains(name), "{name} is not in:\n{words}");
        }
        assert!(words.contains("did you mean LAUNCHWAY_TRUSTED_PROXIES?"), "{words}");
        assert!(!words.contains("hunter2"), "{words}");
    }
}

#[test]
fn files_and_folders_that_settings_name_have_to_exist() {
    let wrong = [
        ("LAUNCHWAY_GIT_KNOWN_HOSTS", "/nowhere/known_hosts"),
        ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", "/nowhere/repositories"),
        ("LAUNCHWAY_SECRET_KEY_FILE", "/nowhere/secret.key"),
    ];
    for verb in ["serve", "migrate", "config"] {
        let output = launchway(&[verb], &wrong);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let words = String::from_utf8(output.stderr).unwrap();
        for (name, value) in wrong {
            assert!(words.contains(&format!("{name} is `{value}`")), "{name} is not in:\n{words}");
        }
        assert_eq!(words.matches("there is none at this path").count(), 3, "{words}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let (folder, file) = (folder.path().to_str().unwrap(), file.to_str().unwrap());
    for (name, value, expected) in [
        ("LAUNCHWAY_GIT_KNOWN_HOSTS", folder, "this is a folder"),
        ("LAUNCHWAY_SECRET_KEY_FILE", folder, "this is a folder"),
        ("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", file, "this is a file"),
        ("LAUNCHWAY_DATA_DIR", file, "this is a file"),
    ] {
        let output = launchway(&["config"], &[(name, value)]);
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(words.contains(name) && words.contains(expected), "{words}");
    }
}

#[test]
fn the_server_and_its_proxy_need_addresses_of_their_own() {
    for (api, proxy) in [
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("0.0.0.0:8080", "127.0.0.1:8080"),
        ("127.0.0.1:8080", "[::]:8080"),
    ] {
        let output = launchway(&["serve"], &[("LAUNCHWAY_BIND", api), ("LAUNCHWAY_PROXY_BIND", proxy)]);
        let words = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}");
        let expected = format!("LAUNCHWAY_BIND is `{api}` and LAUNCHWAY_PROXY_BIND is `{proxy}`");
        assert!(words.contains(&expected), "{words}");
    }
    for (api, proxy) in
        [("127.0.0.1:0", "127.0.0.1:0"), ("127.0.0.1:8080", "127.0.0.1:8000"), ("127.0.0.1:8080", "off")]
    {
        let output = launchway(&["config"], &[("LAUNCHWAY_BIND", api), ("LAUNCHWAY_PROXY_BIND", proxy)]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
}

#[test]
fn a_taken_address_leaves_no_front_proxy_behind() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let api = taken.local_addr().unwrap().to_string();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let data = tempfile::tempdir().unwrap();
    let mut server = command(data.path(), &[]);
    server.arg("serve").env("LAUNCHWAY_BIND", &api).env("LAUNCHWAY_PROXY_BIND", free.to_string());
    let output = server.stdin(Stdio::null()).output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{words}");
    assert!(words.contains(&format!("cannot listen on {api} (LAUNCHWAY_BIND)")), "{words}");
    assert!(TcpStream::connect(free).is_err(), "a front proxy listens");
}

#[test]
fn a_file_can_hold_the_configuration_and_the_environment_wins() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("launchway.toml");
    std::fs::write(&file, "LAUNCHWAY_LOG = \"warn\"\nLAUNCHWAY_BODY_TIMEOUT = \"3s\"\n").unwrap();
    let output = launchway(&["config", "--config", file.to_str().unwrap()], &[("LAUNCHWAY_LOG", "debug")]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("LAUNCHWAY_LOG=debug\n") && text.contains("LAUNCHWAY_BODY_TIMEOUT=3s\n"), "{text}");

    std::fs::write(&file, "LAUNCHWAY_LOG = \n").unwrap();
    assert_eq!(launchway(&["config", "--config", file.to_str().unwrap()], &[]).status.code(), Some(2));
    assert_eq!(launchway(&["config", "--config", "/nowhere/at/all.toml"], &[]).status.code(), Some(2));
}

#[test]
fn a_command_that_does_not_exist_is_refused() {
    for arguments in [&["fly"][..], &["serve", "--fast"], &["admin"], &["admin", "create"]] {
        assert_eq!(launchway(arguments, &[]).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn tables_are_made_once() {
    let data = tempfile::tempdir().unwrap();
    let migrate = || {
        let output = command(data.path(), &[]).arg("migrate").stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (made, words) = migrate();
    assert!(made.lines().count() >= 1 && words.contains("up to date"), "{made}{words}");
    let (made, words) = migrate();
    assert!(made.is_empty() && words.contains("0 migrations were needed"), "{made}{words}");
}

#[test]
fn tables_are_made_once_on_postgres() {
    let mut server = TestServer::on_postgres();
    server.admin();
    server.kill();
    let output = server.command(&["migrate"]).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    server.restart();
    let status = server.client().get("/api/v1/auth/is-admin-registered").success();
    assert_eq!(status["admin_registered"], true);
}

#[test]
fn a_database_outage_is_reported_without_its_password() {
    // Nothing listens on the port for discarding.
    let unreachable = [("LAUNCHWAY_DATABASE_URL", "postgres://ada:hunter2@127.0.0.1:9/launchway")];
    for verb in ["serve", "migrate"] {
        let output = launchway(&[verb], &unreachable);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let words = String::from_utf8(output.stderr).unwrap();
        assert!(words.contains("cannot connect to the database"), "{words}");
        assert!(!words.contains("hunter2"), "{words}");
    }
}

#[test]
fn an_invalid_key_is_reported_and_not_replaced() {
    let data = tempfile::tempdir().unwrap();
    std::fs::write(data.path().join("secret.key"), "too short\n").unwrap();
    let output = command(data.path(), &[]).arg("serve").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("secret.key") && !words.contains("too short"), "{words}");
    assert_eq!(std::fs::read_to_string(data.path().join("secret.key")).unwrap(), "too short\n");
}

fn launchway(arguments: &[&str], settings: &[(&str, &str)]) -> Output {
    let data: TempDir = tempfile::tempdir().unwrap();
    let mut command = command(data.path(), &[]);
    command.args(arguments).envs(settings.iter().copied()).stdin(Stdio::null());
    command.output().unwrap()
}
