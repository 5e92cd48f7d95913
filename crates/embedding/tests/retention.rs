//! Retention: the last output of a version, and finished jobs.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering::Relaxed},
    },
    time::Duration,
};

use chrono::{DateTime, TimeDelta};
use launchway_embedding::{
    Actor, Blueprint, Created, Embedded, MemoryStore, ProcessHost, ProcessSpec, Retention, Role,
    fixtures::{a_vouched_actor, parsed},
};
use tempfile::TempDir;

const SERVER: &str = "trap 'echo bye; exit 0' TERM; busybox httpd -f -p $HOST:$PORT & wait";

fn ada() -> Actor {
    a_vouched_actor(Role::Member)
}

/// Returns a platform whose versions say goodbye, with a clock that shows `days`.
fn platform(folder: &TempDir, days: Arc<AtomicI64>, retention: impl FnOnce(&mut Retention)) -> Embedded {
    let program = |_: &_| Ok(ProcessSpec::new("/bin/sh").arguments(["-c", SERVER]));
    let host = ProcessHost::builder(folder.path(), program).open().unwrap();
    let clock = move || DateTime::UNIX_EPOCH + TimeDelta::days(days.load(Relaxed));
    Embedded::builder(MemoryStore::new(), host).clock(clock).retention(retention).build()
}

async fn create(platform: &Embedded) -> Created {
    let port = 80.try_into().unwrap();
    let web = Blueprint::of_image(parsed("web"), parsed("production"), parsed("web:1"), port);
    let created = platform.applications().create(&ada(), web).await.unwrap();
    platform.run_due().await.unwrap();
    created
}

async fn stop(platform: &Embedded, created: &Created) {
    platform.applications().stop(&ada(), created.application.id).await.unwrap();
    platform.run_due().await.unwrap();
}

#[tokio::test]
async fn output_printed_while_a_version_is_stopped_is_kept() {
    let folder = TempDir::new().unwrap();
    let platform = platform(&folder, Arc::default(), |_| {});
    let created = create(&platform).await;
    stop(&platform, &created).await;
    let lines = platform.logs().of_application(&ada(), created.application.id, None, 100).await.unwrap();
    let lines: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
    assert!(lines.ends_with(&["bye", "Stopped"]), "{lines:?}");
}

#[tokio::test]
async fn finished_jobs_are_kept_as_long_as_configured() {
    for (kept, expected) in [(60, 1), (20, 0)] {
        let (folder, days) = (TempDir::new().unwrap(), Arc::new(AtomicI64::new(0)));
        let platform =
            platform(&folder, Arc::clone(&days), |retention| retention.jobs = TimeDelta::days(kept));
        let created = create(&platform).await;
        days.store(40, Relaxed);
        platform.run(tokio::time::sleep(Duration::from_millis(500))).await.unwrap();
        assert_eq!(platform.records().await.unwrap()["jobs"], expected, "{kept} days");
        stop(&platform, &created).await;
    }
}
