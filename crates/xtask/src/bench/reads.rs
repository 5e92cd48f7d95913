//! The cost of authenticated reads, compared with a bare server with the same body.

use std::{path::Path, process::Command};

use anyhow::Result;
use fs_err as fs;

use crate::{
    bench::{
        Effort, Figure, Load, Report, Repository, Sample, Server,
        growth::{Installation, Place, Request},
        http, usage, wrk,
    },
    postgres,
    workspace::dist,
};

const ROUNDS: u32 = 5;
const SECONDS: u32 = 2;
const LEAST_RATIO: f64 = 0.5;
const LEAST_RATIO_OF_POSTGRES: f64 = 0.5;
const MOST_MEGABYTES: f64 = 200.0;
/// The number of rows of the tables.
const ROWS: u32 = 1_000;

/// Loads the server and bare ones in turn and compares their requests per second.
pub(crate) fn measure(report: &mut Report, folder: &Path, effort: Effort) -> Result<()> {
    report.section("Authenticated reads");
    let seconds = effort.amount(SECONDS, 1);
    report.paragraph(&format!(
        "Each request has a session, on SQLite, with tables of {ROWS} rows. It is compared with a bare \
         actix-web handler that serializes the same JSON: `wrk -t1 -c32 -d{seconds}s` on each in turn."
    ));
    let repository = Repository::create(&folder.join("reads-repository"), &[])?;
    let place = |name: &str, database| Place {
        data: folder.join(name),
        database,
        repository: repository.path().to_owned(),
        // No request fetches a repository.
        silent: 1,
    };
    let mut launchway = Installation::prepare(place("reads", None), ROWS)?;
    let mut resident = Sample::default();
    for (name, path) in paths(&mut launchway) {
        let rival = Rival::start(&launchway, &path, &folder.join("answer.json"))?;
        let own = |seconds| wrk::load(&launchway.server, &path, &launchway.token, seconds);
        let bare = |seconds| wrk::load(&rival.server, &path, &launchway.token, seconds);
        let (ours, theirs) = in_turn(own, bare, effort, seconds)?;
        resident.push(usage::resident_megabytes(launchway.server.pid())?);
        report.subsection(name);
        let shown = path.replace(&launchway.application, "{id}").replace(&launchway.deployment, "{id}");
        report.paragraph(&format!("`GET {shown}`, {} bytes.", rival.bytes));
        add_rows(report, name, &ours, &theirs);
    }
    report.paragraph("Memory of the server after each of these loads:");
    report.figure(Figure::new("resident under reads", "MB", 1, resident).at_most(MOST_MEGABYTES));
    let postgres = postgres::Server::start(postgres::Durability::Machine)?;
    let database = postgres.create_database("reads")?;
    let other = Installation::prepare(place("reads-postgres", Some(database)), ROWS)?;
    compare_databases(report, [launchway, other], effort, seconds)
}

/// Loads a server on SQLite and one on PostgreSQL with the same requests.
fn compare_databases(
    report: &mut Report,
    [mut sqlite, mut postgres]: [Installation; 2],
    effort: Effort,
    seconds: u32,
) -> Result<()> {
    report.subsection("On PostgreSQL");
    report.paragraph(
        "The same requests to a server on PostgreSQL, on the same machine, and to one on SQLite, in turn:",
    );
    let paths = paths(&mut sqlite).into_iter().zip(paths(&mut postgres));
    for ((name, path), (_, other_path)) in paths {
        let on_sqlite = |seconds| wrk::load(&sqlite.server, &path, &sqlite.token, seconds);
        let on_postgres = |seconds| wrk::load(&postgres.server, &other_path, &postgres.token, seconds);
        let (theirs, ours) = in_turn(on_sqlite, on_postgres, effort, seconds)?;
        let ratio = rates(&ours).over(&rates(&theirs));
        let name = format!("{name}: requests/s on PostgreSQL of those on SQLite");
        report.figure(Figure::new(name, "", 2, ratio).at_least(LEAST_RATIO_OF_POSTGRES));
    }
    Ok(())
}

fn rates(loads: &[Load]) -> Sample {
    loads.iter().map(|load| load.requests_per_second).collect()
}

fn paths(launchway: &mut Installation) -> [(&'static str, String); 4] {
    let deployment = &launchway.deployment;
    let deployment = format!("/api/v1/deploy/application/deployments/{deployment}");
    [
        ("settings", "/api/v1/user/settings".to_owned()),
        ("deployment with relations", deployment),
        ("audit page", Request::Audit.of(launchway).0),
        ("log page", Request::Logs.of(launchway).0),
    ]
}

fn add_rows(report: &mut Report, name: &str, ours: &[Load], theirs: &[Load]) {
    report.columns("round | launchway req/s | bare req/s | ratio | launchway CPU µs | bare CPU µs");
    for (round, (own, other)) in ours.iter().zip(theirs).enumerate() {
        report.row(&[
            (round + 1).to_string(),
            format!("{:.0}", own.requests_per_second),
            format!("{:.0}", other.requests_per_second),
            format!("{:.2}", own.requests_per_second / other.requests_per_second),
            format!("{:.1}", own.cpu_microseconds_per_request),
            format!("{:.1}", other.cpu_microseconds_per_request),
        ]);
    }
    let processor = |loads: &[Load]| loads.iter().map(|load| load.cpu_microseconds_per_request).collect();
    let ratio = rates(ours).over(&rates(theirs));
    report.figure(Figure::new(format!("{name}: requests/s of bare"), "", 2, ratio).at_least(LEAST_RATIO));
    report.figure(Figure::new(format!("{name}: requests/s"), "1/s", 0, rates(ours)));
    report.figure(Figure::new(format!("{name}: CPU of a request"), "µs", 1, processor(ours)));
    report.figure(Figure::new(format!("{name}: CPU of a bare request"), "µs", 1, processor(theirs)));
}

/// A bare server that returns the same body.
struct Rival {
    server: Server,
    bytes: usize,
}

impl Rival {
    fn start(launchway: &Installation, path: &str, file: &Path) -> Result<Self> {
        let body = http::get(launchway.server.port, path, Some(&launchway.token))?;
        fs::write(file, &body)?;
        let server = Server::start(Command::new(dist("examples/bare")).arg(file))?;
        Ok(Self { server, bytes: body.len() })
    }
}

/// Loads two servers in turn.
fn in_turn(
    one: impl Fn(u32) -> Result<Load>,
    other: impl Fn(u32) -> Result<Load>,
    effort: Effort,
    seconds: u32,
) -> Result<(Vec<Load>, Vec<Load>)> {
    // The first run fills caches and connection pools, and is not counted.
    one(1)?;
    other(1)?;
    let (mut of_one, mut of_other) = (Vec::new(), Vec::new());
    for round in 0..effort.rounds(ROUNDS) {
        // The order alternates with every round, so that neither always runs on a warmer machine.
        if round.is_multiple_of(2) {
            of_one.push(one(seconds)?);
            of_other.push(other(seconds)?);
        } else {
            of_other.push(other(seconds)?);
            of_one.push(one(seconds)?);
        }
    }
    Ok((of_one, of_other))
}
