//! An organization that is not attacked, whose rows must not change.

use std::{
    collections::BTreeSet,
    thread::sleep,
    time::{Duration, Instant},
};

use diesel::{
    Connection as _, PgConnection, QueryableByName, RunQueryDsl as _, SqliteConnection,
    connection::SimpleConnection as _, sql_query, sql_types::Text,
};
use launchway_testkit::client::Client;
use serde_json::json;

use crate::harness::{DEPLOY, Harness};

/// The organization that is not attacked.
pub(crate) struct Bystander {
    /// A member of the organization.
    pub(crate) client: Client,
    /// The texts that identify its rows.
    marks: Vec<String>,
    database: String,
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    value: String,
}

impl Bystander {
    /// Creates one with resources of most kinds.
    pub(crate) fn of(harness: &Harness) -> Self {
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        // A separate user: actions of its members on themselves are in its audit log, too.
        let owner = harness.join("linus@example.com", "admin", "a password of their own").client;
        let made = owner.post("/api/v1/organizations", &json!({"name": "Next door"})).success();
        let organization = text(&made["id"]);
        let client = owner.with_header("x-organization-id", &organization);
        let mut options = harness.site("bystander");
        options["environment_variables"] = json!({"NAME": "value"});
        let application = text(&client.post(DEPLOY, &options).success()["id"]);
        let channel =
            json!({"type": "slack", "webhook_url": "https://hooks.example.com/a", "is_active": false});
        client.post("/api/v1/notification/webhook", &channel).success();
        client.get("/api/v1/organizations/deploy-key").success();
        client.post("/api/v1/extensions/hello-note/fork", &json!({})).success();
        client.post("/api/v1/auth/tokens", &json!({"name": "ci"})).success();
        let ids = [organization, application];
        let marks = ids.iter().flat_map(|id| [id.clone(), id.replace('-', "")]);
        Self { client, marks: marks.collect(), database: harness.question().database }
    }

    /// Returns its rows once none of its jobs is left: an application is `deployed` before its job has ended.
    pub(crate) fn rows_at_rest(&self, max_wait: Duration) -> BTreeSet<String> {
        let started = Instant::now();
        loop {
            let rows = self.rows();
            let is_open = |row: &String| {
                row.starts_with("jobs:") && ["queued", "running"].iter().any(|state| row.contains(state))
            };
            if !rows.iter().any(is_open) {
                return rows;
            }
            assert!(started.elapsed() < max_wait, "jobs of the organization next door are not at their end");
            sleep(Duration::from_millis(50));
        }
    }

    /// Returns every row of every table that belongs to it.
    pub(crate) fn rows(&self) -> BTreeSet<String> {
        let mut all = match self.database.strip_prefix("sqlite:") {
            Some(file) => sqlite_rows(file),
            None => postgres_rows(&self.database),
        };
        all.retain(|row| {
            let row = row.to_lowercase();
            self.marks.iter().any(|mark| row.contains(mark.as_str()))
        });
        all
    }
}

fn sqlite_rows(file: &str) -> BTreeSet<String> {
    let mut connection = SqliteConnection::establish(file).unwrap();
    connection.batch_execute("PRAGMA busy_timeout = 5000;").unwrap();
    let mut texts = |query: String| -> Vec<String> {
        let rows: Vec<Row> = sql_query(query).load(&mut connection).unwrap();
        rows.into_iter().map(|row| row.value).collect()
    };
    let tables = texts("SELECT name AS value FROM sqlite_master WHERE type = 'table'".to_owned());
    let mut all = BTreeSet::new();
    for table in tables {
        let columns = texts(format!("SELECT name AS value FROM pragma_table_info('{table}')"));
        let columns: Vec<_> = columns.iter().map(|column| format!("quote(\"{column}\")")).collect();
        let rows = texts(format!("SELECT {} AS value FROM \"{table}\"", columns.join(" || ',' || ")));
        all.extend(rows.iter().map(|row| format!("{table}: {row}")));
    }
    all
}

fn postgres_rows(url: &str) -> BTreeSet<String> {
    let mut connection = PgConnection::establish(url).unwrap();
    let mut texts = |query: String| -> Vec<String> {
        let rows: Vec<Row> = sql_query(query).load(&mut connection).unwrap();
        rows.into_iter().map(|row| row.value).collect()
    };
    let tables =
        texts("SELECT tablename::text AS value FROM pg_tables WHERE schemaname = 'public'".to_owned());
    let mut all = BTreeSet::new();
    for table in tables {
        let rows = texts(format!("SELECT t::text AS value FROM \"{table}\" t"));
        all.extend(rows.iter().map(|row| format!("{table}: {row}")));
    }
    all
}
