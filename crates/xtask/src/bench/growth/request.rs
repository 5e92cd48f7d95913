//! The requests whose cost is measured against the size of tables.

use crate::bench::{
    Effort,
    growth::installation::{Installation, LINES_OF_ONE},
    launch::{APPLICATIONS, static_site},
    reconciler::{DEPLOYMENT, copy_id},
};

pub(crate) const AUDIT: &str = "/api/v1/audit/logs";
/// The page size of [`Request::AuditLast`] and [`Request::LogsLast`].
const ON_A_PAGE: u32 = 10;

/// One kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Audit,
    AuditLast,
    Logs,
    LogsLast,
    Deployment,
    Create,
    AuditSearch,
    LogsSearch,
}

impl Request {
    pub(crate) const ALL: [Self; 8] = [
        Self::Audit,
        Self::AuditLast,
        Self::Logs,
        Self::LogsLast,
        Self::Deployment,
        Self::Create,
        Self::AuditSearch,
        Self::LogsSearch,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Audit => "audit activities, first page",
            Self::AuditLast => "audit activities, last page",
            Self::Logs => "application logs, first page",
            Self::LogsLast => "application logs, last page",
            Self::Deployment => "get deployment",
            Self::Create => "create application",
            Self::AuditSearch => "audit activities, search",
            Self::LogsSearch => "application logs, search",
        }
    }

    /// Returns the file name of its plot.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Audit => "audit",
            Self::AuditLast => "audit-last",
            Self::Logs => "logs",
            Self::LogsLast => "logs-last",
            Self::Deployment => "deployment",
            Self::Create => "create",
            Self::AuditSearch => "audit-search",
            Self::LogsSearch => "logs-search",
        }
    }

    /// Returns the number of requests in a round.
    pub(crate) fn requests(self, effort: Effort) -> u32 {
        match self {
            // Each row stays, so that the smallest tables would grow.
            Self::Create => effort.amount(60, 30),
            Self::AuditSearch | Self::LogsSearch => effort.amount(100, 30),
            _ => effort.amount(600, 100),
        }
    }

    /// Returns whether its cost must not grow; that of a search may, within a limit of its own.
    pub(crate) fn is_bounded(self) -> bool {
        !matches!(self, Self::AuditSearch | Self::LogsSearch)
    }

    /// Returns the path of the next request and, if it posts, its body.
    pub(crate) fn of(self, installation: &mut Installation) -> (String, Option<String>) {
        let Installation { rows, application, repository, .. } = &*installation;
        let logs = format!("/api/v1/deploy/application/logs/{application}");
        let last = |lines: u32| format!("page_size={ON_A_PAGE}&page={}", lines / ON_A_PAGE);
        match self {
            Self::Audit => (AUDIT.to_owned(), None),
            Self::AuditLast => (format!("{AUDIT}?{}", last(*rows)), None),
            Self::Logs => (logs, None),
            Self::LogsLast => (format!("{logs}?{}", last(LINES_OF_ONE.min(*rows))), None),
            Self::AuditSearch => (format!("{AUDIT}?search=theme-999"), None),
            Self::LogsSearch => (format!("{logs}?search_term=more999"), None),
            Self::Deployment => {
                let rows = *rows;
                let id = copy_id(scattered(installation.next(), rows), DEPLOYMENT);
                (format!("/api/v1/deploy/application/deployments/{id}"), None)
            }
            Self::Create => {
                let repository = repository.clone();
                let name = format!("made-{}", installation.next());
                (APPLICATIONS.to_owned(), Some(static_site(&name, &repository)))
            }
        }
    }
}

/// Returns one of `rows` rows, far from the one before.
fn scattered(number: u32, rows: u32) -> u32 {
    let place = u64::from(number) * 7_919_993 % u64::from(rows);
    u32::try_from(place).unwrap_or_default() + 1
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn requests_are_scattered_over_all_rows() {
        for rows in [1_000, 1_000_000] {
            let places: HashSet<u32> = (0..1_000).map(|number| scattered(number, rows)).collect();
            assert_eq!(places.len(), 1_000);
            assert!(places.iter().all(|place| (1..=rows).contains(place)));
            assert!(places.iter().any(|place| *place > rows / 10 * 9));
        }
    }
}
