//! The rows of log lines.

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId},
    logs::{Level, LogLine},
};

use crate::{
    columns::{DbId, DbTs},
    schema::application_logs,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = application_logs)]
pub(super) struct LineRow {
    #[diesel(deserialize_as = DbId)]
    application_id: ApplicationId,
    number: i64,
    #[diesel(deserialize_as = DbId)]
    deployment_id: DeploymentId,
    #[diesel(deserialize_as = String)]
    level: Level,
    log: String,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
}

impl From<LineRow> for LogLine {
    fn from(row: LineRow) -> Self {
        Self {
            number: row.number,
            application_id: row.application_id,
            deployment_id: row.deployment_id,
            level: row.level,
            text: row.log,
            at: row.created_at,
        }
    }
}

/// A line to insert, with its number. It owns its text, because Diesel caches prepared statements only by
/// types that borrow nothing.
#[derive(Insertable)]
#[diesel(table_name = application_logs, treat_none_as_default_value = false)]
pub(super) struct NewRow {
    pub(super) application_id: DbId,
    pub(super) number: i64,
    pub(super) deployment_id: DbId,
    pub(super) deployment_number: i64,
    pub(super) level: &'static str,
    pub(super) log: String,
    pub(super) search: Option<String>,
    pub(super) created_at: DbTs,
}
