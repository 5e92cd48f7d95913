//! Reads the tables from the database's own catalogue.

use std::collections::{BTreeMap, BTreeSet};

use diesel::{
    QueryableByName, RunQueryDsl as _, sql_query,
    sql_types::{Integer, Text},
};

use super::TablesError;
use crate::connection::AnyConnection;

/// Triggers change them whenever other tables are filled, so they are filled last.
const LAST: [&str; 3] = ["jobs_epoch", "routes_epoch", "identity_epoch"];

/// Diesel's own table, which migrations fill.
const OF_MIGRATIONS: &str = "__diesel_schema_migrations";

/// Tables that a server fills again by itself: the archives of sites from folders in the data directory, the index of
/// texts from the rows of other tables.
const DERIVED: [&str; 4] = ["site_archives", "site_archive_parts", "search_indexes", "search_postings"];

/// A table of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its columns, sorted by name.
    pub(super) columns: Vec<Column>,
    /// The columns of its primary key.
    pub(super) key: Vec<Column>,
    /// True if its rows may reference other rows of it.
    pub(super) refers_to_itself: bool,
}

impl Table {
    /// Returns the names of its columns, sorted.
    #[must_use]
    pub fn column_names(&self) -> Vec<String> {
        self.columns.iter().map(|column| column.name.clone()).collect()
    }
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) stored: Stored,
}

/// The storage type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stored {
    Integer,
    Text,
    Bytes,
    /// Only on PostgreSQL, like the following ones.
    Uuid,
    Moment,
    Truth,
}

impl Stored {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "integer" | "bigint" => Self::Integer,
            "text" => Self::Text,
            "blob" | "bytea" => Self::Bytes,
            "uuid" => Self::Uuid,
            "timestamp with time zone" => Self::Moment,
            "boolean" => Self::Truth,
            _ => return None,
        })
    }
}

#[derive(QueryableByName)]
struct FoundColumn {
    #[diesel(sql_type = Text)]
    table_name: String,
    #[diesel(sql_type = Text)]
    column_name: String,
    #[diesel(sql_type = Text)]
    type_name: String,
    /// From 1; 0 for a column that is not part of the primary key.
    #[diesel(sql_type = Integer)]
    key_position: i32,
}

#[derive(QueryableByName)]
struct FoundReference {
    #[diesel(sql_type = Text)]
    table_name: String,
    #[diesel(sql_type = Text)]
    target: String,
}

/// Returns whether there are any tables.
pub(super) fn has_tables(connection: &mut AnyConnection) -> Result<bool, TablesError> {
    Ok(!columns(connection)?.is_empty())
}

/// Returns every table but derived ones, referenced ones first.
pub(super) fn read(connection: &mut AnyConnection) -> Result<Vec<Table>, TablesError> {
    let mut found: BTreeMap<String, Vec<FoundColumn>> = BTreeMap::new();
    for column in columns(connection)? {
        found.entry(column.table_name.clone()).or_default().push(column);
    }
    for name in [OF_MIGRATIONS].iter().chain(&DERIVED) {
        found.remove(*name);
    }
    let mut targets: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for FoundReference { table_name, target } in references(connection)? {
        targets.entry(table_name).or_default().insert(target);
    }
    let mut tables = BTreeMap::new();
    for (name, columns) in found {
        let refers_to_itself = targets.get_mut(&name).is_some_and(|targets| targets.remove(&name));
        tables.insert(name.clone(), table(name, columns, refers_to_itself)?);
    }
    in_order(tables, &targets)
}

fn table(name: String, mut found: Vec<FoundColumn>, refers_to_itself: bool) -> Result<Table, TablesError> {
    // Not by the database's collation, which may differ.
    found.sort_by(|one, other| one.column_name.cmp(&other.column_name));
    let mut columns = Vec::new();
    let mut key = BTreeMap::new();
    for FoundColumn { column_name, type_name, key_position, .. } in found {
        let stored = Stored::of(&type_name).ok_or_else(|| {
            TablesError::Refused(format!("cannot copy `{name}.{column_name}` of the type {type_name}"))
        })?;
        let column = Column { name: column_name, stored };
        if key_position > 0 {
            key.insert(key_position, column.clone());
        }
        columns.push(column);
    }
    if key.is_empty() {
        return Err(TablesError::Refused(format!("cannot copy `{name}`, which has no primary key")));
    }
    Ok(Table { name, columns, key: key.into_values().collect(), refers_to_itself })
}

/// Inserts a table after those that it references.
fn in_order(
    mut tables: BTreeMap<String, Table>,
    targets: &BTreeMap<String, BTreeSet<String>>,
) -> Result<Vec<Table>, TablesError> {
    let last: Vec<Table> = LAST.iter().filter_map(|name| tables.remove(*name)).collect();
    let mut ordered: Vec<Table> = Vec::new();
    while !tables.is_empty() {
        let waits = |name: &String| {
            targets.get(name).is_some_and(|targets| targets.iter().any(|target| tables.contains_key(target)))
        };
        let ready: Vec<String> = tables.keys().filter(|name| !waits(name)).cloned().collect();
        if ready.is_empty() {
            let names: Vec<_> = tables.into_keys().collect();
            return Err(TablesError::Refused(format!("the tables {} refer to each other", names.join(", "))));
        }
        ordered.extend(ready.iter().filter_map(|name| tables.remove(name)));
    }
    ordered.extend(last);
    Ok(ordered)
}

fn columns(connection: &mut AnyConnection) -> Result<Vec<FoundColumn>, TablesError> {
    Ok(match connection {
        AnyConnection::Sqlite(sqlite) => sql_query(
            "SELECT t.name AS table_name, c.name AS column_name, lower(c.type) AS type_name, c.pk AS key_position
             FROM sqlite_schema t, pragma_table_info(t.name) c
             WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
        )
        .load(sqlite)?,
        // The positions of a key's columns count from 0.
        AnyConnection::Postgres(postgres) => sql_query(
            "SELECT c.relname::text AS table_name, a.attname::text AS column_name,
                    format_type(a.atttypid, NULL) AS type_name,
                    COALESCE(array_position(i.indkey::int2[], a.attnum) + 1, 0) AS key_position
             FROM pg_class c
             JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
             LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
             WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')",
        )
        .load(postgres)?,
    })
}

fn references(connection: &mut AnyConnection) -> Result<Vec<FoundReference>, TablesError> {
    Ok(match connection {
        AnyConnection::Sqlite(sqlite) => sql_query(
            "SELECT t.name AS table_name, f.\"table\" AS target
             FROM sqlite_schema t, pragma_foreign_key_list(t.name) f WHERE t.type = 'table'",
        )
        .load(sqlite)?,
        AnyConnection::Postgres(postgres) => sql_query(
            "SELECT c.relname::text AS table_name, t.relname::text AS target
             FROM pg_constraint f
             JOIN pg_class c ON c.oid = f.conrelid
             JOIN pg_class t ON t.oid = f.confrelid
             WHERE f.contype = 'f' AND c.relnamespace = current_schema()::regnamespace",
        )
        .load(postgres)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(names: &[&str]) -> BTreeMap<String, Table> {
        let table = |name: &&str| Table {
            name: (*name).to_owned(),
            columns: Vec::new(),
            key: Vec::new(),
            refers_to_itself: false,
        };
        names.iter().map(|name| ((*name).to_owned(), table(name))).collect()
    }

    fn targets(pairs: &[(&str, &str)]) -> BTreeMap<String, BTreeSet<String>> {
        let mut targets: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (table, target) in pairs {
            targets.entry((*table).to_owned()).or_default().insert((*target).to_owned());
        }
        targets
    }

    #[test]
    fn tables_follow_those_they_reference_and_epochs_are_last() {
        let names = ["a", "b", "c", LAST[2], LAST[1], "z"];
        let ordered = in_order(tables(&names), &targets(&[("a", "c"), ("c", "z"), ("b", "a")])).unwrap();
        let ordered: Vec<_> = ordered.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(ordered, ["z", "c", "a", "b", LAST[1], LAST[2]]);
    }

    #[test]
    fn tables_that_refer_to_each_other_are_refused() {
        let refused = in_order(tables(&["a", "b"]), &targets(&[("a", "b"), ("b", "a")])).unwrap_err();
        assert_eq!(refused.to_string(), "the tables a, b refer to each other");
    }
}
