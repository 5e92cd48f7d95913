//! What was measured: printed as it comes, kept to be written as Markdown.

use std::{fs, path::Path};

use crate::failure::{Failure, Outcome};

/// The text so far, and how many goals were missed.
#[derive(Debug, Default)]
pub(crate) struct Report {
    text: String,
    missed: usize,
}

impl Report {
    pub(crate) fn line(&mut self, line: &str) {
        println!("{line}");
        self.text.push_str(line);
        self.text.push('\n');
    }

    pub(crate) fn section(&mut self, title: &str) {
        self.line("");
        self.line(&format!("## {title}"));
        self.line("");
    }

    /// Begins a table; its rows follow by [`Self::row`].
    pub(crate) fn columns(&mut self, titles: &[&str]) {
        self.line(&format!("| {} |", titles.join(" | ")));
        self.line(&format!("|{}", " ---: |".repeat(titles.len())));
    }

    pub(crate) fn row(&mut self, cells: &[String]) {
        self.line(&format!("| {} |", cells.join(" | ")));
    }

    /// States a goal and whether the measurement met it.
    pub(crate) fn goal(&mut self, goal: &str, measured: &str, met: bool) {
        let verdict = if met { "PASS" } else { "FAIL" };
        self.missed += usize::from(!met);
        self.line(&format!("- {verdict}: {goal}; measured {measured}"));
    }

    pub(crate) fn missed(&self) -> usize {
        self.missed
    }

    pub(crate) fn write(&self, file: &Path) -> Outcome {
        fs::write(file, &self.text)
            .map_err(|error| Failure::because(format_args!("cannot write {}", file.display()), error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_the_goals_that_were_missed() {
        let mut report = Report::default();
        report.goal("at most 30 MB", "12 MB", true);
        report.goal("at most 100 ms", "140 ms", false);
        assert_eq!(report.missed(), 1);
        assert!(report.text.ends_with("- FAIL: at most 100 ms; measured 140 ms\n"), "{}", report.text);
    }

    #[test]
    fn a_table_has_a_rule_below_its_titles() {
        let mut report = Report::default();
        report.columns(&["round", "ratio"]);
        report.row(&["1".to_owned(), "0.50".to_owned()]);
        assert_eq!(report.text, "| round | ratio |\n| ---: | ---: |\n| 1 | 0.50 |\n");
    }
}
