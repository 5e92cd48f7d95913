//! The report: printed while measuring, and written as Markdown.

use std::path::Path;

use anyhow::Result;
use fs_err as fs;

use crate::bench::{Figure, Plot, reasons::reason};

/// The heading of the table that [`crate::bench::compare`] reads.
pub(crate) const FIGURES: &str = "## Figures";

/// The text so far, its figures and its plots.
#[derive(Debug, Default)]
pub(crate) struct Report {
    head: String,
    text: String,
    figures: Vec<Figure>,
    /// The plots, with their file names.
    plots: Vec<(String, Plot)>,
    last: Option<Block>,
}

/// Lines of Markdown that a blank line separates from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Paragraph,
    Table,
    List,
}

impl Report {
    /// Adds a line above the figures.
    pub(crate) fn head(&mut self, line: &str) {
        println!("{line}");
        self.head.push_str(line);
        self.head.push('\n');
    }

    pub(crate) fn section(&mut self, title: &str) {
        self.paragraph(&format!("## {title}"));
    }

    pub(crate) fn subsection(&mut self, title: &str) {
        self.paragraph(&format!("### {title}"));
    }

    pub(crate) fn paragraph(&mut self, text: &str) {
        self.add(Block::Paragraph, text);
    }

    /// Begins a table with these titles, separated by ` | `; its rows follow by [`Self::row`].
    pub(crate) fn columns(&mut self, titles: &str) {
        self.add(Block::Table, &titles_of(titles));
    }

    pub(crate) fn row(&mut self, cells: &[String]) {
        self.add(Block::Table, &row_of(cells));
    }

    /// Adds a figure, its goal and whether it was met.
    pub(crate) fn figure(&mut self, figure: Figure) {
        self.add(Block::List, &figure.sentence());
        if let Some(reason) = reason(&figure.name).filter(|_| figure.is_missed()) {
            self.add(Block::List, &format!("  {reason}"));
        }
        self.figures.push(figure);
    }

    /// Adds a plot, which is written to a file beside the report.
    pub(crate) fn plot(&mut self, name: &str, plot: Plot) {
        self.paragraph(&format!("![{}](benchmarks/{name}.svg)", plot.title));
        self.plots.push((name.to_owned(), plot));
    }

    /// Adds a line, and a blank one before it if it begins another block.
    fn add(&mut self, block: Block, line: &str) {
        let last = self.last.replace(block);
        let is_next = block == Block::Paragraph || last.is_some_and(|last| last != block);
        let blank = if is_next { "\n" } else { "" };
        println!("{blank}{line}");
        self.text.push_str(&format!("{blank}{line}\n"));
    }

    /// Returns the names of the figures that missed their goals.
    pub(crate) fn missed(&self) -> Vec<&str> {
        self.figures.iter().filter(|figure| figure.is_missed()).map(|figure| figure.name.as_str()).collect()
    }

    /// Writes the report, and its plots in a folder beside it.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        self.write_plots(&file.with_file_name("benchmarks"))?;
        Ok(fs::write(file, self.whole())?)
    }

    /// Writes only the plots.
    pub(crate) fn write_plots(&self, folder: &Path) -> Result<()> {
        fs::create_dir_all(folder)?;
        for (name, plot) in &self.plots {
            fs::write(folder.join(format!("{name}.svg")), plot.to_svg())?;
        }
        Ok(())
    }

    fn whole(&self) -> String {
        let rows: String = self.figures.iter().map(|figure| row_of(&figure.cells()) + "\n").collect();
        format!(
            "{}\n{FIGURES}\n\n\
             Median, least and greatest of the rounds. `cargo xtask bench --compare` reads this table: two \
             reports agree where these spreads overlap. What is counted in time is of the machine's moment, as the \
             bare server's is, and is compared by its ratios.\n\n{}\n{rows}{}",
            self.head,
            titles_of(&Figure::COLUMNS.join(" | ")),
            self.text
        )
    }
}

fn titles_of(titles: &str) -> String {
    format!("| {titles} |\n|{}", " ---: |".repeat(titles.split(" | ").count()))
}

fn row_of(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;
    use crate::scratch::Scratch;

    fn figure(name: &str, value: f64) -> Figure {
        Figure::new(name, "MB", 0, [value].into_iter().collect())
    }

    #[test]
    fn a_report_names_the_goals_that_were_missed() {
        let mut report = Report::default();
        report.figure(figure("idle", 12.0).at_most(30.0));
        report.figure(figure("loaded", 140.0).at_most(100.0));
        report.figure(figure("binary", 34.0));
        assert_eq!(report.missed(), ["loaded"]);
    }

    #[test]
    fn a_missed_goal_is_reported_with_its_reason() {
        let mut report = Report::default();
        report.figure(figure("settings: requests/s of bare", 1.0).at_least(0.35));
        assert_eq!(report.text.lines().count(), 1);
        report.figure(figure("settings: requests/s of bare", 0.1).at_least(0.35));
        assert!(report.text.contains("perf"), "{}", report.text);
    }

    #[test]
    fn a_table_has_a_rule_below_its_titles() {
        let mut report = Report::default();
        report.columns("round | ratio");
        report.row(&["1".to_owned(), "0.50".to_owned()]);
        assert_eq!(report.text, "| round | ratio |\n| ---: | ---: |\n| 1 | 0.50 |\n");
    }

    #[test]
    fn the_figures_stand_between_the_head_and_the_sections() {
        let mut report = Report::default();
        report.head("# Benchmarks");
        report.section("Memory");
        report.figure(figure("idle", 12.0));
        let whole = report.whole();
        let places = ["# Benchmarks", FIGURES, "| idle | 12 |", "## Memory"].map(|part| whole.find(part));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{whole}");
    }

    #[test]
    fn plots_lie_in_a_folder_beside_the_report() {
        let scratch = Scratch::create(&env::temp_dir(), "report", &[]).unwrap();
        let file = scratch.path().join("report.md");
        let mut report = Report::default();
        report.plot("commits", Plot::new("Commits", "writers", "commits/s"));
        report.write(&file).unwrap();
        assert!(fs::read_to_string(&file).unwrap().contains("![Commits](benchmarks/commits.svg)"));
        assert!(scratch.path().join("benchmarks/commits.svg").exists());
    }
}
