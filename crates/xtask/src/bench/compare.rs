//! Compares two reports: they agree if the spreads of the same figure overlap.
//!
//! Times vary with the machine and its other load: so do those of the bare server in the same report.
//! Such figures are compared and reported, but only ratios and sizes decide.

use std::path::Path;

use anyhow::{Result, bail, ensure};
use fs_err as fs;

use crate::bench::{Figure, report::FIGURES};

/// One row of the table of figures.
#[derive(Debug, PartialEq)]
struct Kept {
    name: String,
    median: f64,
    least: f64,
    greatest: f64,
    unit: String,
    /// The value of one unit in the last printed digit.
    step: f64,
}

impl Kept {
    /// Returns whether the figure varies with the machine and the time.
    fn is_of_the_moment(&self) -> bool {
        !matches!(self.unit.as_str(), "" | "MB")
    }
}

/// Prints the differences of two reports; fails when a ratio or a size differs, or a figure is in one of
/// them only.
pub(crate) fn run(one: &Path, other: &Path) -> Result<()> {
    let (ours, theirs) = (read(one)?, read(other)?);
    let mut differing = 0;
    println!("| figure | {} | {} | second of first | |", one.display(), other.display());
    println!("|{}", " ---: |".repeat(5));
    for kept in &ours {
        let Some(twin) = theirs.iter().find(|twin| twin.name == kept.name) else {
            differing += 1;
            println!("| {} | {} | – | – | missing |", kept.name, shown(kept));
            continue;
        };
        let verdict = match agree(kept, twin) {
            true => "agree",
            false if kept.is_of_the_moment() => "another moment",
            false => "DIFFER",
        };
        differing += usize::from(verdict == "DIFFER");
        let ratio = twin.median / kept.median;
        println!("| {} | {} | {} | {ratio:.2} | {verdict} |", kept.name, shown(kept), shown(twin));
    }
    for lone in theirs.iter().filter(|twin| ours.iter().all(|kept| kept.name != twin.name)) {
        differing += 1;
        println!("| {} | – | {} | – | missing |", lone.name, shown(lone));
    }
    ensure!(differing == 0, "{differing} of {} figures do not agree", ours.len().max(theirs.len()));
    Ok(())
}

/// A printed value is accurate to half a step on either side.
fn agree(one: &Kept, other: &Kept) -> bool {
    let slack = one.step.max(other.step);
    one.least <= other.greatest + slack && other.least <= one.greatest + slack
}

fn shown(kept: &Kept) -> String {
    format!("{} ({}–{})", kept.median, kept.least, kept.greatest)
}

fn read(file: &Path) -> Result<Vec<Kept>> {
    match figures(&fs::read_to_string(file)?) {
        Some(figures) if !figures.is_empty() => Ok(figures),
        _ => bail!("{} has no table of figures", file.display()),
    }
}

/// Returns the rows of the table of figures; `None` if there is none, or a row has another form.
fn figures(report: &str) -> Option<Vec<Kept>> {
    let (_, rest) = report.split_once(FIGURES)?;
    let rows =
        rest.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    // Skips the titles and the separator below them.
    rows.skip(2).map(kept).collect()
}

fn kept(row: &str) -> Option<Kept> {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [name, median, least, greatest, unit, ..] = cells[..] else { return None };
    let digits = median.split_once('.').map_or(0, |(_, behind)| behind.len());
    // The last cell is the section.
    (cells.len() == Figure::COLUMNS.len() + 1).then_some(())?;
    Some(Kept {
        name: name.to_owned(),
        median: median.parse().ok()?,
        least: least.parse().ok()?,
        greatest: greatest.parse().ok()?,
        unit: unit.to_owned(),
        step: 10_f64.powi(-i32::try_from(digits).ok()?),
    })
}

#[cfg(test)]
mod tests {
    use std::{env, path::PathBuf};

    use super::*;
    use crate::{bench::Report, scratch::Scratch};

    fn written(scratch: &Scratch, name: &str, unit: &'static str, figures: &[(&str, [f64; 3])]) -> PathBuf {
        let mut report = Report::default();
        report.section("Something else");
        report.columns("round | value");
        for (name, values) in figures {
            report.figure(Figure::new(*name, unit, 1, values.iter().copied().collect()).at_most(100.0));
        }
        let file = scratch.path().join(name);
        report.write(&file).unwrap();
        file
    }

    fn outcome(one: &[(&str, [f64; 3])], other: &[(&str, [f64; 3])]) -> Result<()> {
        outcome_in("", one, other)
    }

    fn outcome_in(unit: &'static str, one: &[(&str, [f64; 3])], other: &[(&str, [f64; 3])]) -> Result<()> {
        let scratch = Scratch::create(&env::temp_dir(), "compare", &[]).unwrap();
        run(&written(&scratch, "one.md", unit, one), &written(&scratch, "other.md", unit, other))
    }

    #[test]
    fn figures_agree_when_their_spreads_overlap() {
        let one = [("start", [10.0, 12.0, 14.0]), ("stop", [1.0, 1.0, 1.0])];
        assert!(outcome(&one, &[("start", [14.0, 16.0, 18.0]), ("stop", [1.0, 1.0, 1.0])]).is_ok());
        // A digit that was not printed is no difference.
        assert!(outcome(&one, &[("start", [11.0, 12.0, 13.0]), ("stop", [1.1, 1.1, 1.1])]).is_ok());
    }

    #[test]
    fn figures_differ_when_all_of_one_lie_beyond_the_other() {
        let failure =
            outcome(&[("start", [10.0, 12.0, 14.0])], &[("start", [15.0, 16.0, 18.0])]).unwrap_err();
        assert_eq!(failure.to_string(), "1 of 1 figures do not agree");
    }

    #[test]
    fn figures_in_units_of_time_are_shown_and_do_not_decide() {
        let (slow, fast) = ([("start", [10.0, 12.0, 14.0])], [("start", [5.0, 6.0, 7.0])]);
        for unit in ["ms", "s", "µs", "1/s", "ms of CPU"] {
            assert!(outcome_in(unit, &slow, &fast).is_ok(), "{unit}");
        }
        assert!(outcome_in("MB", &slow, &fast).is_err());
        assert!(outcome_in("ms", &slow, &[("stop", [10.0; 3])]).is_err());
    }

    #[test]
    fn a_figure_that_only_one_report_has_is_a_difference() {
        let (one, both) = ([("start", [1.0; 3])], [("start", [1.0; 3]), ("stop", [1.0; 3])]);
        assert!(outcome(&one, &both).is_err());
        assert!(outcome(&both, &one).is_err());
    }

    #[test]
    fn a_file_without_figures_is_no_report() {
        assert_eq!(figures("# Benchmarks\n\n| round | ratio |\n"), None);
        assert_eq!(figures(&format!("{FIGURES}\n\n| a | b |\n| - | - |\n| x | fast |\n")), None);
    }
}
