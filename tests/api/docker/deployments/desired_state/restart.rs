//! Restarts: beside the container that serves, without a dropped request.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use launchway_testkit::docker::docker;
use serde_json::json;

use super::{Live, is_running};
use crate::docker::deployments::harness::DEPLOY;

const RESTARTED: &str = "info: Restarted";

#[test]
fn a_restart_drops_no_request() {
    let live = Live::serving("a page", &[]);
    let container = live.container();
    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let failures = thread::scope(|scope| {
        let visitors: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let (visitor, mut failures) = (live.harness.server.visitor(&live.host), Vec::new());
                    while !is_over.load(Ordering::Relaxed) {
                        match visitor.try_send("GET", "/", None) {
                            Ok(answer) if answer.status == 200 && answer.text.trim_end() == "a page" => {
                                answered.fetch_add(1, Ordering::Relaxed);
                            }
                            other => failures.push(format!("{other:?}")),
                        }
                    }
                    failures
                })
            })
            .collect();
        // Visitors end in any case, so that a failure is shown and not waited for.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            live.wait_until("requests before", || answered.load(Ordering::Relaxed) >= 50);
            live.post("restart");
            live.wait_until("a restart", || live.count(RESTARTED) == 1);
            live.harness.has_containers(1);
            let now = answered.load(Ordering::Relaxed);
            live.wait_until("requests after", || answered.load(Ordering::Relaxed) >= now + 50);
        }));
        is_over.store(true, Ordering::Relaxed);
        let failures: Vec<String> =
            visitors.into_iter().flat_map(|visitor| visitor.join().unwrap()).collect();
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
        failures
    });
    let (failed, answered) = (failures.len(), answered.into_inner());
    eprintln!("{failed} requests failed, {answered} were answered");
    assert_eq!(failed, 0, "{:?}", failures.first());
    assert_ne!(live.container(), container);
    assert_eq!(live.harness.engine.containers(), [live.container()]);
    assert!(live.is_healthy());
}

#[test]
fn a_restart_replaces_a_container_removed_by_hand() {
    let live = Live::serving("a page", &[]);
    let container = live.container();
    docker(&["rm", "--force", &container]);
    live.post("restart");
    live.wait_until("a restart", || {
        live.count(RESTARTED) == 1 && live.is_healthy() && live.page("/").as_deref() == Some("a page")
    });
    assert_ne!(live.container(), container);
    live.harness.has_containers(1);
    assert_eq!(live.harness.engine.containers(), [live.container()]);
}

#[test]
fn a_restart_that_fails_its_check_keeps_the_old() {
    let live = Live::serving("a page", &[("LAUNCHWAY_HEALTH_TIMEOUT", "3s")]);
    let container = live.container();
    let change = json!({"health_check_path": "/missing"});
    live.harness.admin.put(&format!("{DEPLOY}?id={}&redeploy=false", live.id), &change).success();
    live.post("restart");
    live.wait_until("a failed restart", || {
        assert_eq!(live.page("/").as_deref(), Some("a page"));
        live.count("error: Restart failed: ") == 1
    });
    let log = live.log();
    assert!(log.contains("not healthy within 3 s") && log.contains("404"), "{log}");
    assert!(!log.contains(RESTARTED), "{log}");
    assert_eq!(live.container(), container);
    assert!(is_running(&container));
    live.harness.has_containers(1);
    assert_eq!((live.page("/").as_deref(), live.is_healthy()), (Some("a page"), true));
}
