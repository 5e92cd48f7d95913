//! The server is killed at random times, under load, and started again.

use std::{
    fs,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use launchway_testkit::docker::{base_image, docker};

use crate::{
    cluster::Cluster,
    harness::{Harness, Plan},
    load::{Load, STEADY},
    options::Options,
    process::Server,
    rng::Rng,
    section::Section,
    verdict::{self, Question},
};

/// Orphaned resources of the engine are removed every minute, when they are two minutes old.
const REST: Duration = Duration::from_secs(240);

const METHOD: &str = "\
Three clients redeploy three sites and two applications in containers, create more sites, and read logs, with pauses \
of 40 to 160 ms. The server gets SIGKILL after 0.1 to 1.4 s, every eighth time while it starts, and is started again \
on the same data. The ledger has every acknowledgement and every log line that was shown. At the end the server is \
started once more, and the verifier compares. A deployment whose worker was lost three times has failed, as \
documented.";

pub(crate) fn on_sqlite(options: &Options) -> Section {
    run(options, Section::new("Kills of the server, SQLite", METHOD), None)
}

pub(crate) fn on_postgres(options: &Options) -> Section {
    let section = Section::new("Kills of the server, PostgreSQL", METHOD);
    let cluster = Cluster::start();
    run(options, section, Some(&cluster))
}

fn run(options: &Options, mut section: Section, cluster: Option<&Cluster>) -> Section {
    let plan = Plan { postgres: cluster.map(Cluster::url), sites: 3, containers: 2, ..Plan::default() };
    let mut harness = Harness::set(options, &plan);
    let load = Load::on(&harness, STEADY);
    let mut rng = Rng::fresh();
    let (mut slowest_start, mut while_starting, mut own_ends) = (Duration::ZERO, 0, 0);
    let kills = options.kills();
    for kill in 1..=kills {
        if kill % 8 == 0 {
            harness.server.kill();
            harness.server = Server::spawn(&harness.launch);
            sleep(rng.millis(1, 120));
            while_starting += 1;
        } else {
            sleep(rng.millis(100, 1400));
        }
        own_ends += usize::from(harness.server.exit().is_some());
        let unfinished = (kill == kills).then(|| {
            harness.server.kill();
            open_deployments(&harness)
        });
        let started = Instant::now();
        harness.restart();
        slowest_start = slowest_start.max(started.elapsed());
        if kill % 50 == 0 {
            eprintln!("  {kill} kills, {}", load.responses().shown());
        }
        if let Some(unfinished) = unfinished {
            section.control(
                "open deployments after the last kill, before the server was started again",
                unfinished,
            );
        }
    }
    let responses = load.end();
    let (figures, rest) = harness.wait_until_finished(REST);
    section.note("kills", kills);
    section.note("of them while the server started", while_starting);
    section.never("ends of the server by itself", own_ends);
    section.note("answers by status", responses.shown());
    section.never("answers other than 200 and 503", responses.odd());
    section.note("longest start after a kill, to the first answer", seconds(slowest_start));
    section.note("from the end of the load until everything was at its end", seconds(rest));
    verdict::add_figures(&mut section, &figures);
    verdict::report_engine(&mut section, &figures);
    verdict::add_false_records(&mut section, &harness);
    leak(&mut section, &mut harness);
    section
}

/// Returns the number of open deployments in the database. The verifier reads a copy where reading would
/// affect the next start.
fn open_deployments(harness: &Harness) -> usize {
    let copy = harness.folder().join("copy");
    let mut question = Question { at_rest: Some(0), instance: None, ..harness.question() };
    if question.database.starts_with("sqlite:") {
        copy_database(&harness.data(), &copy);
        question.database = format!("sqlite:{}", copy.join("launchway.db").display());
    }
    question.ask().expect("the verifier can read everything").not_terminal
}

/// Copies the files of a database that no process has open.
pub(super) fn copy_database(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["launchway.db", "launchway.db-wal"] {
        let _absent = fs::remove_file(to.join(name));
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
}

/// Starts a container that the server did not create: it must be found.
fn leak(section: &mut Section, harness: &mut Harness) {
    // Otherwise the server would remove it.
    harness.server.kill();
    let label = format!("launchway.instance={}", harness.instance());
    docker(&["create", "--label", &label, base_image(), "true"]);
    let figures = harness.question().ask().expect("the verifier can read everything");
    section.control("one container that no record has, found as leaked", usize::from(figures.leaked == 1));
}

pub(super) fn seconds(duration: Duration) -> String {
    format!("{:.2} s", duration.as_secs_f64())
}
