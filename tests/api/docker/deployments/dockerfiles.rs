//! Dockerfiles of a member of another organization that try to read other tenants' data.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use launchway_testkit::{
    docker::{base_image, docker},
    server::ADMIN_PASSWORD,
};
use serde_json::json;

use super::harness::{Harness, spec, text};

/// The content that must never be seen.
const CANARY: &str = "CANARY-41c9d2";

/// Builds a Dockerfile without any check, as the engine would, and returns the output.
fn build_unchecked(dockerfile: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("Dockerfile"), dockerfile).unwrap();
    let tag = format!("launchway-test/unchecked:{}", std::process::id());
    let output = Command::new("docker")
        .args(["build", "--no-cache", "--force-rm", "--tag", &tag])
        .arg(folder.path())
        .env("DOCKER_BUILDKIT", "0")
        .output()
        .unwrap();
    if output.status.success() {
        docker(&["image", "rm", "--force", &tag]);
    }
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Deploys a Dockerfile that has to be refused, and returns the log.
#[track_caller]
fn refused(harness: &Harness, name: &str, dockerfile: &str) -> String {
    let repository = harness.repository(name);
    repository.write("Dockerfile", dockerfile).commit();
    let (_, deployment) = harness.create(&spec(name, &repository));
    let log = harness.failed(&deployment);
    assert!(!log.contains(CANARY), "{log}");
    log
}

/// A server with an application of one organization, used by a member of another.
///
/// Returns the id of that application's image.
fn with_attacker(settings: &[(&str, &str)]) -> (Harness, String) {
    let mut harness = Harness::on_sqlite(settings);
    let theirs = harness.repository("theirs");
    theirs.write("secret.txt", CANARY).write(
        "Dockerfile",
        format!(
            "FROM {}\nCOPY secret.txt /secret.txt\nCMD [\"httpd\", \"-f\", \"-p\", \"8080\", \"-h\", \"/\"]\n",
            base_image()
        ),
    );
    theirs.commit();
    let mut spec = spec("theirs", &theirs);
    spec["health_check_path"] = json!("/secret.txt");
    let (_, live) = harness.create_live(&spec);
    let image = text(&live["container_image"]);
    let id = docker(&["image", "inspect", "--format", "{{.Id}}", &image]).replace("sha256:", "");
    harness.admin = harness.server.log_in(harness.server.other_tenant("member").email, ADMIN_PASSWORD);
    (harness, id)
}

/// A Dockerfile whose option `--chown` hides another one after `letter`, whose first byte is the name of a
/// user.
///
/// A short id may consist of digits only, which the engine takes for the number of a build stage.
fn hidden_option(letter: &str, id: &str) -> String {
    format!(
        "FROM {}\nRUN mkdir -p /etc && printf '\u{c3}:x:0:0::/:/bin/sh\\n' > /etc/passwd && printf '\u{c3}:x:0:\\n' > /etc/group\n\
         COPY --chown={letter}--from={} /secret.txt /stolen.txt\nRUN cat /stolen.txt\n",
        base_image(),
        &id[..32]
    )
}

#[test]
fn an_option_hidden_in_a_letter_reads_no_foreign_image() {
    let (harness, id) = with_attacker(&[]);
    // The engine treats the second byte of each letter, 0xA0 and 0x85, as a space.
    for (name, letter) in [("first", "\u{e0}"), ("second", "\u{c5}")] {
        let dockerfile = hidden_option(letter, &id);
        let unchecked = build_unchecked(&dockerfile);
        assert!(unchecked.contains(CANARY), "the engine does not show the leak: {unchecked}");
        let log = refused(&harness, name, &dockerfile);
        assert!(log.contains("line 3: the option `--chown=` may contain ASCII characters only"), "{log}");
    }
}

/// A page of the machine's own network, which counts its visitors.
fn internal_page() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let visits = Arc::new(AtomicUsize::new(0));
    let counter = visits.clone();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            counter.fetch_add(1, Ordering::SeqCst);
            let _request = connection.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length:";
            let _answered = write!(connection, "{head} {}\r\n\r\n{CANARY}", CANARY.len());
        }
    });
    (address, visits)
}

#[test]
fn add_fetches_nothing_from_the_network_of_the_host() {
    let (harness, _) = with_attacker(&[]);
    let (address, visits) = internal_page();
    let base = base_image();
    let plain = format!("FROM {base}\nADD http://{address}/metrics /m\nRUN cat /m\n");
    let leaked = build_unchecked(&plain);
    assert!(leaked.contains(CANARY) && visits.swap(0, Ordering::SeqCst) > 0, "no leak to see: {leaked}");
    for (name, dockerfile, reason) in [
        ("plain", plain, "line 2: `ADD` takes files of the repository only"),
        (
            "onbuild",
            format!("FROM {base}\nONBUILD ADD http://{address}/metrics /m\n"),
            "line 2: `ADD` takes files of the repository only",
        ),
        (
            "git",
            format!("FROM {base}\nADD git@{}:x.git /m\n", address.ip()),
            "line 2: `ADD` takes files of the repository only",
        ),
    ] {
        let log = refused(&harness, name, &dockerfile);
        assert!(log.contains(reason), "{log}");
    }
    // A variable is not known before the build. Whatever it is, the source is a path.
    let hidden = format!("FROM {base}\nARG SOURCE=http://{address}/metrics\nADD $SOURCE /m\nRUN cat /m\n");
    assert!(build_unchecked(&hidden).contains(CANARY) && visits.swap(0, Ordering::SeqCst) > 0);
    refused(&harness, "hidden", &hidden);
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}

#[test]
fn a_file_that_cannot_be_parsed_fails_with_its_line() {
    let harness = Harness::on_sqlite(&[]);
    let dockerfile = format!("FROM {}\n\nRUN <<EOF\necho x\nEOF\n", base_image());
    let log = refused(&harness, "heredoc", &dockerfile);
    assert!(
        log.contains("the Dockerfile is refused: line 3: the here-document `<<EOF` is not supported"),
        "{log}"
    );
}
