//! Proxy, server and engine start in any order after a reboot.

use std::{
    fs,
    process::{Child, Stdio},
    time::Instant,
};

use launchway_testkit::{
    docker::{EngineForwarder, docker},
    server::WITH_A_FRONT,
};

use super::Live;
use crate::{
    docker::deployments::harness::{Harness, spec},
    wait::until,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Proxy,
    Server,
    Engine,
}

use Part::{Engine, Proxy, Server};

const ORDERS: [[Part; 3]; 6] = [
    [Proxy, Server, Engine],
    [Proxy, Engine, Server],
    [Server, Proxy, Engine],
    [Server, Engine, Proxy],
    [Engine, Proxy, Server],
    [Engine, Server, Proxy],
];

/// A process that ends with its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // It may have exited: a successor took its socket over.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn applications_are_back_in_every_order_of_start() {
    let forwarder = EngineForwarder::closed();
    forwarder.open();
    let mut harness = Harness::on_sqlite(&[WITH_A_FRONT, ("DOCKER_HOST", &forwarder.host())]);
    // From now on at the same address, as on a real machine.
    let address = harness.server.front().to_owned();
    harness.server.set(WITH_A_FRONT.0, &address);
    let repository = harness.repository("web");
    repository.commit_page("a page");
    let mut live = Live::deploy(harness, &spec("web", &repository));

    for order in ORDERS {
        power_off(&mut live, &forwarder);
        let mut proxy = None;
        for part in order {
            match part {
                Engine => forwarder.open(),
                Server => {
                    live.harness.server.restart();
                    live.harness.reconnect();
                }
                Proxy => proxy = Some(start_proxy(&live)),
            }
        }
        let begin = Instant::now();
        live.wait_until(&format!("page after {order:?}"), || {
            live.page("/").as_deref() == Some("a page") && live.is_healthy()
        });
        eprintln!("{order:?}: back after {:.1} s", begin.elapsed().as_secs_f64());
        drop(proxy);
        live.harness.server.kill_front();
    }
    live.harness.has_containers(1);
}

/// Kills everything like a power cut: the container too, and routes of another boot are left.
fn power_off(live: &mut Live, forwarder: &EngineForwarder) {
    let container = live.container();
    forwarder.close();
    live.harness.server.kill();
    live.harness.server.kill_front();
    docker(&["kill", &container]);
    let file = live.harness.server.data_dir().join("proxy/routes.json");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let kept = fs::read_to_string(&file).unwrap();
    fs::write(&file, kept.replace(boot.trim(), "00000000-0000-0000-0000-000000000000")).unwrap();
}

/// Starts the front proxy as its own unit does, and waits until it answers.
fn start_proxy(live: &Live) -> Process {
    let before = live.harness.server.front_process();
    let mut command = live.harness.server.command(&["proxy", "run"]);
    let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let process = Process(process);
    until("the front proxy", || live.harness.server.front_process().filter(|now| Some(*now) != before));
    process
}
