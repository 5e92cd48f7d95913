//! PostgreSQL stops, is killed, or ends its connections, under load.

use std::{thread::sleep, time::Duration};

use super::kills::seconds;
use crate::{
    cluster::{Cluster, End},
    harness::{Harness, Plan},
    load::{Load, STEADY},
    options::Options,
    rng::Rng,
    section::Section,
    verdict,
};

const METHOD: &str = "\
A PostgreSQL server that only this campaign uses is stopped (`fast` and `immediate`), killed with SIGKILL, or ends \
all connections, in turn, while clients send requests as in the other campaigns. It is unavailable for 0.2 to 4 s, in \
the short form for at most 1 s. Launchway is never restarted. From the moment when PostgreSQL accepts connections \
again, deployments are requested until one is accepted.";

/// The time within which the server must answer again.
const GOAL: Duration = Duration::from_secs(5);
const REST: Duration = Duration::from_secs(150);

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("Outages of PostgreSQL", METHOD);
    let mut cluster = Cluster::start();
    let plan = Plan { postgres: Some(cluster.url()), sites: 3, containers: 1, ..Plan::default() };
    let mut harness = Harness::set(options, &plan);
    let application = harness.applications[0].clone();
    let load = Load::on(&harness, STEADY);
    let mut rng = Rng::fresh();
    let mut waits = Vec::new();
    let mut refused = 0;
    let outages = options.count(4, 48);
    for number in 0..outages {
        sleep(rng.millis(300, 1200));
        match [Some(End::Fast), Some(End::Immediate), Some(End::Killed), None][number % 4] {
            Some(end) => {
                cluster.stop(end);
                sleep(rng.millis(200, options.count(1000, 4000)));
                refused += usize::from(harness.redeploy(&application).is_some_and(|status| status == 503));
                cluster.restart();
            }
            None => cluster.end_connections(),
        }
        waits.push(harness.accepts_within(&application, Duration::from_secs(60)).unwrap_or(Duration::MAX));
    }
    let has_ended = harness.server.exit().is_some();
    let responses = load.end();
    let (figures, rest) = harness.wait_until_finished(REST);
    waits.sort_unstable();
    let longest = waits.last().copied().unwrap_or_default();
    section.note("outages: fast stop, immediate stop, SIGKILL, connections ended; in all", outages);
    section.note("answers by status", responses.shown());
    section.never("answers other than 200 and 503", responses.odd());
    section.never("requests without an answer", responses.unanswered);
    section.never("ends of the server", usize::from(has_ended));
    section.goal(
        "longest until a deployment was accepted again",
        seconds(longest),
        "under 5 s",
        longest < GOAL,
    );
    section.note("median of the same", seconds(waits[waits.len() / 2]));
    section.note("from the end of the load until everything was at its end", seconds(rest));
    verdict::add_figures(&mut section, &figures);
    verdict::report_engine(&mut section, &figures);
    verdict::add_false_records(&mut section, &harness);
    section.control("deployments refused with 503 while PostgreSQL was away", refused);
    section
}
