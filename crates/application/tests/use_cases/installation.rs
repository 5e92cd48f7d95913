//! The state of the installation.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use launchway_application::{
    Error,
    installation::{Installation, InstallationPorts, InstallationStatus},
};
use launchway_domain::{
    auth::{Actor, Forbidden},
    clock::Clock as _,
    diagnostics::{
        CheckOutcome, Diagnostics, DiskSpace, HealthReport, MockDiagnostics, MockStorageStatistics,
        StoredBytes,
    },
    jobs::{JobKind, MockQueueStatistics, QueueDepth},
    users::UserKind,
};
use launchway_testkit::{FixedClock, builders::an_actor};
use tokio::time::{Instant, advance, sleep};

use crate::ports::unavailable;

fn administrator() -> Actor {
    an_actor().of_kind(UserKind::Admin).build()
}

fn installation(
    queue: MockQueueStatistics,
    storage: MockStorageStatistics,
    diagnostics: impl Diagnostics + 'static,
) -> Installation {
    let ports = InstallationPorts {
        queue: Arc::new(queue),
        storage: Arc::new(storage),
        diagnostics: Arc::new(diagnostics),
    };
    Installation::new(ports, Arc::new(FixedClock::default()))
}

/// Diagnostics that are run so often.
fn examined(times: usize) -> Installation {
    let mut diagnostics = MockDiagnostics::new();
    diagnostics.expect_examine().times(times).returning(|| {
        let mut report = HealthReport::default();
        report.ok("engine", "answers".to_owned());
        report
    });
    installation(MockQueueStatistics::new(), MockStorageStatistics::new(), diagnostics)
}

#[tokio::test]
async fn the_status_has_the_queue_and_the_space() {
    let now = FixedClock::default().now();
    let depth = QueueDepth { kind: JobKind::Deploy, waiting: 2, running: 1, oldest_waiting: Some(now) };
    let stored = StoredBytes { database: 3, logs: 1, images: 5 };
    let disk = Ok(DiskSpace { total: 10, free: 4, required: 1 });
    let (mut queue, mut storage) = (MockQueueStatistics::new(), MockStorageStatistics::new());
    let mut diagnostics = MockDiagnostics::new();
    queue.expect_depths().once().return_once(move || Ok(vec![depth]));
    storage.expect_stored_bytes().once().return_once(move || Ok(stored));
    let found = disk.clone();
    diagnostics.expect_disk_space().once().return_once(move || found);
    let status = installation(queue, storage, diagnostics).status(&administrator()).await.unwrap();
    assert_eq!(status, InstallationStatus { queue: vec![depth], stored, disk, at: now });
}

#[tokio::test]
async fn nobody_else_sees_the_state_of_the_installation() {
    let nothing =
        installation(MockQueueStatistics::new(), MockStorageStatistics::new(), MockDiagnostics::new());
    let other = an_actor().of_kind(UserKind::AppUser).build();
    let refused = nothing.status(&other).await;
    assert!(matches!(refused, Err(Error::Forbidden(Forbidden::NoMetrics))), "{refused:?}");
    for refused in [nothing.report(&other).await, nothing.examine(&other).await] {
        assert!(matches!(refused, Err(Error::Forbidden(Forbidden::NoMetrics))), "{refused:?}");
    }
}

#[tokio::test]
async fn a_database_that_does_not_answer_is_unavailable() {
    let mut queue = MockQueueStatistics::new();
    queue.expect_depths().once().return_once(|| Err(unavailable()));
    let failed = installation(queue, MockStorageStatistics::new(), MockDiagnostics::new());
    let failed = failed.status(&administrator()).await;
    assert!(matches!(failed, Err(Error::Unavailable(_))), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_report_is_kept_for_five_minutes() {
    let installation = examined(2);
    installation.report(&administrator()).await.unwrap();
    advance(Duration::from_secs(299)).await;
    installation.report(&administrator()).await.unwrap();
    advance(Duration::from_secs(1)).await;
    installation.report(&administrator()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn checks_are_repeated_on_request() {
    let installation = examined(2);
    installation.report(&administrator()).await.unwrap();
    advance(Duration::from_secs(2)).await;
    installation.examine(&administrator()).await.unwrap();
    // Those who ask at the same time share a report.
    advance(Duration::from_millis(1999)).await;
    installation.examine(&administrator()).await.unwrap();
}

/// Diagnostics that never end.
struct Endless;

#[async_trait]
impl Diagnostics for Endless {
    async fn examine(&self) -> HealthReport {
        std::future::pending().await
    }

    async fn disk_space(&self) -> Result<DiskSpace, String> {
        Err("unknown".to_owned())
    }
}

#[tokio::test(start_paused = true)]
async fn checks_that_do_not_end_are_a_failure() {
    let installation = installation(MockQueueStatistics::new(), MockStorageStatistics::new(), Endless);
    let start = Instant::now();
    assert_eq!(installation.report(&administrator()).await.unwrap(), None);
    assert_eq!(start.elapsed(), Duration::from_secs(3), "nobody waits for longer");
    sleep(Duration::from_secs(18)).await;
    let dated = installation.report(&administrator()).await.unwrap().unwrap();
    assert_eq!(dated.report.count(CheckOutcome::Failure), 1);
    assert_eq!(dated.report.checks()[0].text, "did not finish within 20 seconds");
}
