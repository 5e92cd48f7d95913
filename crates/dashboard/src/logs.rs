//! Logs: pages, event streams and downloads.

mod stream;

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::CONTENT_DISPOSITION,
    web::{Bytes, Data, Path, ServiceConfig, get},
};
use askama::Template;
use chrono::SecondsFormat;
use futures_util::stream::unfold;
use launchway_application::{
    Error,
    logs::{LogSubject, OpenLog},
};
use launchway_domain::logs::{LogFilter, LogLine, LogLineId};

use crate::{
    Dashboard,
    applications::{Head, application_id},
    deployments::deployment_id,
    error::PageError,
    frame::{Frame, Section, page, parameter},
    pages::requested,
    visitor::Visitor,
};

/// The number of lines that a page shows before the stream begins.
const SHOWN: i64 = 50;
/// The number of lines of a download that are read at once.
const BATCH: i64 = 1000;

pub(crate) fn routes(config: &mut ServiceConfig) {
    config
        .route("/applications/{id}/log", get().to(application_log))
        .route("/applications/{id}/log/stream", get().to(stream_application))
        .route("/applications/{id}/log.txt", get().to(download_application))
        .route("/deployments/{id}/stream", get().to(stream_deployment))
        .route("/deployments/{id}/log.txt", get().to(download_deployment));
}

/// A line of a log.
pub(crate) struct LogRow {
    pub(crate) number: i64,
    pub(crate) level: &'static str,
    pub(crate) time: String,
    pub(crate) text: String,
}

impl From<LogLine> for LogRow {
    fn from(line: LogLine) -> Self {
        Self {
            number: line.number,
            level: line.level.as_str(),
            time: line.at.format("%H:%M:%S").to_string(),
            text: line.text,
        }
    }
}

#[derive(Template)]
#[template(path = "application_log.html")]
struct LogPage {
    frame: Frame,
    head: Head,
    lines: Vec<LogRow>,
    /// The id of the last line that is shown, after which the stream begins.
    after: String,
    search: String,
}

async fn application_log(
    request: HttpRequest,
    dashboard: Data<Dashboard>,
    visitor: Visitor,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let search = parameter(&request, "search").unwrap_or_default().trim().to_owned();
    let filter =
        LogFilter { search: Some(search.clone()).filter(|text| !text.is_empty()), ..LogFilter::default() };
    let logs = &dashboard.services.logs;
    let log = logs.open(&visitor, LogSubject::Application(application_id(&path)?), filter).await?;
    let found = logs.page(&visitor, log, requested(None, SHOWN)?).await?;
    let title = format!("Log of {}", found.application.blueprint.name);
    let after = found.lines.items.first().map(|line| line.id().to_string()).unwrap_or_default();
    page(&LogPage {
        frame: Frame::new(&request, &visitor, Section::Applications, title),
        head: Head::new(&dashboard, &visitor, &found.application, "log"),
        // They come newest first.
        lines: found.lines.items.into_iter().rev().map(LogRow::from).collect(),
        after,
        search,
    })
}

async fn stream_application(
    request: HttpRequest,
    dashboard: Data<Dashboard>,
    visitor: Visitor,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let subject = LogSubject::Application(application_id(&path)?);
    open_stream(request, dashboard, visitor, subject).await
}

async fn stream_deployment(
    request: HttpRequest,
    dashboard: Data<Dashboard>,
    visitor: Visitor,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    let subject = LogSubject::Deployment(deployment_id(&path)?);
    open_stream(request, dashboard, visitor, subject).await
}

async fn open_stream(
    request: HttpRequest,
    dashboard: Data<Dashboard>,
    visitor: Visitor,
    subject: LogSubject,
) -> Result<HttpResponse, PageError> {
    // A browser that reconnects names the last line in the header.
    let again = request.headers().get("last-event-id").and_then(|seen| seen.to_str().ok()).map(str::to_owned);
    let seen = again.or_else(|| parameter(&request, "after")).filter(|seen| !seen.is_empty());
    let seen = seen.map(|seen| seen.parse::<LogLineId>()).transpose();
    let seen = seen.map_err(|invalid| Error::Invalid(format!("after {invalid}")))?;
    let log = dashboard.services.logs.open(&visitor, subject, LogFilter::default()).await?;
    stream::follow(dashboard, visitor, log, seen, request).await
}

async fn download_application(
    dashboard: Data<Dashboard>,
    visitor: Visitor,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    download(dashboard, visitor, LogSubject::Application(application_id(&path)?)).await
}

async fn download_deployment(
    dashboard: Data<Dashboard>,
    visitor: Visitor,
    path: Path<String>,
) -> Result<HttpResponse, PageError> {
    download(dashboard, visitor, LogSubject::Deployment(deployment_id(&path)?)).await
}

/// Sends a whole log as text, in batches.
async fn download(
    dashboard: Data<Dashboard>,
    visitor: Visitor,
    subject: LogSubject,
) -> Result<HttpResponse, PageError> {
    let log = dashboard.services.logs.open(&visitor, subject, LogFilter::default()).await?;
    let name =
        format!("attachment; filename=\"{}.log\"", log.application.blueprint.name.as_str().replace(' ', "-"));
    let start = Some((dashboard, visitor, log, None));
    let body = unfold(start, |state: Option<(Data<Dashboard>, Visitor, OpenLog, Option<LogLineId>)>| async {
        let (dashboard, visitor, log, seen) = state?;
        match dashboard.services.logs.lines_after(&visitor, &log, seen, BATCH).await {
            Ok(lines) => {
                let last = lines.last()?.id();
                let text: String = lines.iter().map(as_text).collect();
                Some((Ok(Bytes::from(text)), Some((dashboard, visitor, log, Some(last)))))
            }
            // The connection breaks, so that nobody takes a part for the whole.
            Err(error) => Some((Err(error), None)),
        }
    });
    let body = Box::pin(body);
    Ok(HttpResponse::Ok()
        .content_type("text/plain; charset=utf-8")
        .insert_header((CONTENT_DISPOSITION, name))
        .streaming::<_, Error>(body))
}

fn as_text(line: &LogLine) -> String {
    let at = line.at.to_rfc3339_opts(SecondsFormat::Millis, true);
    format!("{at} {:7} {}\n", line.level.as_str(), line.text)
}
