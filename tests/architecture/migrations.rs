//! The two databases have the same migrations and end with the same tables and indexes.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    problems::{expect_none, only_in},
    workspace,
};

const SIDES: [&str; 2] = ["sqlite", "postgres"];

#[test]
fn both_databases_have_the_same_migrations() {
    let [sqlite, postgres] = SIDES.map(|side| names(side).into_iter().collect::<BTreeSet<_>>());
    assert!(
        !sqlite.is_empty(),
        "\ncure: migrations/sqlite has no folder; the first migration belongs there\n"
    );
    let mut problems = only_in(&sqlite, &postgres, |name| format!("migrations/postgres has no {name}"));
    problems.extend(only_in(&postgres, &sqlite, |name| format!("migrations/sqlite has no {name}")));
    expect_none(&problems, "give every migration the same folder name on both sides");
}

#[test]
fn every_migration_goes_up_and_down() {
    let mut problems = Vec::new();
    for side in SIDES {
        for name in names(side) {
            for file in ["up.sql", "down.sql"] {
                let path = format!("migrations/{side}/{name}/{file}");
                if !workspace::root().join(&path).is_file() {
                    problems.push(format!("{path} is missing"));
                } else if words(&workspace::read(&path)).is_empty() {
                    problems.push(format!("{path} says nothing"));
                }
            }
        }
    }
    expect_none(&problems, "write both files, also where one is a single statement");
}

#[test]
fn both_databases_end_with_the_same_tables_and_indexes() {
    let [sqlite, postgres] = SIDES.map(Shape::after_all_migrations);
    let missing = |what: &'static str, side: &'static str| {
        move |name: &str| format!("{side} has no {what} named {name}")
    };
    let mut problems = only_in(&sqlite.tables, &postgres.tables, missing("table", "PostgreSQL"));
    problems.extend(only_in(&postgres.tables, &sqlite.tables, missing("table", "SQLite")));
    let [sqlite, postgres] =
        [sqlite, postgres].map(|shape| shape.indexes.into_keys().collect::<BTreeSet<_>>());
    problems.extend(only_in(&sqlite, &postgres, missing("index", "PostgreSQL")));
    problems.extend(only_in(&postgres, &sqlite, missing("index", "SQLite")));
    expect_none(&problems, "create the same tables and indexes, by the same names, in both up.sql");
}

fn names(side: &str) -> Vec<String> {
    workspace::folders(&format!("migrations/{side}"))
}

/// The names that exist after some statements.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shape {
    tables: BTreeSet<String>,
    /// Each index with its table, because it is dropped with the table.
    indexes: BTreeMap<String, String>,
}

impl Shape {
    fn after_all_migrations(side: &str) -> Self {
        let mut shape = Self::default();
        for name in names(side) {
            shape.apply(&workspace::read(format!("migrations/{side}/{name}/up.sql")));
        }
        shape
    }

    fn apply(&mut self, sql: &str) {
        for statement in words(sql).split(|word| word == ";") {
            let fillers = ["unique", "if", "not", "exists", "concurrently"];
            let words: Vec<_> =
                statement.iter().map(String::as_str).filter(|word| !fillers.contains(word)).collect();
            match words.as_slice() {
                ["create", "table", table, ..] => {
                    self.tables.insert((*table).to_owned());
                }
                ["drop", "table", table, ..] => {
                    self.tables.remove(*table);
                    self.indexes.retain(|_, of| of != table);
                }
                ["alter", "table", old, "rename", "to", new, ..] => {
                    self.tables.remove(*old);
                    self.tables.insert((*new).to_owned());
                    self.indexes.values_mut().filter(|of| of == old).for_each(|of| (*new).clone_into(of));
                }
                ["create", "index", index, "on", table, ..] => {
                    self.indexes.insert((*index).to_owned(), (*table).to_owned());
                }
                ["drop", "index", index, ..] => {
                    self.indexes.remove(*index);
                }
                _ => {}
            }
        }
    }
}

/// Returns the words of some SQL in lower case, without comments, quotes and parentheses; `;` is a word.
fn words(sql: &str) -> Vec<String> {
    sql.lines()
        .map(|line| line.split_once("--").map_or(line, |(code, _)| code))
        .flat_map(|line| {
            let spaced = line.replace(';', " ; ").replace(['(', ')', ',', '"', '`'], " ");
            spaced.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn a_rebuilt_table_counts_once_and_loses_its_indexes() {
    let mut shape = Shape::default();
    shape.apply("CREATE TABLE users(id TEXT); -- CREATE TABLE not_this (id TEXT);\nCREATE UNIQUE INDEX users_key ON users (id);");
    shape.apply("CREATE TABLE IF NOT EXISTS \"users_new\" (id TEXT); DROP TABLE users; ALTER TABLE users_new RENAME TO users;");
    assert_eq!(shape.tables, BTreeSet::from(["users".to_owned()]));
    assert_eq!(shape.indexes, BTreeMap::new());
}
