//! `cargo xtask test`: all checks that a change must pass.

use std::{
    process::{Command, Stdio},
    time::Instant,
};

use crate::{
    command::TestOptions,
    engine::Engine,
    failure::{Failure, Outcome},
    install,
    postgres::Server,
    workspace::{self, cargo},
};

/// The environment variable with the URL of the server.
const POSTGRES_URL: &str = "LAUNCHWAY_TEST_POSTGRES_URL";

/// Runs every step in order and stops at the first that fails.
pub(crate) fn run(options: &TestOptions) -> Outcome {
    install::ensure(options.install)?;
    let mut steps = steps(&options.filters, has_nextest())?;
    if options.nixpacks {
        steps.push(with_nixpacks());
    }
    let started = Instant::now();
    let server = Server::start()?;
    passed("PostgreSQL started", started);
    let started = Instant::now();
    let engine = Engine::start()?;
    passed(if engine.is_ours() { "Docker started" } else { "Docker runs already" }, started);
    for mut step in steps {
        let started = Instant::now();
        workspace::run(step.env(POSTGRES_URL, server.url()))?;
        passed(&workspace::shown(&step), started);
    }
    Ok(())
}

fn steps(filters: &[String], nextest: bool) -> Outcome<Vec<Command>> {
    let mut doc = cargo(&["doc", "--workspace", "--no-deps"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    let mut steps = vec![
        cargo(&["fmt", "--all", "--check"]),
        cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]),
        doc,
    ];
    if nextest {
        let mut tests = cargo(&["nextest", "run", "--workspace"]);
        tests.args(filters);
        // The real tests come last, so that the run ends with their summary.
        steps.extend([cargo(&["test", "--workspace", "--doc"]), tests]);
    } else if filters.is_empty() {
        steps.push(cargo(&["test", "--workspace"]));
    } else {
        return Err(Failure::new("filters go to cargo-nextest, which is not installed here"));
    }
    Ok(steps)
}

/// Returns the tests that are excluded by default, because they need a program that few machines have.
fn with_nixpacks() -> Command {
    let mut tests = cargo(&["test", "-p", "launchway-infrastructure", "--features", "real-nixpacks"]);
    tests.args(["--test", "nixpacks"]);
    tests
}

fn has_nextest() -> bool {
    cargo(&["nextest", "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn passed(step: &str, started: Instant) {
    println!("ok {:>7.1} s  {step}", started.elapsed().as_secs_f64());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(filters: &[&str], nextest: bool) -> Vec<String> {
        let filters: Vec<_> = filters.iter().map(|&filter| filter.to_owned()).collect();
        steps(&filters, nextest).unwrap().iter().map(tail_logs).collect()
    }

    /// Without the program, whose name depends on the environment of the test.
    fn tail_logs(command: &Command) -> String {
        workspace::shown(command).split_once(' ').unwrap().1.to_owned()
    }

    #[test]
    fn format_comes_first_and_tests_come_last() {
        let expected = [
            "fmt --all --check",
            "clippy --workspace --all-targets -- -D warnings",
            "doc --workspace --no-deps",
            "test --workspace --doc",
            "nextest run --workspace",
        ];
        assert_eq!(lines(&[], true), expected);
    }

    #[test]
    fn filters_reach_nextest_only() {
        let lines = lines(&["-E", "test(auth)"], true);
        assert_eq!(lines[3], "test --workspace --doc");
        assert_eq!(lines[4], "nextest run --workspace -E test(auth)");
    }

    #[test]
    fn without_nextest_cargo_runs_the_tests() {
        assert_eq!(lines(&[], false)[3..], ["test --workspace"]);
    }

    #[test]
    fn the_real_nixpacks_has_a_step_of_its_own() {
        let expected = "test -p launchway-infrastructure --features real-nixpacks --test nixpacks";
        assert_eq!(tail_logs(&with_nixpacks()), expected);
    }

    #[test]
    fn filters_without_nextest_are_refused() {
        assert!(steps(&["auth".to_owned()], false).is_err());
    }
}
