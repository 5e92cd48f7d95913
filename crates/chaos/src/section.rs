//! The report of a campaign: its description, its figures, and whether each meets its goal.

use std::{
    fmt::{Display, Write as _},
    fs,
    time::Instant,
};

/// One campaign's part of the report.
pub(crate) struct Section {
    title: &'static str,
    method: &'static str,
    rows: Vec<Row>,
    started: Instant,
    load_before: String,
}

struct Row {
    what: String,
    measured: String,
    goal: Option<(String, bool)>,
}

impl Section {
    pub(crate) fn new(title: &'static str, method: &'static str) -> Self {
        Self { title, method, rows: Vec::new(), started: Instant::now(), load_before: load_average() }
    }

    /// A figure without a goal, such as the number of attempts.
    pub(crate) fn note(&mut self, what: &str, measured: impl Display) {
        self.row(what, &measured, None);
    }

    /// An event that must not happen at all.
    pub(crate) fn never(&mut self, what: &str, times: usize) {
        self.row(what, &times, Some(("0".to_owned(), times == 0)));
    }

    /// A figure with a goal in words, and whether it was met.
    pub(crate) fn goal(&mut self, what: &str, measured: impl Display, goal: &str, is_met: bool) {
        self.row(what, &measured, Some((goal.to_owned(), is_met)));
    }

    /// A negative control: a removed guard, or an invented loss, that must be detected.
    pub(crate) fn control(&mut self, what: &str, noticed: usize) {
        let what = format!("control: {what}");
        self.row(&what, &noticed, Some(("at least 1".to_owned(), noticed > 0)));
    }

    fn row(&mut self, what: &str, measured: &dyn Display, goal: Option<(String, bool)>) {
        let measured = measured.to_string();
        eprintln!("  {what}: {measured}");
        self.rows.push(Row { what: what.to_owned(), measured, goal });
    }

    /// Returns a line for each figure that misses its goal.
    pub(crate) fn missed(&self) -> Vec<String> {
        let missed = self.rows.iter().filter_map(|row| match &row.goal {
            Some((goal, false)) => Some(format!("{}: {}, goal {goal}", row.what, row.measured)),
            _ => None,
        });
        missed.collect()
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n{}\n\n", self.title, self.method);
        let seconds = self.started.elapsed().as_secs();
        let _infallible = writeln!(
            text,
            "Took {seconds} s; load average {} at the beginning, {} at the end.\n",
            self.load_before,
            load_average()
        );
        text.push_str("| figure | measured | goal | |\n|---|---:|---:|---|\n");
        for Row { what, measured, goal } in &self.rows {
            let (goal, verdict) = match goal {
                Some((goal, true)) => (goal.as_str(), "PASS"),
                Some((goal, false)) => (goal.as_str(), "**FAIL**"),
                None => ("", ""),
            };
            let _infallible = writeln!(text, "| {what} | {measured} | {goal} | {verdict} |");
        }
        text
    }
}

/// The load average of the last minute.
fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_that_miss_their_goal_are_listed_and_marked() {
        let mut section = Section::new("Kills", "As it is done.");
        section.note("kills", 10);
        section.never("lost", 0);
        assert!(section.missed().is_empty());
        section.never("leaked", 2);
        section.goal("longest wait", "7.0 s", "under 5 s", false);
        assert_eq!(section.missed(), ["leaked: 2, goal 0", "longest wait: 7.0 s, goal under 5 s"]);
        let text = section.markdown();
        assert!(text.starts_with("## Kills\n\nAs it is done.\n\nTook "), "{text}");
        assert!(text.contains("| kills | 10 |  |  |\n| lost | 0 | 0 | PASS |\n"), "{text}");
        assert!(text.ends_with("| longest wait | 7.0 s | under 5 s | **FAIL** |\n"), "{text}");
    }

    #[test]
    fn a_control_that_notices_nothing_is_a_failure() {
        let mut section = Section::new("Kills", "As it is done.");
        section.control("an invented acknowledgement", 1);
        assert!(section.missed().is_empty());
        section.control("a container that nobody accounts for", 0);
        assert_eq!(section.missed().len(), 1);
    }
}
