//! The schema: migrations can be applied and reverted, and the declared tables match it.

mod steps;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use diesel::{QueryableByName, RunQueryDsl as _, sql_query, sql_types::Text};
use diesel_migrations::MigrationHarness as _;
use launchway_database::{AnyConnection, Database, QueryError, migrations};

use crate::{builders::Resident, fresh::Fresh};

contract!(
    migrations_lead_up_and_down_and_up_again,
    migrating_at_the_same_time_is_safe,
    the_code_knows_every_column_as_it_is,
    both_databases_use_the_same_index_and_constraint_names,
);

#[derive(QueryableByName)]
struct Name {
    #[diesel(sql_type = Text)]
    name: String,
}

async fn names(db: &Database, on_sqlite: &'static str, on_postgres: &'static str) -> BTreeSet<String> {
    let query = move |connection: &mut AnyConnection| {
        let names: Vec<Name> = match connection {
            AnyConnection::Sqlite(sqlite) => sql_query(on_sqlite).load(sqlite)?,
            AnyConnection::Postgres(postgres) => sql_query(on_postgres).load(postgres)?,
        };
        Ok(names.into_iter().map(|row| row.name).collect())
    };
    db.read(query).await.unwrap()
}

async fn tables(db: &Database) -> BTreeSet<String> {
    names(
        db,
        "SELECT name FROM sqlite_schema WHERE type = 'table'",
        "SELECT table_name::text AS name FROM information_schema.tables WHERE table_schema = 'public'",
    )
    .await
}

async fn migrations_lead_up_and_down_and_up_again(db: Database) {
    let before = tables(&db).await;
    Resident::of(&db, "ada").await;
    let reverted = db.write(|connection| {
        match connection {
            AnyConnection::Sqlite(sqlite) => {
                sqlite.revert_all_migrations(migrations::SQLITE).map(|all| all.len())
            }
            AnyConnection::Postgres(postgres) => {
                postgres.revert_all_migrations(migrations::POSTGRES).map(|all| all.len())
            }
        }
        .map_err(QueryError::Migration)
    });
    let reverted = reverted.await.unwrap();
    assert_eq!(tables(&db).await, BTreeSet::from(["__diesel_schema_migrations".to_owned()]));

    let applied = db.migrate().await.unwrap();
    assert_eq!(applied.len(), reverted);
    assert_eq!(applied[0], "2026-11-15-000001_foundation");
    assert_eq!(tables(&db).await, before);
    Resident::of(&db, "ada").await;
}

async fn migrating_at_the_same_time_is_safe(fresh: &Fresh) {
    let (one, two) = (fresh.open_again(), fresh.open_again());
    let (first, second) = tokio::join!(one.migrate(), two.migrate());
    assert_eq!((first.unwrap(), second.unwrap()), (vec![], vec![]));
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

/// Returns what is in a folder, in the order of the names.
fn listed(folder: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Returns the columns that `schema.rs` and its children declare, as `table.column type [null]`.
fn declared(type_name: impl Fn(&str) -> &'static str) -> BTreeSet<String> {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let children = listed(&package.join("src/schema"));
    let source = [package.join("src/schema.rs")].iter().chain(&children).map(read).collect::<String>();
    let mut table = "";
    let mut columns = BTreeSet::new();
    for line in source.lines().map(str::trim) {
        if let Some((column, sql_type)) = line.trim_end_matches(',').split_once(" -> ") {
            let inner = sql_type.strip_prefix("Nullable<").and_then(|rest| rest.strip_suffix('>'));
            let null = if inner.is_some() { " null" } else { "" };
            columns.insert(format!("{table}.{column} {}{null}", type_name(inner.unwrap_or(sql_type))));
        } else if let Some((name, _)) = line.split_once(" (").filter(|_| line.ends_with('{')) {
            table = name;
        }
    }
    columns
}

async fn the_code_knows_every_column_as_it_is(fresh: &Fresh) {
    let stored = names(
        &fresh.database,
        "SELECT t.name || '.' || c.name || ' ' || lower(c.type) || CASE WHEN c.\"notnull\" THEN '' ELSE ' null' END
             AS name
         FROM sqlite_schema t, pragma_table_info(t.name) c
         WHERE t.type = 'table' AND t.name NOT LIKE '\\_\\_diesel%' ESCAPE '\\'",
        "SELECT table_name || '.' || column_name || ' ' || data_type
                || CASE is_nullable WHEN 'YES' THEN ' null' ELSE '' END AS name
         FROM information_schema.columns
         WHERE table_schema = 'public' AND table_name NOT LIKE '\\_\\_diesel%'",
    )
    .await;
    let on_sqlite = fresh.folder().is_some();
    let declared = declared(|sql_type| match (sql_type, on_sqlite) {
        ("Text", _) => "text",
        ("Integer", _) | ("BigInt" | "Bool" | "Ts", true) => "integer",
        ("Id" | "Binary", true) => "blob",
        ("Id", false) => "uuid",
        ("Ts", false) => "timestamp with time zone",
        ("Bool", false) => "boolean",
        ("BigInt", false) => "bigint",
        ("Binary", false) => "bytea",
        (other, _) => panic!("the test does not know the type {other}"),
    });
    assert!(declared.len() > 50);
    assert_eq!(stored, declared);
}

/// Both migrations spell out every name, so each must have the names of the other.
async fn both_databases_use_the_same_index_and_constraint_names(db: Database) {
    let stored = names(
        &db,
        "SELECT name FROM sqlite_schema WHERE type = 'index' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
        "SELECT indexname::text AS name FROM pg_indexes WHERE schemaname = 'public'
             AND indexname NOT LIKE '%\\_pkey'",
    )
    .await;
    let spelled = |migration: &str| -> BTreeSet<String> {
        let mut spelled = BTreeSet::new();
        for (what, rest) in migration.lines().filter_map(|line| line.split_once(" INDEX ")) {
            let name = rest.split([' ', ';']).next().unwrap_or_default().to_owned();
            match what {
                "CREATE" | "CREATE UNIQUE" => spelled.insert(name),
                "DROP" => spelled.remove(&name),
                _ => continue,
            };
        }
        spelled
    };
    let constraints = |migration: &str| -> BTreeSet<String> {
        let lines = migration.lines().filter_map(|line| line.trim().strip_prefix("CONSTRAINT "));
        lines.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
    };
    let [sqlite, postgres] = ["sqlite", "postgres"].map(|side| {
        let all = listed(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations").join(side));
        all.iter().map(|migration| read(migration.join("up.sql"))).collect::<String>()
    });
    assert_eq!(stored, spelled(&sqlite));
    assert_eq!(stored, spelled(&postgres));
    assert_eq!(constraints(&sqlite), constraints(&postgres));
}
