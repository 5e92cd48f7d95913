//! The command line: a command and its options.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum, value_parser};

use crate::{chaos::CAMPAIGNS, fuzz};

/// The project's own commands.
#[derive(Debug, PartialEq, Eq, Parser)]
#[command(bin_name = "cargo xtask")]
pub(crate) enum Command {
    /// Run format, lints, documentation and all tests, on a real PostgreSQL and a real Docker engine
    Test(TestOptions),
    /// Measure the `dist` build against the performance goals
    Bench(BenchOptions),
    /// Fuzz the parsers of untrusted input; installs `cargo-fuzz` if it is missing
    Fuzz(FuzzOptions),
    /// Inject faults into a running server, and compare what it acknowledged with what is left
    Chaos(ChaosOptions),
    /// Build a Debian package of the `dist` build; installs `cargo-deb` if it is missing
    Package,
    /// Write the index of invariants, docs/invariants.md
    Invariants,
}

#[derive(Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct TestOptions {
    /// Install missing Debian packages (root only)
    #[arg(long)]
    pub(crate) install: bool,
    /// Run only format, lints, and the tests that need neither PostgreSQL nor Docker
    #[arg(long)]
    pub(crate) quick: bool,
    /// Also run the tests with this program, which must be on the PATH
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) with: Option<OptionalProgram>,
    /// Pass filters to cargo-nextest
    #[arg(last = true, value_name = "FILTER")]
    pub(crate) filters: Vec<String>,
}

/// A program that few machines have, and that has tests of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OptionalProgram {
    Nixpacks,
}

#[derive(Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct BenchOptions {
    /// Install missing Debian packages (root only)
    #[arg(long)]
    pub(crate) install: bool,
    /// Run short rounds as a smoke test; the figures are not meaningful
    #[arg(long)]
    pub(crate) quick: bool,
    /// Measure only this section
    #[arg(long, value_name = "SECTION")]
    pub(crate) only: Option<Section>,
    /// Also write the results as Markdown, and the plots to `benchmarks` beside the file; other sections of the file stay
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Check that two reports agree within their spreads, instead of measuring
    #[arg(long, value_name = "REPORT", num_args = 2, exclusive = true)]
    pub(crate) compare: Vec<PathBuf>,
}

#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct FuzzOptions {
    /// Time for each target
    // The driver treats 0 as unlimited.
    #[arg(long, default_value_t = 60, value_parser = value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    /// Fuzz only these targets
    #[arg(value_name = "TARGET", value_parser = fuzz::TARGETS.map(|target| target.name))]
    pub(crate) targets: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct ChaosOptions {
    /// Install missing Debian packages (root only)
    #[arg(long)]
    pub(crate) install: bool,
    /// Run only this campaign
    #[arg(value_parser = CAMPAIGNS)]
    pub(crate) campaign: Option<String>,
    /// Use the `dist` build, and as many rounds as a report needs
    #[arg(long)]
    pub(crate) long: bool,
    /// Number of kills of the server; 1000 by default in the long form; for `engine` the number of its restarts and
    /// kills together, 100 by default
    #[arg(long, value_name = "N")]
    pub(crate) kills: Option<u32>,
    /// Test only every n-th write of `crash-points`
    #[arg(long, value_name = "N")]
    pub(crate) every: Option<u32>,
    /// Number of applications with which `swarm` measures the servers at rest; 200 by default in the long form
    #[arg(long, value_name = "N")]
    pub(crate) applications: Option<u32>,
    /// Also write the results as Markdown; a single campaign writes only its section
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// A section of `cargo xtask bench`, in the order of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Section {
    StartUp,
    Reads,
    Growth,
    Commits,
    Accepted,
    LogLines,
    Search,
    PushToLive,
    CommandLine,
    FrontProxy,
    Dashboard,
    Proxies,
    Definitions,
    Reconciler,
    Replicas,
    LargeInstallation,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, error::ErrorKind};

    use super::*;

    fn parse(line: &str) -> Result<Command, ErrorKind> {
        Command::try_parse_from(["xtask"].into_iter().chain(line.split_whitespace()))
            .map_err(|error| error.kind())
    }

    #[test]
    fn the_definition_is_valid() {
        Command::command().debug_assert();
    }

    #[test]
    fn an_unknown_or_missing_command_exits_with_2() {
        for arguments in [&["xtask"][..], &["xtask", "dance", "--install"]] {
            let error = Command::try_parse_from(arguments).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{error}");
        }
        assert!(parse("help").is_err_and(|kind| kind == ErrorKind::DisplayHelp));
    }

    #[test]
    fn testing_takes_everything_after_two_dashes_as_filters() {
        let filters = vec!["-E".to_owned(), "test(auth)".to_owned()];
        let expected = TestOptions { install: true, filters, ..TestOptions::default() };
        assert_eq!(parse("test --install -- -E test(auth)"), Ok(Command::Test(expected)));
    }

    #[test]
    fn the_quick_form_of_the_tests_is_an_option() {
        let expected = TestOptions { quick: true, ..TestOptions::default() };
        assert_eq!(parse("test --quick"), Ok(Command::Test(expected)));
    }

    #[test]
    fn the_real_nixpacks_is_tested_with_when_asked_for() {
        let expected = TestOptions { with: Some(OptionalProgram::Nixpacks), ..TestOptions::default() };
        assert_eq!(parse("test --with nixpacks"), Ok(Command::Test(expected)));
        assert!(parse("test --with").is_err() && parse("test --with heroku").is_err());
    }

    #[test]
    fn a_filter_without_the_dashes_is_refused() {
        let error = Command::try_parse_from(["xtask", "test", "auth"]).unwrap_err().to_string();
        assert!(
            error.contains("unexpected argument 'auth'") && error.contains("[-- <FILTER>...]"),
            "{error}"
        );
    }

    #[test]
    fn benchmarks_can_be_reported_to_a_file() {
        let expected = BenchOptions { report: Some("docs/benchmarks.md".into()), ..BenchOptions::default() };
        assert_eq!(parse("bench --report docs/benchmarks.md"), Ok(Command::Bench(expected)));
        assert!(parse("bench --report").is_err());
    }

    #[test]
    fn one_section_can_be_measured_and_reported_alone() {
        let only = |section| BenchOptions { only: Some(section), ..BenchOptions::default() };
        assert_eq!(parse("bench --only push-to-live"), Ok(Command::Bench(only(Section::PushToLive))));
        assert_eq!(parse("bench --only dancing"), Err(ErrorKind::InvalidValue));
        assert!(parse("bench --only").is_err());
        let expected = BenchOptions { report: Some("docs/benchmarks.md".into()), ..only(Section::Proxies) };
        assert_eq!(parse("bench --only proxies --report docs/benchmarks.md"), Ok(Command::Bench(expected)));
    }

    #[test]
    fn two_reports_are_compared_without_measuring() {
        let compare = vec!["one.md".into(), "other.md".into()];
        let expected = BenchOptions { compare, ..BenchOptions::default() };
        assert_eq!(parse("bench --compare one.md other.md"), Ok(Command::Bench(expected)));
        for line in ["bench --compare one.md", "bench --compare one.md other.md --quick"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn fuzzing_takes_a_minute_for_each_target_by_default() {
        let fuzz = |seconds, targets: &[&str]| {
            let targets = targets.iter().map(|target| (*target).to_owned()).collect();
            Ok(Command::Fuzz(FuzzOptions { seconds, targets }))
        };
        assert_eq!(parse("fuzz"), fuzz(60, &[]));
        assert_eq!(parse("fuzz --seconds 5"), fuzz(5, &[]));
        assert_eq!(parse("fuzz logs --seconds 5 sources"), fuzz(5, &["logs", "sources"]));
        for line in ["fuzz --seconds", "fuzz --seconds 0", "fuzz --seconds long", "fuzz hard"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_campaign_can_be_run_alone_and_for_as_long_as_wanted() {
        let campaign = Some("kills-sqlite".to_owned());
        let expected = ChaosOptions { campaign, long: true, kills: Some(7), ..ChaosOptions::default() };
        assert_eq!(parse("chaos kills-sqlite --long --kills 7"), Ok(Command::Chaos(expected)));
        assert_eq!(parse("chaos"), Ok(Command::Chaos(ChaosOptions::default())));
        assert!(parse("chaos kills-oracle").is_err() && parse("chaos --kills many").is_err());
    }

    #[test]
    fn a_package_is_made_in_one_way() {
        assert_eq!(parse("package"), Ok(Command::Package));
        assert!(parse("package --quick").is_err());
    }
}
