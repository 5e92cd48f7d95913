//! The Docker engine accepts connections and answers nothing for a while.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{engine::load::Load, kills::seconds};
use crate::{
    engine::Engine,
    harness::DEPLOY,
    options::Options,
    regular::{Regular, Waits},
    section::Section,
    tenants::{Shape, Tenants},
    verdict,
};

const METHOD: &str = "\
A Docker engine that only this campaign uses and its containerd get SIGSTOP, and later SIGCONT. Before and during \
that time, a static site is deployed again and again, and a client reads the list of applications with pauses of 2 \
ms. While the engine hangs, two applications in containers must answer every request, and deployments of them are \
requested. These deployments must succeed, and everything must finish within 30 s after the engine answers again.";

/// The list that the reader asks for.
const READ: &str = "/api/v1/deploy/applications";
/// The pause between two requests of a client to an application.
const PAUSE: Duration = Duration::from_millis(100);
/// The time that everything gets to reach its end after the engine answers again.
const REST: Duration = Duration::from_secs(30);
/// The time that the deployment of a site may take before it counts as failed.
const SITE: Duration = Duration::from_secs(60);

/// Measurements during one state of the engine.
struct Beside {
    reads: Waits,
    sites: Vec<Duration>,
    failed_sites: usize,
}

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("A Docker engine that hangs", METHOD);
    let mut engine = Engine::start();
    let shape = Shape { organizations: &["north"], applications: 2, sites: 1, ..Shape::default() };
    let mut tenants = Tenants::start(options, &shape);
    let (rest, _) = tenants.harness.wait_until_finished(SITE);
    assert_eq!(rest.wrong(), 0, "{rest:?}");
    let length = Duration::from_secs(options.count(20, 600) as u64);

    let before = measure(&tenants, length.min(Duration::from_secs(60)));
    let since = Instant::now();
    engine.freeze();
    let requested: Vec<_> = (0..tenants.applications.len())
        .map(|position| (position, tenants.deploy(position).expect("the deployment is accepted")))
        .collect();
    let load = Load::start(&tenants, "/", PAUSE);
    let during = measure(&tenants, length);
    let responses = load.end();
    let open = tenants.harness.ask_at_rest(Duration::ZERO).ask().expect("the verifier can read everything");
    let hung = since.elapsed();
    engine.thaw();
    let (figures, rest) = tenants.harness.wait_until_finished(REST);
    let states = requested.iter().map(|(position, id)| tenants.deployment_state(*position, id));
    let not_deployed = states.filter(|state| state.as_deref() != Some("deployed")).count();

    section.note("the engine hung for", seconds(hung));
    report_reads(&mut section, options, &before.reads, &during.reads);
    report_sites(&mut section, &before, &during);
    section.note("requests to applications in containers meanwhile", responses.requests());
    section.note("of them answered by no application, by status", responses.unserved());
    section.never("of them failed", responses.failed());
    section.note("deployments in containers requested meanwhile", requested.len());
    section.never("of those deployments not deployed in the end", not_deployed);
    section.note("from the answer of the engine until everything was at its end", seconds(rest));
    section
        .never("deployments and jobs not at their end 30 s after the engine answered", figures.not_terminal);
    let figures = tenants.compare(REST);
    verdict::add_figures(&mut section, &figures);
    verdict::report_engine(&mut section, &figures);
    section.control("deployments and jobs that waited for the engine that hung", open.not_terminal);
    drop(tenants);
    drop(engine);
    section
}

/// Deploys the site and reads, for this time.
fn measure(tenants: &Tenants, time: Duration) -> Beside {
    let reader = Regular::begin(&tenants.harness.admin, READ);
    let (started, mut sites, mut failed_sites) = (Instant::now(), Vec::new(), 0);
    while started.elapsed() < time {
        match deploy_site(tenants) {
            Some(time) => sites.push(time),
            None => failed_sites += 1,
        }
        sleep(Duration::from_millis(500));
    }
    sites.sort_unstable();
    Beside { reads: reader.end(), sites, failed_sites }
}

/// Deploys the site once; returns the time from the request to its end, if it succeeded.
fn deploy_site(tenants: &Tenants) -> Option<Duration> {
    let (admin, started) = (&tenants.harness.admin, Instant::now());
    let body = json!({ "id": tenants.sites[0] });
    let deployment = admin.post(&format!("{DEPLOY}/redeploy"), &body).success();
    tenants.harness.note_accepted(&deployment["id"]);
    let path = format!("{DEPLOY}/deployments/{}", deployment["id"].as_str()?);
    while started.elapsed() < SITE {
        match admin.get(&path).success()["status"]["status"].as_str()? {
            "deployed" => return Some(started.elapsed()),
            "failed" | "cancelled" => return None,
            _ => sleep(Duration::from_millis(10)),
        }
    }
    None
}

fn report_reads(section: &mut Section, options: &Options, before: &Waits, during: &Waits) {
    let millis = |waits: &Waits, percent| waits.percentile(percent).as_secs_f64() * 1000.0;
    section.note(
        "reads of the API, before / meanwhile",
        format_args!("{} / {}", before.answers(), during.answers()),
    );
    section.note(
        "median of a read, before / meanwhile",
        format_args!("{:.2} ms / {:.2} ms", millis(before, 50), millis(during, 50)),
    );
    let name = "99th percentile of a read, before / meanwhile";
    let times = format!("{:.2} ms / {:.2} ms", millis(before, 99), millis(during, 99));
    // Beside other tests, slow reads are caused by the machine.
    match options.is_long {
        true => section.goal(
            name,
            times,
            "at most doubled, or 5 ms",
            during.percentile(99) <= (before.percentile(99) * 2).max(Duration::from_millis(5)),
        ),
        false => section.note(name, times),
    }
    section.never("reads answered other than by 200, or not at all", before.unserved + during.unserved);
}

fn report_sites(section: &mut Section, before: &Beside, during: &Beside) {
    let median = |sites: &[Duration]| sites.get(sites.len() / 2).copied().unwrap_or_default();
    let worst = |sites: &[Duration]| sites.last().copied().unwrap_or_default();
    let counts = format!("{} / {}", before.sites.len(), during.sites.len());
    section.goal(
        "sites deployed, before / meanwhile",
        counts,
        "at least 1 / 1",
        !before.sites.is_empty() && !during.sites.is_empty(),
    );
    let limit = (median(&before.sites) * 2).max(Duration::from_secs(2));
    section.goal(
        "median deployment of a site, before / meanwhile",
        format_args!("{} / {}", seconds(median(&before.sites)), seconds(median(&during.sites))),
        "at most doubled, or 2 s",
        median(&during.sites) <= limit,
    );
    section.note(
        "longest deployment of a site, before / meanwhile",
        format_args!("{} / {}", seconds(worst(&before.sites)), seconds(worst(&during.sites))),
    );
    section.never(
        "deployments of a site that failed or took over 60 s",
        before.failed_sites + during.failed_sites,
    );
}
