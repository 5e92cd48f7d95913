//! Entries of the audit log.

use launchway_domain::{audit, store::Write};
use launchway_testkit::{CountingIds, builders::EntryBuilder};

/// Returns the write that appends `entry` to the audit log, with the id number `n`.
pub(crate) fn audited(n: u64, entry: EntryBuilder) -> Write {
    audit::Write::Append(entry.with_id(CountingIds::nth(n)).build()).into()
}
