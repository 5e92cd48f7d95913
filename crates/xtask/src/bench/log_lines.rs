//! The rate of durable log lines.

use anyhow::Result;

use crate::bench::{Effort, Figure, Report, Sample, rate};

const ROUNDS: u32 = 7;
/// The batch size of the log of a deployment.
const LINES_A_CALL: &str = "500";
const SECONDS: u32 = 2;
const LEAST: f64 = 50_000.0;

/// Appends lines in batches, as the log of a deployment does.
pub(crate) fn measure(report: &mut Report, effort: Effort) -> Result<()> {
    report.section("Log lines");
    report.paragraph("Lines per second that are durable on SQLite when the call returns, one writer:");
    report.columns("round | lines/s");
    let mut sample = Sample::default();
    for round in 1..=effort.rounds(ROUNDS) {
        let rate = rate("log_lines", &[LINES_A_CALL, &effort.amount(SECONDS, 1).to_string(), "full"])?;
        sample.push(rate);
        report.row(&[round.to_string(), format!("{rate:.0}")]);
    }
    report.figure(Figure::new("durable log lines", "1/s", 0, sample).at_least(LEAST));
    Ok(())
}
