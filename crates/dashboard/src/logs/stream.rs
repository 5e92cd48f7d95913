//! Follows a log by server-sent events, authenticated by the cookie.

use std::{convert::Infallible, time::Duration};

use actix_web::{HttpResponse, http::header::CACHE_CONTROL, web::Bytes};
use futures_util::{StreamExt as _, stream};
use launchway_application::{
    Error,
    logs::{Followed, LogFollower, OpenLog, StreamPermit},
};
use launchway_domain::{
    extensions::ExecutionLine,
    ids::ExecutionId,
    logs::{LogLine, LogLineId},
};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::{context::PageContext, error::PageError, visitor::Visitor};

/// The interval of checks that the visitor may still read.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// The longest time between two polls. A log that is quiet is polled seldom, because many may watch it.
const LONGEST_PAUSE: Duration = Duration::from_millis(1500);
/// The interval of checks that a run has finished.
const STATE_EVERY: Duration = Duration::from_secs(1);
/// The time without a line after which a sign of life is sent, so that proxies do not close the connection.
const SIGN_EVERY: Duration = Duration::from_secs(15);

/// A stream that follows a log.
struct Follower {
    context: PageContext,
    source: Source,
    last_check: Instant,
    last_sign: Instant,
    /// The time until the next poll.
    pause: Duration,
    is_over: bool,
}

/// The log of a deployment or an application, or that of a run of an extension.
enum Source {
    Log(Box<LogFollower>),
    Execution(ExecutionFollower),
}

/// The position of a stream in the log of a run.
struct ExecutionFollower {
    id: ExecutionId,
    after: i64,
    is_complete: bool,
    last_state: Option<Instant>,
    _permit: StreamPermit,
}

impl ExecutionFollower {
    /// Returns the next lines; `None` if the log is complete.
    async fn poll(&mut self, context: &PageContext) -> Result<Option<Vec<ExecutionLine>>, Error> {
        let extensions = &context.services().extensions;
        // Checked first, so that a line between the two queries is not missed.
        if !self.is_complete && self.last_state.is_none_or(|last| last.elapsed() >= STATE_EVERY) {
            let detail = extensions.execution_detail(&context.visitor, self.id).await?;
            (self.is_complete, self.last_state) = (detail.execution.state.is_final(), Some(Instant::now()));
        }
        let (lines, next) = extensions.lines(&context.visitor, self.id, self.after).await?;
        self.after = next;
        Ok(if lines.is_empty() && self.is_complete { None } else { Some(lines) })
    }
}

/// A line, as short as its text allows.
#[derive(Serialize)]
struct Event<'a> {
    /// The number of the line.
    n: i64,
    /// The time in milliseconds since 1970.
    t: i64,
    /// The level.
    l: &'static str,
    /// The text.
    x: &'a str,
}

/// Streams the lines of `log` after `seen`, and every later one.
pub(super) async fn follow_log(
    context: PageContext,
    log: OpenLog,
    seen: Option<LogLineId>,
) -> Result<HttpResponse, PageError> {
    let permit = context.services().streams.open(&context.visitor)?;
    follow(context, Source::Log(Box::new(LogFollower::new(log, seen, permit)))).await
}

/// Streams the lines of a run after the number `after`, and every later one.
pub(crate) async fn follow_execution(
    context: PageContext,
    id: ExecutionId,
    after: i64,
) -> Result<HttpResponse, PageError> {
    let permit = context.services().streams.open(&context.visitor)?;
    let follower = ExecutionFollower { id, after, is_complete: false, last_state: None, _permit: permit };
    follow(context, Source::Execution(follower)).await
}

async fn follow(context: PageContext, source: Source) -> Result<HttpResponse, PageError> {
    let now = Instant::now();
    let pause = LogFollower::INTERVAL;
    let mut follower = Follower { context, source, last_check: now, last_sign: now, pause, is_over: false };
    // Errors of the query are returned before the stream begins.
    let first = follower.poll().await?.unwrap_or_default();
    // After a restart of the server, the browser comes back within a second.
    let first = stream::iter([Bytes::from_static(b"retry: 1000\n\n"), first].map(Ok::<_, Infallible>));
    let rest = stream::unfold(follower, |mut follower| async move {
        let piece = follower.next().await?;
        Some((Ok::<_, Infallible>(piece), follower))
    });
    Ok(HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header(("x-accel-buffering", "no"))
        .streaming(first.chain(rest)))
}

impl Follower {
    /// Returns the next chunk of the stream; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.is_over || self.context.dashboard.is_stopping() || !self.may_still_read().await {
                return None;
            }
            if let Some(events) = self.poll().await.ok()? {
                (self.last_sign, self.pause) = (Instant::now(), LogFollower::INTERVAL);
                return Some(events);
            }
            if self.last_sign.elapsed() >= SIGN_EVERY {
                self.last_sign = Instant::now();
                return Some(Bytes::from_static(b": still here\n\n"));
            }
            sleep(self.pause).await;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn poll(&mut self) -> Result<Option<Bytes>, Error> {
        let Self { context, source, .. } = self;
        let events = match source {
            Source::Log(log) => match log.poll(&context.services().logs, &context.visitor).await? {
                Followed::Lines(lines) => lines.iter().map(log_event).collect::<Result<String, _>>()?,
                Followed::Nothing => return Ok(None),
                Followed::End => return Ok(Some(self.end())),
            },
            Source::Execution(run) => match run.poll(context).await? {
                Some(lines) if lines.is_empty() => return Ok(None),
                Some(lines) => lines.iter().map(execution_event).collect::<Result<String, _>>()?,
                None => return Ok(Some(self.end())),
            },
        };
        Ok(Some(events.into()))
    }

    /// Returns the event of the end, after which the browser closes the stream.
    fn end(&mut self) -> Bytes {
        self.is_over = true;
        Bytes::from_static(b"event: end\ndata: {}\n\n")
    }

    /// Checks that the visitor may still read. The end of the session or the membership ends the stream too.
    async fn may_still_read(&mut self) -> bool {
        if self.last_check.elapsed() < CHECK_EVERY {
            return true;
        }
        self.last_check = Instant::now();
        match Visitor::authenticate(&self.context.request).await {
            Ok(visitor) => {
                self.context.visitor = visitor;
                true
            }
            Err(_refused) => false,
        }
    }
}

fn log_event(line: &LogLine) -> Result<String, Error> {
    let event =
        Event { n: line.number, t: line.at.timestamp_millis(), l: line.level.as_str(), x: &line.text };
    written(&line.id().to_string(), &event)
}

fn execution_event(line: &ExecutionLine) -> Result<String, Error> {
    let event = Event { n: line.seq, t: line.at.timestamp_millis(), l: line.level.as_str(), x: &line.text };
    written(&line.seq.to_string(), &event)
}

fn written(id: &str, event: &Event<'_>) -> Result<String, Error> {
    let data = serde_json::to_string(event).map_err(|error| Error::Internal(error.into()))?;
    Ok(format!("id: {id}\ndata: {data}\n\n"))
}
