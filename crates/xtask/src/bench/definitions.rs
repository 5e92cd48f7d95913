//! How much processor time hostile definitions of extensions take.

use std::process::Command;

use crate::{
    bench::report::Report,
    failure::{Failure, Outcome},
    workspace::{self, cargo, release},
};

/// The most that one may take, in milliseconds.
const MOST: f64 = 50.0;

/// Has each read a few times, and counts the longest.
pub(crate) fn measure(report: &mut Report) -> Outcome {
    workspace::run(&mut cargo(&[
        "build",
        "--release",
        "-p",
        "launchway-domain",
        "--example",
        "definitions",
    ]))?;
    report.section("Definitions");
    report.line(
        "Processor time until a hostile definition of an extension is read or refused, the longest of five:",
    );
    report.line("");
    report.columns(&["definition", "bytes", "ms"]);
    let output = workspace::output(&mut Command::new(release("examples/definitions")))?;
    let mut longest = 0.0_f64;
    for line in output.lines() {
        let (name, bytes, milliseconds) = cells(line)
            .ok_or_else(|| Failure::new(format!("`definitions` printed `{line}`, not a measurement")))?;
        longest = longest.max(milliseconds);
        report.row(&[name.to_owned(), bytes.to_owned(), format!("{milliseconds:.1}")]);
    }
    report.line("");
    let goal = format!("each in at most {MOST:.0} ms of processor time");
    report.goal(&goal, &format!("{longest:.1} ms at most"), longest > 0.0 && longest <= MOST);
    Ok(())
}

/// What a line says: a name, bytes and milliseconds.
fn cells(line: &str) -> Option<(&str, &str, f64)> {
    let mut cells = line.split('\t');
    Some((cells.next()?, cells.next()?, cells.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_bytes_and_milliseconds() {
        assert_eq!(cells("a bomb\t42\t1.50"), Some(("a bomb", "42", 1.5)));
        assert_eq!(cells("a bomb\t42"), None);
        assert_eq!(cells("a bomb\t42\tlong"), None);
    }
}
