//! `commits <sqlite|url> <writers> <seconds> <full|off> [without-index]`: measures the commits per second of a
//! fresh database, a SQLite file of its own or an empty database of a PostgreSQL server.
//!
//! Each commit changes a setting and appends to the audit log, as the use case does. All writers belong to
//! one organization, and thus append to one chain. Its entries are indexed for searches meanwhile, as a server does,
//! unless the last argument says otherwise.
#![expect(clippy::print_stdout, reason = "the number is what the program is for")]

use std::{
    env,
    error::Error,
    time::{Duration, Instant},
};

use chrono::DateTime;
use launchway_database::{Database, DatabaseOptions, DatabaseUrl, Synchronous};
use launchway_domain::{
    audit::{self, Action, Author, Chain, Entry, Event, Resource},
    ids::UserId,
    store::{self, StoreError, UnitOfWork as _},
    users::{SettingsChange, User, UserKind, Write},
};
use tokio::task::JoinSet;
use uuid::Uuid;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (database, writers, seconds, synchronous, is_indexed) =
        match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [database, writers, seconds, synchronous] => (database, writers, seconds, synchronous, true),
            [database, writers, seconds, synchronous, "without-index"] => {
                (database, writers, seconds, synchronous, false)
            }
            _ => return Err("commits <sqlite|url> <writers> <seconds> <full|off> [without-index]".into()),
        };
    let writers: u128 = writers.parse()?;
    let length = Duration::from_secs(seconds.parse()?);
    let synchronous = match synchronous {
        "full" => Synchronous::Full,
        "off" => Synchronous::Off,
        other => return Err(format!("`full` or `off`, not `{other}`").into()),
    };
    let folder = tempfile::tempdir()?;
    let url = match database {
        "sqlite" => DatabaseUrl::Sqlite(folder.path().join("commits.db")),
        url => url.parse()?,
    };
    let database = Database::open(DatabaseOptions { synchronous, ..DatabaseOptions::new(url) })?;
    database.migrate().await?;
    let mut users = Vec::new();
    for number in 0..writers {
        users.push(insert_user(&database, number).await?);
    }

    if is_indexed {
        let database = database.clone();
        tokio::spawn(async move { database.run_search_index(|| true).await });
    }
    let begun = Instant::now();
    let end = begun + length;
    let mut tasks = JoinSet::new();
    for user_id in users {
        tasks.spawn(write_until(database.clone(), user_id, end));
    }
    let mut commits: u128 = 0;
    while let Some(outcome) = tasks.join_next().await {
        commits += outcome??;
    }
    println!("{}", commits * 1000 / begun.elapsed().as_millis());
    database.close().await;
    Ok(())
}

async fn insert_user(database: &Database, number: u128) -> Outcome<UserId> {
    let id = Uuid::from_u128(number).into();
    let email = format!("user{number}@example.com").parse()?;
    let user = User::new(id, "Writer".parse()?, email, UserKind::AppUser, DateTime::UNIX_EPOCH);
    let entry = entry(id, u128::MAX - number, Action::Create, "joined", "name", "Writer");
    database.commit(vec![Write::Insert(user).into(), entry]).await?;
    Ok(id)
}

/// Returns the audit log entry of a change by a user.
fn entry(user_id: UserId, id: u128, action: Action, what: &str, name: &str, value: &str) -> store::Write {
    let chain = Chain::Organization(Uuid::from_u128(1).into());
    let author = Author { chain, name: "Writer".to_owned(), user_id: Some(user_id), origin: None };
    let event = Event::new(action, Resource::User, user_id, what).with(name, value);
    let entry = Entry::new(Uuid::from_u128(id).into(), author, event, DateTime::UNIX_EPOCH);
    audit::Write::Append(entry).into()
}

async fn write_until(database: Database, user_id: UserId, end: Instant) -> Result<u128, StoreError> {
    let mut commits = 0;
    while Instant::now() < end {
        let on = commits % 2 == 0;
        let changes = vec![SettingsChange::AutoUpdate(on)];
        let new_id = Uuid::from(user_id).into();
        let change = Write::ChangeSettings { user_id, new_id, changes, at: DateTime::UNIX_EPOCH };
        let what = format!("changed auto_update to `{on}`");
        // Later ids sort after earlier ones, as those of the server do.
        let id = (commits << 64) | Uuid::from(user_id).as_u128();
        let entry = entry(user_id, id, Action::Update, &what, "auto_update", &on.to_string());
        database.commit(vec![change.into(), entry]).await?;
        commits += 1;
    }
    Ok(commits)
}
