//! Diagnostics: checks of the installation, and the space that it uses.

use std::fmt;

use async_trait::async_trait;

use crate::store_error::StoreError;

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It passed.
    Ok,
    /// It found a problem that keeps nothing from working.
    Warning,
    /// It found a problem that keeps the installation from working.
    Failure,
}

/// A finished check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The outcome.
    pub outcome: CheckOutcome,
    /// The part of the installation that was checked.
    pub subject: &'static str,
    /// A sentence about the subject, without it.
    pub text: String,
    /// The way to solve a problem; empty without one.
    pub hint: String,
}

/// Every finished check, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HealthReport {
    checks: Vec<Check>,
}

impl HealthReport {
    /// Adds a check that passed.
    pub fn ok(&mut self, subject: &'static str, text: String) {
        self.add(CheckOutcome::Ok, subject, text, "");
    }

    /// Adds a problem that keeps nothing from working.
    pub fn warn(&mut self, subject: &'static str, text: String, hint: &str) {
        self.add(CheckOutcome::Warning, subject, text, hint);
    }

    /// Adds a problem that keeps the installation from working.
    pub fn fail(&mut self, subject: &'static str, text: String, hint: &str) {
        self.add(CheckOutcome::Failure, subject, text, hint);
    }

    fn add(&mut self, outcome: CheckOutcome, subject: &'static str, text: String, hint: &str) {
        self.checks.push(Check { outcome, subject, text, hint: hint.to_owned() });
    }

    /// Returns the checks.
    #[must_use]
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// Returns the number of checks with that outcome.
    #[must_use]
    pub fn count(&self, outcome: CheckOutcome) -> usize {
        self.checks.iter().filter(|check| check.outcome == outcome).count()
    }
}

/// Writes a line for each check, and a hint for each problem.
impl fmt::Display for HealthReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Check { outcome, subject, text, hint } in &self.checks {
            let outcome = match outcome {
                CheckOutcome::Ok => "ok  ",
                CheckOutcome::Warning => "warn",
                CheckOutcome::Failure => "FAIL",
            };
            writeln!(f, "{outcome}  {subject}: {text}")?;
            if !hint.is_empty() {
                writeln!(f, "      hint: {hint}")?;
            }
        }
        Ok(())
    }
}

/// The space of the file system of the data directory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// The size of the file system.
    pub total: u64,
    /// The space that the server may use.
    pub free: u64,
    /// The space below which deployments are rejected.
    pub required: u64,
}

/// The space that records use, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoredBytes {
    /// The database, with its write-ahead log on SQLite.
    pub database: u64,
    /// The kept log lines of applications, which are part of the database.
    pub logs: u64,
    /// The images of deployments, which the engine stores. Layers that several images share count for each.
    pub images: u64,
}

/// Checks the installation. The checks change nothing.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait Diagnostics: Send + Sync {
    /// Runs every check. A check that cannot be made is a problem of its own, so that there is always a report.
    async fn examine(&self) -> HealthReport;

    /// Returns the space of the data directory; a sentence about the reason if the file system does not report it.
    ///
    /// # Errors
    /// The sentence.
    async fn disk_space(&self) -> Result<DiskSpace, String>;
}

/// Reads the space that records use.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait StorageStatistics: Send + Sync {
    /// Returns the space of the whole installation.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn stored_bytes(&self) -> Result<StoredBytes, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_shows_hints_and_counts_outcomes() {
        let mut report = HealthReport::default();
        report.ok("engine", "answers".to_owned());
        report.warn("server", "does not run".to_owned(), "start it");
        report.fail("disk", "is full".to_owned(), "free some space");
        let expected = "ok    engine: answers\nwarn  server: does not run\n      hint: start it\n\
                        FAIL  disk: is full\n      hint: free some space\n";
        assert_eq!(report.to_string(), expected);
        for outcome in [CheckOutcome::Ok, CheckOutcome::Warning, CheckOutcome::Failure] {
            assert_eq!(report.count(outcome), 1, "{outcome:?}");
        }
    }
}
