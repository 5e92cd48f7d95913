//! The command line: which verb, with which options.

use std::path::PathBuf;

use crate::fuzz;

/// What is printed when no verb, or an unknown one, was given.
pub(crate) const USAGE: &str = "\
usage: cargo xtask <verb>

  test [--install] [--with nixpacks] [-- <filter>...]
                                        format, lints, documentation and every test, on a real
                                        PostgreSQL and a real Docker engine
  bench [--install] [--only <section>] [--report <file>]
                                        what the release build costs, measured against the goals
  fuzz [--seconds <n>] [<target>...]    tries what reads texts of others with odd inputs; installs
                                        `cargo-fuzz` if it is not there

  --install         installs missing Debian packages (root only)
  --with nixpacks   also tests with the real `nixpacks`, which has to be on the PATH
  --only <section>  measures this alone: requests, commits, audit, log-lines, push-to-live,
                    front-proxy or definitions
  --report <file>   also writes the measurements as Markdown
  --seconds <n>     how long each target is tried; 60 without
  -- <filter>...    is passed to cargo-nextest as it is";

/// One parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Test(TestOptions),
    Bench(BenchOptions),
    Fuzz(FuzzOptions),
    Help,
}

/// The options of `cargo xtask test`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TestOptions {
    pub(crate) install: bool,
    pub(crate) nixpacks: bool,
    pub(crate) filters: Vec<String>,
}

/// The options of `cargo xtask bench`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BenchOptions {
    pub(crate) install: bool,
    pub(crate) only: Option<Section>,
    pub(crate) report: Option<PathBuf>,
}

/// The options of `cargo xtask fuzz`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FuzzOptions {
    pub(crate) seconds: u32,
    /// Which targets; none means all.
    pub(crate) targets: Vec<String>,
}

/// What `cargo xtask bench` measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Requests,
    Commits,
    Audit,
    LogLines,
    PushToLive,
    FrontProxy,
    Definitions,
}

impl Section {
    fn parse(name: &str) -> Result<Self, String> {
        match name {
            "requests" => Ok(Self::Requests),
            "commits" => Ok(Self::Commits),
            "audit" => Ok(Self::Audit),
            "log-lines" => Ok(Self::LogLines),
            "push-to-live" => Ok(Self::PushToLive),
            "front-proxy" => Ok(Self::FrontProxy),
            "definitions" => Ok(Self::Definitions),
            other => Err(format!("there is no section `{other}`")),
        }
    }
}

impl Command {
    /// Reads the arguments after the program's name; the error is a sentence for the user.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut arguments = arguments.into_iter();
        match arguments.next().as_deref() {
            Some("test") => parse_test(arguments).map(Self::Test),
            Some("bench") => parse_bench(arguments).map(Self::Bench),
            Some("fuzz") => parse_fuzz(arguments).map(Self::Fuzz),
            Some("help" | "--help" | "-h") => Ok(Self::Help),
            Some(verb) => Err(format!("unknown verb `{verb}`")),
            None => Err("no verb given".to_owned()),
        }
    }
}

fn parse_test(mut arguments: impl Iterator<Item = String>) -> Result<TestOptions, String> {
    let mut options = TestOptions::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--install" => options.install = true,
            "--with" => match arguments.next().as_deref() {
                Some("nixpacks") => options.nixpacks = true,
                other => {
                    return Err(format!("`--with` knows `nixpacks` only, got `{}`", other.unwrap_or("")));
                }
            },
            "--" => options.filters.extend(arguments.by_ref()),
            other => return Err(format!("`test` does not know `{other}`; filters go after `--`")),
        }
    }
    Ok(options)
}

fn parse_bench(mut arguments: impl Iterator<Item = String>) -> Result<BenchOptions, String> {
    let mut options = BenchOptions::default();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--install" => options.install = true,
            "--report" => {
                let file = arguments.next().ok_or("`--report` wants the name of a file")?;
                options.report = Some(file.into());
            }
            "--only" => {
                let name = arguments.next().ok_or("`--only` wants the name of a section")?;
                options.only = Some(Section::parse(&name)?);
            }
            other => return Err(format!("`bench` does not know `{other}`")),
        }
    }
    if options.only.is_some() && options.report.is_some() {
        return Err("a report has every section: leave out `--only`".to_owned());
    }
    Ok(options)
}

fn parse_fuzz(mut arguments: impl Iterator<Item = String>) -> Result<FuzzOptions, String> {
    let mut options = FuzzOptions { seconds: 60, targets: Vec::new() };
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seconds" => {
                let seconds = arguments.next().unwrap_or_default();
                // To the driver, 0 is for ever.
                options.seconds = seconds
                    .parse()
                    .ok()
                    .filter(|seconds| *seconds > 0)
                    .ok_or(format!("`--seconds` wants a number above 0, got `{seconds}`"))?;
            }
            target if fuzz::is_target(target) => options.targets.push(argument),
            other => return Err(format!("`fuzz` does not know `{other}`")),
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, String> {
        Command::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_line_without_a_verb_is_refused() {
        assert_eq!(parse(""), Err("no verb given".to_owned()));
    }

    #[test]
    fn an_unknown_verb_is_named() {
        assert_eq!(parse("dance --install"), Err("unknown verb `dance`".to_owned()));
    }

    #[test]
    fn testing_takes_everything_after_two_dashes_as_filters() {
        let filters = vec!["-E".to_owned(), "test(auth)".to_owned()];
        let expected = TestOptions { install: true, filters, ..TestOptions::default() };
        assert_eq!(parse("test --install -- -E test(auth)"), Ok(Command::Test(expected)));
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
        assert_eq!(parse("bench --only dancing"), Err("there is no section `dancing`".to_owned()));
        assert!(parse("bench --only").is_err());
        assert!(parse("bench --only audit --report docs/benchmarks.md").is_err());
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
}
