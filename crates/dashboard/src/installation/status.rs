//! The queue, the space and the checks of the installation, as the page shows them.

use launchway_application::installation::InstallationStatus;
use launchway_domain::{
    clock::Timestamp,
    diagnostics::{Check, CheckOutcome, HealthReport, StoredBytes},
    jobs::{JobKind, QueueDepth},
};

use crate::{
    applications::State,
    format::{bytes, duration},
};

/// The queue of jobs.
pub(super) struct Queue {
    pub(super) waiting: u64,
    pub(super) running: u64,
    /// The time for which the oldest job has waited; empty if none waits.
    pub(super) oldest: String,
    pub(super) kinds: Vec<KindRow>,
}

/// The jobs of one kind.
pub(super) struct KindRow {
    pub(super) name: &'static str,
    pub(super) waiting: u64,
    pub(super) running: u64,
    pub(super) oldest: String,
}

impl Queue {
    pub(super) fn new(status: &InstallationStatus) -> Self {
        let age =
            |since: Option<Timestamp>| since.map(|since| duration(status.at - since)).unwrap_or_default();
        let row = |depth: &QueueDepth| KindRow {
            name: name(depth.kind),
            waiting: depth.waiting,
            running: depth.running,
            oldest: age(depth.oldest_waiting),
        };
        let queue = &status.queue;
        Self {
            waiting: queue.iter().map(|depth| depth.waiting).sum(),
            running: queue.iter().map(|depth| depth.running).sum(),
            oldest: age(queue.iter().filter_map(|depth| depth.oldest_waiting).min()),
            kinds: queue.iter().map(row).collect(),
        }
    }
}

fn name(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Deploy => "Deploy",
        JobKind::Restart => "Restart",
        JobKind::Stop => "Stop",
        JobKind::Remove => "Delete",
        JobKind::Reconcile => "Reconcile",
        JobKind::RunExtension => "Run extension",
        JobKind::UninstallExtension => "Uninstall extension",
    }
}

/// The disk of the data directory, and what is stored.
pub(super) struct Disk {
    /// The used and the total mebibytes, for a meter; `None` if the file system does not report them.
    pub(super) meter: Option<(u64, u64)>,
    pub(super) free: String,
    pub(super) total: String,
    pub(super) required: String,
    /// True if deployments are rejected.
    pub(super) is_full: bool,
    pub(super) problem: String,
    pub(super) database: String,
    pub(super) logs: String,
    pub(super) images: String,
}

impl Disk {
    pub(super) fn new(status: &InstallationStatus) -> Self {
        let StoredBytes { database, logs, images } = status.stored;
        let stored = Self {
            meter: None,
            free: String::new(),
            total: String::new(),
            required: String::new(),
            is_full: false,
            problem: String::new(),
            database: bytes(database),
            logs: bytes(logs),
            images: bytes(images),
        };
        match &status.disk {
            Ok(space) => Self {
                meter: Some((space.total.saturating_sub(space.free) >> 20, space.total >> 20)),
                free: bytes(space.free),
                total: bytes(space.total),
                required: bytes(space.required),
                is_full: space.free < space.required,
                ..stored
            },
            Err(problem) => Self { problem: problem.clone(), ..stored },
        }
    }
}

/// A check of the installation.
pub(super) struct CheckRow {
    pub(super) state: State,
    pub(super) subject: &'static str,
    pub(super) text: String,
    pub(super) hint: String,
}

impl From<&Check> for CheckRow {
    fn from(check: &Check) -> Self {
        Self {
            state: match check.outcome {
                CheckOutcome::Ok => State { text: "ok", kind: "good" },
                CheckOutcome::Warning => State { text: "warning", kind: "busy" },
                CheckOutcome::Failure => State { text: "failed", kind: "bad" },
            },
            subject: check.subject,
            text: check.text.clone(),
            hint: check.hint.clone(),
        }
    }
}

/// Returns the worst outcome of a report.
pub(super) fn summary(report: &HealthReport) -> State {
    if report.count(CheckOutcome::Failure) > 0 {
        State { text: "problems", kind: "bad" }
    } else if report.count(CheckOutcome::Warning) > 0 {
        State { text: "warnings", kind: "busy" }
    } else {
        State { text: "all passed", kind: "good" }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use launchway_domain::diagnostics::DiskSpace;

    use super::*;

    fn status(queue: Vec<QueueDepth>, disk: Result<DiskSpace, String>) -> InstallationStatus {
        let at = Timestamp::UNIX_EPOCH + TimeDelta::hours(1);
        InstallationStatus { queue, stored: StoredBytes::default(), disk, at }
    }

    #[test]
    fn the_oldest_job_of_all_kinds_is_shown() {
        let depth = |kind, minutes: Option<i64>| QueueDepth {
            kind,
            waiting: 2,
            running: 1,
            oldest_waiting: minutes.map(|minutes| Timestamp::UNIX_EPOCH + TimeDelta::minutes(minutes)),
        };
        let depths = vec![
            depth(JobKind::Deploy, Some(59)),
            depth(JobKind::Stop, Some(58)),
            depth(JobKind::Remove, None),
        ];
        let queue = Queue::new(&status(depths, Err(String::new())));
        assert_eq!((queue.waiting, queue.running, queue.oldest.as_str()), (6, 3, "2 min 0 s"));
        let ages: Vec<_> = queue.kinds.iter().map(|row| (row.name, row.oldest.as_str())).collect();
        assert_eq!(ages, [("Deploy", "1 min 0 s"), ("Stop", "2 min 0 s"), ("Delete", "")]);
    }

    #[test]
    fn a_disk_is_full_below_the_required_space() {
        for (free, is_full) in [(1 << 30, false), ((1 << 30) - 1, true)] {
            let space = DiskSpace { total: 4 << 30, free, required: 1 << 30 };
            let disk = Disk::new(&status(Vec::new(), Ok(space)));
            assert_eq!((disk.is_full, disk.total.as_str()), (is_full, "4.0 GiB"), "{free}");
        }
        let unknown = Disk::new(&status(Vec::new(), Err("not mounted".to_owned())));
        assert_eq!((unknown.meter, unknown.problem.as_str()), (None, "not mounted"));
    }

    #[test]
    fn the_worst_outcome_is_the_summary() {
        let mut report = HealthReport::default();
        report.ok("engine", String::new());
        assert_eq!(summary(&report).kind, "good");
        report.warn("engine", String::new(), "");
        assert_eq!(summary(&report).kind, "busy");
        report.fail("engine", String::new(), "");
        assert_eq!(summary(&report).kind, "bad");
    }
}
