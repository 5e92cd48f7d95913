//! `rows <database url> <rows> [running|stopped <port>]`: fills the tables of an installation with many
//! rows, for `cargo xtask bench`.
//!
//! The installation has one application, which was deployed once. Each table that such a request touches
//! gets so many copies of the row that the request wrote, by one statement. Unique columns are derived from
//! the copy's number. The numbers of audit entries and log lines stay contiguous, and their heads are
//! updated, so that the server reads them like its own. The hashes of the audit entries are copies as well,
//! so verifying the audit log fails. In the end everything is indexed for searches, which a server would do in the
//! background.
//!
//! With `running` or `stopped`, each copy of the application has a live version with a container of its
//! own, whose loopback address is derived from the copy's number; without, no copy has a live version.

mod dialect;
mod tables;

use std::error::Error;

use diesel::{
    Connection as _, PgConnection, QueryableByName, RunQueryDsl as _, SqliteConnection,
    connection::SimpleConnection as _, sql_query, sql_types::Text,
};
use launchway_database::{AnyConnection, Database, DatabaseOptions, DatabaseUrl};

use self::{
    dialect::Dialect,
    tables::{LiveVersions, copies, heads},
};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (url, rows, live) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [url, rows] => (url, rows, None),
        [url, rows, "running", port] => (url, rows, Some(LiveVersions::Running { port: port.parse()? })),
        [url, rows, "stopped", port] => (url, rows, Some(LiveVersions::Stopped { port: port.parse()? })),
        _ => return Err("usage: rows <database url> <rows> [running|stopped <port>]".into()),
    };
    let rows: u64 = rows.parse()?;
    let (mut connection, dialect) = open(url)?;
    connection.batch_execute(dialect.before())?;
    for table in copies(dialect, live) {
        connection.batch_execute(&table.template())?;
    }
    for table in copies(dialect, live) {
        let columns = columns(&mut connection, dialect, table.name)?;
        connection.batch_execute(&table.statement(dialect, &columns, rows))?;
    }
    for statement in heads(dialect, rows) {
        connection.batch_execute(&statement)?;
    }
    for statement in dialect.after() {
        connection.batch_execute(statement)?;
    }
    drop(connection);
    let database = Database::open(DatabaseOptions::new(url.parse()?))?;
    while database.extend_search_index().await? {}
    database.close().await;
    Ok(())
}

fn open(url: &str) -> Outcome<(AnyConnection, Dialect)> {
    Ok(match url.parse()? {
        DatabaseUrl::Sqlite(path) => {
            let path = path.to_str().ok_or("the path is not UTF-8")?;
            (AnyConnection::Sqlite(SqliteConnection::establish(path)?), Dialect::Sqlite)
        }
        DatabaseUrl::Postgres(url) => {
            (AnyConnection::Postgres(PgConnection::establish(&url)?), Dialect::Postgres)
        }
    })
}

#[derive(QueryableByName)]
struct Column {
    #[diesel(sql_type = Text)]
    name: String,
}

/// Returns the columns of a table, whichever migrations made them.
fn columns(connection: &mut AnyConnection, dialect: Dialect, table: &str) -> Outcome<Vec<String>> {
    let query = sql_query(dialect.columns_of(table));
    let columns: Vec<Column> = match connection {
        AnyConnection::Sqlite(sqlite) => query.load(sqlite)?,
        AnyConnection::Postgres(postgres) => query.load(postgres)?,
    };
    Ok(columns.into_iter().map(|column| column.name).collect())
}
