//! `launchway-verify`: compares what a server acknowledged with its database and its containers.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks on both")]

use std::{
    path::PathBuf,
    process::ExitCode,
    thread::sleep,
    time::{Duration, Instant},
};

use launchway_verifier::figures::{Evidence, Figures, compare};

const USAGE: &str = "\
usage: launchway-verify --ledger <file> --database <sqlite:file | postgres://…> [options]

  --instance <id>       also asks the engine for containers of this installation
  --until <µs>          counts only what was acknowledged before this moment
  --at-rest <seconds>   everything has to come to its end; looks again for so long";

/// The polling interval.
const PAUSE: Duration = Duration::from_millis(300);

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("{problem}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match options.figures() {
        Ok(figures) => {
            match serde_json::to_string(&figures) {
                Ok(text) => println!("{text}"),
                Err(error) => eprintln!("{error}"),
            }
            if figures.wrong() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(3)
        }
    }
}

struct Options {
    ledger: PathBuf,
    evidence: Evidence,
    max_wait: Duration,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut ledger, mut database, mut max_wait) = (None, None, Duration::ZERO);
        let mut evidence = Evidence::default();
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("`{name}` wants a value"))?;
            let number = || value.parse::<u64>().map_err(|error| format!("`{name} {value}`: {error}"));
            match name.as_str() {
                "--ledger" => ledger = Some(PathBuf::from(&value)),
                "--database" => database = Some(value),
                "--instance" => evidence.instance = Some(value),
                "--until" => evidence.until = Some(number()?.into()),
                "--at-rest" => {
                    evidence.at_rest = true;
                    max_wait = Duration::from_secs(number()?);
                }
                _ => return Err(format!("there is no option `{name}`")),
            }
        }
        evidence.database = database.ok_or("`--database` is missing")?;
        Ok(Self { ledger: ledger.ok_or("`--ledger` is missing")?, evidence, max_wait })
    }

    /// Returns the figures, once nothing is wrong any more or the timeout has passed.
    fn figures(&self) -> Result<Figures, String> {
        let started = Instant::now();
        loop {
            let found = compare(&self.ledger, &self.evidence);
            let is_well = found.as_ref().is_ok_and(|figures| figures.wrong() == 0);
            if is_well || started.elapsed() >= self.max_wait {
                return found;
            }
            sleep(PAUSE);
        }
    }
}
