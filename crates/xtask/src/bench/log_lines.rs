//! The rate of durable log lines.

use std::process::Command;

use crate::{
    bench::{effort::Effort, figure::Figure, report::Report, sample::Sample},
    failure::{Failure, Outcome},
    workspace::{self, dist},
};

const ROUNDS: u32 = 7;
/// The batch size of the log of a deployment.
const LINES_A_CALL: &str = "500";
const SECONDS: u32 = 2;
const LEAST: f64 = 50_000.0;

/// Appends lines in batches, as the log of a deployment does.
pub(crate) fn measure(report: &mut Report, effort: Effort) -> Outcome {
    report.section("Log lines");
    report.line("Lines per second that are durable on SQLite when the call returns, one writer:");
    report.line("");
    report.columns(&["round", "lines/s"]);
    let mut sample = Sample::default();
    for round in 1..=effort.rounds(ROUNDS) {
        let mut command = Command::new(dist("examples/log_lines"));
        let output =
            workspace::output(command.args([LINES_A_CALL, &effort.amount(SECONDS, 1).to_string(), "full"]))?;
        let rate: f64 = output.parse().map_err(|error| {
            Failure::because(format_args!("`log_lines` printed `{output}`, not a number"), error)
        })?;
        sample.push(rate);
        report.row(&[round.to_string(), format!("{rate:.0}")]);
    }
    report.line("");
    report.figure(Figure::new("durable log lines", "1/s", 0, sample).at_least(LEAST));
    Ok(())
}
