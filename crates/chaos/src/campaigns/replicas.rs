//! Several servers on one PostgreSQL database: idle, under load, killed and upgraded.

mod fleet;
mod upgrade;

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use self::fleet::Fleet;
use super::{
    engine::load::{Load, ResponseCounts},
    kills::seconds,
};
use crate::{
    cluster::Cluster,
    engine::Engine,
    options::Options,
    rng::Rng,
    section::Section,
    tenants::{Shape, Tenants},
    verdict, visitor,
};

const METHOD: &str = "\
Three servers share one PostgreSQL database and one Docker engine, and only this campaign uses them. Each server has \
its own data directory and its own front proxy. Two organizations have two applications each, which answer with their \
own names and print a numbered line each second, and static sites. Every application receives requests through each \
of the three front proxies all the time. The steps are:\n\n\
1. The servers are idle.\n\
2. New versions are deployed at changing servers.\n\
3. All sites and applications are deployed, and one of the servers gets SIGKILL while jobs are queued and running, \
again and again.\n\
4. A running build is cancelled at each of the servers in turn.\n\
5. The servers are stopped and started one after the other, as in an upgrade, during calls to the API. A call that \
reaches a stopping server (503, or no connection) is repeated at the next one, and counted.\n\n\
At the end the verifier compares the records with the engine.";

/// The pause between two requests of one thread.
const PAUSE: Duration = Duration::from_millis(150);
/// The time that deployments get, beside other tests.
const REST: Duration = Duration::from_secs(240);
/// The time within which the jobs of a killed server have to continue.
const RESUME: Duration = Duration::from_secs(45);
/// The time that a cancelled build may take to end, if nothing else uses the machine.
const CANCEL: Duration = Duration::from_secs(1);
/// Leftovers of an engine that no record accounts for are removed every minute, when they are two minutes old.
const GRACE: Duration = Duration::from_secs(190);
/// The number of servers.
const SERVERS: usize = 3;

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("Several servers on one PostgreSQL database", METHOD);
    let engine = Engine::start();
    let cluster = Cluster::start();
    let shape = Shape {
        organizations: &["north", "south"],
        applications: 2,
        sites: options.count(6, 46),
        postgres: Some(cluster.url()),
        prints: true,
        ..Shape::default()
    };
    let mut fleet = Fleet::start(Tenants::start(options, &shape), SERVERS);
    let mut loads = fleet.fronts().map(|front| Load::at(front, &fleet.tenants, "/", PAUSE)).collect();
    idle(options, &mut section, &fleet, &cluster);
    deploy(options, &mut section, &mut fleet);
    let before = kill(options, &mut section, &mut fleet, &mut loads);
    upgrade::cancel(options, &mut section, &mut fleet, CANCEL);
    upgrade::roll(options, &mut section, &mut fleet);
    report(&mut section, (before, loads), &fleet, &cluster);
    drop(fleet);
    drop(cluster);
    drop(engine);
    section
}

/// Leaves the servers alone: nothing may change.
fn idle(options: &Options, section: &mut Section, fleet: &Fleet, cluster: &Cluster) {
    const CHANGES: &str =
        "SELECT count(*)::text AS value FROM application_logs WHERE log LIKE 'The application is %'";
    let time = Duration::from_secs(options.count(10, 600) as u64);
    let (started, before) = (Instant::now(), cluster.number(CHANGES));
    let (mut looks, mut not_running) = (0, 0);
    while started.elapsed() < time {
        for server in 0..SERVERS {
            for application in &fleet.tenants.applications {
                looks += 1;
                not_running += usize::from(fleet.status(server, application).as_deref() != Some("running"));
            }
        }
        sleep(Duration::from_millis(500));
    }
    section.note("idle for", seconds(started.elapsed()));
    section.note("looks at the state of an application, at all servers", looks);
    section.never("states other than `running`", not_running);
    section.never("lines about a change of health", cluster.number(CHANGES) - before);
}

/// Deploys new versions of all applications at changing servers.
fn deploy(options: &Options, section: &mut Section, fleet: &mut Fleet) {
    let rounds = options.count(1, 50);
    let (mut refused, mut not_terminal, mut deployments) = (0, 0, 0);
    for round in 0..rounds {
        for position in 0..fleet.tenants.applications.len() {
            fleet.choose(round + position);
            deployments += 1;
            refused += usize::from(fleet.tenants.deploy(position).is_none());
        }
        let (figures, _) = fleet.tenants.harness.wait_until_finished(REST);
        not_terminal += figures.not_terminal;
    }
    section.note("deployments at changing servers", deployments);
    section.never("of them refused", refused);
    section.never("of them not at their end", not_terminal);
}

/// Kills one server while jobs are queued and running. Its front proxy goes on with the routes that it has, and is counted
/// apart until the server is back. Returns the requests that were sent to it before.
fn kill(
    options: &Options,
    section: &mut Section,
    fleet: &mut Fleet,
    loads: &mut Vec<Load>,
) -> ResponseCounts {
    let kills = options.replica_kills();
    let mut rng = Rng::fresh();
    let (mut refused, mut deployments, mut not_terminal, mut open, mut worst) = (0, 0, 0, 0, Duration::ZERO);
    let (mut before, mut alone) = (ResponseCounts::default(), ResponseCounts::default());
    for number in 1..=kills {
        let victim = rng.below(SERVERS);
        let sites = fleet.tenants.sites.clone();
        for (turn, site) in sites.iter().enumerate() {
            fleet.choose(turn);
            deployments += 1;
            refused += usize::from(fleet.redeploy(turn, site) != Some(200));
        }
        for position in 0..fleet.tenants.applications.len() {
            fleet.choose(victim + 1);
            deployments += 1;
            refused += usize::from(fleet.tenants.deploy(position).is_none());
        }
        sleep(rng.millis(0, 1500));
        before.add(loads.remove(victim).end());
        fleet.kill(victim);
        let front = fleet.fronts().nth(victim).expect("each server has a front proxy");
        let orphaned = Load::at(front, &fleet.tenants, "/", PAUSE);
        let killed = Instant::now();
        open += fleet.tenants.harness.question_now().not_terminal;
        let (figures, _) = fleet.tenants.harness.wait_until_finished(REST);
        not_terminal += figures.not_terminal;
        worst = worst.max(killed.elapsed());
        fleet.start_again(victim);
        alone.add(orphaned.end());
        loads.insert(victim, Load::at(front, &fleet.tenants, "/", PAUSE));
        eprintln!("  kill {number}: at rest after {}", seconds(killed.elapsed()));
    }
    section.note("kills of one of three servers", kills);
    section.note("deployments that were requested before them", deployments);
    section.never("of them refused", refused);
    section.never("of them not at their end", not_terminal);
    section.control("deployments that were open just after a kill", open);
    let limit = RESUME + if options.is_long { Duration::from_secs(30) } else { REST };
    section.goal(
        "longest time from a kill until all of them were at their end",
        seconds(worst),
        &format!("below {}", seconds(limit)),
        worst < limit,
    );
    section.note("requests through the front proxy of a killed server, until it was back", alone.requests());
    section.note("of them answers of no application, by status", alone.unserved());
    section.never("of them answers of another application", alone.foreign);
    before
}

fn report(
    section: &mut Section,
    (mut all, loads): (ResponseCounts, Vec<Load>),
    fleet: &Fleet,
    cluster: &Cluster,
) {
    for responses in loads.into_iter().map(Load::end) {
        all.add(responses);
    }
    for example in &all.examples {
        eprintln!("  {example}");
    }
    section.note("requests through the three front proxies", all.requests());
    section.note("slowest answer", seconds(all.slowest));
    section.note("answers of no application, by status", all.unserved());
    section.never("requests that failed", all.failed());
    section.never("answers of another application", all.foreign);
    let twice = |key: &str, lines: &str| {
        cluster.number(&format!(
            "SELECT count(*)::text AS value FROM (SELECT {key} FROM application_logs WHERE log LIKE '{lines}' \
             GROUP BY {key} HAVING count(*) > 1) AS twice"
        ))
    };
    let printed = "SELECT count(*)::text AS value FROM application_logs WHERE log LIKE 'tick %'";
    section.note("lines that the applications printed", cluster.number(printed));
    section.never("lines that are stored twice", twice("deployment_id, log", "tick %"));
    section.control(
        "deployments with several lines, found without their numbers",
        twice("deployment_id", "tick %"),
    );
    section.never("deployments that ended twice", twice("deployment_id", "Deployed in %"));
    let [one, other] = [0, 2].map(|position| &fleet.tenants.applications[position]);
    let page = visitor::get(fleet.tenants.front, &one.host, "/", Duration::from_secs(5)).ok();
    let is_foreign = page.is_some_and(|page| page.application() != Some(&other.name));
    section
        .control("an answer that is compared with another name, found as foreign", usize::from(is_foreign));
    let figures = fleet.tenants.compare(GRACE);
    verdict::add_figures(section, &figures);
    verdict::report_engine(section, &figures);
    verdict::add_false_records(section, &fleet.tenants.harness);
}
