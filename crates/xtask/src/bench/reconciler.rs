//! The cost of reconciling 1,000 applications.

mod check_target;
mod containers;
mod fake_engine;
mod installation;

use std::{path::Path, thread};

use anyhow::{Result, anyhow};

use self::{
    containers::ContainerState,
    installation::{Installation, Usage},
};
pub(crate) use self::{
    containers::{DEPLOYMENT, copy_id},
    fake_engine::FakeEngine,
    installation::write_client,
};
use crate::bench::{Effort, Figure, Report, Sample};

const APPLICATIONS: u32 = 1_000;
const ROUNDS: u32 = 2;
const LOOK_MILLISECONDS: f64 = 50.0;
const IDLE_PERCENT: f64 = 1.0;
/// The length of a span of idling. Versions are checked every 15 seconds and orphans searched for every 30, so
/// that each span has as many of both as any other; a quick one has not.
const IDLE_SECONDS: u32 = 60;
const BUSY_SECONDS: u32 = 30;
const QUICK_SECONDS: u32 = 15;
/// The time after the start for which nothing is measured: containers are inspected and checked for the
/// first time.
const WARM_UP_SECONDS: u32 = 45;

const METHOD: &str = "\
The `dist` build on SQLite, with its front proxy and 1,000 applications, each with a live version in one container. \
The engine is a fake one on a unix socket. It describes 1,000 containers that have been up for two hours, and sends \
events when the benchmark requests them. Each container has a loopback address of its own, and one listener answers \
the checks (`GET /`) of all. No container prints anything. The docker client is a shell script, which costs less than \
the real one.\n\n\
CPU is the time of the server process in user and kernel mode, from `/proc/<pid>/stat`. The time of the programs that \
it starts is counted separately. The time of the engine, the proxy and the listener is not counted. A look is the \
cost of one more `GET /containers/json` while events arrive, with the comparison, the records and the round of \
assessments that belong to it. While logs are held, the request for the log of one container is not answered, so that \
no other log is collected.";

/// Measures the server while it idles, and while events make it reconcile more often.
pub(crate) fn measure(report: &mut Report, folder: &Path, effort: Effort) -> Result<()> {
    report.section("Reconciler");
    report.paragraph(METHOD);
    let folder = folder.join("reconciler");
    // At the same time: CPU is that of each server process, and there is a processor for each.
    let (running, stopped) = thread::scope(|scope| {
        let stopped = scope.spawn(|| measure_stopped(&folder.join("stopped"), effort));
        let running = measure_running(report, &folder.join("running"), effort);
        (running, stopped.join())
    });
    let (looks, quiet, complete) = running?;
    let stopped = stopped.map_err(|_panic| anyhow!("the stopped applications could not be measured"))??;
    let look = Figure::new("reconciler: CPU of a full look at 1000 applications", "ms", 1, looks);
    report.figure(look.at_most(LOOK_MILLISECONDS));
    let idle = |name: &str, sample| Figure::new(format!("reconciler: idle{name}"), "% of a core", 2, sample);
    let all = idle(" with 1000 applications, all that the server does", percent(&complete));
    report.figure(all.at_most(IDLE_PERCENT));
    report.figure(idle(", without the collection of logs", percent(&quiet)));
    report.figure(idle(", all stopped, so without checks and logs", percent(&stopped)));
    let children = complete.iter().map(Usage::percent_of_children).collect();
    report.figure(idle(", programs that the server starts", children));
    Ok(())
}

/// Returns the milliseconds of a reconciliation, the usage when idle without the collection of logs, and
/// with it.
fn measure_running(
    report: &mut Report,
    folder: &Path,
    effort: Effort,
) -> Result<(Sample, Vec<Usage>, Vec<Usage>)> {
    let installation = Installation::prepare(folder, APPLICATIONS, ContainerState::Running)?;
    installation.observe(effort.amount(WARM_UP_SECONDS, QUICK_SECONDS))?;
    report
        .columns("round | span | seconds | CPU ms | % of a core | of programs | lists | checks | log reads");
    let (mut looks, mut quiet, mut complete) = (Sample::default(), Vec::new(), Vec::new());
    for round in 1..=effort.rounds(ROUNDS) {
        let idle = installation.observe(effort.amount(IDLE_SECONDS, QUICK_SECONDS))?;
        installation.hold_logs(true)?;
        let without_logs = installation.observe(effort.amount(IDLE_SECONDS, QUICK_SECONDS))?;
        installation.engine.send_events(true);
        let busy = installation.observe(effort.amount(BUSY_SECONDS, QUICK_SECONDS))?;
        installation.engine.send_events(false);
        installation.hold_logs(false)?;
        looks.push(busy.milliseconds_of_a_look(&without_logs));
        for (span, usage) in [("idle", idle), ("idle, logs held", without_logs), ("events, logs held", busy)]
        {
            add_rows(report, round, span, &usage);
        }
        quiet.push(without_logs);
        complete.push(idle);
    }
    Ok((looks, quiet, complete))
}

fn measure_stopped(folder: &Path, effort: Effort) -> Result<Vec<Usage>> {
    let installation = Installation::prepare(folder, APPLICATIONS, ContainerState::Stopped)?;
    installation.observe(effort.amount(WARM_UP_SECONDS, QUICK_SECONDS))?;
    let rounds = 0..effort.rounds(ROUNDS);
    rounds.map(|_| installation.observe(effort.amount(IDLE_SECONDS, QUICK_SECONDS))).collect()
}

fn percent(usages: &[Usage]) -> Sample {
    usages.iter().map(Usage::percent).collect()
}

fn add_rows(report: &mut Report, round: u32, span: &str, usage: &Usage) {
    report.row(&[
        round.to_string(),
        span.to_owned(),
        format!("{:.1}", usage.seconds),
        format!("{:.0}", usage.cpu_milliseconds),
        format!("{:.2}", usage.percent()),
        format!("{:.2}", usage.percent_of_children()),
        usage.lists.to_string(),
        usage.checks.to_string(),
        usage.log_reads.to_string(),
    ]);
}
