//! What is known of goals that may be missed: what a profile showed, and what would have to change.

/// A reason for figures whose names end like this.
const REASONS: &[(&str, &str)] = &[
    (
        "requests/s of bare",
        "By `perf` on the page of a deployment, no single place: SQLite's own steps, rows on their way through Diesel and \
         the allocations for them, the pages of memory that the kernel gives for a large answer, and the JSON, which is \
         all that the bare handler has to do. On short pages the kernel's switches between threads come first. A faster \
         allocator takes twice the memory when idle (decision 32); views that borrow from rows, and queries that do not \
         change threads, would have to come.",
    ),
    (
        "accepted, SQLite",
        "Both processors are busy: the worker fetches and publishes what was accepted meanwhile, and the processes of git \
         that this takes cost more than accepting does. A cheaper look at a repository than a process of git would have \
         to come.",
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
        assert_eq!(reason("durable log lines"), None);
    }
}
