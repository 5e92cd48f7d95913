//! The rows that are searched.

use chrono::{DateTime, TimeDelta};
use launchway_database::Database;
use launchway_domain::{
    applications::Application,
    audit::{self, Action, Author, Chain, Entry, Event, Resource},
    clock::Timestamp,
    ids::DeploymentId,
    logs::{Level, LogSink as _, NewLine},
    store::UnitOfWork as _,
};
use uuid::Uuid;

use crate::Outcome;

const AT_ONCE: u64 = 1000;

/// None, one, one in a thousand, one in ninety, one in nine, and all of the entries; the last with three characters.
pub(crate) const TERMS_OF_ENTRIES: [&str; 7] =
    ["nowhere", "entry 4242 ", "theme-999", "theme-99", "theme-9", "changed theme", "ada"];
/// None, one, one in five hundred, one in five, and all of the lines; the last with three characters.
pub(crate) const TERMS_OF_LINES: [&str; 6] =
    ["nowhere", "#12 4242.0", "crate-499 ", "crate-4", "compiling", "com"];

fn time(number: u64) -> Timestamp {
    DateTime::UNIX_EPOCH + TimeDelta::milliseconds(i64::try_from(number).unwrap_or_default())
}

/// Returns an id that looks like any other.
fn scattered(number: u64) -> Uuid {
    let mix = |seed: u64| {
        let mixed = (number ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    Uuid::from_u64_pair(mix(0x1234_5678), mix(0x8765_4321))
}

/// Appends entries to the audit log of the application's organization.
pub(crate) async fn append_entries(database: &Database, application: &Application, count: u64) -> Outcome {
    let chain = Chain::Organization(application.organization_id);
    let entry = |number: u64| {
        let author =
            Author { chain, name: "Ada".to_owned(), user_id: Some(application.user_id), origin: None };
        let message = format!("entry {number} changed theme to theme-{}", number % 1000);
        let event = Event::new(Action::Update, Resource::User, scattered(number), message)
            .with("theme", format!("theme-{}", number % 1000));
        let entry = Entry::new(Uuid::from_u128(u128::from(number) << 32).into(), author, event, time(number));
        audit::Write::Append(Entry { request_id: scattered(!number).to_string(), ..entry }).into()
    };
    for first in (0..count).step_by(AT_ONCE as usize) {
        database.commit((first..count.min(first + AT_ONCE)).map(entry).collect()).await?;
    }
    Ok(())
}

/// Appends lines to the log of the application.
pub(crate) async fn append_lines(database: &Database, application: &Application, count: u64) -> Outcome {
    let line = |number: u64| NewLine {
        application_id: application.id,
        deployment_id: DeploymentId::from(Uuid::from_u128(5)),
        level: Level::Build,
        text: format!(
            "#12 {number}.042 Compiling crate-{} v0.1.{} (/build/crates/crate-{})",
            number % 500,
            number % 10,
            number % 7
        ),
        at: time(number),
    };
    for first in (0..count).step_by(AT_ONCE as usize) {
        database.append((first..count.min(first + AT_ONCE)).map(line).collect()).await?;
    }
    Ok(())
}
