//! The report of the doctor: a line for each check, and a hint for each problem.

use std::fmt;

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Ok,
    Warning,
    Failure,
}

/// A finished check.
#[derive(Debug)]
struct Finding {
    outcome: Outcome,
    subject: &'static str,
    text: String,
    hint: String,
}

/// Every finished check, in order.
#[derive(Debug, Default)]
pub(super) struct Report(Vec<Finding>);

impl Report {
    /// Adds a check that passed.
    pub(super) fn ok(&mut self, subject: &'static str, text: String) {
        self.0.push(Finding { outcome: Outcome::Ok, subject, text, hint: String::new() });
    }

    /// Adds a problem that keeps nothing from working.
    pub(super) fn warn(&mut self, subject: &'static str, text: String, hint: &str) {
        self.0.push(Finding { outcome: Outcome::Warning, subject, text, hint: hint.to_owned() });
    }

    /// Adds a problem that keeps the installation from working.
    pub(super) fn fail(&mut self, subject: &'static str, text: String, hint: &str) {
        self.0.push(Finding { outcome: Outcome::Failure, subject, text, hint: hint.to_owned() });
    }

    /// Returns the number of failed checks.
    pub(super) fn failures(&self) -> usize {
        self.0.iter().filter(|finding| finding.outcome == Outcome::Failure).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { outcome, subject, text, hint } in &self.0 {
            let outcome = match outcome {
                Outcome::Ok => "ok  ",
                Outcome::Warning => "warn",
                Outcome::Failure => "FAIL",
            };
            writeln!(f, "{outcome}  {subject}: {text}")?;
            if !hint.is_empty() {
                writeln!(f, "      hint: {hint}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_shows_hints_and_counts_failures() {
        let mut report = Report::default();
        report.ok("engine", "answers".to_owned());
        report.warn("server", "does not run".to_owned(), "start it");
        report.fail("disk", "is full".to_owned(), "free some space");
        let expected = "ok    engine: answers\nwarn  server: does not run\n      hint: start it\n\
                        FAIL  disk: is full\n      hint: free some space\n";
        assert_eq!((report.to_string().as_str(), report.failures()), (expected, 1));
    }
}
