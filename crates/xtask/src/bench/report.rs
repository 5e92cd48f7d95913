//! The report: printed while measuring, and written as Markdown.

use std::{fmt, io::ErrorKind, path::Path};

use anyhow::Result;
use fs_err as fs;

use crate::bench::{Figure, Plot, reasons::reason};

/// The last column of the table of figures.
const SECTION_COLUMN: &str = "section";

/// The heading of the table that [`crate::bench::compare`] reads.
pub(crate) const FIGURES: &str = "## Figures";
const EXPLANATION: &str = "\
Median, least and greatest value of the rounds. `cargo xtask bench --compare` reads this table: two reports agree if \
the spreads of ratios and of sizes overlap. Times and rates depend on the state of the machine. They are therefore \
also shown as a ratio to a probe, which runs before and after each section: rates as the number for 1,000 of its \
steps, times as a number of its steps.";

/// The sections that were measured.
#[derive(Debug, Default)]
pub(crate) struct Report {
    head: String,
    sections: Vec<Section>,
}

/// A section: its text, its figures and its plots.
#[derive(Debug, Default)]
struct Section {
    title: String,
    text: String,
    figures: Vec<Figure>,
    /// The plots, with their file names.
    plots: Vec<(String, Plot)>,
    last: Option<Block>,
    /// The speed of the machine meanwhile, in steps of the [probe](crate::bench::probe) per second.
    probe: Option<f64>,
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

    /// Begins a section.
    pub(crate) fn section(&mut self, title: &str) {
        println!("\n## {title}");
        self.sections.push(Section { title: title.to_owned(), ..Section::default() });
    }

    pub(crate) fn subsection(&mut self, title: &str) {
        self.paragraph(&format!("### {title}"));
    }

    pub(crate) fn paragraph(&mut self, text: &str) {
        self.current().add(Block::Paragraph, text);
    }

    /// Begins a table with these titles, separated by ` | `; its rows follow by [`Self::row`].
    pub(crate) fn columns(&mut self, titles: &str) {
        self.current().add(Block::Table, &titles_of(titles));
    }

    pub(crate) fn row(&mut self, cells: &[String]) {
        self.current().add(Block::Table, &row_of(cells));
    }

    /// Adds a figure, its goal and whether it was met.
    pub(crate) fn figure(&mut self, figure: Figure) {
        let section = self.current();
        section.add(Block::List, &figure.sentence());
        if let Some(reason) = reason(&figure.name).filter(|_| figure.is_missed()) {
            section.add(Block::List, &format!("  {reason}"));
        }
        section.figures.push(figure);
    }

    /// Adds a plot, which is written to a file beside the report.
    pub(crate) fn plot(&mut self, name: &str, plot: Plot) {
        self.paragraph(&format!("![{}](benchmarks/{name}.svg)", plot.title));
        self.current().plots.push((name.to_owned(), plot));
    }

    fn current(&mut self) -> &mut Section {
        if self.sections.is_empty() {
            self.sections.push(Section::default());
        }
        let last = self.sections.len() - 1;
        &mut self.sections[last]
    }

    /// Adds a first line to the sections from number `first` on, and the speed of the machine meanwhile.
    pub(crate) fn finish_from(&mut self, first: usize, line: &str, probe: f64) {
        for section in &mut self.sections[first..] {
            section.text.insert_str(0, &format!("\n{line}\n"));
            section.probe = Some(probe);
        }
    }

    /// Removes the sections from number `first` on.
    pub(crate) fn discard_from(&mut self, first: usize) {
        self.sections.truncate(first);
    }

    pub(crate) fn number_of_sections(&self) -> usize {
        self.sections.len()
    }

    /// Returns the names of the figures that missed their goals.
    pub(crate) fn missed(&self) -> Vec<&str> {
        let figures = self.sections.iter().flat_map(|section| &section.figures);
        figures.filter(|figure| figure.is_missed()).map(|figure| figure.name.as_str()).collect()
    }

    /// Writes the report, and its plots in a folder beside it. Sections of an earlier report that were not measured again
    /// stay.
    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        let folder = file.with_file_name("benchmarks");
        fs::create_dir_all(&folder)?;
        for (name, plot) in self.sections.iter().flat_map(|section| &section.plots) {
            fs::write(folder.join(format!("{name}.svg")), plot.to_svg())?;
        }
        let mut written = match fs::read_to_string(file) {
            Ok(text) => Written::parse(&text),
            Err(error) if error.kind() == ErrorKind::NotFound => Written::default(),
            Err(error) => return Err(error.into()),
        };
        written.head.clone_from(&self.head);
        for section in &self.sections {
            written.replace(section.into());
        }
        Ok(fs::write(file, written.to_string())?)
    }
}

impl Section {
    /// Adds a line, and a blank one before it if it begins another block.
    fn add(&mut self, block: Block, line: &str) {
        let last = self.last.replace(block);
        let is_next = block == Block::Paragraph || last.is_none_or(|last| last != block);
        let blank = if is_next { "\n" } else { "" };
        println!("{blank}{line}");
        self.text.push_str(&format!("{blank}{line}\n"));
    }
}

/// A report in a file.
#[derive(Debug, Default)]
struct Written {
    head: String,
    sections: Vec<WrittenSection>,
}

#[derive(Debug, Default)]
struct WrittenSection {
    title: String,
    text: String,
    /// Rows of the table of figures.
    rows: Vec<String>,
}

impl From<&Section> for WrittenSection {
    fn from(section: &Section) -> Self {
        let cells = |figure: &Figure| [figure.cells(section.probe), vec![section.title.clone()]].concat();
        let rows = section.figures.iter().map(|figure| row_of(&cells(figure))).collect();
        Self { title: section.title.clone(), text: section.text.clone(), rows }
    }
}

impl Written {
    fn parse(text: &str) -> Self {
        let mut written = Self::default();
        let mut rows: Vec<String> = Vec::new();
        let mut is_table = false;
        for line in text.lines() {
            match line.strip_prefix("## ") {
                Some(_) if line == FIGURES => is_table = true,
                Some(title) => {
                    is_table = false;
                    written
                        .sections
                        .push(WrittenSection { title: title.to_owned(), ..WrittenSection::default() });
                }
                None if is_table => rows.push(line.to_owned()),
                None => {
                    let text = match written.sections.last_mut() {
                        Some(section) => &mut section.text,
                        None => &mut written.head,
                    };
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        for section in &mut written.sections {
            let end = format!("| {} |", section.title);
            section.rows = rows.iter().filter(|row| row.ends_with(&end)).cloned().collect();
            section.text = format!("{}\n", section.text.trim_end());
        }
        written
    }

    fn replace(&mut self, section: WrittenSection) {
        match self.sections.iter_mut().find(|one| one.title == section.title) {
            Some(earlier) => *earlier = section,
            None => self.sections.push(section),
        }
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = [&Figure::COLUMNS[..], &[SECTION_COLUMN]].concat().join(" | ");
        writeln!(f, "{}\n\n{FIGURES}\n\n{EXPLANATION}\n\n{}", self.head.trim_end(), titles_of(&titles))?;
        for row in self.sections.iter().flat_map(|section| &section.rows) {
            writeln!(f, "{row}")?;
        }
        for section in &self.sections {
            write!(f, "\n## {}\n{}", section.title, section.text)?;
        }
        Ok(())
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
        assert_eq!(report.current().text.trim().lines().count(), 1);
        report.figure(figure("settings: requests/s of bare", 0.1).at_least(0.35));
        assert!(report.current().text.contains("perf"), "{report:?}");
    }

    #[test]
    fn a_table_has_a_rule_below_its_titles() {
        let mut report = Report::default();
        report.columns("round | ratio");
        report.row(&["1".to_owned(), "0.50".to_owned()]);
        assert_eq!(report.current().text, "\n| round | ratio |\n| ---: | ---: |\n| 1 | 0.50 |\n");
    }

    #[test]
    fn the_figures_stand_between_the_head_and_the_sections() {
        let mut report = Report::default();
        report.head("# Benchmarks");
        report.section("Memory");
        report.figure(figure("idle", 12.0));
        let scratch = Scratch::create(&env::temp_dir(), "report", &[]).unwrap();
        let file = scratch.path().join("report.md");
        report.write(&file).unwrap();
        let whole = fs::read_to_string(&file).unwrap();
        let places = ["# Benchmarks", FIGURES, "| idle | 12 |", "| Memory |", "## Memory"];
        let places = places.map(|part| whole.find(part));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{whole}");
    }

    fn report(sections: &[(&str, f64)]) -> Report {
        let mut report = Report::default();
        report.head("# Benchmarks");
        for (title, value) in sections {
            report.section(title);
            report.paragraph("### Rounds");
            report.columns("round | value");
            report.row(&["1".to_owned(), value.to_string()]);
            report.figure(figure(&format!("{title}: idle"), *value).at_most(30.0));
        }
        report
    }

    #[test]
    fn a_section_is_replaced_in_an_earlier_report() {
        let scratch = Scratch::create(&env::temp_dir(), "report", &[]).unwrap();
        let (file, other) = (scratch.path().join("one.md"), scratch.path().join("other.md"));
        report(&[("Memory", 1.0), ("Disk", 2.0)]).write(&file).unwrap();
        report(&[("Disk", 3.0), ("Network", 4.0)]).write(&file).unwrap();
        report(&[("Memory", 1.0), ("Disk", 3.0), ("Network", 4.0)]).write(&other).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), fs::read_to_string(&other).unwrap());
        // Writing the same once more changes nothing.
        report(&[("Memory", 1.0)]).write(&file).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), fs::read_to_string(&other).unwrap());
    }

    #[test]
    fn sections_of_a_failed_measurement_are_discarded() {
        let mut report = report(&[("Memory", 1.0), ("Disk", 40.0)]);
        assert_eq!((report.number_of_sections(), report.missed().len()), (2, 1));
        report.discard_from(1);
        assert_eq!((report.number_of_sections(), report.missed().len()), (1, 0));
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
