//! The rate of durable commits of the databases, by the number of writers.

use anyhow::Result;

use crate::{
    bench::{Effort, Figure, Plot, Report, Sample, plot, rate},
    postgres,
};

const ROUNDS: u32 = 7;
const WRITERS: [u32; 5] = [1, 4, 16, 64, 256];
/// The number of writers in the concurrent case.
const MANY: u32 = 64;
const LEAST_GAIN: f64 = 5.0;
const LEAST_SHARE: f64 = 0.5;

/// Compares one writer with many, and durable commits with ones that a power cut may lose.
pub(crate) fn measure(report: &mut Report, effort: Effort) -> Result<()> {
    report.section("Durable commits");
    report.paragraph(
        "Commits per second, measured for a second each, in turn, on a new database each time. Each commit \
         changes a setting and adds an entry to the audit log. All writers belong to one organization, whose \
         audit log is one hash chain. The SQLite columns name the value of `synchronous`; PostgreSQL has its \
         own settings.",
    );
    let postgres = postgres::Server::start(postgres::Durability::Machine)?;
    let mut durable = vec![Sample::default(); WRITERS.len()];
    let mut on_postgres = durable.clone();
    let mut unsafely = Sample::default();
    for round in 0..effort.rounds(ROUNDS) {
        for (place, writers) in WRITERS.into_iter().enumerate() {
            durable[place].push(commits("sqlite", writers, "full")?);
            let url = postgres.create_database(&format!("commits_{round}_{writers}"))?;
            on_postgres[place].push(commits(&url, writers, "full")?);
        }
        unsafely.push(commits("sqlite", MANY, "off")?);
    }
    report.columns("writers | SQLite, FULL | SQLite, OFF | PostgreSQL");
    for (place, writers) in WRITERS.into_iter().enumerate() {
        let off = if writers == MANY { format!("{unsafely:.0}") } else { "–".to_owned() };
        let (sqlite, postgres) = (&durable[place], &on_postgres[place]);
        report.row(&[writers.to_string(), format!("{sqlite:.0}"), off, format!("{postgres:.0}")]);
    }
    add_rows(report, &durable, &on_postgres, &unsafely);
    let mut plot = Plot::new("Durable commits", "writers", "1/s");
    for (name, samples) in [("SQLite", &durable), ("PostgreSQL", &on_postgres)] {
        plot.line(name, plot::points(&WRITERS, samples));
    }
    report.plot("commits", plot);
    Ok(())
}

fn add_rows(report: &mut Report, durable: &[Sample], on_postgres: &[Sample], unsafely: &Sample) {
    for (place, writers) in WRITERS.into_iter().enumerate() {
        let name = |database| format!("durable commits, {database}, {writers} writers");
        report.figure(Figure::new(name("SQLite"), "1/s", 0, durable[place].clone()));
        report.figure(Figure::new(name("PostgreSQL"), "1/s", 0, on_postgres[place].clone()));
    }
    let Some(together) = WRITERS.into_iter().position(|writers| writers == MANY) else { return };
    let name = format!("{MANY} writers over one, PostgreSQL");
    let gain = on_postgres[together].over(&on_postgres[0]);
    report.figure(Figure::new(name, "", 2, gain).at_least(LEAST_GAIN));
    let gain = durable[together].over(&durable[0]);
    let share = durable[together].over(unsafely);
    let is_met = gain.median() >= LEAST_GAIN || share.median() >= LEAST_SHARE;
    let either = |limit: f64, other: &str| format!("at least {limit}, or {other}");
    let name = format!("{MANY} writers over one, SQLite");
    let goal = either(LEAST_GAIN, &format!("{LEAST_SHARE} of without durability"));
    report.figure(Figure::new(name, "", 2, gain).judged(goal, is_met));
    let name = format!("{MANY} writers over the same without durability, SQLite");
    let goal = either(LEAST_SHARE, &format!("{LEAST_GAIN} times one writer"));
    report.figure(Figure::new(name, "", 2, share).judged(goal, is_met));
}

fn commits(database: &str, writers: u32, synchronous: &str) -> Result<f64> {
    rate("commits", &[database, &writers.to_string(), "1", synchronous])
}
