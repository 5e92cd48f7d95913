//! One organization attacks the machine, and another one works as before.

mod attacks;

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    thread::{scope, sleep},
    time::{Duration, Instant},
};

use self::attacks::{Attacker, Damage};
use super::{engine::load::Load, kills::seconds};
use crate::{
    engine::Engine,
    options::Options,
    regular::{Regular, Waits},
    section::Section,
    tenants::{Shape, Tenants},
    verdict,
};

const METHOD: &str = "\
Two organizations share an installation with a Docker engine that only this campaign uses. The normal organization \
has an application under load, which is deployed again and again, and a client reads its list of applications with \
pauses of 2 ms: first alone, then beside an administrator of the hostile organization. This administrator builds fork \
bombs and large images, runs a container that prints without a pause, creates applications until the server refuses, \
opens log streams until the server refuses and holds them open, and runs extensions that publish ports of the \
machine.\n\n\
The server has the priority of its packaged unit (`Nice=-10`), and so has the client that reads, because it \
represents a client on another machine. No request and no deployment of the normal organization may fail.";

/// The priority of the packaged units. Programs that the server starts inherit it.
const PRIORITY: &[&str] = &["nice", "-n", "-10"];
/// The list that the reader asks for.
const READ: &str = "/api/v1/deploy/applications";
/// The pause between two requests of a client to an application.
const PAUSE: Duration = Duration::from_millis(50);
/// The time that a deployment of the normal organization gets.
const DEPLOYMENT: Duration = Duration::from_secs(120);
/// The time that everything gets to reach its end after the attack.
const REST: Duration = Duration::from_secs(180);
/// The position of the normal organization's application.
const NORMAL: usize = 0;
/// The bytes of log that an application may keep, low enough to be reached here.
const LOG_BYTES: u64 = 8 * 1024 * 1024;

/// Measurements of the normal organization.
struct Beside {
    reads: Waits,
    requests: usize,
    failed_requests: usize,
    deployments: Vec<Duration>,
    failed_deployments: usize,
}

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("A hostile tenant", METHOD);
    let engine = Engine::start();
    let quota = options.count(8, 20);
    let settings = [
        ("LAUNCHWAY_QUOTA_APPLICATIONS", quota.to_string()),
        ("LAUNCHWAY_APPLICATION_LOG_SIZE", LOG_BYTES.to_string()),
        // A bomb of 2,048 processes would affect all other tests.
        ("LAUNCHWAY_BUILD_PIDS", options.count(64, 2048).to_string()),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value)).to_vec();
    let shape = Shape {
        organizations: &["normal", "hostile"],
        applications: 1,
        settings,
        wrapper: PRIORITY,
        ..Shape::default()
    };
    let mut tenants = Tenants::start(options, &shape);
    let length = Duration::from_secs(options.count(20, 300) as u64);

    let before = measure(&mut tenants, length.min(Duration::from_secs(60)));
    let mut attacker = Attacker::join(&tenants, options);
    let is_over = AtomicBool::default();
    let (during, damage) = scope(|threads| {
        let (attacker, is_over) = (&mut attacker, &is_over);
        let attack = threads.spawn(move || attacker.attack(is_over));
        let during = measure(&mut tenants, length);
        is_over.store(true, Ordering::Relaxed);
        (during, attack.join().expect("an attack that only asks"))
    });
    let (figures, rest) = tenants.harness.wait_until_finished(REST);

    report_normal(&mut section, options, &before, &during);
    report_attacks(&mut section, &damage, quota);
    let database = size(&tenants.harness.data());
    section.goal(
        "data directory at the end",
        format_args!("{} MiB", database / 1024 / 1024),
        "at most 128 MiB",
        database <= 128 * 1024 * 1024,
    );
    section.note("from the end of the attack until everything was at its end", seconds(rest));
    section.never("deployments and jobs not at their end 180 s later", figures.not_terminal);
    verdict::add_figures(&mut section, &figures);
    drop(attacker);
    drop(tenants);
    drop(engine);
    section
}

/// Sends requests to the normal organization's application, deploys it repeatedly and reads, for this time.
fn measure(tenants: &mut Tenants, time: Duration) -> Beside {
    let load = Load::of(tenants, &[NORMAL], "/", PAUSE);
    let reader = Regular::begin_with_priority(tenants.client(0), READ);
    let (started, mut deployments, mut failed_deployments) = (Instant::now(), Vec::new(), 0);
    while started.elapsed() < time {
        let requested = Instant::now();
        let deployment = tenants.deploy(NORMAL);
        match deployment.is_some_and(|id| tenants.reaches(NORMAL, &id, "deployed", DEPLOYMENT)) {
            true => deployments.push(requested.elapsed()),
            false => failed_deployments += 1,
        }
        sleep(Duration::from_secs(1));
    }
    deployments.sort_unstable();
    let (reads, responses) = (reader.end(), load.end());
    Beside {
        reads,
        requests: responses.requests(),
        failed_requests: responses.failed(),
        deployments,
        failed_deployments,
    }
}

fn report_normal(section: &mut Section, options: &Options, before: &Beside, during: &Beside) {
    let requests = format!("{} / {}", before.requests, during.requests);
    section.note("requests to the normal application, alone / beside the attack", requests);
    section.never("of them failed", before.failed_requests + during.failed_requests);
    let counts = format!("{} / {}", before.deployments.len(), during.deployments.len());
    let has_both = !before.deployments.is_empty() && !during.deployments.is_empty();
    section.goal("its deployments, alone / beside", counts, "at least 1 / 1", has_both);
    let worst = |each: &Beside| each.deployments.last().copied().unwrap_or_default();
    let times = format!("{} / {}", seconds(worst(before)), seconds(worst(during)));
    section.note("its longest deployment, alone / beside", times);
    section.never("its deployments that failed", before.failed_deployments + during.failed_deployments);
    let millis = |waits: &Waits| waits.percentile(99).as_secs_f64() * 1000.0;
    let (name, times) = (
        "99th percentile of its reads, alone / beside",
        format!("{:.2} ms / {:.2} ms", millis(&before.reads), millis(&during.reads)),
    );
    // Beside other tests, slow reads are caused by the machine.
    match options.is_long {
        true => section.goal(
            name,
            times,
            "at most doubled, or 10 ms",
            during.reads.percentile(99) <= (before.reads.percentile(99) * 2).max(Duration::from_millis(10)),
        ),
        false => section.note(name, times),
    }
    section.never("its reads that failed", before.reads.unserved + during.reads.unserved);
}

fn report_attacks(section: &mut Section, damage: &Damage, quota: usize) {
    section.note("builds of fork bombs and large images that ended", damage.builds);
    section.note("applications that the hostile organization made", damage.applications);
    section.control("applications refused by the quota", damage.refused_applications);
    section.note("log streams that it held", damage.streams);
    section.control("log streams refused by the quota", damage.refused_streams);
    section.goal(
        "applications of the hostile organization at most at their quota",
        damage.applications,
        &format!("at most {quota}"),
        damage.applications <= quota,
    );
    section.never("ports of the machine that it published", damage.published_ports);
    section.note("lines that it printed and that are kept", damage.kept_lines);
}

/// The bytes of all files below a folder.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => size(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_gone) => 0,
    });
    sizes.sum()
}
