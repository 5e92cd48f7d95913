//! The time of a command of the command line, over the request that it makes.

use std::{path::Path, process::Command, time::Instant};

use anyhow::Result;

use crate::{
    bench::{Effort, Figure, Report, Repository, Sample, http, launch},
    workspace::{self, dist},
};

const ROUNDS: u32 = 101;
const MOST_MILLISECONDS: f64 = 30.0;
const APPLICATIONS: u32 = 25;
const LIST: &str = "/api/v1/deploy/applications";

/// Lists applications by the command line and by a request, in turn.
pub(crate) fn measure(report: &mut Report, folder: &Path, effort: Effort) -> Result<()> {
    report.section("Command line");
    report.paragraph(&format!(
        "Milliseconds of `launchway apps` from start to exit, and of the same request on a new connection, \
         in turn, with {APPLICATIONS} applications:"
    ));
    let repository = Repository::create(&folder.join("command-line-repository"), &[])?;
    let path = repository.path().display();
    let settings = [("LAUNCHWAY_ALLOWED_LOCAL_REPOSITORIES", path.to_string())];
    let server = launch::serve(&folder.join("command-line"), &settings)?;
    let token = launch::register(&server)?;
    for number in 0..APPLICATIONS {
        let application =
            launch::create(&server, &token, &launch::static_site(&format!("site-{number}"), &path))?;
        launch::wait_until_deployed(server.port, &token, &application)?;
    }
    let [mut commands, mut requests]: [Sample; 2] = Default::default();
    for _ in 0..effort.rounds(ROUNDS) {
        let started = Instant::now();
        let mut command = Command::new(dist("launchway"));
        command.arg("apps").env("LAUNCHWAY_URL", format!("http://127.0.0.1:{}", server.port));
        workspace::output(command.env("LAUNCHWAY_TOKEN", &token))?;
        commands.push(started.elapsed().as_secs_f64() * 1e3);
        let started = Instant::now();
        http::get(server.port, LIST, Some(&token))?;
        requests.push(started.elapsed().as_secs_f64() * 1e3);
    }
    let more = commands.minus(&requests);
    report.figure(Figure::new("`launchway apps`", "ms", 1, commands));
    report.figure(Figure::new("its request", "ms", 1, requests));
    report.figure(
        Figure::new("`launchway apps` more than its request", "ms", 1, more).at_most(MOST_MILLISECONDS),
    );
    Ok(())
}
