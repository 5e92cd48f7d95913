//! How soon a new server answers, and what it holds while idle.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::{
    bench::{http, launch, report::Report, sample::Sample, server::Server, usage},
    failure::{Failure, Outcome},
};

const STARTS: u32 = 5;
const FIRST_ANSWER_MS: f64 = 100.0;
const IDLE_MEGABYTES: f64 = 30.0;
const PATIENCE: Duration = Duration::from_secs(20);

/// Starts the server a few times, each on an empty data folder; the last one keeps running.
pub(crate) fn measure(report: &mut Report, folder: &Path) -> Outcome<Server> {
    report.section("Start-up");
    report.line("From the start of the process, on an empty data folder and without a front proxy, to the first answer.");
    report.line("");
    let mut first_answers = Sample::default();
    let mut server = None;
    for start in 0..STARTS {
        // The one before must be gone before the next is measured.
        drop(server.take());
        let started = launch::serve(&folder.join(format!("data-{start}")))?;
        first_answers.push(first_answer(&started)?.as_secs_f64() * 1e3);
        server = Some(started);
    }
    let server = server.ok_or_else(|| Failure::new("no server was started"))?;

    thread::sleep(Duration::from_secs(1));
    let resident = usage::resident_megabytes(server.pid())?;

    let goal = format!("first answer within {FIRST_ANSWER_MS} ms, median of {STARTS} starts");
    report.goal(&goal, &format!("{first_answers:.1} ms"), first_answers.median() <= FIRST_ANSWER_MS);
    let goal = format!("at most {IDLE_MEGABYTES} MB resident after a second of idling");
    report.goal(&goal, &format!("{resident:.1} MB"), resident <= IDLE_MEGABYTES);
    Ok(server)
}

/// Asks every millisecond until the server answers.
fn first_answer(server: &Server) -> Outcome<Duration> {
    loop {
        let answer = http::get(server.port, "/api/v1/auth/is-admin-registered", None);
        let waited = Instant::now().duration_since(server.started);
        match http::expect_success("the new server", answer) {
            Ok(_) => return Ok(waited),
            Err(failure) if waited > PATIENCE => return Err(failure),
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}
