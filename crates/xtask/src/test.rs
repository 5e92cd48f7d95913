//! `cargo xtask test`: all checks that a change must pass.

use std::{process::Command, thread::available_parallelism, time::Instant};

use anyhow::{Result, bail, ensure};
use fs_err as fs;

use crate::{
    command::{OptionalProgram, TestOptions},
    engine::{Engine, Purpose},
    install,
    postgres::{Durability, Server},
    scratch::{Scratch, throwaway_parent},
    workspace::{self, cargo},
};

/// The environment variable with the URL of the server.
const POSTGRES_URL: &str = "LAUNCHWAY_TEST_POSTGRES_URL";

const FORMAT: &str = "fmt --all --check";
const LINTS: &str = "clippy --workspace --all-targets -- -D warnings";
/// Builds of the workspace unify features, and would hide what the crates lack without them (decision 44).
const SMALL_SET: &str = "clippy -p launchway-embedding -- -D warnings";

/// The number of tests in the list of the slowest.
const SLOWEST: usize = 20;
/// The number of tests that run at once on a small machine.
const MIN_TESTS_AT_ONCE: usize = 6;

/// Runs every step in order and stops at the first that fails.
pub(crate) fn run(options: &TestOptions) -> Result<()> {
    if options.quick {
        ensure!(has_nextest(), "`--quick` selects tests by cargo-nextest, which is not installed here");
        return run_steps(quick_steps(&options.filters), "quick");
    }
    install::ensure(options.install)?;
    let mut steps = steps(&options.filters, has_nextest())?;
    if options.with == Some(OptionalProgram::Nixpacks) {
        steps.push(with_nixpacks());
    }
    let started = Instant::now();
    let server = Server::start(Durability::Processes)?;
    passed("PostgreSQL started", started);
    let started = Instant::now();
    let engine = Engine::start(Purpose::Tests)?;
    passed(if engine.is_ours() { "Docker started" } else { "Docker runs already" }, started);
    let temporary = Scratch::create(&throwaway_parent(), "tests", &[])?.open_to_everyone()?;
    for step in &mut steps {
        step.env(POSTGRES_URL, server.url()).env("TMPDIR", temporary.path());
    }
    run_steps(steps, "default")
}

/// Runs the steps in order; prints the slowest tests of the profile of nextest afterwards.
fn run_steps(steps: impl IntoIterator<Item = Command>, profile: &str) -> Result<()> {
    for mut step in steps {
        let started = Instant::now();
        workspace::run(&mut step)?;
        passed(&workspace::shown(&step), started);
    }
    print_slowest(profile);
    Ok(())
}

/// Returns the checks and tests that need no database server and no engine.
fn quick_steps(filters: &[String]) -> [Command; 3] {
    let mut tests = cargo("nextest run --workspace --profile quick");
    tests.args(filters);
    [cargo(FORMAT), cargo(LINTS), tests]
}

/// Prints the slowest tests of the last run of a profile of nextest, from the report that it wrote.
fn print_slowest(profile: &str) {
    let Ok(report) = fs::read_to_string(workspace::target().join("nextest").join(profile).join("junit.xml"))
    else {
        return;
    };
    println!("slowest tests:");
    for (seconds, name) in slowest(&report) {
        println!("   {seconds:>7.1} s  {name}");
    }
}

/// Returns the slowest tests of a JUnit report, and their seconds.
fn slowest(report: &str) -> Vec<(f64, String)> {
    let attribute = |case: &str, name: &str| {
        let (_, rest) = case.split_once(&format!(" {name}=\""))?;
        Some(rest.split_once('"')?.0.to_owned())
    };
    let cases = report.split("<testcase").skip(1).filter_map(|case| {
        let seconds = attribute(case, "time")?.parse().ok()?;
        Some((seconds, format!("{} {}", attribute(case, "classname")?, attribute(case, "name")?)))
    });
    let mut cases: Vec<(f64, String)> = cases.collect();
    cases.sort_by(|one, other| other.0.total_cmp(&one.0));
    cases.truncate(SLOWEST);
    cases
}

fn steps(filters: &[String], nextest: bool) -> Result<Vec<Command>> {
    let mut doc = cargo("doc --workspace --no-deps");
    doc.env("RUSTDOCFLAGS", "-D warnings");
    let mut steps = vec![cargo(FORMAT), cargo(LINTS), cargo(SMALL_SET), doc];
    if nextest {
        let mut tests = cargo("nextest run --workspace");
        tests.args(filters).env("NEXTEST_TEST_THREADS", tests_at_once().to_string());
        // The real tests come last, so that the run ends with their summary.
        steps.extend([cargo("test --workspace --doc"), tests]);
    } else if filters.is_empty() {
        steps.push(cargo("test --workspace"));
    } else {
        bail!("filters go to cargo-nextest, which is not installed here");
    }
    Ok(steps)
}

/// Returns the number of tests that run at once: more than a small machine has cores, because most of them wait for
/// timers, for the disk and for the engine.
fn tests_at_once() -> usize {
    available_parallelism().map_or(MIN_TESTS_AT_ONCE, |cores| cores.get().max(MIN_TESTS_AT_ONCE))
}

/// Returns the tests that are excluded by default, because they need a program that few machines have.
fn with_nixpacks() -> Command {
    cargo("test -p launchway-docker --features real-nixpacks --test nixpacks")
}

fn has_nextest() -> bool {
    workspace::output(&mut cargo("nextest --version")).is_ok()
}

fn passed(step: &str, started: Instant) {
    println!("ok {:>7.1} s  {step}", started.elapsed().as_secs_f64());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(filters: &[&str], nextest: bool) -> Vec<String> {
        let filters: Vec<_> = filters.iter().map(|&filter| filter.to_owned()).collect();
        steps(&filters, nextest).unwrap().iter().map(arguments).collect()
    }

    /// Returns the command without its program, which depends on the environment of the test.
    fn arguments(command: &Command) -> String {
        workspace::shown(command).split_once(' ').unwrap().1.to_owned()
    }

    #[test]
    fn format_comes_first_and_tests_come_last() {
        let expected = [
            "fmt --all --check",
            "clippy --workspace --all-targets -- -D warnings",
            "clippy -p launchway-embedding -- -D warnings",
            "doc --workspace --no-deps",
            "test --workspace --doc",
            "nextest run --workspace",
        ];
        assert_eq!(lines(&[], true), expected);
    }

    #[test]
    fn filters_reach_nextest_only() {
        let lines = lines(&["-E", "test(auth)"], true);
        assert_eq!(lines[4], "test --workspace --doc");
        assert_eq!(lines[5], "nextest run --workspace -E test(auth)");
    }

    #[test]
    fn without_nextest_cargo_runs_the_tests() {
        assert_eq!(lines(&[], false)[4..], ["test --workspace"]);
    }

    #[test]
    fn the_real_nixpacks_has_a_step_of_its_own() {
        let expected = "test -p launchway-docker --features real-nixpacks --test nixpacks";
        assert_eq!(arguments(&with_nixpacks()), expected);
    }

    #[test]
    fn the_quick_form_needs_no_services() {
        let lines = quick_steps(&["auth".to_owned()]).map(|step| arguments(&step));
        assert_eq!(lines[2], "nextest run --workspace --profile quick auth");
    }

    #[test]
    fn the_slowest_tests_come_first() {
        let case = |name: &str, time: &str| {
            format!(r#"<testcase name="{name}" classname="x::y" timestamp="t" time="{time}">"#)
        };
        let report = [case("a", "0.5"), case("b", "12.25"), case("c", "3")].concat();
        let named = [(12.25, "x::y b".to_owned()), (3.0, "x::y c".to_owned()), (0.5, "x::y a".to_owned())];
        assert_eq!(slowest(&report), named);
    }

    #[test]
    fn filters_without_nextest_are_refused() {
        assert!(steps(&["auth".to_owned()], false).is_err());
    }
}
