//! Slow clients, and their effect on others.

mod connections;

use std::{
    net::{SocketAddr, TcpListener},
    process::{Command, id},
    thread::{sleep, spawn},
    time::Duration,
};

use self::connections::{Pace, SlowConnections, Stays};
use super::kills::seconds;
use crate::{
    harness::{Harness, Plan},
    options::Options,
    regular::{Regular, Waits},
    section::Section,
};

const METHOD: &str = "\
1,000 connections send the heads of requests byte by byte, 1,000 send bodies byte by byte, one byte per second each, \
and 1,000 send nothing. A connection that the server closes is replaced at once. Another client requests its own user \
again and again, alternately alone and beside the slow connections. What counts is the ratio of its two response \
times in each turn.\n\n\
Then connections are no longer replaced, and the server must close each one: a head has 5 s, a body \
`LAUNCHWAY_BODY_TIMEOUT`, and closing may take 5 s more. For the controls, that setting is an hour, and a listener \
that closes no connection replaces the server. The short form has 60 connections of each kind and a body timeout of 2 \
s. It has no goal for the ratio, because other tests run at the same time.";

/// The number of files that the campaign and the server may have open.
const FILES: usize = 10_000;
/// The timeout of the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// The additional time that closing may take.
const CLOSING: Duration = Duration::from_secs(5);
const USER: &str = "/api/v1/user";

pub(crate) fn run(options: &Options) -> Section {
    let mut section = Section::new("Slow clients", METHOD);
    allow_files();
    let (count, turns) = (options.count(60, 1000), options.count(1, 6));
    let body_timeout = Duration::from_secs(if options.is_long { 15 } else { 2 });
    let harness = harness(options, body_timeout);
    let address = address(&harness);
    let max_wait = body_timeout.max(HEAD_TIMEOUT) + CLOSING;
    let measured = Duration::from_secs(if options.is_long { 10 } else { 2 });
    let unlimited = self::harness(options, Duration::from_secs(3600));
    let controls = Controls::begin(self::address(&unlimited), max_wait);
    let memory = harness.server.memory();
    let files = harness.server.open_files();
    let (mut alone, mut beside, mut stays) = (Vec::new(), Vec::new(), Stays::default());
    let _warm = Regular::during(&harness.admin, USER, measured / 2);
    for _ in 0..turns {
        alone.push(Regular::during(&harness.admin, USER, measured));
        let connections = SlowConnections::open(address, &Pace::ALL, count, max_wait);
        // Until all of them are there.
        sleep(Duration::from_millis(1500));
        beside.push(Regular::during(&harness.admin, USER, measured));
        stays.add(connections.close());
    }
    section.note(
        "connections at once: heads byte by byte, bodies byte by byte, nothing",
        format_args!("{count} each"),
    );
    section.note(
        "connections opened / ended by the server",
        format_args!("{} / {}", stays.opened, stays.ended()),
    );
    section.never("connections that were not accepted", stays.refused);
    report_waits(&mut section, options, &alone, &beside);
    for (pace, limit) in Pace::ALL.into_iter().zip([HEAD_TIMEOUT, body_timeout, HEAD_TIMEOUT]) {
        let (longest, limit) = (stays.longest(pace), limit + CLOSING);
        let what = format!("longest stay of one that sends {}", pace.name());
        section.goal(&what, seconds(longest), &format!("under {} s", limit.as_secs()), longest < limit);
        section
            .never(&format!("connections that stay, of those that send {}", pace.name()), stays.left(pace));
    }
    section.note(
        "memory of the server, before / after",
        format_args!("{memory} MiB / {} MiB", harness.server.memory()),
    );
    let (before, after) = (files, harness.server.open_files());
    section.goal(
        "open files of the server, before / after",
        format_args!("{before} / {after}"),
        "at most 20 more",
        after <= before + 20,
    );
    controls.end(&mut section);
    section
}

fn report_waits(section: &mut Section, options: &Options, alone: &[Waits], beside: &[Waits]) {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let millis = |waits: &[Waits], percent| {
        median(waits.iter().map(|waits| waits.percentile(percent).as_secs_f64() * 1000.0).collect())
    };
    for percent in [50, 99] {
        let shown = format!("{:.2} ms / {:.2} ms", millis(alone, percent), millis(beside, percent));
        section.note(
            &format!("{percent}th percentile of a regular client, alone / beside them, median of turns"),
            shown,
        );
    }
    let ratios = alone.iter().zip(beside);
    let ratios = ratios.map(|(alone, beside)| {
        beside.percentile(99).as_secs_f64() / alone.percentile(99).as_secs_f64().max(f64::MIN_POSITIVE)
    });
    let ratio = median(ratios.collect());
    let what = "99th percentile beside them, as a multiple of that alone, median of turns";
    match options.is_long {
        true => section.goal(what, format_args!("{ratio:.2}"), "under 2", ratio < 2.0),
        false => section.note(what, format_args!("{ratio:.2}")),
    }
    let all = alone.iter().chain(beside);
    section.note("answers to the regular client", all.clone().map(Waits::answers).sum::<usize>());
    section.never("answers to it other than 200, or none", all.map(|waits| waits.unserved).sum());
}

/// Connections that are never closed: they must stay open, and that must be detected.
struct Controls {
    /// To a server with a body timeout of an hour.
    bodies: SlowConnections,
    /// To a listener that closes no connection.
    others: SlowConnections,
}

impl Controls {
    fn begin(unlimited: SocketAddr, max_wait: Duration) -> Self {
        const FEW: usize = 20;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endless = listener.local_addr().unwrap();
        // It ends with the campaign.
        spawn(move || listener.incoming().flatten().collect::<Vec<_>>());
        Self {
            bodies: SlowConnections::open(unlimited, &[Pace::Body], FEW, max_wait),
            others: SlowConnections::open(endless, &[Pace::Head, Pace::Idle], FEW, max_wait),
        }
    }

    fn end(self, section: &mut Section) {
        let (bodies, others) = (self.bodies.close(), self.others.close());
        section.control("with a body timeout of an hour, bodies that stay", bodies.left(Pace::Body));
        section.control("at a listener that ends nobody, heads that stay", others.left(Pace::Head));
        section.control("at a listener that ends nobody, idle ones that stay", others.left(Pace::Idle));
    }
}

fn harness(options: &Options, body_timeout: Duration) -> Harness {
    let settings = vec![("LAUNCHWAY_BODY_TIMEOUT".to_owned(), format!("{}s", body_timeout.as_secs()))];
    let wrapper = vec!["prlimit".to_owned(), format!("--nofile={FILES}")];
    Harness::set(options, &Plan { settings, wrapper, ..Plan::default() })
}

fn address(harness: &Harness) -> SocketAddr {
    harness.launch.url.trim_start_matches("http://").parse().unwrap()
}

/// Raises the limit of open files to the number of connections.
fn allow_files() {
    let limit = format!("--nofile={FILES}");
    let raised = Command::new("prlimit").args(["--pid", &id().to_string(), &limit]).status();
    assert!(raised.is_ok_and(|status| status.success()), "this process may have {FILES} files open");
}
