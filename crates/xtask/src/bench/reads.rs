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
    workspace::dist,
};

const ROUNDS: u32 = 7;
const SECONDS: u32 = 2;
const LEAST_RATIO: f64 = 0.5;
const MOST_MEGABYTES: f64 = 200.0;
/// The number of rows of the tables.
const ROWS: u32 = 1_000;

/// Loads the server and bare ones in turn and compares their requests per second.
pub(crate) fn measure(report: &mut Report, folder: &Path, effort: Effort) -> Result<()> {
    report.section("Authenticated reads");
    let seconds = effort.amount(SECONDS, 1);
    report.paragraph(&format!(
        "Each with a session on SQLite, its tables {ROWS} rows long, against actix-web serializing the same JSON \
         bare: `wrk -t1 -c32 -d{seconds}s` on each in turn."
    ));
    let repository = Repository::create(&folder.join("reads-repository"), &[])?;
    let place = Place {
        data: folder.join("reads"),
        database: None,
        repository: repository.path().to_owned(),
        // No request fetches a repository.
        silent: 1,
    };
    let mut launchway = Installation::prepare(place, ROWS)?;
    let mut resident = Sample::default();
    for (name, path) in paths(&mut launchway) {
        let rival = Rival::start(&launchway, &path, &folder.join("answer.json"))?;
        let (ours, theirs) = rival.measure(&launchway, &path, effort, seconds)?;
        resident.push(usage::resident_megabytes(launchway.server.pid())?);
        report.subsection(name);
        let shown = path.replace(&launchway.application, "{id}").replace(&launchway.deployment, "{id}");
        report.paragraph(&format!("`GET {shown}`, {} bytes.", rival.bytes));
        add_rows(report, name, &ours, &theirs);
    }
    report.paragraph("Memory of the server after each of these loads:");
    report.figure(Figure::new("resident under reads", "MB", 1, resident).at_most(MOST_MEGABYTES));
    Ok(())
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
    let rates = |loads: &[Load]| loads.iter().map(|load| load.requests_per_second).collect::<Sample>();
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

    fn measure(
        &self,
        launchway: &Installation,
        path: &str,
        effort: Effort,
        seconds: u32,
    ) -> Result<(Vec<Load>, Vec<Load>)> {
        let load = |server, seconds| wrk::load(server, path, &launchway.token, seconds);
        // The first run fills caches and connection pools, and is not counted.
        load(&launchway.server, 1)?;
        load(&self.server, 1)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..effort.rounds(ROUNDS) {
            // The order alternates with every round, so that neither always runs on a warmer machine.
            if round.is_multiple_of(2) {
                ours.push(load(&launchway.server, seconds)?);
                theirs.push(load(&self.server, seconds)?);
            } else {
                theirs.push(load(&self.server, seconds)?);
                ours.push(load(&launchway.server, seconds)?);
            }
        }
        Ok((ours, theirs))
    }
}
