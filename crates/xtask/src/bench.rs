//! `cargo xtask bench`: what the release build costs, measured against the goals.

mod audit;
mod commits;
mod definitions;
mod front_proxy;
mod http;
mod launch;
mod log_lines;
mod machine;
mod push_to_live;
mod reads;
mod report;
mod sample;
mod server;
mod start_up;
mod usage;
mod wrk;

use std::env;

use crate::{
    bench::report::Report,
    command::{BenchOptions, Section},
    engine::Engine,
    failure::{Failure, Outcome},
    install,
    scratch::Scratch,
    workspace::{self, cargo},
};

/// Builds, measures and prints; fails when a goal is missed.
pub(crate) fn run(options: &BenchOptions) -> Outcome {
    install::ensure(options.install)?;
    let wanted = |section| options.only.is_none_or(|only| only == section);
    let _engine = wanted(Section::PushToLive).then(Engine::start).transpose()?;
    if options.only != Some(Section::Definitions) {
        workspace::run(&mut cargo(&["build", "--release", "-p", "launchway"]))?;
    }
    if !matches!(options.only, Some(Section::PushToLive | Section::Definitions)) {
        build_examples()?;
    }

    let scratch = Scratch::create(&env::temp_dir(), "bench", &[])?;
    let mut report = Report::default();
    report.line("# Benchmarks");
    machine::describe(&mut report)?;
    if wanted(Section::Requests) {
        let server = start_up::measure(&mut report, scratch.path())?;
        reads::measure(&mut report, server, scratch.path())?;
    }
    if wanted(Section::Commits) {
        commits::measure(&mut report)?;
    }
    if wanted(Section::Audit) {
        audit::measure(&mut report, scratch.path())?;
    }
    if wanted(Section::LogLines) {
        log_lines::measure(&mut report)?;
    }
    if wanted(Section::PushToLive) {
        push_to_live::measure(&mut report, scratch.path())?;
    }
    if wanted(Section::FrontProxy) {
        front_proxy::measure(&mut report, scratch.path())?;
    }
    if wanted(Section::Definitions) {
        definitions::measure(&mut report)?;
    }

    if let Some(file) = &options.report {
        report.write(file)?;
    }
    match report.missed() {
        0 => Ok(()),
        1 => Err(Failure::new("one goal was missed")),
        many => Err(Failure::new(format!("{many} goals were missed"))),
    }
}

/// The programs that measure one thing each, without the server.
fn build_examples() -> Outcome {
    workspace::run(&mut cargo(&["build", "--release", "-p", "launchway-api", "--example", "bare"]))?;
    workspace::run(&mut cargo(&["build", "--release", "-p", "launchway-proxy", "--example", "backend"]))?;
    let examples = ["--example", "commits", "--example", "audit_rows", "--example", "log_lines"];
    workspace::run(cargo(&["build", "--release", "-p", "launchway-infrastructure"]).args(examples))
}
