//! The start-up time of a new server, and its idle memory.

use std::{path::Path, thread, time::Duration};

use anyhow::Result;
use fs_err as fs;

use crate::{
    bench::{Effort, Figure, Report, Sample, http, launch, usage},
    workspace::dist,
};

const STARTS: u32 = 7;
const FIRST_ANSWER_MS: f64 = 100.0;
const IDLE_MEGABYTES: f64 = 20.0;

/// Starts the server a few times, each on an empty data folder.
pub(crate) fn measure(report: &mut Report, folder: &Path, effort: Effort) -> Result<()> {
    report.section("Start-up");
    report.paragraph(
        "The time from the start of the process to the first answer, on an empty data directory and without \
         a front proxy; then the memory after a second without requests.",
    );
    let [mut first_answers, mut resident]: [Sample; 2] = Default::default();
    for start in 0..effort.rounds(STARTS) {
        let server = launch::serve(&folder.join(format!("data-{start}")), &[])?;
        launch::wait_for("the first answer", Duration::from_millis(1), || {
            Ok(http::get(server.port, "/api/v1/auth/is-admin-registered", None).is_ok())
        })?;
        first_answers.push(server.started.elapsed().as_secs_f64() * 1e3);
        thread::sleep(Duration::from_secs(1));
        resident.push(usage::resident_megabytes(server.pid())?);
    }
    report.figure(Figure::new("first answer", "ms", 1, first_answers).at_most(FIRST_ANSWER_MS));
    report.figure(Figure::new("resident when idle", "MB", 1, resident).at_most(IDLE_MEGABYTES));
    let megabytes = fs::metadata(dist("launchway")).map_or(f64::NAN, |data| data.len() as f64 / 1e6);
    report.figure(Figure::new("binary", "MB", 1, [megabytes].into_iter().collect()));
    Ok(())
}
