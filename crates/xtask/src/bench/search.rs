//! Searches in long logs, and the cost of their index.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{
    bench::{Effort, Figure, Report, Sample, rate},
    postgres,
    workspace::{self, dist},
};

const ROUNDS: u32 = 2;
const WRITE_ROUNDS: u32 = 2;
const ENTRIES: u32 = 1_000_000;
const QUICK_ENTRIES: u32 = 10_000;
const LINES: u32 = 200_000;
const QUICK_LINES: u32 = 10_000;
/// The limits for one search, in milliseconds.
const MOST_AUDIT: f64 = 10.0;
const MOST_LOG: f64 = 20.0;
/// The least share of the writes per second without an index.
const LEAST_SHARE: f64 = 0.9;
const WRITERS: &str = "64";
const LINES_A_CALL: &str = "500";
/// Servers look for rows to index every five seconds.
const SECONDS: u32 = 12;

const METHOD: &str = "\
Milliseconds for one page with its total, by direct calls to the repository in `crates/database`, in an audit log of \
a million entries and in a log of 200,000 lines, on a new database. `scan` is a search before anything is indexed. \
`first` is the first search after the database was opened; `later` searches have the counts of the blocks that did \
not change. A term with few matches is found by the index alone. The matches of a common term must be counted once by \
a scan, unless it has three characters.";

/// Measures terms from rare to common on both databases, and writes with and without an index.
pub(crate) fn measure(report: &mut Report, effort: Effort) -> Result<()> {
    report.section("Search");
    report.paragraph(METHOD);
    let postgres = postgres::Server::start(postgres::Durability::Machine)?;
    let (entries, lines) = (effort.amount(ENTRIES, QUICK_ENTRIES), effort.amount(LINES, QUICK_LINES));
    for database in ["SQLite", "PostgreSQL"] {
        let mut rounds = Vec::new();
        for round in 0..effort.rounds(ROUNDS) {
            let place = match database {
                "SQLite" => "sqlite".to_owned(),
                _ => postgres.create_database(&format!("search_{round}"))?,
            };
            rounds.push(one_round(&place, entries, lines)?);
        }
        report.subsection(&format!("On {database}"));
        tell(report, database, &rounds);
    }
    let share = share_of_writes(effort, "commits", &["sqlite", WRITERS])?;
    let name = "durable commits with the index over without, SQLite";
    report.figure(Figure::new(name, "", 2, share).at_least(LEAST_SHARE));
    let share = share_of_writes(effort, "log_lines", &[LINES_A_CALL])?;
    let name = "durable log lines with the index over without, SQLite";
    report.figure(Figure::new(name, "", 2, share).at_least(LEAST_SHARE));
    Ok(())
}

/// The milliseconds of a term, or the index of a log.
#[derive(Debug, PartialEq)]
enum Measured {
    Term { log: String, term: String, matches: String, times: [f64; 3] },
    Index { log: String, seconds: f64, bytes: f64 },
}

impl Measured {
    fn time(&self, which: usize) -> Option<f64> {
        match self {
            Self::Term { times, .. } => times.get(which).copied(),
            Self::Index { .. } => None,
        }
    }

    fn cost(&self, which: usize) -> Option<f64> {
        match self {
            Self::Index { seconds, bytes, .. } => [*seconds, *bytes].get(which).copied(),
            Self::Term { .. } => None,
        }
    }
}

fn one_round(place: &str, entries: u32, lines: u32) -> Result<Vec<Measured>> {
    let mut program = Command::new(dist("examples/search"));
    program.args([place, &entries.to_string(), &lines.to_string()]);
    let output = workspace::output(&mut program)?;
    let line = |line| parse(line).with_context(|| format!("`search` printed `{line}`, not a measurement"));
    output.lines().map(line).collect()
}

fn parse(line: &str) -> Option<Measured> {
    Some(match line.split('\t').collect::<Vec<_>>()[..] {
        ["index", log, _, seconds, bytes] => Measured::Index {
            log: log.to_owned(),
            seconds: seconds.parse().ok()?,
            bytes: bytes.parse().ok()?,
        },
        [log, term, matches, scan, first, later] => Measured::Term {
            log: log.to_owned(),
            term: term.to_owned(),
            matches: matches.to_owned(),
            times: [scan.parse().ok()?, first.parse().ok()?, later.parse().ok()?],
        },
        _ => return None,
    })
}

fn tell(report: &mut Report, database: &str, rounds: &[Vec<Measured>]) {
    report.columns("log | term | matches | scan | first | later");
    let mut slowest = [("audit", MOST_AUDIT), ("log", MOST_LOG)].map(|limit| (limit, Sample::default()));
    let mut of_index = Vec::new();
    for place in 0..rounds.first().map_or(0, Vec::len) {
        let of_rounds = || rounds.iter().filter_map(|round| round.get(place));
        match of_rounds().next() {
            Some(Measured::Term { log, term, matches, .. }) => {
                let [scan, first, later]: [Sample; 3] =
                    [0, 1, 2].map(|which| of_rounds().filter_map(|one| one.time(which)).collect());
                report.row(&[
                    log.clone(),
                    format!("`{term}`"),
                    matches.clone(),
                    format!("{scan:.1}"),
                    format!("{first:.1}"),
                    format!("{later:.1}"),
                ]);
                for ((name, _), sample) in &mut slowest {
                    if name == log && (sample.median().is_nan() || later.median() > sample.median()) {
                        *sample = later.clone();
                    }
                }
            }
            Some(Measured::Index { log, .. }) => {
                let [seconds, bytes]: [Sample; 2] =
                    [0, 1].map(|which| of_rounds().filter_map(|one| one.cost(which)).collect());
                let name = |what: &str| format!("search index of the {log}, {database}: {what}");
                of_index.push(Figure::new(name("bytes per row"), "", 0, bytes));
                of_index.push(Figure::new(name("time to build"), "s", 1, seconds));
            }
            None => {}
        }
    }
    for ((log, limit), sample) in slowest {
        let name = format!("search in the {log}, {database}: p50 of the slowest term");
        report.figure(Figure::new(name, "ms", 1, sample).at_most(limit));
    }
    of_index.into_iter().for_each(|figure| report.figure(figure));
}

/// Returns the writes per second while rows are indexed, over those without an index, in turn.
fn share_of_writes(effort: Effort, example: &str, arguments: &[&str]) -> Result<Sample> {
    let seconds = effort.amount(SECONDS, 6).to_string();
    let (mut with, mut without) = (Sample::default(), Sample::default());
    for _ in 0..effort.rounds(WRITE_ROUNDS) {
        let arguments = [arguments, &[&seconds, "full"]].concat();
        with.push(rate(example, &arguments)?);
        without.push(rate(example, &[arguments.as_slice(), &["without-index"]].concat())?);
    }
    Ok(with.over(&without))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_term_or_an_index() {
        let term = Measured::Term {
            log: "audit".to_owned(),
            term: "nowhere".to_owned(),
            matches: "0".to_owned(),
            times: [13.6, 0.58, 0.17],
        };
        assert_eq!(parse("audit\tnowhere\t0\t13.60\t0.58\t0.17"), Some(term));
        let index = Measured::Index { log: "log".to_owned(), seconds: 0.1, bytes: 22.0 };
        assert_eq!(parse("index\tlog\t20000\t0.1\t22"), Some(index));
        assert_eq!(parse("audit\tnowhere\t0\t13.60\t0.58"), None);
        assert_eq!(parse("audit\tnowhere\t0\tlong\t0.58\t0.17"), None);
    }
}
