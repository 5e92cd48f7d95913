//! The processor time of parsing hostile definitions of extensions.

use std::process::Command;

use anyhow::{Context as _, Result};

use crate::{
    bench::{Effort, Figure, Report, Sample},
    workspace::{self, cargo, dist},
};

/// The limit for one definition, in milliseconds.
const MOST: f64 = 50.0;
const ROUNDS: u32 = 7;

/// Parses each a few times, and reports the longest time.
pub(crate) fn measure(report: &mut Report, effort: Effort) -> Result<()> {
    workspace::run(&mut cargo("build --profile dist -p launchway-domain --example definitions"))?;
    report.section("Definitions");
    let mut longest = Sample::default();
    let mut last = Vec::new();
    for _ in 0..effort.rounds(ROUNDS) {
        last = one_round()?;
        longest.push(last.iter().map(|(_, _, milliseconds)| *milliseconds).fold(0.0, f64::max));
    }
    report.paragraph(
        "CPU time until a hostile definition of an extension is read or refused: the longest of five, in the \
         last round:",
    );
    report.columns("definition | bytes | ms");
    for (name, bytes, milliseconds) in last {
        report.row(&[name, bytes, format!("{milliseconds:.1}")]);
    }
    report.figure(Figure::new("the worst hostile definition", "ms of CPU", 1, longest).at_most(MOST));
    Ok(())
}

/// Returns each definition with its bytes and its milliseconds.
fn one_round() -> Result<Vec<(String, String, f64)>> {
    let output = workspace::output(&mut Command::new(dist("examples/definitions")))?;
    let measured =
        |line| cells(line).with_context(|| format!("`definitions` printed `{line}`, not a measurement"));
    output.lines().map(measured).collect()
}

/// Parses a line: a name, bytes and milliseconds.
fn cells(line: &str) -> Option<(String, String, f64)> {
    let mut cells = line.split('\t');
    Some((cells.next()?.to_owned(), cells.next()?.to_owned(), cells.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_bytes_and_milliseconds() {
        assert_eq!(cells("a bomb\t42\t1.50"), Some(("a bomb".to_owned(), "42".to_owned(), 1.5)));
        assert_eq!(cells("a bomb\t42"), None);
        assert_eq!(cells("a bomb\t42\tlong"), None);
    }
}
