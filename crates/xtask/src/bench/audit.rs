//! Checks that a page of the audit log costs the same whatever the length of the log.

use std::{path::Path, process::Command, time::Instant};

use crate::{
    bench::{
        http::{self, Connection},
        launch,
        report::Report,
        sample::Sample,
        server::Server,
    },
    failure::{Failure, Outcome},
    workspace::{self, dist},
};

const SHORT: u32 = 1_000;
const LONG: u32 = 1_000_000;
const REQUESTS: u32 = 3_000;
const FILTERED_REQUESTS: u32 = 20;
const MOST_GROWTH: f64 = 1.5;
const PATH: &str = "/api/v1/audit/logs";

/// Queries a server with a short log and one with a long log in turn.
pub(crate) fn measure(report: &mut Report, folder: &Path) -> Outcome {
    report.section("Audit trail");
    report.line(&format!("`GET {PATH}` on SQLite, {SHORT} entries against {LONG}, asked in turn, in ms:"));
    report.line("");
    report.columns(&["page", "p50, short", "p50, long", "p99, short", "p99, long", "p99 ratio"]);
    let [mut short, mut long] = trails(folder)?;
    let mut growth = Vec::new();
    for (name, depth) in [("first", 0), ("middle", 2), ("last", 1)] {
        let (ours, theirs) = (short.page(depth), long.page(depth));
        let (mut few, mut many) = (Sample::default(), Sample::default());
        // The first requests fill caches, and are not counted.
        for _ in 0..100 {
            short.ask(&ours)?;
            long.ask(&theirs)?;
        }
        for _ in 0..REQUESTS {
            few.push(short.ask(&ours)?);
            many.push(long.ask(&theirs)?);
        }
        let ratio = many.percentile(99) / few.percentile(99);
        growth.push(ratio);
        let cells = [few.median(), many.median(), few.percentile(99), many.percentile(99)];
        let cells = cells.map(|milliseconds| format!("{milliseconds:.3}"));
        report.row(&[&[name.to_owned()], cells.as_slice(), &[format!("{ratio:.2}")]].concat());
    }
    report.line("");
    let worst = growth.into_iter().fold(0.0, f64::max);
    let goal =
        format!("p99 at {LONG} entries at most {MOST_GROWTH} times that at {SHORT}, deep pages included");
    report.goal(&goal, &format!("{worst:.2}"), worst <= MOST_GROWTH);
    report.line("");
    report.line("A filter costs what it has to look at. On the long trail, in ms:");
    report.line("");
    report.columns(&["filter", "p50"]);
    for filter in ["actor=grace", "resource_type=token", "search=theme-999", "search=nowhere"] {
        let mut sample = Sample::default();
        for _ in 0..FILTERED_REQUESTS {
            sample.push(long.ask(&format!("{PATH}?{filter}"))?);
        }
        report.row(&[format!("`{filter}`"), format!("{sample:.1}")]);
    }
    Ok(())
}

/// Fills both before either is queried: the server closes idle connections.
fn trails(folder: &Path) -> Outcome<[Trail; 2]> {
    let (short, long) = (folder.join("audit-short"), folder.join("audit-long"));
    let (of_short, of_long) = (fill(&short, SHORT)?, fill(&long, LONG)?);
    Ok([Trail::open(&short, SHORT, &of_short)?, Trail::open(&long, LONG, &of_long)?])
}

/// Creates an audit log with this many entries; returns the token of a user who may read it.
fn fill(data: &Path, entries: u32) -> Outcome<String> {
    let server = launch::serve(data)?;
    let (token, organization) = launch::register(&server)?;
    drop(server);
    workspace::run(
        Command::new(dist("examples/audit_rows"))
            .arg(data.join("launchway.db"))
            .args([organization, entries.to_string()]),
    )?;
    Ok(token)
}

/// A server whose audit log has this many entries.
struct Trail {
    _server: Server,
    connection: Connection,
    entries: u32,
}

impl Trail {
    fn open(data: &Path, entries: u32, token: &str) -> Outcome<Self> {
        let server = launch::serve(data)?;
        let connection = Connection::open(server.port, token)
            .map_err(|error| Failure::because("cannot connect to the server", error))?;
        Ok(Self { _server: server, connection, entries })
    }

    /// Returns the first page, or the one at a `1/depth` part of all pages.
    fn page(&self, depth: u32) -> String {
        let number = self.entries.checked_div(10 * depth).unwrap_or(1).max(1);
        format!("{PATH}?page={number}")
    }

    /// Returns the response time in milliseconds.
    fn ask(&mut self, path: &str) -> Outcome<f64> {
        let asked = Instant::now();
        http::expect_success(path, self.connection.get(path))?;
        Ok(asked.elapsed().as_secs_f64() * 1e3)
    }
}
