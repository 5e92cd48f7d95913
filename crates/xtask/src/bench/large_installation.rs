//! The cost of an installation with many applications: its start, its idling, its lists and its switches.

mod installation;
mod lists;

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

use self::installation::Installation;
use crate::bench::{Effort, Figure, Plot, Report, Repository, Sample, plot};

/// The numbers of applications. The smallest installation is the one that others are compared with.
const SIZES: [u32; 4] = [1, 100, 1_000, 10_000];
const QUICK_SIZES: [u32; 4] = [1, 10, 50, 100];
const LINES_OF_ONE: u32 = 1_000;
const QUICK_LINES_OF_ONE: u32 = 100;
const NAMES_OF_ONE: u32 = 3;

const STARTS: u32 = 5;
const IDLE_ROUNDS: u32 = 2;
const LIST_ROUNDS: u32 = 5;
const SWITCH_ROUNDS: u32 = 11;
/// The time after a start for which nothing is measured, and the length of a span of idling: releases are compared with the
/// records every 30 seconds, and all routes every 60, so that each span has as many of both as any other.
const WARM_UP_SECONDS: u32 = 20;
const IDLE_SECONDS: u32 = 60;
const QUICK_SECONDS: u32 = 5;
/// The pause after a switch, so that what follows it does not disturb the next.
const REST: Duration = Duration::from_millis(500);

const FIRST_ANSWER_MS: f64 = 1_000.0;
const IDLE_PERCENT: f64 = 2.0;
const MEGABYTES: f64 = 150.0;
const LIST_MS: f64 = 50.0;
const SWITCH_RATIO: f64 = 1.5;

const METHOD: &str = "\
The `dist` build on SQLite, with its front proxy, in one organization with the given number of applications. Each \
application is a static site with three host names, two versions with their folders, and 1,000 log lines. They were \
stored by the database repositories of the server, so hashes, heads, counters and secrets are as in any installation. \
The log of an organization may have 16 GiB. The engine is a fake one without containers.\n\n\
A start begins with the process, beside a running front proxy, and ends with the first answer. CPU when idle is the \
time of the server process in 60 seconds, from `/proc/<pid>/stat`, for all installations at the same time; resident \
memory is read after that. Four connections request the lists; each pauses for 10 ms after an answer. A switch is the \
redeployment of one static site from a local repository, from the request until the front proxy serves the new page. \
The installations take turns.";

/// Measures installations of several sizes; the largest one has the goals.
pub(crate) fn measure(report: &mut Report, folder: &Path, effort: Effort) -> Result<()> {
    let sizes = if effort == Effort::Quick { QUICK_SIZES } else { SIZES };
    let lines = effort.amount(LINES_OF_ONE, QUICK_LINES_OF_ONE);
    report.section("Large installation");
    report.paragraph(METHOD);
    let folder = folder.join("large-installation");
    let repository = Repository::create(&folder.join("repository"), &[])?;
    let (mut installations, mut costs) = (Vec::new(), Vec::new());
    for size in sizes {
        let place = folder.join(size.to_string());
        let mut installation = Installation::prepare(&place, &repository, (size, lines))?;
        costs.push(Costs::of_starts(&mut installation, effort)?);
        installations.push(installation);
    }
    measure_idle(&installations, &mut costs, effort)?;
    let largest = installations.last().context("there is no installation")?;
    let slowest = lists::measure(largest, effort.rounds(LIST_ROUNDS), effort)?;
    let switches = measure_switches(&mut installations, &repository, effort)?;
    add_rows(report, (&sizes, lines), &costs, &switches);
    add_figures(report, &costs, slowest, &switches);
    draw(report, &sizes, &costs, &switches);
    Ok(())
}

/// The costs of one installation that nobody uses.
#[derive(Default)]
struct Costs {
    first_answers: Sample,
    idle: Sample,
    resident: Sample,
    resident_proxy: Sample,
}

impl Costs {
    /// Measures starts only.
    fn of_starts(installation: &mut Installation, effort: Effort) -> Result<Self> {
        let mut costs = Self::default();
        for _ in 0..effort.rounds(STARTS) {
            costs.first_answers.push(installation.restart()?);
        }
        Ok(costs)
    }
}

/// Adds the costs of idling. All installations idle at the same time: their servers are processes of their own.
fn measure_idle(installations: &[Installation], costs: &mut [Costs], effort: Effort) -> Result<()> {
    thread::sleep(Duration::from_secs(effort.amount(WARM_UP_SECONDS, 1).into()));
    for _ in 0..effort.rounds(IDLE_ROUNDS) {
        let before = installations.iter().map(Installation::cpu_microseconds).collect::<Result<Vec<_>>>()?;
        let begun = Instant::now();
        thread::sleep(Duration::from_secs(effort.amount(IDLE_SECONDS, QUICK_SECONDS).into()));
        for ((installation, before), costs) in installations.iter().zip(before).zip(&mut *costs) {
            let used = installation.cpu_microseconds()? - before;
            costs.idle.push(used / begun.elapsed().as_secs_f64() / 1e6 * 100.0);
            costs.resident.push(installation.resident_megabytes()?);
            costs.resident_proxy.push(installation.resident_megabytes_of_proxy()?);
        }
    }
    Ok(())
}

/// Returns the milliseconds of switches, for each installation.
fn measure_switches(
    installations: &mut [Installation],
    repository: &Repository,
    effort: Effort,
) -> Result<Vec<Sample>> {
    let mut switches = vec![Sample::default(); installations.len()];
    // The first round fetches the repository anew, and is not counted.
    for round in 0..=effort.rounds(SWITCH_ROUNDS) {
        for step in 0..installations.len() {
            // The order alternates, so that none always runs on a warmer machine.
            let which = (step + round as usize) % installations.len();
            let page = format!("round {round} of installation {which}");
            let milliseconds = installations[which].switch(repository, &page)?;
            if round > 0 {
                switches[which].push(milliseconds);
            }
            thread::sleep(REST);
        }
    }
    Ok(switches)
}

fn add_rows(report: &mut Report, (sizes, lines): (&[u32], u32), costs: &[Costs], switches: &[Sample]) {
    report.columns(
        "applications | names | log lines | first answer ms | idle % of a core | resident MB | front proxy MB | switch ms",
    );
    for ((size, costs), switches) in sizes.iter().zip(costs).zip(switches) {
        report.row(&[
            size.to_string(),
            (size * NAMES_OF_ONE).to_string(),
            (size * lines).to_string(),
            format!("{:.0}", costs.first_answers),
            format!("{:.2}", costs.idle),
            format!("{:.1}", costs.resident),
            format!("{:.1}", costs.resident_proxy),
            format!("{switches:.0}"),
        ]);
    }
}

fn add_figures(
    report: &mut Report,
    costs: &[Costs],
    slowest: Vec<(&'static str, Sample)>,
    switches: &[Sample],
) {
    let Some(Costs { first_answers, idle, resident, resident_proxy }) = costs.last() else { return };
    let figure = |what: &str, unit, digits, sample: &Sample| {
        Figure::new(format!("large installation: {what}"), unit, digits, sample.clone())
    };
    report.figure(figure("first answer", "ms", 0, first_answers).at_most(FIRST_ANSWER_MS));
    report.figure(figure("idle", "% of a core", 2, idle).at_most(IDLE_PERCENT));
    report.figure(figure("resident", "MB", 1, resident).at_most(MEGABYTES));
    report.figure(figure("resident of the front proxy", "MB", 1, resident_proxy));
    for (list, sample) in slowest {
        report.figure(figure(&format!("p99 of {list}"), "ms", 1, &sample).at_most(LIST_MS));
    }
    if let [smallest, .., largest] = switches {
        report.figure(figure("switch", "ms", 0, largest));
        let ratio = largest.over(smallest);
        report.figure(figure("switch over that of one application", "", 2, &ratio).at_most(SWITCH_RATIO));
    }
}

fn draw(report: &mut Report, sizes: &[u32], costs: &[Costs], switches: &[Sample]) {
    let mut draw = |file: &str, title: &str, unit: &str, lines: &[(&str, Vec<Sample>)]| {
        let mut plot = Plot::new(title, "applications", unit);
        for (name, samples) in lines {
            plot.line(name, plot::points(sizes, samples));
        }
        report.plot(&format!("large-installation-{file}"), plot);
    };
    let of = |cost: fn(&Costs) -> &Sample| costs.iter().map(cost).cloned().collect::<Vec<_>>();
    draw("start", "Start to the first answer", "ms", &[("start", of(|costs| &costs.first_answers))]);
    draw("idle", "CPU when idle", "%", &[("server", of(|costs| &costs.idle))]);
    let resident =
        [("server", of(|costs| &costs.resident)), ("front proxy", of(|costs| &costs.resident_proxy))];
    draw("resident", "Resident memory", "MB", &resident);
    draw("switch", "Switch of one site", "ms", &[("switch", switches.to_vec())]);
}
