//! What is known of goals that may be missed: what a profile showed, and what would have to change.

/// A reason for figures whose names end like this.
const REASONS: &[(&str, &str)] = &[
    (
        "requests/s of bare",
        "By `perf` on the audit page and the log page, no single place: allocating and copying rows, and then views, on \
         their way to the answer takes most, then the kernel's switches between threads, SQLite's own steps and the JSON, \
         which is all that the bare handler has to do. A faster allocator than the C library's, views that borrow from \
         rows, and queries that do not change threads would have to come.",
    ),
    (
        "accepted, PostgreSQL",
        "By `pg_stat_activity`, most connections wait for the row of the chain's head (`Lock: tuple`, \
         `Lock: transactionid`): units of one organization append to one chain and hold its head until their commit is \
         on disk, so that they come one after the other. Organizations do not wait for each other. One transaction for \
         several units of an organization, as on SQLite, would have to come.",
    ),
];

/// What is known of a figure that missed its goal.
pub(crate) fn reason(figure: &str) -> Option<&'static str> {
    let found = REASONS.iter().find(|(end, _)| figure.ends_with(end));
    found.map(|(_, reason)| *reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_belongs_to_figures_by_the_end_of_their_names() {
        assert!(reason("audit page: requests/s of bare").is_some_and(|reason| reason.contains("perf")));
        assert!(reason("deployments accepted, PostgreSQL").is_some());
        assert_eq!(reason("deployments accepted, SQLite"), None);
    }
}
