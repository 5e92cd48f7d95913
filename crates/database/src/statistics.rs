//! Counters of the database.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters since the database was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Read queries.
    pub reads: u64,
    /// Write calls.
    pub commits: u64,
    /// Durable transactions; several calls may share one.
    pub transactions: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    reads: AtomicU64,
    commits: AtomicU64,
    transactions: AtomicU64,
}

impl Counters {
    pub(super) fn count_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_commits(&self, commits: usize) {
        self.commits.fetch_add(commits as u64, Ordering::Relaxed);
    }

    pub(super) fn count_transaction(&self) {
        self.transactions.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn statistics(&self) -> Statistics {
        Statistics {
            reads: self.reads.load(Ordering::Relaxed),
            commits: self.commits.load(Ordering::Relaxed),
            transactions: self.transactions.load(Ordering::Relaxed),
        }
    }
}
