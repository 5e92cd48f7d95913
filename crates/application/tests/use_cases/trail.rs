//! What the audit trail is told.

use launchway_domain::{audit, store::Write};
use launchway_testkit::{CountingIds, builders::EntryBuilder};

/// The write that tells the trail of `entry`, to which a use case gives the id number `n`.
pub(crate) fn told(n: u64, entry: EntryBuilder) -> Write {
    audit::Write::Append(entry.with_id(CountingIds::nth(n)).build()).into()
}
