//! The columns that hold values sealed with the secret key.

use diesel::{RunQueryDsl as _, sql_query, sql_types::Text};
use serde_json::Value;
use uuid::Uuid;

use super::{
    BATCH_BYTES, Tables, TablesError, about,
    catalogue::{Stored, Table},
    statements,
};
use crate::connection::AnyConnection;

/// A column of sealed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SealedColumn {
    /// Its table.
    pub table: &'static str,
    /// Its name.
    pub column: &'static str,
    /// The prefix of the associated data of a value.
    place: &'static str,
    /// The columns that follow in the associated data.
    ids: &'static [&'static str],
}

/// All sealed columns. A test fills every table, and looks for sealed values elsewhere.
pub const SEALED: [SealedColumn; 19] = [
    sealed("key_check", "sealed", "key_check.sealed", &[]),
    sealed("setup_token", "sealed", "setup_token.sealed", &[]),
    sealed("two_factor", "secret", "two_factor.secret", &["user_id"]),
    sealed("applications", "build_variables", "applications.build_variables", &["id"]),
    sealed("applications", "environment_variables", "applications.environment_variables", &["id"]),
    sealed("applications", "credentials", "applications.credentials", &["id"]),
    sealed("compositions", "sealed", "compositions.sealed", &["application_id", "deployment_id"]),
    sealed("deploy_keys", "private_key", "deploy_keys.private_key", &["organization_id"]),
    sealed(
        "idempotency_keys",
        "answer",
        "idempotency_keys.answer",
        &["organization_id", "user_id", "operation", "name"],
    ),
    sealed("extension_executions", "sealed_values", "executions.sealed_values", &["id"]),
    sealed("webhook_secrets", "secret", "webhook_secrets.secret", &["id"]),
    sealed("preview_settings", "build_variables", "preview_settings.build_variables", &["application_id"]),
    sealed(
        "preview_settings",
        "environment_variables",
        "preview_settings.environment_variables",
        &["application_id"],
    ),
    sealed("code_host_tokens", "token", "code_host_tokens.token", &["organization_id", "host"]),
    sealed("webhook_configs", "webhook_url", "webhook_configs.webhook_url", &["id"]),
    sealed("signing_secrets", "secret", "signing_secrets.secret", &["id"]),
    sealed("smtp_configs", "password", "smtp_configs.password", &["id"]),
    sealed("certificates", "private_key", "certificates.private_key", &["domain"]),
    sealed("acme_accounts", "credentials", "acme_accounts.credentials", &["directory"]),
];

const fn sealed(
    table: &'static str,
    column: &'static str,
    place: &'static str,
    ids: &'static [&'static str],
) -> SealedColumn {
    SealedColumn { table, column, place, ids }
}

impl SealedColumn {
    /// Returns the associated data of a row's value.
    fn associated_data(&self, table: &Table, row: &[Value]) -> Option<String> {
        let mut place = self.place.to_owned();
        for id in self.ids {
            let position = table.columns.iter().position(|column| column.name == *id)?;
            let value = row.get(position)?.as_str()?;
            place.push(':');
            match table.columns[position].stored {
                Stored::Text => place.push_str(value),
                _ => place.push_str(&value.parse::<Uuid>().ok()?.to_string()),
            }
        }
        Some(place)
    }
}

impl Tables {
    /// Calls `change` with every value of a sealed column and its associated data, and stores the returned
    /// values. Returns the number of values, and of changed ones.
    ///
    /// # Errors
    /// [`TablesError::Table`] when the database fails, and the errors of `change`.
    pub fn change_sealed(
        &mut self,
        column: &SealedColumn,
        mut change: impl FnMut(&str, &str) -> Result<Option<String>, TablesError>,
    ) -> Result<(usize, usize), TablesError> {
        let missing =
            || TablesError::Refused(format!("the database has no `{}.{}`", column.table, column.column));
        let table = self.list()?.into_iter().find(|table| table.name == column.table).ok_or_else(missing)?;
        let of = |name: &str| table.columns.iter().position(|column| column.name == name);
        let position = of(column.column).ok_or_else(missing)?;
        let keys: Option<Vec<usize>> = table.key.iter().map(|key| of(&key.name)).collect();
        let keys = keys.ok_or_else(missing)?;
        let (mut found, mut changed) = (0, Vec::new());
        self.read(&table, |line| {
            let row: Vec<Value> = serde_json::from_str(line).map_err(about(&table))?;
            let Some(value) = row.get(position).and_then(Value::as_str) else { return Ok(()) };
            let place = column.associated_data(&table, &row).ok_or_else(missing)?;
            found += 1;
            if let Some(new) = change(&place, value)? {
                let key = keys.iter().filter_map(|position| row.get(*position).cloned());
                let line = Value::Array(std::iter::once(Value::String(new)).chain(key).collect());
                changed.push(line.to_string());
            }
            Ok(())
        })?;
        let count = changed.len();
        let column = &table.columns[position];
        let mut changed = changed.into_iter().peekable();
        while let Some(mut lines) = changed.next() {
            let mut batch = 1;
            while let Some(line) = changed.next_if(|line| lines.len() + line.len() < BATCH_BYTES) {
                lines = format!("{lines},{line}");
                batch += 1;
            }
            let lines = format!("[{lines}]");
            let updated = match &mut self.connection {
                AnyConnection::Sqlite(sqlite) => sql_query(statements::update_sqlite(&table, column))
                    .bind::<Text, _>(lines)
                    .execute(sqlite),
                AnyConnection::Postgres(postgres) => sql_query(statements::update_postgres(&table, column))
                    .bind::<Text, _>(lines)
                    .execute(postgres),
            };
            if updated.map_err(about(&table))? != batch {
                return Err(TablesError::Refused(format!("not every row of `{}` was changed", table.name)));
            }
        }
        Ok((found, count))
    }
}
