//! Restarts under load, and deployments behind a response that streams.

use std::{
    io,
    thread::{JoinHandle, sleep, spawn},
    time::{Duration, Instant},
};

use launchway_testkit::docker::docker;

use super::{engine::load::Load, kills::seconds};
use crate::{
    engine::Engine,
    options::Options,
    section::Section,
    tenants::{Shape, Tenants, slow_path},
    verdict,
    visitor::{self, Response},
};

const METHOD: &str = "\
An application runs in a container on a Docker engine that only this campaign uses. It is restarted by the API again \
and again, while six clients send requests to it through the front proxy with pauses of 5 ms. Three of them request a \
page that takes half a second. No request may fail. Then one request gets a streamed response, and meanwhile three \
new versions are deployed one after the other. Each version must answer while the stream is open, and the stream must \
arrive complete: old versions stay until their last request has ended.";

/// The pause between two requests.
const PAUSE: Duration = Duration::from_millis(5);
/// The time that a restart or a deployment gets.
const REST: Duration = Duration::from_secs(60);
/// The time that old versions get for their last requests, longer than any stream here.
const DRAIN: &str = "120s";
/// The number of versions that are deployed behind the stream.
const DEPLOYMENTS: usize = 3;
/// The number of lines that a slow page has for each second.
const LINES_PER_SECOND: u64 = 2;
/// The time that the stream gets. It ends when all versions have answered, however fast the machine is.
const LONGEST: Duration = Duration::from_secs(110);
/// The pause before each of these deployments.
const PAUSE_BETWEEN: Duration = Duration::from_secs(2);

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("Rolling restarts and background drains", METHOD);
    let engine = Engine::start();
    let settings = vec![("LAUNCHWAY_PROXY_DRAIN".to_owned(), DRAIN.to_owned())];
    let shape = Shape { organizations: &["north"], applications: 1, settings, ..Shape::default() };
    let mut tenants = Tenants::start(options, &shape);
    restart_under_load(options, &mut section, &tenants);
    deploy_behind_a_stream(options, &mut section, &mut tenants);
    let figures = tenants.compare(REST);
    verdict::add_figures(&mut section, &figures);
    verdict::report_engine(&mut section, &figures);
    control(&mut section, &tenants);
    drop(tenants);
    drop(engine);
    section
}

fn restart_under_load(options: &Options, section: &mut Section, tenants: &Tenants) {
    let restarts = options.count(2, 20);
    let loads = [Load::start(tenants, "/", PAUSE), Load::start(tenants, &slow_path(1), PAUSE)];
    let (mut worst, mut not_terminal, mut refused) = (Duration::ZERO, 0, 0);
    for number in 1..=restarts {
        sleep(Duration::from_millis(300));
        refused += usize::from(tenants.operate(0, "restart").is_none());
        let (figures, rest) = tenants.harness.wait_until_finished(REST);
        not_terminal += figures.not_terminal;
        worst = worst.max(rest);
        let failed: usize = loads.iter().map(|load| load.responses().failed()).sum();
        eprintln!("  restart {number}: {}, {failed} failed so far", seconds(rest));
    }
    sleep(Duration::from_millis(300));
    let [quick, slow] = loads.map(Load::end);
    section.note("restarts under load", restarts);
    section.never("restarts that were refused", refused);
    section.never("restarts not at their end within 60 s", not_terminal);
    section.note("longest restart", seconds(worst));
    for (responses, page) in [(quick, "a page"), (slow, "a page that takes half a second")] {
        responses.print_failures();
        section.note(&format!("requests for {page}"), responses.requests());
        section.note(&format!("slowest answer of {page}"), seconds(responses.slowest));
        section.note(&format!("answers of no application for {page}, by status"), responses.unserved());
        section.never(&format!("requests for {page} that failed"), responses.failed());
    }
}

fn deploy_behind_a_stream(options: &Options, section: &mut Section, tenants: &mut Tenants) {
    let old = tenants.containers();
    let stream = open_stream(tenants, LONGEST);
    let started = Instant::now();
    let mut live = Vec::new();
    for _ in 0..DEPLOYMENTS {
        sleep(PAUSE_BETWEEN);
        let requested = Instant::now();
        let accepted = tenants.deploy(0).is_some();
        let version = tenants.version(0);
        while accepted && !stream.is_finished() {
            let page = tenants.page(&tenants.applications[0]);
            if page.is_some_and(|page| page.version() == Some(version)) {
                live.push(seconds(requested.elapsed()));
                break;
            }
            sleep(Duration::from_millis(30));
        }
    }
    sleep(Duration::from_secs(options.count(0, 60) as u64).saturating_sub(started.elapsed()));
    let is_open = !stream.is_finished();
    if is_open {
        let running = tenants.containers();
        old.iter().filter(|id| running.contains(id)).for_each(|id| Tenants::end_slow_pages(id));
    }
    let response = stream.join().expect("a thread that only reads");
    let whole = response.as_ref().is_ok_and(is_whole);
    section.note("the response streamed for", seconds(started.elapsed()));
    section.note("from the request of each version to its first answer", live.join(", "));
    section.goal(
        "versions that answered while the response streamed",
        live.len(),
        &DEPLOYMENTS.to_string(),
        is_open && live.len() == DEPLOYMENTS,
    );
    section.goal("the stream arrived whole", whole, "true", whole);
}

/// Requests a response that streams for this time, unless it is told to end; the thread returns it.
fn open_stream(tenants: &Tenants, time: Duration) -> JoinHandle<io::Result<Response>> {
    let (front, host) = (tenants.front, tenants.applications[0].host.clone());
    let path = slow_path(LINES_PER_SECOND * time.as_secs());
    spawn(move || visitor::get(front, &host, &path, REST))
}

/// Returns true if a stream has its end, and no gap between its lines.
fn is_whole(response: &Response) -> bool {
    let lines = response.body.lines().filter_map(|line| line.strip_prefix("line ")?.parse().ok());
    let numbers: Vec<usize> = lines.collect();
    let has_no_gap = numbers.iter().copied().eq(1..=numbers.len());
    response.status == 200 && response.is_complete() && !numbers.is_empty() && has_no_gap
}

/// A stream whose container is killed, which must be found as broken, and load on an application that is
/// stopped, which must fail: a killed container may be back, at its address, before a connection to it is
/// given up.
fn control(section: &mut Section, tenants: &Tenants) {
    let stream = open_stream(tenants, Duration::from_secs(10));
    sleep(Duration::from_secs(1));
    for container in tenants.containers() {
        docker(&["kill", &container]);
    }
    let response = stream.join().expect("a thread that only reads");
    let broken = !response.as_ref().is_ok_and(is_whole);
    section.control("streams of a container that was killed, found as broken", usize::from(broken));
    let load = Load::start(tenants, "/", PAUSE);
    let is_accepted = tenants.operate(0, "stop").is_some();
    let (figures, _) = tenants.harness.wait_until_finished(REST);
    section.never("stops that were refused or did not end", usize::from(!is_accepted) + figures.not_terminal);
    sleep(Duration::from_millis(300));
    section.control("requests to an application that was stopped, found as failed", load.end().failed());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_without_its_end_or_with_a_gap_is_not_whole() {
        let response = |body: &str| Response { status: 200, body: body.to_owned() };
        assert!(is_whole(&response("page\nline 1\nline 2\ncomplete\n")));
        assert!(!is_whole(&response("page\nline 1\nline 2\n")));
        assert!(!is_whole(&response("page\nline 1\nline 3\ncomplete\n")));
        assert!(!is_whole(&response("page\ncomplete\n")));
    }
}
