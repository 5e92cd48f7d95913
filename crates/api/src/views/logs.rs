//! The JSON of log lines.

use std::{collections::HashMap, fmt};

use launchway_application::{Error, logs::LogPage};
use launchway_domain::{
    deployments::Deployment,
    ids::DeploymentId,
    logs::{LogLine, LogLineId},
    value::InvalidValue,
};
use serde::{Serialize, Serializer};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{applications::ApplicationView, deployments::DeploymentView};
use crate::{
    fields::{Field, Invalid},
    pages::Pagination,
    repeated::Repeated,
    schema::one_of,
    timestamp::Moment,
};

/// A line of a log. Its relations are omitted unless they are attached.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = ApplicationLog)]
pub(crate) struct LogView<'a> {
    id: Uuid,
    application_id: Uuid,
    #[schema(no_recursion, value_type = Option<ApplicationView>)]
    application: Option<Repeated>,
    application_deployment_id: Uuid,
    #[schema(no_recursion, value_type = Option<DeploymentView>)]
    application_deployment: Option<Repeated>,
    #[schema(example = "build")]
    level: &'static str,
    log: &'a str,
    created_at: Moment,
    updated_at: Moment,
}

impl<'a> From<&'a LogLine> for LogView<'a> {
    fn from(line: &'a LogLine) -> Self {
        Self {
            id: line.id().into(),
            application_id: line.application_id.into(),
            application: None,
            application_deployment_id: line.deployment_id.into(),
            application_deployment: None,
            level: line.level.as_str(),
            log: &line.text,
            created_at: line.at.into(),
            updated_at: line.at.into(),
        }
    }
}

/// Lines without relations. The view of a line is made when it is written: there may be a thousand.
#[derive(Clone, Default)]
pub(crate) struct Lines(Vec<LogLine>);

impl From<Vec<LogLine>> for Lines {
    fn from(lines: Vec<LogLine>) -> Self {
        Self(lines)
    }
}

impl Serialize for Lines {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(LogView::from))
    }
}

/// Lines with their relations.
struct RelatedLines {
    lines: Vec<LogLine>,
    application: Option<Repeated>,
    deployments: HashMap<DeploymentId, Repeated>,
}

impl Serialize for RelatedLines {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.lines.iter().map(|line| LogView {
            application: self.application.clone(),
            application_deployment: self.deployments.get(&line.deployment_id).cloned(),
            ..line.into()
        }))
    }
}

/// The embedding of relations in lines.
#[derive(Default, PartialEq, Eq)]
pub(crate) enum Embedding {
    #[default]
    Whole,
    None,
}

impl Field for Embedding {
    fn read(value: Value) -> Result<Self, Invalid> {
        match String::read(value)?.trim() {
            "none" => Ok(Self::None),
            other => Err(InvalidValue::text("`none`, or absent", other).into()),
        }
    }

    fn schema() -> Value {
        one_of(["none"])
    }
}

/// A page of log lines.
#[derive(Serialize, ToSchema)]
#[schema(as = ApplicationLogs)]
pub(crate) struct LogsView {
    #[schema(value_type = Vec<LogView>)]
    logs: RelatedLines,
    pagination: Pagination,
    /// The same total, for older clients.
    total_count: i64,
    page: i64,
    page_size: i64,
    total_pages: i64,
}

impl LogsView {
    pub(crate) fn new(found: LogPage, embedding: Embedding) -> Result<Self, Error> {
        let LogPage { application, deployments, lines } = found;
        let (application, deployments) = match embedding {
            Embedding::None => (None, HashMap::new()),
            Embedding::Whole => {
                let of = |one: &Deployment| Ok((one.id, Repeated::new(&DeploymentView::from(one))?));
                let deployments = deployments.iter().map(of).collect::<Result<_, Error>>()?;
                (Some(Repeated::new(&ApplicationView::from(&application))?), deployments)
            }
        };
        Ok(Self {
            pagination: Pagination::from(&lines),
            total_count: lines.total,
            page: lines.request.number(),
            page_size: lines.request.size(),
            total_pages: lines.total_pages(),
            logs: RelatedLines { lines: lines.items, application, deployments },
        })
    }
}

/// An event of a stream.
#[derive(ToSchema)]
pub(crate) struct LogEvent {
    /// The id of the line; absent for `end`.
    id: Option<String>,
    /// `log` or `end`.
    #[schema(value_type = String, example = "log")]
    event: &'static str,
    /// An `ApplicationLog` as JSON text; `{}` for `end`.
    data: String,
}

impl LogEvent {
    /// Returns the event of a line, which is serialized JSON.
    pub(crate) fn of(id: LogLineId, data: String) -> Self {
        Self { id: Some(id.to_string()), event: "log", data }
    }

    /// Returns the last event.
    pub(crate) fn end() -> Self {
        Self { id: None, event: "end", data: "{}".to_owned() }
    }
}

impl fmt::Display for LogEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(id) = &self.id {
            writeln!(formatter, "id: {id}")?;
        }
        writeln!(formatter, "event: {}\ndata: {}\n", self.event, self.data)
    }
}
