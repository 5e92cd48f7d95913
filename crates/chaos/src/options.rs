//! The command line.

use std::path::PathBuf;

/// The usage text, printed for a wrong command line.
pub(crate) const USAGE: &str = "\
usage: launchway-chaos <campaign> --server <file> --verifier <file> [--long] [--kills <n>] [--every <n>]
                       [--applications <n>]

  --server <file>    the binary `launchway` that is tried
  --verifier <file>  the binary `launchway-verify`
  --long             tries as much as a report needs; otherwise, as a test can wait for
  --kills <n>        how often a server, or an engine, is killed by the campaigns that do so
  --every <n>        tries only every n-th write of `crash-points`
  --applications <n> the number of applications with which `swarm` measures the servers at rest";

/// The options of one campaign.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) campaign: String,
    pub(crate) server: PathBuf,
    pub(crate) verifier: PathBuf,
    pub(crate) is_long: bool,
    kills: Option<usize>,
    every: Option<usize>,
    applications: Option<usize>,
}

impl Options {
    /// Parses the arguments after the program's name; the error is a sentence for the user.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let campaign = arguments.next().ok_or("no campaign given")?;
        let (mut server, mut verifier, mut is_long) = (None, None, false);
        let (mut kills, mut every, mut applications) = (None, None, None);
        while let Some(name) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("`{name}` wants a value"));
            match name.as_str() {
                "--server" => server = Some(PathBuf::from(value()?)),
                "--verifier" => verifier = Some(PathBuf::from(value()?)),
                "--long" => is_long = true,
                "--kills" => kills = Some(number(&name, &value()?)?),
                "--applications" => applications = Some(number(&name, &value()?)?),
                "--every" => every = Some(number(&name, &value()?)?),
                _ => return Err(format!("there is no option `{name}`")),
            }
        }
        let server = server.ok_or("`--server` is missing")?;
        Ok(Self {
            campaign,
            server,
            verifier: verifier.ok_or("`--verifier` is missing")?,
            is_long,
            kills,
            every,
            applications,
        })
    }

    /// Returns one of two numbers, by the form of the campaign.
    pub(crate) fn count(&self, short: usize, long: usize) -> usize {
        if self.is_long { long } else { short }
    }

    /// Returns the stride between writes that are tried.
    pub(crate) fn every(&self, short: usize) -> usize {
        self.every.unwrap_or_else(|| self.count(short, 1))
    }

    /// Returns the number of applications with which servers are measured at rest.
    pub(crate) fn applications(&self) -> usize {
        self.applications.unwrap_or_else(|| self.count(0, 200))
    }

    /// The number of times that a Docker engine is restarted or killed.
    pub(crate) fn engine_faults(&self) -> usize {
        self.kills.unwrap_or_else(|| self.count(6, 100))
    }

    /// Returns the number of times that one of several servers is killed.
    pub(crate) fn replica_kills(&self) -> usize {
        self.kills.unwrap_or_else(|| self.count(2, 200))
    }

    /// Returns the number of times that a server is killed.
    pub(crate) fn kills(&self) -> usize {
        self.kills.unwrap_or_else(|| self.count(8, 1000))
    }
}

fn number(name: &str, text: &str) -> Result<usize, String> {
    let number = text.parse().map_err(|error| format!("`{name}`: {error}"))?;
    if number == 0 { Err(format!("`{name}` wants a number above 0")) } else { Ok(number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_number_of_kills_wins_over_the_form() {
        let options = parse("kills-sqlite --server a --verifier b --long --kills 7").unwrap();
        assert_eq!((options.kills(), options.count(1, 2)), (7, 2));
    }

    #[test]
    fn the_long_form_tries_every_write_by_default() {
        assert_eq!(parse("crash-points --server a --verifier b --long").unwrap().every(9), 1);
        assert_eq!(parse("crash-points --server a --verifier b").unwrap().every(9), 9);
        assert_eq!(parse("crash-points --server a --verifier b --long --every 4").unwrap().every(9), 4);
        assert!(parse("crash-points --server a --verifier b --every 0").is_err());
        assert_eq!(parse("swarm --server a --verifier b").unwrap().applications(), 0);
        assert_eq!(parse("swarm --server a --verifier b --long").unwrap().applications(), 200);
        assert_eq!(parse("swarm --server a --verifier b --applications 30").unwrap().applications(), 30);
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(parse("kills-sqlite --server a").is_err_and(|problem| problem.contains("--verifier")));
        assert!(parse("").is_err());
    }
}
