//! `search <sqlite|url> <entries> <lines>`: measures searches in an audit log and in the log of an application, on a
//! fresh database.
//!
//! Prints a line for each term, with tabs: the log, the term, its matches, and the median milliseconds of a scan, of
//! the first search with the index, and of later ones. A line `index` follows for each log: its rows, the seconds that
//! indexing took, and the bytes of the index per row.
#![expect(clippy::print_stdout, reason = "the numbers are what the program is for")]

#[path = "../records/application.rs"]
mod application;
mod rows;

use std::{
    env,
    error::Error,
    time::{Duration, Instant},
};

use diesel::{
    QueryableByName, RunQueryDsl as _, connection::SimpleConnection as _, sql_query, sql_types::BigInt,
};
use launchway_database::{AnyConnection, Database, DatabaseOptions, DatabaseUrl};
use launchway_domain::{
    applications::Application,
    audit::{AuditRepository, Filter},
    logs::{LogFilter, LogReader},
    organizations::Scope,
    page::PageRequest,
};

use self::application::insert_application;

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Scans and first searches, each on a database that was just opened and has no counts.
const FEW: usize = 3;
const MANY: usize = 21;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [place, entries, lines] =
        <[String; 3]>::try_from(arguments).map_err(|_other| "search <sqlite|url> <entries> <lines>")?;
    let (entries, lines) = (entries.parse()?, lines.parse()?);
    let folder = tempfile::tempdir()?;
    let url = match place.as_str() {
        "sqlite" => DatabaseUrl::Sqlite(folder.path().join("search.db")),
        url => url.parse()?,
    };
    let database = Database::open(DatabaseOptions::new(url.clone()))?;
    database.migrate().await?;
    let application = insert_application(&database).await?;
    rows::append_entries(&database, &application, entries).await?;
    measure(&url, &database, Log::Audit(&application), entries).await?;
    rows::append_lines(&database, &application, lines).await?;
    measure(&url, &database, Log::Lines(&application), lines).await?;
    database.close().await;
    Ok(())
}

/// A log to search in.
#[derive(Clone, Copy)]
enum Log<'a> {
    Audit(&'a Application),
    Lines(&'a Application),
}

impl Log<'_> {
    fn name(self) -> &'static str {
        match self {
            Self::Audit(_) => "audit",
            Self::Lines(_) => "log",
        }
    }

    fn terms(self) -> &'static [&'static str] {
        match self {
            Self::Audit(_) => &rows::TERMS_OF_ENTRIES,
            Self::Lines(_) => &rows::TERMS_OF_LINES,
        }
    }

    /// Returns the number of matches.
    async fn search(self, database: &Database, term: &str) -> Outcome<i64> {
        let search = Some(term.to_owned());
        Ok(match self {
            Self::Audit(application) => {
                let (scope, filter) = (scope(application), Filter { search, ..Filter::default() });
                AuditRepository::page(database, scope, &filter, PageRequest::new(1, 10, 100)?).await?.total
            }
            Self::Lines(application) => {
                let filter = LogFilter { search, ..LogFilter::default() };
                let page = PageRequest::new(1, 100, 1000)?;
                let page =
                    LogReader::page(database, scope(application), application.id, &filter, page).await?;
                page.ok_or("there is no application")?.total
            }
        })
    }
}

fn scope(application: &Application) -> Scope {
    Scope::of_record(application.organization_id)
}

async fn measure(url: &DatabaseUrl, database: &Database, log: Log<'_>, rows: u64) -> Outcome {
    settle(database).await?;
    let mut scans = Vec::new();
    for term in log.terms() {
        scans.push(first(url, log, term).await?);
    }
    let (before, begun) = (size(database).await?, Instant::now());
    while database.extend_search_index().await? {}
    let seconds = begun.elapsed().as_secs_f64();
    settle(database).await?;
    for (term, scan) in log.terms().iter().zip(scans) {
        let first = first(url, log, term).await?;
        let matches = log.search(database, term).await?;
        let mut later = Vec::new();
        for _ in 0..MANY {
            later.push(time(log.search(database, term)).await?);
        }
        println!(
            "{}\t{term}\t{matches}\t{:.2}\t{:.2}\t{:.2}",
            log.name(),
            median(scan),
            median(first),
            median(later)
        );
    }
    let bytes = (size(database).await? - before) as f64 / rows as f64;
    println!("index\t{}\t{rows}\t{seconds:.1}\t{bytes:.0}", log.name());
    Ok(())
}

async fn first(url: &DatabaseUrl, log: Log<'_>, term: &str) -> Outcome<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..FEW {
        let database =
            Database::open(DatabaseOptions { connections: 1, ..DatabaseOptions::new(url.clone()) })?;
        // Connects, and reads the schema.
        log.search(&database, "warm-up").await?;
        times.push(time(log.search(&database, term)).await?);
        database.close().await;
    }
    Ok(times)
}

async fn time(search: impl Future<Output = Outcome<i64>>) -> Outcome<Duration> {
    let begun = Instant::now();
    search.await?;
    Ok(begun.elapsed())
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).map_or(0.0, Duration::as_secs_f64) * 1e3
}

/// Makes the statistics that autovacuum makes in time.
async fn settle(database: &Database) -> Outcome {
    let vacuum = |connection: &mut AnyConnection| match connection {
        AnyConnection::Sqlite(_) => Ok(()),
        AnyConnection::Postgres(postgres) => Ok(postgres.batch_execute("VACUUM ANALYZE")?),
    };
    Ok(database.read(vacuum).await?)
}

#[derive(QueryableByName)]
struct Bytes {
    #[diesel(sql_type = BigInt)]
    bytes: i64,
}

/// Returns the bytes of the index.
async fn size(database: &Database) -> Outcome<i64> {
    let query = |connection: &mut AnyConnection| {
        let bytes: Bytes = match connection {
            AnyConnection::Sqlite(sqlite) => sql_query(
                "SELECT COALESCE(SUM(pgsize), 0) AS bytes FROM dbstat
                 WHERE name LIKE 'search\\_%' ESCAPE '\\' OR name LIKE 'sqlite\\_autoindex\\_search\\_%' ESCAPE '\\'",
            )
            .get_result(sqlite)?,
            AnyConnection::Postgres(postgres) => {
                sql_query("SELECT pg_total_relation_size('search_postings') AS bytes").get_result(postgres)?
            }
        };
        Ok(bytes.bytes)
    };
    Ok(database.read(query).await?)
}
