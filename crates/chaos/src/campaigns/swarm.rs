//! An installation on the machines of a Docker Swarm: its nodes, its leader and its registry are lost.

mod change;
mod cost;
mod installation;
mod loss;
mod reach;

use std::time::Duration;

use self::installation::Installation;
use super::engine::load::{Load, ResponseCounts};
use crate::{options::Options, section::Section, verdict, visitor};

const METHOD: &str = "\
Three Docker engines, each in a network namespace of its own, are the managers of a Swarm with a heartbeat of four seconds. On each runs a server with its \
front proxy; PostgreSQL, a registry and a git server are outside. Two organizations have applications with one and with two \
copies, which answer with their own names and are asked through the front proxies all the time. First the containers of each \
organization try every address of the other one; then versions are switched; a node is drained by `launchway node drain`; the \
registry is stopped; a node that does not lead is disconnected together with its server, and then the one that leads, \
while deployments are queued and running. Deployments are compared with the same steps by hand: `docker build`, `docker push`, \
`docker service create`, and requests until one is answered. At the end the verifier compares the records.";

/// The number of machines. Each is a manager with a server.
const NODES: usize = 3;
/// The pause between two requests of one thread.
const PAUSE: Duration = Duration::from_millis(200);
/// The time that deployments get, beside other tests.
const REST: Duration = Duration::from_secs(240);

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("Machines of a Docker Swarm", METHOD);
    let mut installation = Installation::start(options);
    reach::try_each_other(&mut section, &installation);
    let mut all = ResponseCounts::default();
    for phase in [change::switch, change::drain, change::stop_registry, loss::cut_node, loss::cut_leader] {
        all.add(phase(options, &mut section, &mut installation));
    }
    cost::compare(options, &mut section, &mut installation);
    cost::rest(options, &mut section, &mut installation);
    report(&mut section, &all, &installation);
    section
}

/// Starts requests to these applications at each of these servers' front proxies.
fn ask(installation: &Installation, servers: &[usize], applications: &[usize]) -> Vec<Load> {
    let hosts = installation.hosts();
    let chosen: Vec<_> = applications.iter().map(|position| hosts[*position].clone()).collect();
    let fronts = servers.iter().map(|server| installation.front(*server));
    fronts.map(|front| Load::sent_to(front, &chosen, "/", PAUSE)).collect()
}

/// Ends requests, and returns what was counted at all of the front proxies.
fn end(loads: Vec<Load>) -> ResponseCounts {
    let mut all = ResponseCounts::default();
    for responses in loads.into_iter().map(Load::end) {
        all.add(responses);
    }
    all.print_failures();
    all
}

fn report(section: &mut Section, all: &ResponseCounts, installation: &Installation) {
    for example in &all.examples {
        eprintln!("  {example}");
    }
    section.note("requests through the front proxies", all.requests());
    section.never("answers of another application", all.foreign);
    let [(host, _), (_, other)] = [0, 3].map(|position| installation.hosts()[position].clone());
    let page = visitor::get(installation.front(0), &host, "/", Duration::from_secs(5)).ok();
    let is_foreign = page.is_some_and(|page| page.application().is_some_and(|name| *name != other));
    section
        .control("an answer that is compared with another name, found as foreign", usize::from(is_foreign));
    let question = installation.question(REST);
    let figures = question.ask().expect("the verifier can read everything");
    verdict::add_figures(section, &figures);
    let (folder, application) = (installation.folder(), &installation.applications[0].id);
    verdict::add_false_records_to(section, &question, folder, application);
}
