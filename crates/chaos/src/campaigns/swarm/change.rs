//! Changes that nobody should notice: new versions, a node that is drained, and a registry that is down.

use std::{thread::sleep, time::Duration};

use launchway_testkit::swarm::SwarmLab;

use super::{super::engine::load::ResponseCounts, NODES, REST, ask, end, installation::Installation};
use crate::{options::Options, section::Section};

/// The front proxies of all servers.
const FRONTS: [usize; NODES] = [0, 1, 2];
/// The time for which applications are asked while the registry is down.
const WITHOUT_REGISTRY: Duration = Duration::from_secs(5);
/// The part of the reason by which a deployment has to fail meanwhile.
const REASON: &str = "the image cannot be pushed: the registry";

/// Deploys versions of an application with one copy and of one with two, at changing servers.
pub(super) fn switch(
    options: &Options,
    section: &mut Section,
    installation: &mut Installation,
) -> ResponseCounts {
    let switches = options.count(5, 100);
    let loads = ask(installation, &FRONTS, &all(installation));
    let (mut failed, mut stale) = (0, 0);
    for number in 0..switches {
        let (server, position) = (number % NODES, number % 2);
        let is_accepted = installation.deploy(server, position);
        let state = installation.end_of(server, position, REST);
        if !is_accepted || state != "deployed" {
            eprintln!("  switch {number}: `{state}`\n{}", installation.story(server, position));
            failed += 1;
            continue;
        }
        let version = Some(installation.version(position));
        stale += FRONTS.iter().filter(|front| installation.answer(**front, position) != version).count();
    }
    let responses = end(loads);
    section.note("switches to another version, at changing servers", switches);
    section.never("of them failed", failed);
    section.never("front proxies without the new version when its deployment had succeeded", stale);
    section.note("requests through the three front proxies meanwhile", responses.requests());
    section.note("slowest answer", format_args!("{:.2} s", responses.slowest.as_secs_f64()));
    section.never("requests that failed during switches", responses.failed());
    responses
}

/// Drains the node of a server that does not lead, and activates it again.
pub(super) fn drain(
    options: &Options,
    section: &mut Section,
    installation: &mut Installation,
) -> ResponseCounts {
    let (drains, mut all_of_them) = (options.count(1, 5), ResponseCounts::default());
    let (mut moved, mut not_empty, mut failed) = (0, 0, 0);
    for number in 0..drains {
        installation.wait_until_whole();
        let leader = installation.leader();
        let others: Vec<usize> = (0..NODES).filter(|node| *node != leader).collect();
        let node = others[number % others.len()];
        let on_it = |installation: &Installation| {
            all(installation)
                .into_iter()
                .filter(|position| installation.nodes_of(leader, *position).contains(&node))
                .count()
        };
        moved += on_it(installation);
        let name = SwarmLab::hostname(node + 1);
        let loads = ask(installation, &FRONTS, &all(installation));
        failed += usize::from(!has_run(installation, leader, &["node", "drain", &name]));
        sleep(Duration::from_secs(1));
        all_of_them.add(end(loads));
        not_empty += on_it(installation);
        failed += usize::from(!has_run(installation, leader, &["node", "activate", &name]));
    }
    section.note("nodes that were drained by `launchway node drain`", drains);
    section.control("applications that had a copy there", moved);
    section.never("drains and activations that failed", failed);
    section.never("applications with a copy there afterwards", not_empty);
    section.note("requests through the three front proxies meanwhile", all_of_them.requests());
    section.never("requests that failed during a drain", all_of_them.failed());
    all_of_them
}

/// Stops the registry, deploys, and starts it again.
pub(super) fn stop_registry(
    _: &Options,
    section: &mut Section,
    installation: &mut Installation,
) -> ResponseCounts {
    installation.wait_until_whole();
    let loads = ask(installation, &FRONTS, &all(installation));
    installation.lab.stop_registry();
    let is_accepted = installation.deploy(0, 0);
    let state = installation.end_of(0, 0, REST);
    let story = installation.story(0, 0);
    let is_explained = is_accepted && state == "failed" && story.contains(REASON);
    if !is_explained {
        eprintln!("  without a registry: `{state}`\n{story}");
    }
    sleep(WITHOUT_REGISTRY);
    installation.lab.start_registry();
    let is_back = installation.deploy(0, 0) && installation.end_of(0, 0, REST) == "deployed";
    let responses = end(loads);
    section
        .never("deployments without a registry that did not fail with its name", usize::from(!is_explained));
    section.never("deployments that failed when it was back", usize::from(!is_back));
    section.note("requests through the three front proxies meanwhile", responses.requests());
    section.never("requests that failed while the registry was down", responses.failed());
    responses
}

/// Runs a command at a server; prints its error.
fn has_run(installation: &Installation, server: usize, words: &[&str]) -> bool {
    let ended = installation.command(server, words);
    if !ended.status.success() {
        eprintln!("  {}: {}", words.join(" "), String::from_utf8_lossy(&ended.stderr));
    }
    ended.status.success()
}

/// The positions of all applications.
fn all(installation: &Installation) -> Vec<usize> {
    (0..installation.applications.len()).collect()
}
