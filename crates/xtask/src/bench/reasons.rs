//! Explanations of goals that may be missed: the result of a profile, and the change that would help.

/// The explanation of small requests through the front proxy.
const SMALL_REQUESTS: &str = "\
By `perf`, the kernel takes 53 to 57 % of the time, the program 27 to 35 %, and the allocator 11 to 15 %. No function \
of the program takes 3 %. nginx parses a head once and in place, with memory of its connection. Here a head is \
checked, and hyper then reads it into maps, on both sides. To improve this, Launchway needs its own parser for both \
sides.";

/// The explanation of TLS handshakes of the front proxy.
const HANDSHAKES: &str = "\
By `perf`, cryptography takes 43 % of the time, most of it for X25519 and for the SHA-384 of the cipher that the \
client prefers. The kernel takes 29 %, the allocator 12 % and rustls itself 5 %. To improve this, Launchway needs a \
cryptography library with cheaper handshakes than `ring`.";

/// The explanation of pages on PostgreSQL.
const PAGES_ON_POSTGRES: &str = "\
By `perf` of the whole machine on the audit page, both processors are busy for 97 % of the time: 55 % in the \
processes of PostgreSQL, 21 % in the threads that query it and 17 % in those of the API. On SQLite the thread of a \
request reads its page itself. To improve this, one round trip must read the pages of several requests.";

/// Explanations for figures whose names have these suffixes.
const REASONS: &[(&str, &str)] = &[
    (
        "resident when idle",
        "7 MB belong to the server itself. The rest are pages of the program, whose code takes 33 MB. By the \
         sizes of its functions, 8 MB are queries and Diesel, 4 MB are the API and actix-web, and no other \
         part stands out. To improve this, code that nobody waits for must be optimised for size.",
    ),
    (
        "deployments accepted, PostgreSQL",
        "By `perf` of the whole machine, both processors are busy for 97 % of the time: 52 % in the \
         processes of PostgreSQL, 32 % in the server and 9 % in git. Requests that share a transaction share \
         its 22 statements, and each needs 3 of its own. A deployment, which runs meanwhile, needs about \
         120. To improve this, a deployment must need fewer statements.",
    ),
    (
        "p99 of reads meanwhile, PostgreSQL",
        "By `perf` of the whole machine, both processors are busy all the time: 61 % in the processes of \
         PostgreSQL and 28 % in the server. A read waits until a processor is free. To improve this, the \
         database needs a third processor, or each unit of work fewer round trips.",
    ),
    (
        "settings: requests/s on PostgreSQL of those on SQLite",
        "On SQLite the identity of a token is in memory, because one process makes all changes, and the \
         request reads nothing. On PostgreSQL the request waits for a round trip, which concurrent requests \
         share (decision 6). By `perf`, 12 % of the time is spent in PostgreSQL and the threads that query \
         it, and 8 % is idle.",
    ),
    ("audit page: requests/s on PostgreSQL of those on SQLite", PAGES_ON_POSTGRES),
    ("log page: requests/s on PostgreSQL of those on SQLite", PAGES_ON_POSTGRES),
    (
        "durable log lines with the index over without, SQLite",
        "The median is at its goal within the spread of the rounds. Meanwhile the index of the earlier lines \
         is built on the same two processors.",
    ),
    (
        "requests/s of bare",
        "By `perf` on the page of a deployment, no single part dominates: the time goes to SQLite's own \
         steps, to rows in Diesel and the allocations for them, to the memory pages that the kernel provides \
         for a large answer, and to the JSON, which is all that the bare handler has to do. On the audit \
         page, which the thread of the request reads itself, the C library takes 27 % of the machine's time, \
         for allocations and copies, SQLite takes 8 % and JSON 6 %. A faster allocator takes twice the \
         memory when idle (decision 32). To improve this, views must borrow from rows.",
    ),
    (
        "front proxy: requests/s of Caddy's",
        "The median is at its goal within the spread of the rounds, and above or below it from run to run: \
         both proxies, the server behind them and the client share two processors, of which Caddy uses more.",
    ),
    ("TLS, new: requests/s of nginx", HANDSHAKES),
    ("TLS, new: CPU of nginx over ours", HANDSHAKES),
    ("requests/s of nginx", SMALL_REQUESTS),
    ("CPU of nginx over ours", SMALL_REQUESTS),
    (
        "1000 applications, all that the server does",
        "By the spans above, about half of the time goes to 500 requests a second for logs that have nothing \
         new, 50 µs each. Checks (67 a second, 90 µs each), looks, and the comparison of all routes with the \
         records every five seconds share the rest. To improve this, the logs of silent containers must be \
         requested less often or by one stream each, and records must be read only after a change.",
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
