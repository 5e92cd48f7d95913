//! The rows of log lines.

use diesel::prelude::*;
use launchway_domain::{
    ids::{ApplicationId, DeploymentId},
    logs::{Level, LogLine},
};

use crate::{
    columns::{DbId, DbTs, Parsed},
    schema::application_logs,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = application_logs)]
pub(super) struct LineRow {
    number: i64,
    level: Parsed<Level>,
    log: String,
    created_at: DbTs,
}

impl LineRow {
    pub(super) fn line_of(self, application_id: ApplicationId, deployment_id: DeploymentId) -> LogLine {
        LogLine {
            number: self.number,
            application_id,
            deployment_id,
            level: self.level.0,
            text: self.log,
            at: self.created_at.0,
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
