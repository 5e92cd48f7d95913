//! Reads the database with plain SQL.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
};

use diesel::{
    Connection as _, PgConnection, QueryResult, QueryableByName, RunQueryDsl as _, SqliteConnection,
    connection::SimpleConnection as _, sql_query, sql_types::Text,
};

/// A connection to the database of an installation.
pub enum Database {
    /// An SQLite file.
    Sqlite(Box<SqliteConnection>),
    /// A PostgreSQL server.
    Postgres(Box<PgConnection>),
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    value: String,
}

impl Database {
    /// Opens `sqlite:<file>`, which has to exist, or `postgres://…`.
    ///
    /// # Errors
    /// Returns why it cannot be opened.
    pub fn open(url: &str) -> Result<Self, String> {
        let Some(file) = url.strip_prefix("sqlite:") else {
            let connection = PgConnection::establish(url).map_err(|error| error.to_string())?;
            return Ok(Self::Postgres(Box::new(connection)));
        };
        let file = format!("file:{file}?mode=rw");
        let mut connection = SqliteConnection::establish(&file).map_err(|error| error.to_string())?;
        connection.batch_execute("PRAGMA busy_timeout = 5000;").map_err(|error| error.to_string())?;
        Ok(Self::Sqlite(Box::new(connection)))
    }

    /// Returns the state of every deployment, by its id without dashes.
    ///
    /// # Errors
    /// Returns why it cannot be read.
    pub fn deployments(&mut self) -> QueryResult<HashMap<String, String>> {
        let id = self.id("id");
        let rows = self.rows(&format!("SELECT {id} || ' ' || status AS value FROM deployments"))?;
        Ok(rows.iter().filter_map(|row| row.split_once(' ')).map(owned).collect())
    }

    /// Returns the number of unfinished jobs.
    ///
    /// # Errors
    /// Returns why it cannot be read.
    pub fn open_jobs(&mut self) -> QueryResult<usize> {
        let id = self.id("id");
        let rows = self
            .rows(&format!("SELECT {id} AS value FROM jobs WHERE state NOT IN ('succeeded', 'failed', 'cancelled', 'superseded')"))?;
        Ok(rows.len())
    }

    /// Returns the lines of an application's log, by their position.
    ///
    /// # Errors
    /// Returns why it cannot be read.
    pub fn lines(&mut self, application: &str) -> QueryResult<HashMap<u64, String>> {
        let id = self.id("application_id");
        let rows = self.rows(&format!(
            "SELECT CAST(number AS TEXT) || ' ' || log AS value FROM application_logs \
             WHERE {id} = '{application}'"
        ))?;
        let lines = rows.iter().filter_map(|row| row.split_once(' '));
        Ok(lines.filter_map(|(number, text)| Some((number.parse().ok()?, text.to_owned()))).collect())
    }

    /// Returns the applications whose log has a missing position.
    ///
    /// # Errors
    /// Returns why it cannot be read.
    pub fn logs_with_gaps(&mut self) -> QueryResult<Vec<String>> {
        let id = self.id("application_id");
        self.rows(&format!(
            "SELECT {id} AS value FROM application_logs GROUP BY application_id \
             HAVING MAX(number) - MIN(number) + 1 <> COUNT(*)"
        ))
    }

    /// Returns the containers of live versions.
    ///
    /// # Errors
    /// Returns why it cannot be read.
    pub fn live_containers(&mut self) -> QueryResult<HashSet<String>> {
        let rows = self.rows(
            "SELECT deployments.container_id AS value FROM applications \
             JOIN deployments ON deployments.id = applications.live_deployment_id \
             WHERE applications.deleted_at IS NULL AND deployments.container_id IS NOT NULL",
        )?;
        Ok(rows.into_iter().collect())
    }

    /// Returns the result of SQLite's integrity check. PostgreSQL reads everything instead.
    ///
    /// # Errors
    /// Returns why it cannot be read at all.
    pub fn damage(&mut self) -> QueryResult<Vec<String>> {
        match self {
            Self::Sqlite(_) => {
                let mut damage = self.rows(
                    "SELECT integrity_check AS value FROM pragma_integrity_check WHERE integrity_check <> 'ok'",
                )?;
                damage.extend(self.rows("SELECT \"table\" AS value FROM pragma_foreign_key_check")?);
                Ok(damage)
            }
            Self::Postgres(_) => {
                let tables =
                    self.rows("SELECT tablename AS value FROM pg_tables WHERE schemaname = 'public'")?;
                let mut every = String::from("SELECT '' AS value WHERE false");
                for table in tables {
                    let _infallible = write!(
                        every,
                        " UNION ALL SELECT '' FROM (SELECT count({table}::text) AS n FROM {table}) AS x WHERE n < 0"
                    );
                }
                self.rows(&every)
            }
        }
    }

    /// Returns the SQL expression for an id without dashes.
    fn id(&self, column: &str) -> String {
        match self {
            Self::Sqlite(_) => format!("lower(hex({column}))"),
            Self::Postgres(_) => format!("replace({column}::text, '-', '')"),
        }
    }

    fn rows(&mut self, query: &str) -> QueryResult<Vec<String>> {
        let query = sql_query(query);
        let rows: Vec<Row> = match self {
            Self::Sqlite(connection) => query.load(connection.as_mut()),
            Self::Postgres(connection) => query.load(connection.as_mut()),
        }?;
        Ok(rows.into_iter().map(|row| row.value).collect())
    }
}

fn owned((left, right): (&str, &str)) -> (String, String) {
    (left.to_owned(), right.to_owned())
}
