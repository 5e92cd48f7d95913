//! Nodes that are lost, drained and activated.

use std::{
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use launchway_testkit::client::Client;
use serde_json::json;

use super::harness::{SwarmHarness, WEB};
use crate::{docker::deployments::harness::text, wait::until};

/// Sends requests one after the other while `act` runs, and returns the numbers of good and of failed ones.
fn under_requests<T>(visitor: &Client, act: impl FnOnce() -> T) -> (T, usize, usize) {
    let (is_over, good, failed) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let done = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let is_good = visitor.try_send("GET", "/", None).is_ok_and(|answer| answer.status == 200);
                    if is_good { &good } else { &failed }.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(10));
                }
            });
        }
        let done = act();
        is_over.store(true, Ordering::Relaxed);
        done
    });
    (done, good.into_inner(), failed.into_inner())
}

#[test]
fn a_lost_node_costs_no_request_of_two_copies() {
    let swarm = SwarmHarness::start(3);
    swarm.repository("web").commit_page("one");
    let (id, deployment) = swarm.harness.create_live(&swarm.spec("web", 2));
    let deployment = text(&deployment["id"]);
    let on = swarm.lab.running_on(&deployment);
    assert_eq!(on.len(), 2);
    assert_ne!(on[0], on[1]);
    // The manager stays: it has the server's engine.
    let lost = if on.contains(&"lwt-node3".to_owned()) { 3 } else { 2 };
    let visitor = swarm.harness.server.visitor(WEB);
    let cut = Instant::now();
    let (moved, good, failed) = under_requests(&visitor, || {
        swarm.lab.cut(lost);
        until("both copies elsewhere", || {
            let on = swarm.lab.running_on(&deployment);
            let is_moved = on.len() == 2 && !on.contains(&format!("lwt-node{lost}"));
            (is_moved && swarm.harness.application(&id)["status"]["status"] == "running")
                .then(|| cut.elapsed())
        })
    });
    // Those that were waiting for the node when it was lost.
    assert!(failed <= 2, "{failed} of {good} requests failed within {moved:?}");
    assert!(good > 100, "{good}");
    swarm.lab.rejoin(lost);
    let down = || swarm.lab.docker(1, &["node", "ls", "--format", "{{.Status}}"]);
    until("every node", || (!down().contains("Down")).then_some(()));
    assert_eq!(swarm.page(), Ok("one".to_owned()));
}

#[test]
fn one_copy_is_back_after_its_node_is_lost() {
    let swarm = SwarmHarness::start(3);
    swarm.repository("web").commit_page("one");
    // The manager has the server's engine, so it is not the one that is lost.
    swarm.lab.docker(1, &["node", "update", "--label-rm", "launchway.apps", "lwt-node1"]);
    let (_, deployment) = swarm.harness.create_live(&swarm.spec("web", 1));
    let on = swarm.lab.running_on(&text(&deployment["id"]));
    let lost = if on == ["lwt-node2"] { 2 } else { 3 };
    let cut = Instant::now();
    swarm.lab.cut(lost);
    until("the loss", || (swarm.page() != Ok("one".to_owned())).then_some(()));
    until("an answer from another node", || (swarm.page() == Ok("one".to_owned())).then_some(()));
    // Below 20 s on a machine with nothing else to do.
    assert!(cut.elapsed() < Duration::from_secs(45), "{:?}", cut.elapsed());
    swarm.lab.rejoin(lost);
}

#[test]
fn a_drained_node_loses_its_applications_but_no_request() {
    let swarm = SwarmHarness::start(3);
    swarm.repository("web").commit_page("one");
    let (_, deployment) = swarm.harness.create_live(&swarm.spec("web", 1));
    let deployment = text(&deployment["id"]);
    let on = swarm.lab.running_on(&deployment).remove(0);
    let visitor = swarm.harness.server.visitor(WEB);
    let (output, good, failed) =
        under_requests(&visitor, || swarm.harness.server.command(&["node", "drain", &on]).output().unwrap());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    assert!(told.contains("1 applications are moved") && told.contains("is drained"), "{told}");
    assert_eq!(failed, 0, "of {good}");
    assert!(good > 50, "{good}");
    let now = swarm.lab.running_on(&deployment);
    assert!(now.len() == 1 && now[0] != on, "{now:?}");

    let list = || {
        let output = swarm.harness.server.command(&["nodes"]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let line = |text: &str| text.lines().find(|line| line.starts_with(&on)).unwrap().to_owned();
    assert!(line(&list()).contains("drain") && line(&list()).ends_with("no"), "{}", list());
    let nodes = swarm.harness.admin.get("/api/v1/cluster/nodes").success();
    let of = |name: &str| nodes.as_array().unwrap().iter().find(|node| node["hostname"] == name).unwrap();
    assert_eq!((&of(&on)["availability"], &of(&on)["takes_applications"]), (&json!("drain"), &json!(false)));
    assert_eq!((&of(&now[0])["is_ready"], &of(&now[0])["takes_applications"]), (&json!(true), &json!(true)));
    assert_eq!(nodes.as_array().unwrap().iter().filter(|node| node["role"] == "leader").count(), 1);
    let activated = swarm.harness.server.command(&["node", "activate", &on]).output().unwrap();
    assert!(activated.status.success(), "{activated:?}");
    assert!(line(&list()).contains("active") && line(&list()).ends_with("yes"), "{}", list());
    let unknown = swarm.harness.server.command(&["node", "drain", "nobody"]).output().unwrap();
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("there is no node `nobody`"), "{unknown:?}");
}

#[test]
fn a_node_that_takes_no_containers_is_left() {
    let swarm = SwarmHarness::start(3);
    swarm.repository("web").commit_page("one");
    let node =
        |option: &str, value: &str, name: &str| swarm.lab.docker(1, &["node", "update", option, value, name]);
    // Longer than this test: the managers count the frozen engine as ready.
    swarm.lab.docker(1, &["swarm", "update", "--dispatcher-heartbeat", "10m"]);
    thread::sleep(Duration::from_secs(3));
    swarm.lab.freeze_engine(3);
    // One of three copies is meant for each of three nodes.
    let (id, deployment) = swarm.harness.create_live(&swarm.spec("web", 3));
    let deployment = text(&deployment["id"]);
    let on = swarm.lab.running_on(&deployment);
    assert_eq!((on.len(), on.contains(&"lwt-node3".to_owned())), (3, false), "{on:?}");

    // Those on the second node are moved by Swarm itself, which has only the frozen node for them.
    node("--availability", "pause", "lwt-node1");
    node("--availability", "drain", "lwt-node2");
    let listed = || swarm.lab.docker(1, &["node", "ps", "lwt-node3", "--format", "{{.CurrentState}}"]);
    until("a container that the frozen node does not take", || listed().contains("Assigned").then_some(()));
    node("--availability", "active", "lwt-node1");
    until("all copies on the first node", || {
        let is_moved = swarm.lab.running_on(&deployment) == ["lwt-node1"; 3];
        (is_moved && swarm.harness.application(&id)["status"]["status"] == "running").then_some(())
    });
    assert_eq!(swarm.page(), Ok("one".to_owned()));
    assert_eq!(swarm.lab.docker(1, &["node", "ls", "--format", "{{.Status}}"]), "Ready\nReady\nReady");
}
