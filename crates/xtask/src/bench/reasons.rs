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
        "By `perf` of the whole machine, both processors are busy for 92 % of the time: 45 % in the processes of PostgreSQL, 35 % \
         in the server and 8 % in git. A request is about 20 statements in one transaction, and further ones to answer it; none \
         of them reads more than its own rows, and planning takes 1 %. Fewer statements for each request would have to come.",
    ),
    (
        "p99 of reads meanwhile, PostgreSQL",
        "By `perf` of the whole machine, both processors are busy all the time, for 61 % in the processes of PostgreSQL and for \
         28 % in the server: a read waits for its turn. A third processor for the database, or fewer round trips for each unit, \
         would have to come.",
    ),
    (
        "requests/s of bare",
        "By `perf` on the page of a deployment, no single place: SQLite's own steps, rows on their way through Diesel and \
         the allocations for them, the pages of memory that the kernel gives for a large answer, and the JSON, which is \
         all that the bare handler has to do. On the audit page, allocating and copying rows takes most, and then the \
         kernel's switches between threads. A faster allocator takes twice the memory when idle (decision 32); views that \
         borrow from rows, and queries that do not change threads, would have to come.",
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
