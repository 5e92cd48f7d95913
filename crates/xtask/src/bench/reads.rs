//! What an authenticated read costs, next to a bare server with the same body.

use std::{fs, path::Path, process::Command};

use crate::{
    bench::{http, launch, report::Report, sample::Sample, server::Server, wrk},
    failure::{Failure, Outcome},
    workspace::release,
};

const ROUNDS: u32 = 5;
const SECONDS: u32 = 3;
const LEAST_RATIO: f64 = 0.35;
const AIM: f64 = 0.5;
const PATH: &str = "/api/v1/user/settings";

/// Loads both servers in turn and compares their requests per second.
pub(crate) fn measure(report: &mut Report, launchway: Server, folder: &Path) -> Outcome {
    let (token, _organization) = launch::register(&launchway)?;
    let settings = http::get(launchway.port, PATH, Some(&token));
    let settings = http::expect_success(&format!("GET {PATH}"), settings)?;
    let file = folder.join("settings.json");
    fs::write(&file, &settings.body)
        .map_err(|error| Failure::because(format_args!("cannot write {}", file.display()), error))?;
    let bare = Server::start(Command::new(release("examples/bare")).arg(&file))?;

    report.section("Authenticated read");
    report.line(&format!("`GET {PATH}` with a session, against actix-web serving the same bytes bare:"));
    report.line(&format!("`wrk -t1 -c32 -d{SECONDS}s` on each in turn."));
    report.line("");
    report.columns(&["round", "launchway req/s", "bare req/s", "ratio", "launchway CPU µs", "bare CPU µs"]);

    // The first run fills caches and connection pools, and is not counted.
    wrk::load(&launchway, PATH, &token, 1)?;
    wrk::load(&bare, PATH, &token, 1)?;
    let mut ratios = Sample::default();
    for round in 1..=ROUNDS {
        let (ours, theirs) = both(&launchway, &bare, &token, round)?;
        let ratio = ours.requests_per_second / theirs.requests_per_second;
        ratios.push(ratio);
        report.row(&[
            round.to_string(),
            format!("{:.0}", ours.requests_per_second),
            format!("{:.0}", theirs.requests_per_second),
            format!("{ratio:.2}"),
            format!("{:.1}", ours.cpu_microseconds_per_request),
            format!("{:.1}", theirs.cpu_microseconds_per_request),
        ]);
    }
    report.line("");
    let goal = format!("at least {LEAST_RATIO} of the bare server, aiming at {AIM}");
    report.goal(&goal, &format!("{ratios:.2}"), ratios.median() >= LEAST_RATIO);
    Ok(())
}

/// Whoever goes first changes with every round, so that neither always meets a warmer machine.
fn both(ours: &Server, theirs: &Server, token: &str, round: u32) -> Outcome<(wrk::Load, wrk::Load)> {
    let load = |server| wrk::load(server, PATH, token, SECONDS);
    if round.is_multiple_of(2) {
        let theirs = load(theirs)?;
        Ok((load(ours)?, theirs))
    } else {
        Ok((load(ours)?, load(theirs)?))
    }
}
