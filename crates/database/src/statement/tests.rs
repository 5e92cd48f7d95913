//! Statements stay prepared.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use diesel::{
    connection::{Connection as _, Instrumentation, InstrumentationEvent, SimpleConnection as _},
    pg::PgConnection,
    prelude::*,
    sql_types::Text,
    sqlite::SqliteConnection,
};

use launchway_testkit::postgres::FreshDatabase;

use super::*;
use crate::connection::AnyConnection;

diesel::table! {
    notes (id) {
        id -> BigInt,
        text -> Text,
    }
}

/// The number of statements that were added to the cache.
struct Additions(Arc<AtomicUsize>);

impl Instrumentation for Additions {
    fn on_connection_event(&mut self, event: InstrumentationEvent<'_>) {
        if matches!(event, InstrumentationEvent::CacheQuery { .. }) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A table of ten notes, and the number of statements that were added to the cache since.
fn notes() -> (AnyConnection, Arc<AtomicUsize>) {
    let mut connection = SqliteConnection::establish(":memory:").unwrap();
    connection
        .batch_execute(
            "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
             INSERT INTO notes (text) VALUES ('a'), ('b'), ('c'), ('d'), ('e'), ('f'), ('g'), ('h'), ('i'), ('j')",
        )
        .unwrap();
    let mut connection = AnyConnection::Sqlite(connection);
    let additions = Arc::new(AtomicUsize::new(0));
    connection.set_instrumentation(Additions(Arc::clone(&additions)));
    (connection, additions)
}

#[test]
fn an_update_is_prepared_once() {
    let (mut connection, additions) = notes();
    for (id, text) in [(1_i64, "x"), (2, "y"), (3, "z")] {
        let update = diesel::update(notes::table.find(id)).set(notes::text.eq(text));
        assert_eq!(update.cached().execute(&mut connection).unwrap(), 1);
    }
    assert_eq!(additions.load(Ordering::Relaxed), 1);
    let texts: Vec<String> =
        notes::table.filter(notes::id.le(3)).select(notes::text).load(&mut connection).unwrap();
    assert_eq!(texts, ["x", "y", "z"]);
}

#[test]
fn an_update_is_prepared_once_on_postgres() {
    let server = FreshDatabase::create();
    let mut postgres = PgConnection::establish(&server.url()).unwrap();
    postgres.batch_execute("CREATE TABLE notes (id BIGINT PRIMARY KEY, text TEXT NOT NULL)").unwrap();
    let additions = Arc::new(AtomicUsize::new(0));
    postgres.set_instrumentation(Additions(Arc::clone(&additions)));
    for text in ["x", "y"] {
        diesel::update(notes::table.find(1_i64))
            .set(notes::text.eq(text))
            .cached()
            .execute(&mut postgres)
            .unwrap();
    }
    assert_eq!(additions.load(Ordering::Relaxed), 1);
    let mut connection = AnyConnection::Postgres(postgres);
    for text in ["x", "y"] {
        let update = diesel::update(notes::table.find(1_i64)).set(notes::text.eq(text));
        update.cached().execute(&mut connection).unwrap();
    }
    assert_eq!(additions.load(Ordering::Relaxed), 1, "either connection writes the same text");
}

#[test]
fn an_update_that_returns_rows_is_prepared_once() {
    let (mut connection, additions) = notes();
    let AnyConnection::Sqlite(sqlite) = &mut connection else { unreachable!() };
    for text in ["x", "y"] {
        let update =
            diesel::update(notes::table.find(1_i64)).set(notes::text.eq(text)).returning(notes::text);
        assert_eq!(update.cached().get_result::<String>(sqlite).unwrap(), text);
    }
    assert_eq!(additions.load(Ordering::Relaxed), 1);
}

#[test]
fn a_query_with_a_literal_is_prepared_once() {
    let (mut connection, additions) = notes();
    for id in [1_i64, 2] {
        let found: Vec<String> = notes::table
            .filter(notes::id.eq(id).and(literal::<Bool>("notes.text IN ('a', 'b')")))
            .select(literal::<Text>("upper(notes.text)"))
            .load(&mut connection)
            .unwrap();
        assert_eq!(found.len(), 1);
    }
    assert_eq!(additions.load(Ordering::Relaxed), 1);
}

fn found(connection: &mut AnyConnection, ids: std::ops::RangeInclusive<i64>) -> Vec<i64> {
    notes::table.filter(notes::id.one_of(ids)).select(notes::id).order(notes::id).load(connection).unwrap()
}

#[test]
fn a_list_of_one_value_is_prepared_and_a_longer_one_is_not() {
    let (mut connection, additions) = notes();
    for last in 0..=10 {
        assert_eq!(found(&mut connection, 1..=last), (1..=last).collect::<Vec<_>>());
        assert_eq!(found(&mut connection, last..=last), if last > 0 { vec![last] } else { vec![] });
    }
    // The empty list, and that of one value.
    assert_eq!(additions.load(Ordering::Relaxed), 2);
}
