//! The cost of Launchway: a deployment beside the same steps by hand, and servers at rest with many applications.

use std::{
    fs,
    net::SocketAddr,
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    super::kills::seconds,
    NODES, REST,
    installation::{Installation, LOOK, write_source},
};
use crate::{harness::DEPLOY, options::Options, process::Server, section::Section, visitor};

/// The largest ratio of a deployment to the same steps by hand, if nothing else uses the machine.
const RATIO: f64 = 1.2;
/// The first port of the services that are created by hand, outside of those of Launchway.
const FIRST_PORT: u16 = 21_000;
/// The largest part of a core that a server may use at rest.
const CORE: f64 = 0.05;
/// The time for which a server is measured at rest.
const MEASURED: Duration = Duration::from_secs(60);
/// The time after which deployments have left nothing to do: retired versions are removed, output is collected.
const SETTLED: Duration = Duration::from_secs(60);
/// The number of deployments that are queued at once.
const QUEUED: usize = 12;
/// The number of clock ticks of the kernel in a second.
const TICKS: f64 = 100.0;

/// Deploys by Launchway and by hand, in turn.
pub(super) fn compare(options: &Options, section: &mut Section, installation: &mut Installation) {
    installation.wait_until_whole();
    let rounds = options.count(3, 15);
    let (mut ours, mut by_hand) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        installation.commit(0);
        let started = Instant::now();
        assert!(installation.redeploy(0, 0), "a deployment is accepted");
        let version = Some(installation.version(0));
        while installation.answer(0, 0) != version {
            assert!(started.elapsed() < REST, "{}", installation.story(0, 0));
            sleep(Duration::from_millis(10));
        }
        ours.push(started.elapsed());
        assert_eq!(installation.end_of(0, 0, REST), "deployed");
        if round + 1 == rounds {
            eprintln!("  the last deployment, newest line first:\n{}", installation.story(0, 0));
        }
        by_hand.push(deploy_by_hand(installation, round));
    }
    let [ours, by_hand] = [ours, by_hand].map(|mut times| {
        times.sort();
        times[times.len() / 2]
    });
    let ratio = ours.as_secs_f64() / by_hand.as_secs_f64();
    section.note("deployments, each compared with the same steps by hand", rounds);
    section.note(
        "median from the request to the first answer / by hand",
        format_args!("{} / {}", seconds(ours), seconds(by_hand)),
    );
    match options.is_long {
        true => section.goal(
            "ratio of both",
            format_args!("{ratio:.2}"),
            &format!("at most {RATIO}"),
            ratio <= RATIO,
        ),
        // Too few for a goal, beside other tests.
        false => section.note("ratio of both", format_args!("{ratio:.2}")),
    }
}

/// Builds, pushes and runs an application by the commands of docker; returns the time until it answers.
fn deploy_by_hand(installation: &Installation, round: usize) -> Duration {
    let lab = &installation.lab;
    let folder = installation.folder().join("by-hand");
    write_source(&folder, &visitor::page("by-hand", round + 1));
    let (name, path) = (format!("by-hand-{round}"), folder.display().to_string());
    let image = format!("{}/by-hand:{round}", lab.registry());
    let port = FIRST_PORT + u16::try_from(round).unwrap_or_default();
    let published = format!("mode=host,target=8080,published={port}");
    let fronts: Vec<SocketAddr> =
        (1..=NODES).map(|node| format!("{}:{port}", lab.address(node)).parse().unwrap()).collect();
    let started = Instant::now();
    lab.docker(1, &["build", "--quiet", "--tag", &image, &path]);
    lab.docker(1, &["push", "--quiet", &image]);
    let create = ["service", "create", "--quiet", "--detach", "--name", &name, "--endpoint-mode", "dnsrr"];
    lab.docker(1, &[&create[..], &["--publish", &published, &image]].concat());
    let answers = |front: &SocketAddr| {
        let page = visitor::get(*front, "by-hand", "/", LOOK).ok();
        page.is_some_and(|page| page.version() == Some(round + 1))
    };
    while !fronts.iter().any(answers) {
        assert!(started.elapsed() < REST, "the service by hand does not answer");
        sleep(Duration::from_millis(10));
    }
    let time = started.elapsed();
    lab.docker(1, &["service", "rm", &name]);
    time
}

/// Deploys many applications, and measures the servers when nothing happens.
pub(super) fn rest(options: &Options, section: &mut Section, installation: &mut Installation) {
    let count = options.applications();
    if count == 0 {
        return;
    }
    let started = Instant::now();
    let failed = create_many(installation, count);
    let created = started.elapsed();
    sleep(SETTLED);
    let before: Vec<f64> = (0..NODES).map(|server| cpu(installation.process(server))).collect();
    let began = Instant::now();
    sleep(MEASURED);
    let elapsed = began.elapsed().as_secs_f64();
    let shares: Vec<f64> =
        (0..NODES).map(|server| (cpu(installation.process(server)) - before[server]) / elapsed).collect();
    let worst = shares.iter().copied().fold(0.0, f64::max);
    let memory = (0..NODES).map(|server| installation.process(server).memory()).max().unwrap_or_default();
    section.note("more applications on the three machines", count);
    section.note("time of their deployments", seconds(created));
    section.never("of them not deployed", failed);
    let text: Vec<String> = shares.iter().map(|share| format!("{:.1} %", share * 100.0)).collect();
    section.note("part of a core that each server used at rest", text.join(", "));
    section.note("most resident memory of a server", format_args!("{memory} MiB"));
    // A debug build computes several times as long.
    match options.is_long {
        true => section.goal(
            "largest part of a core that a server used",
            format_args!("{:.1} %", worst * 100.0),
            &format!("below {:.0} %", CORE * 100.0),
            worst < CORE,
        ),
        false => {
            section.note("largest part of a core that a server used", format_args!("{:.1} %", worst * 100.0))
        }
    }
}

/// Creates applications of one source at all servers; returns the number that were not deployed.
fn create_many(installation: &Installation, count: usize) -> usize {
    let repository = installation.repository("many", &visitor::page("many", 1));
    let (mut failed, mut open) = (0, Vec::new());
    for number in 0..count {
        let client = installation.client_of(number % NODES, number % 2);
        let body = json!({
            "name": format!("many-{number}"), "repository": repository, "branch": "main", "port": 8080,
            "environment": "production", "build_pack": "dockerfile", "health_check_path": "/",
        });
        let created = client.post(DEPLOY, &body).success();
        let deployment = created["deployments"][0]["id"].as_str().unwrap_or_default().to_owned();
        open.push((client, deployment));
        if open.len() >= QUEUED || number + 1 == count {
            for (client, deployment) in open.drain(..) {
                let state = installation.end_of_deployment(&client, &deployment, REST);
                failed += usize::from(state != "deployed");
            }
        }
    }
    failed
}

/// Returns the seconds of processor time that a server has used.
fn cpu(server: &Server) -> f64 {
    let text = fs::read_to_string(format!("/proc/{}/stat", server.process_id())).unwrap_or_default();
    let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |position: usize| fields.get(position).and_then(|field| field.parse().ok()).unwrap_or(0.0);
    // `utime` and `stime`, fields 14 and 15 of proc(5).
    (ticks(11) + ticks(12)) / TICKS
}
