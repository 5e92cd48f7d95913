//! The command line: a command and its options.

use std::path::PathBuf;

use crate::{chaos::CAMPAIGNS, fuzz};

/// The usage text, printed without a command or for an unknown one.
pub(crate) const USAGE: &str = "\
usage: cargo xtask <command>

Commands:
  test [--install] [--with nixpacks] [-- <filter>...]
                                        Run format, lints, documentation and all tests, on a real
                                        PostgreSQL and a real Docker engine
  test --quick [-- <filter>...]         Run format, lints, and the tests that need neither
  bench [--install] [--quick] [--only <section>] [--report <file>]
                                        Measure the `dist` build against the performance goals
  bench --compare <report> <report>     Check that two reports agree within their spreads
  fuzz [--seconds <n>] [<target>...]    Fuzz the parsers of untrusted input; installs `cargo-fuzz` if it
                                        is missing
  chaos [--install] [<campaign>] [--long] [--kills <n>] [--every <n>] [--report <file>]
                                        Inject faults into a running server, and compare what it
                                        acknowledged with what is left
  package                               Build a Debian package of the `dist` build; installs `cargo-deb`
                                        if it is missing
  invariants                            Write the index of invariants, docs/invariants.md

Options:
  --install         Install missing Debian packages (root only)
  --with nixpacks   Also run the tests with the real `nixpacks`, which must be on the PATH
  --only <section>  Measure only this section: start-up, reads, growth, commits, accepted, log-lines,
                    push-to-live, front-proxy, definitions or reconciler
  --quick           With `bench`, run short rounds as a smoke test; the figures are not meaningful
  --report <file>   Also write the results as Markdown: `bench` writes plots to `benchmarks` beside the
                    file, and a single campaign writes only its section
  <campaign>        Run only this campaign: kills-sqlite, kills-postgres, crash-points, full-disk,
                    power-cuts, outages, clock-jumps, engine, hung-engine, restarts, tenants,
                    slow-clients, guesses, canaries, injections or conformance
  --long            Use the `dist` build, and as many rounds as a report needs
  --kills <n>       Number of kills of the server; 1000 by default in the long form; for `engine` the
                    number of its restarts and kills together, 100 by default
  --every <n>       Test only every n-th write of `crash-points`
  --seconds <n>     Time for each fuzz target; 60 by default
  -- <filter>...    Pass filters to cargo-nextest";

/// One parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Test(TestOptions),
    Bench(BenchOptions),
    Fuzz(FuzzOptions),
    Chaos(ChaosOptions),
    Package,
    Invariants,
    Help,
}

/// The options of `cargo xtask test`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestOptions {
    pub(crate) install: bool,
    pub(crate) quick: bool,
    pub(crate) nixpacks: bool,
    pub(crate) filters: Vec<String>,
}

/// The options of `cargo xtask bench`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BenchOptions {
    pub(crate) install: bool,
    pub(crate) quick: bool,
    pub(crate) only: Option<Section>,
    pub(crate) report: Option<PathBuf>,
    /// Two reports that are compared instead of measuring.
    pub(crate) compare: Option<(PathBuf, PathBuf)>,
}

/// The options of `cargo xtask fuzz`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FuzzOptions {
    pub(crate) seconds: u32,
    /// The targets; empty means all.
    pub(crate) targets: Vec<String>,
}

/// The options of `cargo xtask chaos`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ChaosOptions {
    pub(crate) install: bool,
    pub(crate) campaign: Option<String>,
    pub(crate) long: bool,
    pub(crate) kills: Option<u32>,
    pub(crate) every: Option<u32>,
    pub(crate) report: Option<PathBuf>,
}

/// A section of `cargo xtask bench`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    StartUp,
    Reads,
    Growth,
    Commits,
    Accepted,
    LogLines,
    PushToLive,
    FrontProxy,
    Definitions,
    Reconciler,
}

impl Section {
    /// All sections, in the order of measurement.
    pub(crate) const ALL: [Self; 10] = [
        Self::StartUp,
        Self::Reads,
        Self::Growth,
        Self::Commits,
        Self::Accepted,
        Self::LogLines,
        Self::PushToLive,
        Self::FrontProxy,
        Self::Definitions,
        Self::Reconciler,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::StartUp => "start-up",
            Self::Reads => "reads",
            Self::Growth => "growth",
            Self::Commits => "commits",
            Self::Accepted => "accepted",
            Self::LogLines => "log-lines",
            Self::PushToLive => "push-to-live",
            Self::FrontProxy => "front-proxy",
            Self::Definitions => "definitions",
            Self::Reconciler => "reconciler",
        }
    }

    fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|section| section.name() == name);
        found.ok_or_else(|| format!("unknown section `{name}`"))
    }
}

impl Command {
    /// Parses the arguments after the program's name; the error is a sentence for the user.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut arguments = arguments.into_iter();
        match arguments.next().as_deref() {
            Some("test") => parse_test(arguments).map(Self::Test),
            Some("bench") => parse_bench(arguments).map(Self::Bench),
            Some("fuzz") => parse_fuzz(arguments).map(Self::Fuzz),
            Some("chaos") => parse_chaos(arguments).map(Self::Chaos),
            Some("package") => parse_package(arguments),
            Some("invariants") => Ok(Self::Invariants),
            Some("help" | "--help" | "-h") => Ok(Self::Help),
            Some(other) => Err(format!("unknown command `{other}`")),
            None => Err("no command given".to_owned()),
        }
    }
}

fn parse_test(mut arguments: impl Iterator<Item = String>) -> Result<TestOptions, String> {
    let mut options = TestOptions::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--install" => options.install = true,
            "--quick" => options.quick = true,
            "--with" => match arguments.next().as_deref() {
                Some("nixpacks") => options.nixpacks = true,
                other => {
                    return Err(format!("`--with` accepts only `nixpacks`, got `{}`", other.unwrap_or("")));
                }
            },
            "--" => options.filters.extend(arguments.by_ref()),
            other => return Err(format!("unknown argument `{other}` for `test`; filters go after `--`")),
        }
    }
    Ok(options)
}

fn parse_bench(mut arguments: impl Iterator<Item = String>) -> Result<BenchOptions, String> {
    let mut options = BenchOptions::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--install" => options.install = true,
            "--quick" => options.quick = true,
            "--compare" => {
                let (one, other) = (arguments.next(), arguments.next());
                let both = one.zip(other).ok_or("`--compare` requires two reports")?;
                options.compare = Some((both.0.into(), both.1.into()));
            }
            "--report" => {
                let file = arguments.next().ok_or("`--report` requires a file")?;
                options.report = Some(file.into());
            }
            "--only" => {
                let name = arguments.next().ok_or("`--only` requires a section")?;
                options.only = Some(Section::parse(&name)?);
            }
            other => return Err(format!("unknown argument `{other}` for `bench`")),
        }
    }
    let is_alone = BenchOptions { compare: options.compare.clone(), ..BenchOptions::default() } == options;
    if options.compare.is_some() && !is_alone {
        return Err("`--compare` cannot be combined with other options".to_owned());
    }
    if options.only.is_some() && options.report.is_some() {
        return Err("`--report` cannot be combined with `--only`".to_owned());
    }
    Ok(options)
}

fn parse_fuzz(mut arguments: impl Iterator<Item = String>) -> Result<FuzzOptions, String> {
    let mut options = FuzzOptions { seconds: 60, targets: Vec::new() };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => {
                let seconds = arguments.next().unwrap_or_default();
                // The driver treats 0 as unlimited.
                options.seconds = seconds
                    .parse()
                    .ok()
                    .filter(|seconds| *seconds > 0)
                    .ok_or(format!("`--seconds` requires a number above 0, got `{seconds}`"))?;
            }
            target if fuzz::is_target(target) => options.targets.push(argument),
            other => return Err(format!("unknown argument `{other}` for `fuzz`")),
        }
    }
    Ok(options)
}

fn parse_chaos(mut arguments: impl Iterator<Item = String>) -> Result<ChaosOptions, String> {
    let mut options = ChaosOptions::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--install" => options.install = true,
            "--long" => options.long = true,
            "--kills" => options.kills = Some(number(&argument, arguments.next())?),
            "--every" => options.every = Some(number(&argument, arguments.next())?),
            "--report" => {
                let file = arguments.next().ok_or("`--report` requires a file")?;
                options.report = Some(file.into());
            }
            name if CAMPAIGNS.contains(&name) && options.campaign.is_none() => {
                options.campaign = Some(argument);
            }
            other => return Err(format!("unknown argument `{other}` for `chaos`")),
        }
    }
    Ok(options)
}

fn parse_package(mut arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    match arguments.next() {
        Some(other) => Err(format!("unknown argument `{other}` for `package`")),
        None => Ok(Command::Package),
    }
}

fn number(option: &str, value: Option<String>) -> Result<u32, String> {
    let value = value.unwrap_or_default();
    value.parse().ok().ok_or(format!("`{option}` requires a number, got `{value}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, String> {
        Command::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_line_without_a_command_is_rejected() {
        assert_eq!(parse(""), Err("no command given".to_owned()));
    }

    #[test]
    fn an_unknown_command_is_named() {
        assert_eq!(parse("dance --install"), Err("unknown command `dance`".to_owned()));
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
        let expected = TestOptions { nixpacks: true, ..TestOptions::default() };
        assert_eq!(parse("test --with nixpacks"), Ok(Command::Test(expected)));
        assert!(parse("test --with").is_err() && parse("test --with heroku").is_err());
    }

    #[test]
    fn a_filter_without_the_dashes_is_refused() {
        assert!(parse("test auth").is_err_and(|problem| problem.contains("after `--`")));
    }

    #[test]
    fn benchmarks_can_be_reported_to_a_file() {
        let expected = BenchOptions { report: Some("docs/benchmarks.md".into()), ..BenchOptions::default() };
        assert_eq!(parse("bench --report docs/benchmarks.md"), Ok(Command::Bench(expected)));
    }

    #[test]
    fn one_section_can_be_measured_alone_but_not_reported() {
        let expected = BenchOptions { only: Some(Section::PushToLive), ..BenchOptions::default() };
        assert_eq!(parse("bench --only push-to-live"), Ok(Command::Bench(expected)));
        assert_eq!(parse("bench --only dancing"), Err("unknown section `dancing`".to_owned()));
        assert!(parse("bench --only").is_err());
        assert!(parse("bench --only growth --report docs/benchmarks.md").is_err());
    }

    #[test]
    fn every_section_is_known_by_its_name_and_named_in_the_usage() {
        for section in Section::ALL {
            assert_eq!(Section::parse(section.name()), Ok(section));
            assert!(USAGE.contains(section.name()), "{section:?}");
        }
    }

    #[test]
    fn two_reports_are_compared_without_measuring() {
        let compare = Some(("one.md".into(), "other.md".into()));
        let expected = BenchOptions { compare, ..BenchOptions::default() };
        assert_eq!(parse("bench --compare one.md other.md"), Ok(Command::Bench(expected)));
        for line in ["bench --compare one.md", "bench --compare one.md other.md --quick"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn fuzzing_takes_a_minute_for_each_target_unless_told_otherwise() {
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
    fn a_report_without_a_file_is_refused() {
        assert!(parse("bench --report").is_err());
    }

    #[test]
    fn a_campaign_can_be_run_alone_and_for_as_long_as_wanted() {
        let expected = ChaosOptions {
            campaign: Some("kills-sqlite".to_owned()),
            long: true,
            kills: Some(7),
            ..ChaosOptions::default()
        };
        assert_eq!(parse("chaos kills-sqlite --long --kills 7"), Ok(Command::Chaos(expected)));
        assert_eq!(parse("chaos"), Ok(Command::Chaos(ChaosOptions::default())));
        assert!(parse("chaos kills-oracle").is_err() && parse("chaos --kills many").is_err());
    }

    #[test]
    fn a_package_is_made_in_one_way() {
        assert_eq!(parse("package"), Ok(Command::Package));
        assert!(parse("package --quick").is_err());
    }

    #[test]
    fn every_campaign_is_in_the_usage() {
        for campaign in CAMPAIGNS {
            assert!(USAGE.contains(campaign), "{campaign}");
        }
    }
}
