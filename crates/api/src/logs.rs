//! The endpoints of logs.

mod stream;
mod views;

use actix_web::{
    HttpRequest, HttpResponse,
    web::{Data, Path},
};
use launchway_application::logs::{LogPage, LogSubject};
use launchway_domain::{
    ids::DeploymentId,
    logs::{LogFilter, LogLineId},
    page::PageRequest,
};

pub(crate) use self::views::LogView;
use self::views::{Embedding, LogEvent, LogsView};
use crate::{
    Api,
    caller::Caller,
    envelope::{Envelope, Reply, success},
    error::{ApiError, path_id},
    fields::{Fields, SearchTerm},
    pages::PageSizes,
    query::Query,
    routes::Routes,
};

const PAGES: PageSizes = PageSizes { default: 100, largest: 1000 };

pub(crate) fn routes(routes: &mut Routes) {
    routes
        .get("/api/v1/deploy/application/logs/{application_id}", application_logs)
        .get("/api/v1/deploy/application/deployments/{deployment_id}/logs", deployment_logs)
        .get("/api/v1/deploy/application/deployments/{deployment_id}/logs/stream", stream_deployment_logs);
}

/// Get the log of an application, newest first, or oldest first with `after`
#[utoipa::path(get, path = "/api/v1/deploy/application/logs/{application_id}", tag = "logs",
    security(("bearer" = [])),
    params(
        ("application_id" = String, Path, description = "Id of an application of this organization"),
        ("page" = Option<i64>, Query, description = "Page number, from 1"),
        ("page_size" = Option<i64>, Query, description = "Page size: default 100, at most 1,000; also `pageSize`"),
        ("search_term" = Option<String>, Query, description = "Text in the line, ignoring case"),
        ("level" = Option<String>, Query, description = "`info`, `warn`, `error`, `build` or `runtime`"),
        ("start_time" = Option<String>, Query, description = "Earliest time, inclusive"),
        ("end_time" = Option<String>, Query, description = "Latest time, inclusive"),
        ("deployment_id" = Option<String>, Query, description = "Id of a deployment"),
        ("after" = Option<String>, Query, description = "Id of a line: returns only later lines, oldest first"),
        ("embed" = Option<String>, Query, description = "`none` omits the embedded application and deployment"),
    ),
    responses((status = 200, body = Envelope<LogsView>)))]
pub(crate) async fn application_logs(
    api: Data<Api>,
    caller: Caller,
    path: Path<String>,
    query: Query,
) -> Reply<LogsView> {
    let subject = LogSubject::Application(path_id("application_id", &path)?);
    read_logs(&api, &caller, subject, &query).await
}

/// Get the log of a deployment, newest first, or oldest first with `after`
#[utoipa::path(get, path = "/api/v1/deploy/application/deployments/{deployment_id}/logs", tag = "logs",
    security(("bearer" = [])),
    params(
        ("deployment_id" = String, Path, description = "Id of a deployment of this organization"),
        ("page" = Option<i64>, Query, description = "Page number, from 1"),
        ("page_size" = Option<i64>, Query, description = "Page size: default 100, at most 1,000; also `pageSize`"),
        ("search_term" = Option<String>, Query, description = "Text in the line, ignoring case"),
        ("level" = Option<String>, Query, description = "`info`, `warn`, `error`, `build` or `runtime`"),
        ("start_time" = Option<String>, Query, description = "Earliest time, inclusive"),
        ("end_time" = Option<String>, Query, description = "Latest time, inclusive"),
        ("after" = Option<String>, Query, description = "Id of a line: returns only later lines, oldest first"),
        ("embed" = Option<String>, Query, description = "`none` omits the embedded application and deployment"),
    ),
    responses((status = 200, body = Envelope<LogsView>)))]
pub(crate) async fn deployment_logs(
    api: Data<Api>,
    caller: Caller,
    path: Path<String>,
    query: Query,
) -> Reply<LogsView> {
    let subject = LogSubject::Deployment(path_id("deployment_id", &path)?);
    read_logs(&api, &caller, subject, &query).await
}

/// Follow the log of a deployment as server-sent events
///
/// Each event is a line with its id; `Last-Event-ID` continues after it. When the deployment has finished
/// and is not live, an event `end` follows and the stream closes.
#[utoipa::path(get, path = "/api/v1/deploy/application/deployments/{deployment_id}/logs/stream", tag = "logs",
    security(("bearer" = [])),
    params(
        ("deployment_id" = String, Path, description = "Id of a deployment of this organization"),
        ("Last-Event-ID" = Option<String>, Header, description = "Id of the last line that was received"),
    ),
    responses((status = 200, content_type = "text/event-stream", body = LogEvent)))]
pub(crate) async fn stream_deployment_logs(
    api: Data<Api>,
    caller: Caller,
    path: Path<String>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let id: DeploymentId = path_id("deployment_id", &path)?;
    let seen = match request.headers().get("last-event-id") {
        Some(seen) => Some(path_id("Last-Event-ID", seen.to_str().unwrap_or_default())?),
        None => None,
    };
    let log = api.services.logs.open(&caller, LogSubject::Deployment(id), LogFilter::default()).await?;
    stream::follow(api, caller, log, seen, request).await
}

async fn read_logs(api: &Api, caller: &Caller, subject: LogSubject, query: &Query) -> Reply<LogsView> {
    let Question { filter, after, page, embedding } = Question::read(query)?;
    let logs = &api.services.logs;
    let log = logs.open(caller, subject, filter).await?;
    let found: LogPage = match after {
        Some(after) => logs.after(caller, log, Some(after), page).await?,
        None => logs.page(caller, log, page).await?,
    };
    Ok(success("Logs retrieved successfully", LogsView::new(found, embedding)?))
}

/// The query of a log.
struct Question {
    filter: LogFilter,
    after: Option<LogLineId>,
    page: PageRequest,
    embedding: Embedding,
}

impl Question {
    fn read(query: &Query) -> Result<Self, ApiError> {
        let mut query: Fields = query.read()?;
        let page = PAGES.take(&mut query);
        let search = query.optional::<SearchTerm>("search_term");
        let level = query.optional("level");
        let from = query.optional("start_time");
        let to = query.optional("end_time");
        let deployment = query.id("deployment_id");
        let after = query.id("after");
        let embedding = query.optional("embed");
        query.finish_query()?;
        let filter = LogFilter {
            search: search?.map(Into::into),
            level: level?,
            from: from?,
            to: to?,
            deployment: deployment?,
        };
        Ok(Self { filter, after: after?, page: page?, embedding: embedding?.unwrap_or_default() })
    }
}
