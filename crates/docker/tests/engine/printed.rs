//! The output of containers.

use std::{collections::HashSet, fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use launchway_docker::{DockerEngine, DockerOptions};
use launchway_domain::{
    clock::Timestamp,
    deployments::{Condition, ContainerId, Deployer, EngineInventory as _, PrintedLine},
};

use crate::{
    fake_engine::{FakeEngine, Reply},
    installation::{Installation, owner},
};

const STAMP: &str = "2026-01-02T03:04:05.000006789Z";

fn texts(lines: &[PrintedLine]) -> Vec<String> {
    lines.iter().map(|line| String::from_utf8_lossy(&line.text).into_owned()).collect()
}

async fn ended(installation: &Installation, script: &str) -> ContainerId {
    let container = installation.container(owner(), script).await;
    installation.wait_until(&container.id, |condition| matches!(condition, Condition::Exited(_))).await;
    container.id
}

#[tokio::test]
async fn lines_of_both_outputs_come_in_order_and_as_they_are() {
    let installation = Installation::new();
    let script = "echo one; sleep 0.1; echo '  two ' >&2; sleep 0.1; echo; printf 'three\\r\\n'; printf end";
    let id = ended(&installation, script).await;
    let lines = installation.engine.printed(&id, None, 100).await.unwrap();
    let expected: [&[u8]; 5] = [b"one", b"  two ", b"", b"three\r", b"end"];
    assert_eq!(lines.iter().map(|line| line.text.as_slice()).collect::<Vec<_>>(), expected);
    assert!(lines.is_sorted_by_key(|line| line.at));
    let rest = installation.engine.printed(&id, Some(lines[1].at), 100).await.unwrap();
    assert_eq!(texts(&rest)[0], "");
    assert_eq!(installation.engine.printed(&id, Some(lines[4].at), 100).await, Ok(vec![]));
    let last = installation.engine.tail_logs(&id, 2).await.unwrap();
    assert_eq!(last, lines[3..]);
}

#[tokio::test]
async fn a_very_long_line_is_one_line() {
    let installation = Installation::new();
    let script = "head -c 300000 /dev/zero | tr '\\0' a; echo; echo after";
    let id = ended(&installation, script).await;
    let lines = installation.engine.printed(&id, None, 100).await.unwrap();
    assert_eq!(lines.iter().map(|line| line.text.len()).collect::<Vec<_>>(), [300_000, 5]);
    assert!(lines[0].text.iter().all(|byte| *byte == b'a'));
}

#[tokio::test]
async fn no_line_is_lost_or_doubled_while_a_container_prints() {
    let installation = Installation::new();
    // Bursts, in which many lines share a microsecond, to both outputs.
    let script = "i=0; while [ $i -lt 150 ]; do seq $((i*40)) $((i*40+19)); seq $((i*40+20)) $((i*40+39)) >&2; \
                  sleep 0.02; i=$((i+1)); done";
    let container = installation.container(owner(), script).await;
    let (mut since, mut seen): (Option<Timestamp>, Vec<String>) = (None, Vec::new());
    loop {
        let is_over = matches!(installation.engine.condition(&container.id).await, Ok(Condition::Exited(_)));
        let lines = installation.engine.printed(&container.id, since, 77).await.unwrap();
        assert!(lines.len() <= 77);
        if lines.is_empty() && is_over {
            break;
        }
        since = lines.last().map(|line| line.at).or(since);
        seen.extend(texts(&lines));
    }
    let different: HashSet<_> = seen.iter().collect();
    assert_eq!((seen.len(), different.len()), (6000, 6000));
}

#[tokio::test]
async fn the_oldest_lines_come_first_and_the_newest_last() {
    let installation = Installation::new();
    let id = ended(&installation, "seq 1 20000").await;
    let lines = installation.engine.printed(&id, None, 10).await.unwrap();
    assert!(!lines.is_empty() && lines.len() <= 10);
    assert_eq!(texts(&lines)[0], "1");
    assert_eq!(texts(&installation.engine.tail_logs(&id, 2).await.unwrap()), ["19999", "20000"]);
}

#[tokio::test]
async fn a_container_that_is_gone_printed_nothing() {
    let installation = Installation::new();
    let owner = owner();
    let container = installation.container(owner, "echo x; sleep 600").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(installation.engine.printed(&container.id, None, 10).await.unwrap().len(), 1);
    Deployer::remove(&*installation.engine, owner.deployment).await.unwrap();
    assert_eq!(installation.engine.printed(&container.id, None, 10).await, Ok(vec![]));
    assert_eq!(installation.engine.tail_logs(&container.id, 10).await, Ok(vec![]));
}

/// An engine at a socket, with another docker client.
fn engine_with(fake: &FakeEngine, program: &Path) -> DockerEngine {
    let options = DockerOptions::new(Installation::new().instance).at_socket(&fake.socket());
    DockerEngine::new(DockerOptions { program: program.to_owned(), ..options })
}

#[tokio::test]
async fn logs_are_read_at_the_socket_without_the_client() {
    let fake = FakeEngine::new();
    let id: ContainerId = "a".repeat(64).parse().unwrap();
    let line = |output: char, text: &str| {
        let line = format!("{STAMP} {text}\n");
        let length = char::from(u8::try_from(line.len()).unwrap());
        format!("{output}\0\0\0\0\0\0{length}{line}")
    };
    let body = [line('\u{1}', "to stdout"), line('\u{2}', "to stderr")].concat();
    fake.reply(&format!("/containers/{}/logs", id.as_str()), Reply::Json(body));
    let engine = engine_with(&fake, Path::new("/nonexistent/docker"));
    assert_eq!(texts(&engine.printed(&id, None, 10).await.unwrap()), ["to stdout", "to stderr"]);
    assert_eq!(texts(&engine.tail_logs(&id, 1).await.unwrap()), ["to stderr"]);
}

#[tokio::test]
async fn the_client_is_asked_when_the_socket_answers_an_error() {
    let (fake, folder) = (FakeEngine::new(), tempfile::tempdir().unwrap());
    let client = folder.path().join("docker");
    fs::write(&client, format!("#!/bin/sh\necho '{STAMP}' \"$1\"\n")).unwrap();
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).unwrap();
    let id: ContainerId = "a".repeat(64).parse().unwrap();
    // The fake engine answers 404 to unknown paths.
    let lines = engine_with(&fake, &client).printed(&id, None, 10).await.unwrap();
    assert_eq!(texts(&lines), ["logs"]);
}

#[tokio::test]
async fn a_log_that_breaks_off_is_an_error_and_not_its_beginning() {
    let fake = FakeEngine::new();
    let id: ContainerId = "a".repeat(64).parse().unwrap();
    let cut = format!("\u{1}\0\0\0\0\0\0\u{7f}{STAMP} begun\n");
    fake.reply(&format!("/containers/{}/logs", id.as_str()), Reply::Json(cut));
    fake.reply("/_ping", Reply::Json("OK".to_owned()));
    let engine = engine_with(&fake, Path::new("/nonexistent/docker"));
    assert!(engine.printed(&id, None, 10).await.is_err());
}
