//! Logs: pages, event streams and downloads.

pub(crate) mod stream;

use actix_web::{
    HttpResponse,
    http::header::CONTENT_DISPOSITION,
    web::{Bytes, Path, ServiceConfig, get},
};
use askama::Template;
use chrono::SecondsFormat;
use futures_util::stream::unfold;
use launchway_application::{
    Error,
    logs::{LogSubject, OpenLog},
};
use launchway_domain::{
    clock::Timestamp,
    extensions::ExecutionLine,
    logs::{LogFilter, LogLine, LogLineId},
};

use crate::{
    applications::{Head, application_id},
    context::PageContext,
    deployments::deployment_id,
    error::PageError,
    frame::{Frame, Section, page},
    pages::requested,
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

impl LogRow {
    fn new(number: i64, level: &'static str, at: Timestamp, text: String) -> Self {
        Self { number, level, time: at.format("%H:%M:%S").to_string(), text }
    }
}

impl From<LogLine> for LogRow {
    fn from(line: LogLine) -> Self {
        Self::new(line.number, line.level.as_str(), line.at, line.text)
    }
}

impl From<ExecutionLine> for LogRow {
    fn from(line: ExecutionLine) -> Self {
        Self::new(line.seq, line.level.as_str(), line.at, line.text)
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

async fn application_log(context: PageContext, path: Path<String>) -> Result<HttpResponse, PageError> {
    let search = context.text("search");
    let filter =
        LogFilter { search: Some(search.clone()).filter(|text| !text.is_empty()), ..LogFilter::default() };
    let logs = &context.services().logs;
    let log = logs.open(&context.visitor, LogSubject::Application(application_id(&path)?), filter).await?;
    let found = logs.page(&context.visitor, log, requested(None, SHOWN)?).await?;
    let title = format!("Log of {}", found.application.blueprint.name);
    let after = found.lines.items.first().map(|line| line.id().to_string()).unwrap_or_default();
    page(&LogPage {
        frame: context.frame(Section::Applications, title),
        head: Head::new(&context, &found.application, "log"),
        // They come newest first.
        lines: found.lines.items.into_iter().rev().map(LogRow::from).collect(),
        after,
        search,
    })
}

async fn stream_application(context: PageContext, path: Path<String>) -> Result<HttpResponse, PageError> {
    let subject = LogSubject::Application(application_id(&path)?);
    open_stream(context, subject).await
}

async fn stream_deployment(context: PageContext, path: Path<String>) -> Result<HttpResponse, PageError> {
    let subject = LogSubject::Deployment(deployment_id(&path)?);
    open_stream(context, subject).await
}

/// Returns the id of the last line that the browser has: one that reconnects names it in the header.
pub(crate) fn seen(context: &PageContext) -> Option<String> {
    let header = context.request.headers().get("last-event-id").and_then(|seen| seen.to_str().ok());
    let seen = header.map_or_else(|| context.text("after"), str::to_owned);
    Some(seen).filter(|seen| !seen.is_empty())
}

async fn open_stream(context: PageContext, subject: LogSubject) -> Result<HttpResponse, PageError> {
    let seen = seen(&context).map(|seen| seen.parse::<LogLineId>()).transpose();
    let seen = seen.map_err(|invalid| Error::Invalid(format!("after {invalid}")))?;
    let log = context.services().logs.open(&context.visitor, subject, LogFilter::default()).await?;
    stream::follow_log(context, log, seen).await
}

async fn download_application(context: PageContext, path: Path<String>) -> Result<HttpResponse, PageError> {
    download(context, LogSubject::Application(application_id(&path)?)).await
}

async fn download_deployment(context: PageContext, path: Path<String>) -> Result<HttpResponse, PageError> {
    download(context, LogSubject::Deployment(deployment_id(&path)?)).await
}

/// Sends a whole log as text, in batches.
async fn download(context: PageContext, subject: LogSubject) -> Result<HttpResponse, PageError> {
    let log = context.services().logs.open(&context.visitor, subject, LogFilter::default()).await?;
    let name =
        format!("attachment; filename=\"{}.log\"", log.application.blueprint.name.as_str().replace(' ', "-"));
    let start = Some((context, log, None));
    let body = unfold(start, |state: Option<(PageContext, OpenLog, Option<LogLineId>)>| async {
        let (context, log, seen) = state?;
        match context.services().logs.lines_after(&context.visitor, &log, seen, BATCH).await {
            Ok(lines) => {
                let last = lines.last()?.id();
                let text: String = lines.iter().map(as_text).collect();
                Some((Ok(Bytes::from(text)), Some((context, log, Some(last)))))
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
