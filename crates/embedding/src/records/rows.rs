//! The stored form of records: rows of a key and a JSON value.

mod application;
mod deployment;
mod history;
mod job;
mod member;

use std::str::FromStr;

use launchway_domain::{clock::Timestamp, ids::InvalidId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use self::{
    application::ApplicationValue,
    deployment::{ArtifactValue, DeploymentValue},
    history::{EntryValue, LineValue},
    job::{JobValue, TurnValue},
    member::{OrganizationValue, UserValue},
};
use super::{Records, table::Table};

/// The version of the stored form. A later version reads the rows of this one.
pub const FORMAT: u32 = 1;

/// The key of the row that holds the version of the stored form.
const FORMAT_KEY: &str = "format";

/// A stored record: `kind/id` and its value as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// The key, which is unique.
    pub key: String,
    /// The value; `None` if the record was removed.
    pub value: Option<String>,
}

/// A stored row cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record `{key}` cannot be read: {reason}")]
#[non_exhaustive]
pub struct UnreadableRow {
    /// The key of the row.
    pub key: String,
    /// The problem.
    pub reason: String,
}

/// A value that a record is stored as.
trait Value<T>: Serialize + DeserializeOwned {
    /// Returns the record.
    fn into_record(self) -> Result<T, Invalid>;
}

/// A sentence about a stored value that is not valid.
struct Invalid(String);

impl<E: std::error::Error> From<E> for Invalid {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// The rows to list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    Changed,
}

impl Records {
    /// Returns every record as a row, in the order in which [`load`](Self::load) accepts them.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Row> {
        let mut rows = vec![Row { key: FORMAT_KEY.to_owned(), value: Some(FORMAT.to_string()) }];
        self.list(Which::All, &mut rows);
        rows
    }

    /// Returns the rows that the current transaction changed.
    pub(super) fn changed_rows(&mut self) -> Vec<Row> {
        let mut rows = Vec::new();
        self.list(Which::Changed, &mut rows);
        if !rows.is_empty() && !self.format.contains(&()) {
            self.format.insert((), FORMAT);
            rows.insert(0, Row { key: FORMAT_KEY.to_owned(), value: Some(FORMAT.to_string()) });
        }
        rows
    }

    fn list(&self, which: Which, rows: &mut Vec<Row>) {
        let id = |id: &dyn ToString| id.to_string();
        push(
            rows,
            which,
            "organization",
            &self.organizations,
            |key| id(key),
            |_, one| OrganizationValue::from(one),
        );
        push(rows, which, "user", &self.users, |key| id(key), |_, one| UserValue::from(one));
        push(
            rows,
            which,
            "application",
            &self.applications,
            |key| id(key),
            |_, one| ApplicationValue::from(one),
        );
        push(
            rows,
            which,
            "deployment",
            &self.deployments,
            |key| id(key),
            |_, one| DeploymentValue::from(one),
        );
        push(
            rows,
            which,
            "artifact",
            &self.artifacts,
            |key| id(key),
            |key, image| ArtifactValue::of(*key, image),
        );
        push(rows, which, "job", &self.jobs, |key| id(key), |_, one| JobValue::from(one));
        push(rows, which, "turn", &self.turns, |key| id(key), |key, turn| TurnValue::of(*key, *turn));
        push(
            rows,
            which,
            "line",
            &self.lines,
            |(of, number)| format!("{of}/{number}"),
            |_, one| LineValue::from(one),
        );
        push(rows, which, "audit", &self.audit_log, |key| id(key), |key, one| EntryValue::of(*key, one));
        push(rows, which, "request", &self.requests, String::clone, |key, at| (key.clone(), micros(*at)));
    }

    /// Reads records from rows. Of rows with the same key, the last one counts.
    ///
    /// # Errors
    /// [`UnreadableRow`] for the first row that is not valid, or is of a later version.
    pub fn load(rows: impl IntoIterator<Item = Row>) -> Result<Self, UnreadableRow> {
        let mut last = std::collections::BTreeMap::new();
        for Row { key, value } in rows {
            match value {
                Some(value) => last.insert(key, value),
                None => last.remove(&key),
            };
        }
        let mut records = Self::default();
        for (key, value) in &last {
            let read = records.read(key, value);
            read.map_err(|Invalid(reason)| UnreadableRow { key: key.clone(), reason })?;
        }
        if !last.is_empty() && !records.format.contains(&()) {
            let reason = "it is missing, so these are not records of Launchway".to_owned();
            return Err(UnreadableRow { key: FORMAT_KEY.to_owned(), reason });
        }
        records.keep();
        Ok(records)
    }

    fn read(&mut self, key: &str, value: &str) -> Result<(), Invalid> {
        match key.split_once('/').map_or(key, |(kind, _)| kind) {
            FORMAT_KEY => {
                let format: u32 = parse(value)?;
                if format > FORMAT {
                    return Err(Invalid(format!(
                        "version {format} is newer than {FORMAT}: use a newer release"
                    )));
                }
                self.format.insert((), FORMAT);
            }
            "organization" => {
                let one = record::<_, OrganizationValue>(value)?;
                self.organizations.insert(one.id, one);
            }
            "user" => {
                let one = record::<_, UserValue>(value)?;
                self.users.insert(one.id, one);
            }
            "application" => {
                let one = record::<_, ApplicationValue>(value)?;
                self.applications.insert(one.id, one);
            }
            "deployment" => self.put_deployment(record::<_, DeploymentValue>(value)?),
            "artifact" => {
                let (deployment, image) = record::<_, ArtifactValue>(value)?;
                self.artifacts.insert(deployment, image);
            }
            "job" => self.put_job(record::<_, JobValue>(value)?),
            "turn" => {
                let (organization, turn) = record::<_, TurnValue>(value)?;
                self.turns.insert(organization, turn);
            }
            "line" => {
                let one = record::<_, LineValue>(value)?;
                self.lines.insert((one.application_id, one.number), one);
            }
            "audit" => {
                let (number, entry) = record::<_, EntryValue>(value)?;
                self.audit_log.insert(number, entry);
            }
            "request" => {
                let (request, at): (String, i64) = parse(value)?;
                self.requests.insert(request, timestamp(at)?);
            }
            _ => return Err(Invalid("it is of no known kind".to_owned())),
        }
        Ok(())
    }
}

fn push<K: Ord + Clone, V: Clone + PartialEq, J: Serialize>(
    rows: &mut Vec<Row>,
    which: Which,
    kind: &str,
    table: &Table<K, V>,
    key: impl Fn(&K) -> String,
    json: impl Fn(&K, &V) -> J,
) {
    let mut add = |at: &K, value: Option<&V>| {
        // The values hold texts, numbers and maps of texts, which JSON always has a form for.
        let value = value.map(|value| serde_json::to_string(&json(at, value)).unwrap_or_default());
        rows.push(Row { key: format!("{kind}/{}", key(at)), value });
    };
    match which {
        Which::All => table.iter().for_each(|(at, value)| add(at, Some(value))),
        Which::Changed => table.changes().for_each(|(at, value)| add(at, value)),
    }
}

fn parse<T: DeserializeOwned>(value: &str) -> Result<T, Invalid> {
    Ok(serde_json::from_str(value)?)
}

fn record<T, V: Value<T>>(value: &str) -> Result<T, Invalid> {
    parse::<V>(value)?.into_record()
}

fn text<T: TryFrom<String, Error: std::error::Error>>(raw: String) -> Result<T, Invalid> {
    Ok(T::try_from(raw)?)
}

fn optional<T: TryFrom<String, Error: std::error::Error>>(raw: Option<String>) -> Result<Option<T>, Invalid> {
    raw.map(text).transpose()
}

fn id<T: FromStr<Err = InvalidId>>(raw: &str) -> Result<T, Invalid> {
    Ok(raw.parse()?)
}

/// Returns microseconds since 1970.
fn micros(at: Timestamp) -> i64 {
    at.timestamp_micros()
}

fn timestamp(micros: i64) -> Result<Timestamp, Invalid> {
    Timestamp::from_timestamp_micros(micros).ok_or_else(|| Invalid(format!("{micros} is not a time")))
}

fn timestamps(micros: Option<i64>) -> Result<Option<Timestamp>, Invalid> {
    micros.map(timestamp).transpose()
}
