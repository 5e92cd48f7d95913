//! The statements that read and fill a table, on each database.

use super::catalogue::{Column, Stored, Table};

/// Selects each row as a JSON array in the column `line`.
pub(super) fn select_from_sqlite(table: &Table) -> String {
    let values = table.columns.iter().map(|column| {
        let name = quoted(&column.name);
        match column.stored {
            Stored::Bytes => format!("CASE WHEN {name} IS NULL THEN NULL ELSE lower(hex({name})) END"),
            _ => name,
        }
    });
    let order = table.key.iter().map(|column| quoted(&column.name));
    format!(
        "SELECT json_array({}) AS line FROM {} ORDER BY {}",
        joined(values),
        quoted(&table.name),
        joined(order)
    )
}

/// The same on PostgreSQL.
pub(super) fn select_from_postgres(table: &Table) -> String {
    let values = table.columns.iter().map(|column| {
        let name = quoted(&column.name);
        match column.stored {
            Stored::Integer | Stored::Text => name,
            Stored::Bytes => format!("encode({name}, 'hex')"),
            Stored::Uuid => format!("encode(uuid_send({name}), 'hex')"),
            // Rounded, because old servers count the seconds in floating point.
            Stored::Moment => format!("round((extract(epoch FROM {name}) * 1000000)::numeric)::bigint"),
            Stored::Truth => format!("{name}::int"),
        }
    });
    // Byte by byte, as SQLite does.
    let order = table.key.iter().map(|column| match column.stored {
        Stored::Text => format!("{} COLLATE \"C\"", quoted(&column.name)),
        _ => quoted(&column.name),
    });
    format!(
        "SELECT json_build_array({})::text AS line FROM {} ORDER BY {}",
        joined(values),
        quoted(&table.name),
        joined(order)
    )
}

/// Inserts the rows of a JSON array of lines.
pub(super) fn insert_into_sqlite(table: &Table) -> String {
    let values = table.columns.iter().enumerate().map(|(position, column)| of_sqlite_line(position, column));
    insert(table, values, SQLITE_LINES)
}

/// The same on PostgreSQL.
pub(super) fn insert_into_postgres(table: &Table) -> String {
    let values =
        table.columns.iter().enumerate().map(|(position, column)| of_postgres_line(position, column));
    insert(table, values, POSTGRES_LINES)
}

/// Updates `column` of the rows that a JSON array of lines names: each has the new value and then the key.
pub(super) fn update_sqlite(table: &Table, column: &Column) -> String {
    update(table, column, of_sqlite_line, SQLITE_LINES)
}

/// The same on PostgreSQL.
pub(super) fn update_postgres(table: &Table, column: &Column) -> String {
    update(table, column, of_postgres_line, POSTGRES_LINES)
}

const SQLITE_LINES: &str = "json_each(?)";
const POSTGRES_LINES: &str = "json_array_elements($1::json) AS line";

fn of_sqlite_line(position: usize, column: &Column) -> String {
    let value = format!("json_extract(value, '$[{position}]')");
    match column.stored {
        Stored::Bytes => format!("unhex({value})"),
        _ => value,
    }
}

fn of_postgres_line(position: usize, column: &Column) -> String {
    let value = format!("(line->>{position})");
    match column.stored {
        Stored::Integer => format!("{value}::bigint"),
        Stored::Text => value,
        Stored::Bytes => format!("decode({value}, 'hex')"),
        Stored::Uuid => format!("{value}::uuid"),
        Stored::Moment => format!("'epoch'::timestamptz + {value}::bigint * interval '1 microsecond'"),
        Stored::Truth => format!("{value}::int::boolean"),
    }
}

fn update(table: &Table, column: &Column, of_line: fn(usize, &Column) -> String, lines: &str) -> String {
    let new = of_line(0, column);
    let (mut values, mut conditions) = (vec![format!("{new} AS new_value")], Vec::new());
    for (number, key) in table.key.iter().enumerate() {
        values.push(format!("{} AS key_{number}", of_line(number + 1, key)));
        conditions.push(format!("{}.{} = changed.key_{number}", quoted(&table.name), quoted(&key.name)));
    }
    format!(
        "UPDATE {} SET {} = changed.new_value FROM (SELECT {} FROM {lines}) AS changed WHERE {}",
        quoted(&table.name),
        quoted(&column.name),
        values.join(", "),
        conditions.join(" AND ")
    )
}

fn insert(table: &Table, values: impl Iterator<Item = String>, lines: &str) -> String {
    let names = table.columns.iter().map(|Column { name, .. }| quoted(name));
    format!("INSERT INTO {} ({}) SELECT {} FROM {lines}", quoted(&table.name), joined(names), joined(values))
}

/// Quotes an SQL identifier.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}
