//! Explanations of goals that may be missed: the result of a profile, and the change that would help.

/// The explanation of small requests through the front proxy.
const SMALL_REQUESTS: &str = "By `perf`, 53 to 57 % of the time is the kernel's, 27 to 35 % the program's, of which no function takes \
     3 %, and 11 to 15 % the allocator's. nginx parses a head once and in place, with memory of its \
     connection; here a head is checked, and then read into maps by hyper, on both sides. A parser of our own \
     for both would have to come.";

/// The explanation of TLS handshakes of the front proxy.
const HANDSHAKES: &str = "By `perf`, 43 % of the time is cryptography, of it most X25519 and the SHA-384 of the cipher that the \
     client prefers, 29 % the kernel's, 12 % the allocator's and 5 % that of rustls itself. Cheaper \
     handshakes would have to come from another library of cryptography than `ring`.";

/// The explanation of pages on PostgreSQL.
const PAGES_ON_POSTGRES: &str = "By `perf` of the whole machine on the audit page, both processors are busy for 97 % of the time: \
     55 % in the processes of PostgreSQL, 21 % in the threads that ask them and 17 % in those of the API. On SQLite the \
     thread of a request reads its page itself. Pages of several requests in one round trip would have to come.";

/// Explanations for figures whose names have these suffixes.
const REASONS: &[(&str, &str)] = &[
    (
        "resident when idle",
        "7 MB are the server's own. The others are pages of the program, whose code takes 33 MB: by the sizes of its functions \
         8 MB are queries and Diesel, 4 MB the API and actix-web, and no other part stands out. Code that is optimised for size \
         where nobody waits for it would have to come.",
    ),
    (
        "deployments accepted, PostgreSQL",
        "By `perf` of the whole machine, both processors are busy for 97 % of the time: 52 % in the processes of PostgreSQL, 32 % \
         in the server and 9 % in git. Requests that share a transaction share its 22 statements, and each needs 3 of its own; a \
         deployment, which runs meanwhile, is about 120. Deployments that need fewer statements would have to come.",
    ),
    (
        "p99 of reads meanwhile, PostgreSQL",
        "By `perf` of the whole machine, both processors are busy all the time, for 61 % in the processes of PostgreSQL and for \
         28 % in the server: a read waits for its turn. A third processor for the database, or fewer round trips for each unit, \
         would have to come.",
    ),
    (
        "settings: requests/s on PostgreSQL of those on SQLite",
        "On SQLite the identity behind a token is in memory, because one process makes all changes, and the request reads \
         nothing. On PostgreSQL it waits for a round trip, which requests at the same time share (decision 6). By `perf`, 12 % of \
         the time is that of PostgreSQL and of the threads that ask it, and 8 % are idle.",
    ),
    ("audit page: requests/s on PostgreSQL of those on SQLite", PAGES_ON_POSTGRES),
    ("log page: requests/s on PostgreSQL of those on SQLite", PAGES_ON_POSTGRES),
    (
        "durable log lines with the index over without, SQLite",
        "The median lies at its goal within the spread of the rounds. The index of what was written before is built \
         meanwhile, on the same two processors.",
    ),
    (
        "requests/s of bare",
        "By `perf` on the page of a deployment, no single place: SQLite's own steps, rows on their way through Diesel and \
         the allocations for them, the pages of memory that the kernel gives for a large answer, and the JSON, which is \
         all that the bare handler has to do. On the audit page, which the thread of the request reads itself, 27 % of the machine's time is the C library's, \
         for allocations and copies, 8 % that of SQLite and 6 % that of JSON. A faster allocator takes twice the memory when \
         idle (decision 32); views that borrow from rows would have to come.",
    ),
    (
        "front proxy: requests/s of Caddy's",
        "The median lies at its goal within the spread of the rounds, and on either side of it from run to run: both \
         proxies, the server behind them and who asks share two processors, of which Caddy uses more.",
    ),
    ("TLS, new: requests/s of nginx", HANDSHAKES),
    ("TLS, new: CPU of nginx over ours", HANDSHAKES),
    ("requests/s of nginx", SMALL_REQUESTS),
    ("CPU of nginx over ours", SMALL_REQUESTS),
    (
        "1000 applications, all that the server does",
        "By the spans above, about half goes into 500 requests a second for logs that have nothing new, 50 µs each. Checks \
         (67 a second, 90 µs each), looks, and the comparison of all routes with the records every five seconds share \
         the rest. Silent containers would have to be asked less often or by one stream each, and records read only after a \
         change.",
    ),
];

/// Returns the explanation of a figure that missed its goal.
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
        assert!(
            reason("reconciler: idle with 1000 applications, all that the server does").is_some(),
            "the name of the figure and that of its reason differ"
        );
        assert_eq!(reason("deployments accepted, SQLite"), None);
    }
}
