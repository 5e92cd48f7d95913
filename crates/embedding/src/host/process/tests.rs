use std::collections::BTreeMap;

use launchway_domain::{
    applications::{Application, ApplicationSecrets, Blueprint},
    organizations::Organization,
    secret::Sealed,
};
use tempfile::TempDir;
use uuid::Uuid;

use super::*;

fn version(number: u128, attempt: i32) -> Version {
    let (id, now) = (Uuid::from_u128(number), chrono::DateTime::UNIX_EPOCH);
    let port = 80.try_into().unwrap();
    let blueprint =
        Blueprint::of_image("web".parse().unwrap(), "test".parse().unwrap(), "web:1".parse().unwrap(), port);
    let organization = Organization::new(id.into(), "Engines".parse().unwrap(), "".parse().unwrap(), now);
    let sealed = || Sealed(String::new());
    let secrets =
        ApplicationSecrets { build_variables: sealed(), environment_variables: sealed(), credentials: None };
    let application =
        Application::new((id.into(), id.into()), &organization, id.into(), blueprint, secrets, now);
    Version {
        id: VersionId { deployment: id.into(), attempt },
        image: "web:1".parse().unwrap(),
        application,
        environment: BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]).try_into().unwrap(),
        port,
    }
}

fn host(folder: &TempDir, script: &'static str) -> ProcessHost {
    let spec = move |_: &Version| Ok(ProcessSpec::new("sh").arguments(["-c", script]));
    ProcessHost::builder(folder.path(), spec).grace(Duration::from_millis(300)).open().unwrap()
}

async fn printed(host: &ProcessHost, id: VersionId, lines: usize) -> Vec<String> {
    for _ in 0..500 {
        let printed = host.printed(id, None, 100).await.unwrap();
        if printed.len() >= lines {
            return printed.into_iter().map(|line| String::from_utf8(line.text).unwrap()).collect();
        }
        sleep(POLL).await;
    }
    panic!("{lines} lines did not come, but {:?}", host.printed(id, None, 100).await);
}

async fn running(host: &ProcessHost) -> Vec<VersionId> {
    host.list().await.unwrap().into_iter().map(|(id, _)| id).collect()
}

#[tokio::test]
async fn a_process_gets_its_port_and_variables_and_nothing_else() {
    let folder = TempDir::new().unwrap();
    let host =
        host(&folder, "echo $PORT; echo $HOST; echo $GREETING; echo ${CARGO:-clean} >&2; exec sleep 60");
    let version = version(1, 1);
    let address = host.start(&version).await.unwrap();
    assert_ne!(address.port(), 80);
    let lines = printed(&host, version.id, 4).await;
    assert_eq!(lines, [address.port().to_string().as_str(), "127.0.0.1", "hello", "clean"]);
    assert_eq!(host.list().await.unwrap(), [(version.id, address)]);
    host.end(version.id).await.unwrap();
    host.end(version.id).await.unwrap();
    assert_eq!(running(&host).await, []);
    assert_eq!(printed(&host, version.id, 4).await.len(), 4, "its output is kept for a while");
}

#[tokio::test]
async fn processes_are_found_again_by_the_next_run_of_the_service() {
    let folder = TempDir::new().unwrap();
    let script = "exec sleep 60";
    let first = host(&folder, script);
    let address = first.start(&version(1, 1)).await.unwrap();
    drop(first);
    let second = host(&folder, script);
    assert_eq!(second.list().await.unwrap(), [(version(1, 1).id, address)]);
    second.end(version(1, 1).id).await.unwrap();
    assert_eq!(running(&second).await, []);
}

#[tokio::test]
async fn two_attempts_of_a_deployment_run_beside_each_other() {
    let folder = TempDir::new().unwrap();
    let host = host(&folder, "exec sleep 60");
    let first = host.start(&version(1, 1)).await.unwrap();
    let second = host.start(&version(1, 2)).await.unwrap();
    assert_ne!(first, second);
    assert_eq!(running(&host).await.len(), 2);
    host.end(version(1, 1).id).await.unwrap();
    assert_eq!(running(&host).await, [version(1, 2).id]);
    host.end(version(1, 2).id).await.unwrap();
}

#[tokio::test]
async fn a_process_that_ignores_the_signal_is_killed_with_children() {
    let folder = TempDir::new().unwrap();
    let host = host(&folder, "trap '' TERM; sh -c 'trap \"\" TERM; echo child $$; sleep 61' & wait; wait");
    let version = version(1, 1);
    host.start(&version).await.unwrap();
    let child = printed(&host, version.id, 1).await[0].replace("child ", "");
    let began = Instant::now();
    host.end(version.id).await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(300));
    assert_eq!(running(&host).await, []);
    let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

#[tokio::test]
async fn a_process_that_ends_by_itself_is_noticed() {
    let folder = TempDir::new().unwrap();
    let host = host(&folder, "echo bye; sleep 0.1");
    let version = version(1, 1);
    let changed = host.changed();
    host.start(&version).await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), changed).await.unwrap();
    assert_eq!(running(&host).await, []);
    assert_eq!(printed(&host, version.id, 1).await, ["bye"]);
}

#[tokio::test]
async fn output_is_read_once_and_cut_when_it_is_long() {
    let folder = TempDir::new().unwrap();
    let spec = |_: &Version| {
        Ok(ProcessSpec::new("sh")
            .arguments(["-c", "for i in $(seq 1 5000); do echo line $i; done; exec sleep 60"]))
    };
    let host = ProcessHost::builder(folder.path(), spec).output_limit(1024).open().unwrap();
    let version = version(1, 1);
    host.start(&version).await.unwrap();
    let (mut since, mut seen) = (None, Vec::new());
    while seen.len() < 5000 {
        let lines = host.printed(version.id, since, 700).await.unwrap();
        assert!(lines.len() <= 700);
        since = lines.last().map(|line| line.at).or(since);
        seen.extend(lines.into_iter().map(|line| String::from_utf8(line.text).unwrap()));
        sleep(POLL).await;
    }
    let expected: Vec<String> = (1..=5000).map(|number| format!("line {number}")).collect();
    assert_eq!(seen, expected);
    assert_eq!(host.printed(version.id, since, 700).await.unwrap(), []);
    let output = folder.path().join(version.id.to_string()).join("output");
    assert!(fs::metadata(output).unwrap().len() <= 1024);
    host.end(version.id).await.unwrap();
}

#[tokio::test]
async fn a_program_that_does_not_exist_ends_at_once() {
    let folder = TempDir::new().unwrap();
    let spec = |_: &Version| Ok(ProcessSpec::new("/no/such/program"));
    let host = ProcessHost::builder(folder.path(), spec).open().unwrap();
    let version = version(1, 1);
    let started = host.start(&version).await;
    let has_failed = async {
        while !running(&host).await.is_empty() {
            sleep(POLL).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), has_failed).await.unwrap();
    if started.is_ok() {
        assert!(printed(&host, version.id, 1).await[0].contains("not found"));
    }
}

#[tokio::test]
async fn a_rejected_version_is_not_started() {
    let folder = TempDir::new().unwrap();
    let spec = |_: &Version| Err("there is no such image".to_owned());
    let host = ProcessHost::builder(folder.path(), spec).open().unwrap();
    let rejected = host.start(&version(1, 1)).await;
    assert_eq!(rejected, Err(StepError::Rejected("there is no such image".to_owned())));
    assert_eq!(running(&host).await, []);
}

#[tokio::test]
async fn a_start_that_was_interrupted_never_begins() {
    let folder = TempDir::new().unwrap();
    let host = host(&folder, "exec sleep 60");
    // A crash after the folder was made, and before the process recorded itself.
    fs::create_dir(host.folder_of(version(1, 1).id)).unwrap();
    let old = host.folder_of(version(2, 1).id);
    fs::create_dir(&old).unwrap();
    let long_ago = std::time::SystemTime::now() - START;
    fs::File::open(&old).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(running(&host).await, [version(1, 1).id], "it may be about to start");
    host.end(version(1, 1).id).await.unwrap();
    assert_eq!(running(&host).await, []);
    let mut late = std::process::Command::new("/bin/sh");
    late.args(["-c", BEGIN, "sh"]).arg(host.folder_of(version(1, 1).id)).arg("true");
    assert_eq!(late.status().unwrap().code(), Some(127));
}

#[tokio::test]
async fn the_output_of_a_crashed_version_is_kept_when_it_restarts() {
    let folder = TempDir::new().unwrap();
    let host = host(&folder, "echo words; exit 1");
    let version = version(1, 1);
    host.start(&version).await.unwrap();
    while !running(&host).await.is_empty() {
        sleep(POLL).await;
    }
    host.start(&version).await.unwrap();
    assert_eq!(printed(&host, version.id, 2).await, ["words", "words"]);
    host.end(version.id).await.unwrap();
}

#[tokio::test]
async fn an_end_that_is_interrupted_again_and_again_kills_at_last() {
    let folder = TempDir::new().unwrap();
    let host = host(&folder, "trap '' TERM; echo ready; while :; do sleep 1; done");
    let version = version(1, 1);
    host.start(&version).await.unwrap();
    printed(&host, version.id, 1).await;
    for _ in 0..20 {
        // Each call is shorter than the grace period.
        tokio::time::timeout(Duration::from_millis(100), host.end(version.id)).await.ok();
    }
    assert_eq!(running(&host).await, []);
}
