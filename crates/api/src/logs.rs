//! The endpoints of logs.

mod stream;

use actix_web::{HttpRequest, HttpResponse, web::Data};
use launchway_application::logs::{LogPage, LogSubject};
use launchway_domain::{
    auth::{Action, Permission, Resource},
    clock::Timestamp,
    ids::{ApplicationId, DeploymentId},
    logs::{Level, LogFilter, LogLineId},
};

use crate::{
    Api,
    caller::Caller,
    deployments::DeploymentPath,
    endpoint::Endpoint,
    envelope::{Reply, success},
    error::{ApiError, Code},
    fields::SearchTerm,
    input::input,
    pages::Paged,
    query::{Path, Query},
    schema::{Schemas, uuid_text},
    views::logs::{Embedding, LogEvent, LogsView},
};

const READ: Permission = Permission::new(Resource::Deploy, Action::Read);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get("/api/v1/deploy/application/logs/{application_id}", "application_logs", application_logs)
            .summary("Get the log of an application, newest first, or oldest first with `after`")
            .cli("launchway logs <APP>")
            .requires(READ)
            .fails(&[Code::NotFound]),
        Endpoint::get("/api/v1/deploy/application/deployments/{deployment_id}/logs", "deployment_logs", deployment_logs)
            .summary("Get the log of a deployment, newest first, or oldest first with `after`")
            .cli("launchway logs --deployment <DEPLOYMENT>")
            .requires(READ)
            .fails(&[Code::NotFound]),
        Endpoint::get("/api/v1/deploy/application/deployments/{deployment_id}/logs/stream", "stream_deployment_logs", stream_deployment_logs)
            .summary("Follow the log of a deployment as server-sent events")
            .cli("launchway logs <APP> --follow")
            .header("Last-Event-ID", "Id of the last line that was received", uuid_text())
            .responds("text/event-stream", Schemas::add_view::<LogEvent>)
            .about("Each event is a line with its id; `Last-Event-ID` continues after it. When the deployment has finished and is not live, an event `end` follows and the stream closes.")
            .requires(READ)
            .fails(&[Code::NotFound, Code::RateLimited]),
    ]
}

input! {
    struct ApplicationPath {
        /// Id of an application of this organization
        application_id: ApplicationId,
    }
}

input! {
    struct LogsQuery {
        page: Paged<100, 1000>,
        /// Text in the line, ignoring case
        search_term: Option<SearchTerm>,
        /// Only lines of this level
        level: Option<Level>,
        /// Earliest time, inclusive
        start_time: Option<Timestamp>,
        /// Latest time, inclusive
        end_time: Option<Timestamp>,
        /// Id of a line: returns only later lines, oldest first
        after: Option<LogLineId>,
        /// `none` omits the embedded application and deployment
        embed: Option<Embedding>,
    }
}

input! {
    struct ApplicationLogsQuery {
        lines: LogsQuery,
        /// Only lines of this deployment
        deployment_id: Option<DeploymentId>,
    }
}

async fn application_logs(
    api: Data<Api>,
    caller: Caller,
    path: Path<ApplicationPath>,
    query: Query<ApplicationLogsQuery>,
) -> Reply<LogsView> {
    let subject = LogSubject::Application(path.read()?.application_id);
    let ApplicationLogsQuery { lines, deployment_id } = query.read()?;
    read_logs(&api, &caller, subject, lines, deployment_id).await
}

async fn deployment_logs(
    api: Data<Api>,
    caller: Caller,
    path: Path<DeploymentPath>,
    query: Query<LogsQuery>,
) -> Reply<LogsView> {
    let subject = LogSubject::Deployment(path.read()?.deployment_id);
    read_logs(&api, &caller, subject, query.read()?, None).await
}

async fn stream_deployment_logs(
    api: Data<Api>,
    caller: Caller,
    path: Path<DeploymentPath>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let id = path.read()?.deployment_id;
    let seen = request.headers().get("last-event-id").map(|seen| {
        let seen = seen.to_str().unwrap_or_default();
        seen.parse::<LogLineId>()
            .map_err(|refused| ApiError::new(Code::InvalidId, format!("Last-Event-ID {refused}")))
    });
    let seen = seen.transpose()?;
    let log = api.services.logs.open(&caller, LogSubject::Deployment(id), LogFilter::default()).await?;
    stream::follow(api, caller, log, seen, request).await
}

async fn read_logs(
    api: &Api,
    caller: &Caller,
    subject: LogSubject,
    query: LogsQuery,
    deployment: Option<DeploymentId>,
) -> Reply<LogsView> {
    let LogsQuery { page, search_term, level, start_time, end_time, after, embed } = query;
    let search = search_term.map(Into::into);
    let filter = LogFilter { search, level, from: start_time, to: end_time, deployment };
    let logs = &api.services.logs;
    let log = logs.open(caller, subject, filter).await?;
    let found: LogPage = match after {
        Some(after) => logs.after(caller, log, Some(after), page.0).await?,
        None => logs.page(caller, log, page.0).await?,
    };
    Ok(success("Logs retrieved successfully", LogsView::new(found, embed.unwrap_or_default())?))
}
