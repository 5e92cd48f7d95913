//! `log_lines <lines a call> <seconds> <full|off> [without-index]`: measures the log lines per second that a fresh SQLite
//! file takes from one caller, each call durable before the next.
//!
//! The lines belong to one deployment, and are as long as those of a typical build. They are indexed for searches
//! meanwhile, as a server does, unless the last argument says otherwise.
#![expect(clippy::print_stdout, reason = "the number is what the program is for")]

#[path = "records/application.rs"]
mod application;

use std::{
    env,
    error::Error,
    time::{Duration, Instant},
};

use chrono::DateTime;
use launchway_database::{Database, DatabaseOptions, DatabaseUrl, Synchronous};
use launchway_domain::{
    ids::{ApplicationId, DeploymentId},
    logs::{Level, LogSink as _, NewLine},
};
use uuid::Uuid;

use self::application::insert_application;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (lines, seconds, synchronous, is_indexed) =
        match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [lines, seconds, synchronous] => (lines, seconds, synchronous, true),
            [lines, seconds, synchronous, "without-index"] => (lines, seconds, synchronous, false),
            _ => return Err("log_lines <lines a call> <seconds> <full|off> [without-index]".into()),
        };
    let lines: usize = lines.parse()?;
    let length = Duration::from_secs(seconds.parse()?);
    let synchronous = match synchronous {
        "full" => Synchronous::Full,
        "off" => Synchronous::Off,
        other => return Err(format!("`full` or `off`, not `{other}`").into()),
    };
    let folder = tempfile::tempdir()?;
    let url = DatabaseUrl::Sqlite(folder.path().join("log_lines.db"));
    let database = Database::open(DatabaseOptions { synchronous, ..DatabaseOptions::new(url) })?;
    database.migrate().await?;
    let application = insert_application(&database).await?.id;
    if is_indexed {
        let database = database.clone();
        tokio::spawn(async move { database.run_search_index(|| true).await });
    }

    let begun = Instant::now();
    let mut appended: u128 = 0;
    while begun.elapsed() < length {
        database.append(some_lines(application, lines)).await?;
        appended += lines as u128;
    }
    println!("{}", appended * 1000 / begun.elapsed().as_millis());
    database.close().await;
    Ok(())
}

fn some_lines(application_id: ApplicationId, count: usize) -> Vec<NewLine> {
    let deployment_id = DeploymentId::from(Uuid::from_u128(5));
    let line = |number| NewLine {
        application_id,
        deployment_id,
        level: Level::Build,
        text: format!("#12 {number}.042 Compiling launchway-domain v0.1.0 (/build/crates/domain)"),
        at: DateTime::UNIX_EPOCH,
    };
    (0..count).map(line).collect()
}
