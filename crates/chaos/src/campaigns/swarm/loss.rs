//! Machines that are disconnected together with their servers.

use std::{
    collections::BTreeSet,
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use super::{
    super::{engine::load::ResponseCounts, kills::seconds},
    NODES, REST, ask, end,
    installation::Installation,
};
use crate::{options::Options, section::Section};

/// The time within which an application with one copy has to answer again, if nothing else uses the machine.
const BACK: Duration = Duration::from_secs(20);
/// The time within which a deployment has to succeed that is requested after the leader was lost, in the same case.
const DEPLOYED: Duration = Duration::from_secs(30);
/// The time that both get beside other tests.
const BUSY: Duration = Duration::from_secs(120);
/// The number of times that a version is deployed until an application with one copy runs where it has to.
const PLACEMENTS: usize = 12;

/// The requests around the loss of a machine.
#[derive(Default)]
struct Around {
    /// Failed requests that were sent before the loss, and were waiting for an answer then.
    in_flight: usize,
    /// Failed requests that were sent afterwards.
    later: usize,
    all: ResponseCounts,
}

impl Around {
    fn add(&mut self, lost: Instant, responses: ResponseCounts) {
        let in_flight = responses.failures.iter().filter(|failure| failure.sent <= lost).count();
        self.in_flight += in_flight;
        self.later += responses.failed() - in_flight;
        self.all.add(responses);
    }

    fn report(&self, section: &mut Section) {
        section.note("requests to applications with another copy meanwhile", self.all.requests());
        section.note("slowest answer", seconds(self.all.slowest));
        section.note("requests that were in flight when the machine was lost, and failed", self.in_flight);
        section.never("requests that were sent later, and failed", self.later);
    }
}

/// Disconnects a node that does not lead.
pub(super) fn cut_node(
    options: &Options,
    section: &mut Section,
    installation: &mut Installation,
) -> ResponseCounts {
    let rounds = options.count(1, 5);
    let (mut around, mut times, mut not_back) = (Around::default(), Vec::new(), 0);
    for _ in 0..rounds {
        installation.wait_until_whole();
        spread(installation);
        let leader = installation.leader();
        let Some((node, alone)) = placed(installation, leader) else {
            not_back += 1;
            continue;
        };
        let others: Vec<usize> = (0..NODES).filter(|other| *other != node).collect();
        let loads = ask(installation, &others, &installation.with_copies(2));
        sleep(Duration::from_secs(1));
        installation.lab.cut(node + 1);
        let lost = Instant::now();
        let back = watch(installation, &others, &alone, lost);
        not_back += back.iter().filter(|time| time.is_none()).count();
        times.extend(back.into_iter().flatten());
        wait_for_copies(installation, others[0], node, lost);
        around.add(lost, end(loads));
        installation.lab.rejoin(node + 1);
    }
    installation.wait_until_whole();
    let worst = times.iter().max().copied().unwrap_or_default();
    section.note("nodes that were disconnected together with their servers", rounds);
    section.note("applications whose only copy was there", times.len() + not_back);
    section.never("of them not back", not_back);
    let limit = if options.is_long { BACK } else { BUSY };
    section.goal(
        "longest time until one of them answered at both other front proxies",
        seconds(worst),
        &format!("at most {}", seconds(limit)),
        worst <= limit && !times.is_empty(),
    );
    around.report(section);
    around.all
}

/// Disconnects the manager that leads, while deployments are queued and running.
pub(super) fn cut_leader(
    options: &Options,
    section: &mut Section,
    installation: &mut Installation,
) -> ResponseCounts {
    let rounds = options.count(1, 5);
    let (mut around, mut times) = (Around::default(), Vec::new());
    let (mut open, mut not_terminal, mut lost_ones, mut refused) = (0, 0, 0, 0);
    for _ in 0..rounds {
        installation.wait_until_whole();
        spread(installation);
        let leader = installation.leader();
        let others: Vec<usize> = (0..NODES).filter(|other| *other != leader).collect();
        let elsewhere = |position: &usize| !installation.nodes_of(leader, *position).contains(&leader);
        let mut asked = installation.with_copies(2);
        asked.extend(installation.with_copies(1).into_iter().filter(elsewhere));
        let loads = ask(installation, &others, &asked);
        // One deployment at the leader's server, and one beside it.
        refused += usize::from(!installation.deploy(leader, 1));
        refused += usize::from(!installation.deploy(others[0], 2));
        sleep(Duration::from_millis(700));
        let before = installation.question(Duration::ZERO).ask().expect("the verifier can read everything");
        open += before.not_terminal;
        installation.lab.cut(leader + 1);
        let lost = Instant::now();
        while !installation.deploy(others[1], 4) && lost.elapsed() < BUSY {
            sleep(Duration::from_millis(200));
        }
        let state = installation.end_of(others[1], 4, BUSY);
        if state == "deployed" {
            times.push(lost.elapsed());
        }
        eprintln!(
            "  {} after the loss of the leader: `{state}`\n{}",
            seconds(lost.elapsed()),
            installation.story(others[1], 4)
        );
        let figures = installation.question(REST).ask().expect("the verifier can read everything");
        not_terminal += figures.not_terminal;
        lost_ones += figures.lost;
        eprintln!("  all deployments at their end after {}", seconds(lost.elapsed()));
        around.add(lost, end(loads));
        installation.lab.rejoin(leader + 1);
    }
    installation.wait_until_whole();
    section.note("managers that led and were disconnected together with their servers", rounds);
    section.control("deployments and jobs that were open then", open);
    section.never("deployments refused before", refused);
    section.never("accepted deployments lost with them", lost_ones);
    section.never("deployments and jobs not at their end", not_terminal);
    let worst = times.iter().max().copied().unwrap_or_default();
    let limit = if options.is_long { DEPLOYED } else { BUSY };
    section.goal(
        "longest time until another deployment had succeeded at another server",
        seconds(worst),
        &format!("at most {}", seconds(limit)),
        worst <= limit && times.len() == rounds,
    );
    around.report(section);
    around.all
}

/// Returns a node that does not lead, with the applications whose only copy is there. Swarm chooses where a copy runs, so
/// applications are deployed again until there is one.
fn placed(installation: &mut Installation, leader: usize) -> Option<(usize, Vec<usize>)> {
    let single = installation.with_copies(1);
    for turn in 0..PLACEMENTS {
        for node in (0..NODES).filter(|node| *node != leader) {
            let is_there = |position: &usize| installation.nodes_of(leader, *position) == [node];
            let alone: Vec<usize> = single.iter().copied().filter(is_there).collect();
            if !alone.is_empty() {
                return Some((node, alone));
            }
        }
        let position = single[turn % single.len()];
        installation.deploy(leader, position);
        installation.end_of(leader, position, REST);
        installation.wait_until_whole();
    }
    None
}

/// Deploys applications whose copies are on the same node again: a deployment puts them on different ones, and nothing moves
/// them back after a loss.
fn spread(installation: &mut Installation) {
    for position in installation.with_copies(2) {
        for _ in 0..PLACEMENTS {
            let on = installation.nodes_of(0, position);
            if on.iter().collect::<BTreeSet<_>>().len() == on.len() {
                break;
            }
            installation.deploy(0, position);
            installation.end_of(0, position, REST);
            installation.wait_until_whole();
        }
    }
}

/// Returns the time from `lost` until each of the applications answered at all of these front proxies.
fn watch(
    installation: &Installation,
    servers: &[usize],
    applications: &[usize],
    lost: Instant,
) -> Vec<Option<Duration>> {
    let back = |position: usize| {
        for server in servers {
            while installation.answer(*server, position).is_none() {
                if lost.elapsed() > BUSY {
                    let story = installation.story(servers[0], position);
                    eprintln!("  {} is not back:\n{story}", installation.applications[position].name);
                    return None;
                }
                sleep(Duration::from_millis(50));
            }
        }
        Some(lost.elapsed())
    };
    scope(|scope| {
        let threads: Vec<_> =
            applications.iter().map(|position| scope.spawn(move || back(*position))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that only looks")).collect()
    })
}

/// Waits until every copy runs on another node than the one that is lost, as a manager sees it.
fn wait_for_copies(installation: &Installation, manager: usize, node: usize, lost: Instant) {
    let is_whole = |position: &usize| {
        let on = installation.nodes_of(manager, *position);
        on.len() >= installation.applications[*position].copies && !on.contains(&node)
    };
    while !installation.with_copies(2).iter().all(is_whole) && lost.elapsed() < BUSY {
        sleep(Duration::from_millis(200));
    }
}
