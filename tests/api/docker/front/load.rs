//! No request fails during operations on applications, the server and the proxy under load.

use std::process::{Child, Stdio};

use launchway_testkit::server::WITH_A_FRONT;

use super::{
    site,
    wrk::{Load, WrkResults},
};
use crate::{
    docker::deployments::{
        harness::{Harness, spec},
        repository::{Repository, running, web_server},
    },
    wait::until,
};

const SITE: &str = "site.ada-s-team.localhost";
const WEB: &str = "web.ada-s-team.localhost";
/// A request that must not be retried: it is lost with its container.
const SLOW: (&str, &str) = ("POST", "/cgi-bin/slow");

/// A web server whose response takes so many seconds: slow enough for a request to be in flight when its container is
/// removed.
fn commit_slow(repository: &Repository, text: &str, seconds: f32) {
    let script =
        format!("#!/bin/sh\nsleep {seconds}\nprintf 'Content-Type: text/plain\\r\\n\\r\\n{text}\\n'\n");
    let more = "COPY slow /www/cgi-bin/slow\nRUN chmod 755 /www/cgi-bin/slow";
    repository.write("slow", script).write("index.html", text).write("Dockerfile", web_server(more)).commit();
}

/// Two kinds of load on a host: with keep-alive, and one connection for each request.
struct Loads([Load; 2]);

impl Loads {
    fn on(harness: &Harness, host: &str, what: (&str, &str)) -> Self {
        Self([true, false].map(|is_kept| Load::on(harness.server.front(), host, what, is_kept)))
    }

    fn stop(self) -> WrkResults {
        let [kept, single] = self.0.map(Load::stop);
        assert!(kept.requests > 20 && single.requests > 20, "{kept:?} {single:?}");
        WrkResults { requests: kept.requests + single.requests, failed: kept.failed + single.failed }
    }
}

/// Proxies that took over from one another, killed when dropped.
struct Successors(Vec<Child>);

impl Successors {
    /// Starts one more proxy, which takes over from the running one.
    fn take_over(&mut self, harness: &Harness) {
        let old = harness.server.front_process();
        let mut next = harness.server.command(&["proxy", "run"]);
        next.env("LAUNCHWAY_PROXY_BIND", harness.server.front()).stderr(Stdio::null());
        self.0.push(next.spawn().unwrap());
        until("the next proxy", || harness.server.front_process().filter(|new| Some(*new) != old));
    }
}

impl Drop for Successors {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn twenty_switches_of_a_site_fail_no_request() {
    let harness = Harness::on_sqlite(&[WITH_A_FRONT]);
    let repository = harness.repository("site");
    repository.write("index.html", "version 0").commit();
    let (id, _) = harness.create_live(&site("site", &repository));
    let load = Loads::on(&harness, SITE, ("GET", "/"));
    for version in 1..=20 {
        repository.write("index.html", format!("version {version}")).commit();
        harness.deployed(&harness.redeploy(&id));
    }
    assert_eq!(load.stop().failed, 0);
}

#[test]
fn deployments_and_restarts_under_load_fail_no_request() {
    let mut harness = Harness::on_sqlite(&[WITH_A_FRONT]);
    let repository = harness.repository("web");
    commit_slow(&repository, "version 0", 0.5);
    let (id, _) = harness.create_live(&spec("web", &repository));
    let load = Loads::on(&harness, WEB, SLOW);
    let mut successors = Successors(Vec::new());
    for version in 1..=10 {
        commit_slow(&repository, &format!("version {version}"), 0.5);
        harness.deployed(&harness.redeploy(&id));
        if version % 2 == 0 {
            successors.take_over(&harness);
            repository.write("Dockerfile", running("exit 1")).commit();
            harness.failed(&harness.redeploy(&id));
        }
        if version % 3 == 0 {
            harness.server.terminate();
            harness.server.restart();
            harness.reconnect();
        }
    }
    assert_eq!(load.stop().failed, 0);
    harness.has_containers(1);
}

#[test]
fn without_waiting_for_running_requests_some_fail() {
    let harness = Harness::on_sqlite(&[WITH_A_FRONT, ("LAUNCHWAY_PROXY_DRAIN", "1ms")]);
    let repository = harness.repository("web");
    commit_slow(&repository, "version 0", 2.0);
    let (id, _) = harness.create_live(&spec("web", &repository));
    // A busy machine may remove a container only when the requests to it have ended.
    let fails = |version: u32| {
        commit_slow(&repository, &format!("version {version}"), 2.0);
        let load = Load::on(harness.server.front(), WEB, SLOW, false);
        harness.deployed(&harness.redeploy(&id));
        harness.has_containers(1);
        load.stop().failed > 0
    };
    assert!((1..=20).any(fails));
}
