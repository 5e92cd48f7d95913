//! Checks that requests cost the same whatever the size of the tables they touch, and shows the cost of searches.

mod installation;
mod request;

use std::{net::Ipv4Addr, path::Path, time::Instant};

use anyhow::Result;

pub(crate) use self::{
    installation::{Installation, Place},
    request::Request,
};
use crate::{
    bench::{Connection, Effort, Figure, Plot, Report, Repository, Sample, plot},
    network::listen,
    postgres,
};

const ROUNDS: u32 = 5;
const MOST_GROWTH: f64 = 1.5;
const SIZES: [u32; 4] = [1_000, 10_000, 100_000, 1_000_000];
const QUICK_SIZES: [u32; 4] = [1_000, 2_000, 5_000, 10_000];
/// The first requests of a round fill caches, and are not counted.
const WARM_UP: u32 = 20;
const FILTERED_REQUESTS: u32 = 10;
const FILTERS: [&str; 4] = ["actor=grace", "resource_type=user", "search=theme-999", "search=nowhere"];

const METHOD: &str = "\
Each server has the given number of rows of each kind: applications, names of applications, deployments, jobs, audit \
entries of one organization, and log lines. The rows are copies of one application that the API created and deployed: \
for each table, one `INSERT … SELECT` copied its row, and derived ids, names and numbers from the number of the copy. \
Entries and lines are numbered without a gap, and their heads match; the hashes of the entries are copies. No \
application has more than 190,000 lines, because a server keeps 200,000. PostgreSQL was vacuumed and analyzed \
afterwards, as it does by itself in time; SQLite was left as it was.\n\n\
One client sends requests to the four servers of a database in turn, one by one. The deployments that it requests are \
spread over the whole table. The worker is on, with a deployment whose code host does not answer, so that deployments \
that are requested meanwhile wait.";

/// Queries servers with tables of different sizes in turn.
pub(crate) fn measure(report: &mut Report, folder: &Path, effort: Effort) -> Result<()> {
    let sizes = if effort == Effort::Quick { QUICK_SIZES } else { SIZES };
    report.section("Cost growth");
    report.paragraph(METHOD);
    let repository = Repository::create(&folder.join("growth-repository"), &[])?;
    // A code host that never answers: the kernel accepts connections, and nobody reads from them.
    let (_silent, silent) = listen(Ipv4Addr::LOCALHOST)?;
    let postgres = postgres::Server::start(postgres::Durability::Machine)?;
    let mut curves =
        Request::ALL.map(|request| (request, Plot::new(request.name(), "rows in each table", "ms")));
    for database in ["SQLite", "PostgreSQL"] {
        let mut installations = Vec::new();
        for rows in sizes {
            let place = Place {
                data: folder.join(format!("growth-{database}-{rows}")),
                database: match database {
                    "SQLite" => None,
                    _ => Some(postgres.create_database(&format!("rows_{rows}"))?),
                },
                repository: repository.path().to_owned(),
                silent,
            };
            installations.push(Installation::prepare(place, rows)?);
        }
        report.subsection(&format!("On {database}"));
        report.columns("request | rows | p50 ms | p99 ms");
        let mut figures = Vec::new();
        for (request, plot) in &mut curves {
            let curve = Curve::measure(&mut installations, *request, effort)?;
            curve.add_rows(report, *request, &sizes);
            curve.draw(plot, database, &sizes);
            figures.extend(curve.figures(*request, database, sizes));
        }
        for figure in figures {
            report.figure(figure);
        }
        if let Some(longest) = installations.last() {
            report_filters(report, longest)?;
        }
    }
    for (request, plot) in curves {
        report.plot(&format!("growth-{}", request.file()), plot);
    }
    Ok(())
}

/// The response times of one request, by the size of the tables.
struct Curve {
    /// The median of each round, for each size.
    usual: Vec<Sample>,
    /// The 99th percentile of each round, for each size.
    slow: Vec<Sample>,
}

impl Curve {
    fn measure(installations: &mut [Installation], request: Request, effort: Effort) -> Result<Self> {
        let nothing = || vec![Sample::default(); installations.len()];
        let mut curve = Self { usual: nothing(), slow: nothing() };
        for round in 0..effort.rounds(ROUNDS) {
            let times = one_round(installations, request, round, effort)?;
            for (size, times) in times.iter().enumerate() {
                curve.usual[size].push(times.median());
                curve.slow[size].push(times.percentile(99));
            }
        }
        Ok(curve)
    }

    fn add_rows(&self, report: &mut Report, request: Request, sizes: &[u32]) {
        for ((rows, usual), slow) in sizes.iter().zip(&self.usual).zip(&self.slow) {
            let cells = [format!("{usual:.3}"), format!("{slow:.3}")];
            report.row(&[&[request.name().to_owned(), rows.to_string()], cells.as_slice()].concat());
        }
    }

    fn draw(&self, plot: &mut Plot, database: &str, sizes: &[u32]) {
        plot.line(&format!("{database}, p50"), plot::points(sizes, &self.usual));
        plot.dashed("p99", plot::points(sizes, &self.slow));
    }

    /// Returns the ratio of the largest size to the smallest, round by round.
    fn figures(&self, request: Request, database: &str, sizes: [u32; 4]) -> Vec<Figure> {
        let growth = |samples: &[Sample]| match samples {
            [shortest, .., longest] => longest.over(shortest),
            _ => Sample::default(),
        };
        let [shortest, .., longest] = sizes;
        let name = |what| format!("{}, {database}: {what} at {longest} rows over {shortest}", request.name());
        let usual = Figure::new(name("p50"), "", 2, growth(&self.usual));
        let usual = if request.is_bounded() { usual.at_most(MOST_GROWTH) } else { usual };
        vec![usual, Figure::new(name("p99"), "", 2, growth(&self.slow))]
    }
}

/// Returns the milliseconds of each response, for each installation.
fn one_round(
    installations: &mut [Installation],
    request: Request,
    round: u32,
    effort: Effort,
) -> Result<Vec<Sample>> {
    let mut connections =
        installations.iter().map(Installation::connect).collect::<Result<Vec<Connection>>>()?;
    let mut times = vec![Sample::default(); installations.len()];
    for number in 0..WARM_UP + request.requests(effort) {
        for step in 0..installations.len() {
            // The order alternates, so that none always runs on a warmer machine.
            let which = (step + number as usize + round as usize) % installations.len();
            let milliseconds = ask(&mut installations[which], &mut connections[which], request)?;
            if number >= WARM_UP {
                times[which].push(milliseconds);
            }
        }
    }
    Ok(times)
}

fn ask(installation: &mut Installation, connection: &mut Connection, request: Request) -> Result<f64> {
    let (path, body) = request.of(installation);
    let asked = Instant::now();
    match &body {
        Some(body) => connection.post(&path, body)?,
        None => connection.get(&path)?,
    };
    Ok(asked.elapsed().as_secs_f64() * 1e3)
}

fn report_filters(report: &mut Report, longest: &Installation) -> Result<()> {
    report.paragraph("A filter of the audit log costs what it has to read. On the longest log, in ms:");
    report.columns("filter | p50");
    for filter in FILTERS {
        let mut connection = longest.connect()?;
        let mut sample = Sample::default();
        for _ in 0..FILTERED_REQUESTS {
            let path = format!("{}?{filter}", request::AUDIT);
            let asked = Instant::now();
            connection.get(&path)?;
            sample.push(asked.elapsed().as_secs_f64() * 1e3);
        }
        report.row(&[format!("`{filter}`"), format!("{sample:.1}")]);
    }
    Ok(())
}
