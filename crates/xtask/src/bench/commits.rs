//! How many durable commits the database makes, alone and in company.

use std::process::Command;

use crate::{
    bench::{report::Report, sample::Sample},
    failure::{Failure, Outcome},
    workspace::{self, release},
};

const ROUNDS: u32 = 3;
const SECONDS: &str = "3";
const LEAST_GAIN: f64 = 5.0;
const LEAST_SHARE: f64 = 0.5;

/// Compares one writer with many, and durable commits with ones that a power cut may lose.
pub(crate) fn measure(report: &mut Report) -> Outcome {
    report.section("Durable commits");
    report.line(&format!("Commits per second on SQLite by `synchronous`, {SECONDS} s each, in turn."));
    report.line("");
    report.columns(&["round", "1 writer, FULL", "64 writers, FULL", "64 writers, OFF"]);
    let (mut alone, mut together, mut unsafely) = Default::default();
    for round in 1..=ROUNDS {
        let row = [
            take(&mut alone, "1", "full")?,
            take(&mut together, "64", "full")?,
            take(&mut unsafely, "64", "off")?,
        ];
        report.row(&[round.to_string()].into_iter().chain(row).collect::<Vec<_>>());
    }
    let medians = [&alone, &together, &unsafely].map(|sample: &Sample| format!("{:.0}", sample.median()));
    report.row(&["median".to_owned()].into_iter().chain(medians).collect::<Vec<_>>());
    report.line("");
    let gain = together.median() / alone.median();
    let share = together.median() / unsafely.median();
    let goal = format!("64 writers make at least {LEAST_GAIN} times one's commits, or {LEAST_SHARE} of OFF");
    let measured = format!("{gain:.1} times, {share:.2} of OFF");
    report.goal(&goal, &measured, gain >= LEAST_GAIN || share >= LEAST_SHARE);
    Ok(())
}

fn take(sample: &mut Sample, writers: &str, synchronous: &str) -> Outcome<String> {
    let mut command = Command::new(release("examples/commits"));
    let output = workspace::output(command.args([writers, SECONDS, synchronous]))?;
    let rate: f64 = output.parse().map_err(|error| {
        Failure::because(format_args!("`commits` printed `{output}`, not a number"), error)
    })?;
    sample.push(rate);
    Ok(format!("{rate:.0}"))
}
