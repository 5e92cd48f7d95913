//! `cargo xtask bench`: measures the `dist` build against the performance goals.

mod accepted;
mod command_line;
mod commits;
mod compare;
mod dashboard;
mod definitions;
mod effort;
mod figure;
mod front_proxy;
mod growth;
mod http;
mod large_installation;
mod launch;
mod log_lines;
mod plot;
mod probe;
mod proxies;
mod push_to_live;
mod reads;
mod reasons;
mod reconciler;
mod replicas;
mod report;
mod repository;
mod sample;
mod search;
mod server;
mod start_up;
mod usage;
mod wrk;

use std::{
    env,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::ValueEnum as _;

use self::{
    effort::Effort, figure::Figure, http::Connection, plot::Plot, report::Report, repository::Repository,
    sample::Sample, server::Server, wrk::Load,
};
use crate::{
    command::{BenchOptions, Section},
    engine::{Engine, Purpose},
    install, machine,
    scratch::Scratch,
    workspace::{self, cargo, dist},
};

/// Builds, measures and prints, or compares two reports; fails when a goal is missed, or the two differ.
pub(crate) fn run(options: &BenchOptions) -> Result<()> {
    if let [one, other] = &options.compare[..] {
        return compare::run(one, other);
    }
    install::ensure(options.install)?;
    let wanted = |section| options.only.is_none_or(|only| only == section);
    let _engine = wanted(Section::PushToLive).then(|| Engine::start(Purpose::Measurements)).transpose()?;
    build(options.only)?;

    let effort = if options.quick { Effort::Quick } else { Effort::Whole };
    let scratch = Scratch::create(&env::temp_dir(), "bench", &[])?;
    let mut report = Report::default();
    describe(&mut report, effort)?;
    let mut failed = Vec::new();
    for &section in Section::value_variants().iter().filter(|section| wanted(**section)) {
        let first = report.number_of_sections();
        let (begun, before) = (Instant::now(), probe::steps_per_second()?);
        // What is measured is kept, whatever happens to another section.
        match measure(section, &mut report, scratch.path(), effort) {
            Ok(()) => {
                let probe = f64::midpoint(before, probe::steps_per_second()?);
                report.finish_from(first, &origin(begun.elapsed(), probe)?, probe);
            }
            Err(error) => {
                eprintln!("{section:?} could not be measured: {error:#}");
                report.discard_from(first);
                failed.push(format!("{section:?}"));
            }
        }
        if let Some(file) = &options.report {
            report.write(file)?;
        }
    }
    ensure!(failed.is_empty(), "sections that could not be measured: {}", failed.join(", "));
    match report.missed()[..] {
        [] => Ok(()),
        [only] => bail!("a goal was missed: {only}"),
        ref many => bail!("{} goals were missed: {}", many.len(), many.join("; ")),
    }
}

/// Returns the commit that a section was measured with, its end and its duration, and the load and the speed of the machine.
fn origin(duration: Duration, probe: f64) -> Result<String> {
    Ok(format!(
        "Commit {}, {}, {} s, load average {}, probe {probe:.0}.",
        machine::commit(&["crates", "migrations"]),
        machine::date()?,
        duration.as_secs(),
        machine::load()?
    ))
}

/// Writes the machine and the compiler.
fn describe(report: &mut Report, effort: Effort) -> Result<()> {
    let rustc = workspace::output(Command::new("rustc").arg("--version").current_dir(workspace::root()))?;
    report.head("# Benchmarks\n");
    report.head(&format!("- machine: {}", machine::describe()));
    report.head(&format!("- compiler: {rustc}, `dist` build"));
    if effort == Effort::Quick {
        report.head("- rounds: short, to see that it works; the figures prove nothing");
    }
    Ok(())
}

/// Runs one of the programs that print the rate that they measured.
fn rate(example: &str, arguments: &[&str]) -> Result<f64> {
    let output = workspace::output(Command::new(dist("examples").join(example)).args(arguments))?;
    output.parse().with_context(|| format!("`{example}` printed `{output}`, not a number"))
}

fn measure(section: Section, report: &mut Report, folder: &Path, effort: Effort) -> Result<()> {
    match section {
        Section::StartUp => start_up::measure(report, folder, effort),
        Section::Reads => reads::measure(report, folder, effort),
        Section::Growth => growth::measure(report, folder, effort),
        Section::Commits => commits::measure(report, effort),
        Section::Accepted => accepted::measure(report, folder, effort),
        Section::LogLines => log_lines::measure(report, effort),
        Section::Search => search::measure(report, effort),
        Section::PushToLive => push_to_live::measure(report, folder, effort),
        Section::CommandLine => command_line::measure(report, folder, effort),
        Section::FrontProxy => front_proxy::measure(report, folder, effort),
        Section::Dashboard => dashboard::measure(report, folder, effort),
        Section::Proxies => proxies::measure(report, folder, effort),
        Section::Definitions => definitions::measure(report, effort),
        Section::Reconciler => reconciler::measure(report, folder, effort),
        Section::Replicas => replicas::measure(report, folder, effort),
        Section::LargeInstallation => large_installation::measure(report, folder, effort),
    }
}

/// Builds the server, and the programs that measure one thing each without it.
fn build(only: Option<Section>) -> Result<()> {
    match only {
        Some(Section::Definitions) => return Ok(()),
        // The database or the front proxy alone, which take minutes less to build.
        Some(Section::Search | Section::Proxies) => {}
        _ => workspace::run(&mut cargo("build --profile dist -p launchway"))?,
    }
    // In one go, so that what they share is built once. Not with the server: what it is made of would
    // then depend on what they need.
    let (packages, examples): (&[_], &[_]) = match only {
        Some(Section::Reconciler) => (&["launchway-database"], &["rows"]),
        Some(Section::Search) => (&["launchway-database"], &["commits", "log_lines", "search"]),
        Some(Section::Proxies) => (&["launchway-proxy"], &["backend", "front_proxy"]),
        Some(Section::LargeInstallation) => (&["launchway-infrastructure"], &["large_installation"]),
        _ => (
            &["launchway-api", "launchway-proxy", "launchway-database", "launchway-infrastructure"],
            &[
                "bare",
                "backend",
                "commits",
                "front_proxy",
                "large_installation",
                "log_lines",
                "rows",
                "search",
            ],
        ),
    };
    let mut programs = cargo("build --profile dist");
    programs.args(packages.iter().flat_map(|one| ["-p", one]));
    programs.args(examples.iter().flat_map(|example| ["--example", example]));
    workspace::run(&mut programs)
}
