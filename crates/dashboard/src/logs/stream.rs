//! Follows a log by server-sent events, authenticated by the cookie.

use std::{convert::Infallible, time::Duration};

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::CACHE_CONTROL,
    web::{Bytes, Data},
};
use futures_util::{StreamExt as _, stream};
use launchway_application::{
    Error,
    logs::{Followed, LogFollower, OpenLog},
};
use launchway_domain::logs::{LogLine, LogLineId};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::{Dashboard, error::PageError, visitor::Visitor};

/// The interval of checks that the visitor may still read.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// A stream that follows a log.
struct Follower {
    dashboard: Data<Dashboard>,
    visitor: Visitor,
    log: LogFollower,
    request: HttpRequest,
    last_check: Instant,
    is_over: bool,
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
pub(super) async fn follow(
    dashboard: Data<Dashboard>,
    visitor: Visitor,
    log: OpenLog,
    seen: Option<LogLineId>,
    request: HttpRequest,
) -> Result<HttpResponse, PageError> {
    let permit = dashboard.services.streams.open(&visitor)?;
    let log = LogFollower::new(log, seen, permit);
    let mut follower =
        Follower { dashboard, visitor, log, request, last_check: Instant::now(), is_over: false };
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
            if self.is_over || self.dashboard.is_stopping() || !self.may_still_read().await {
                return None;
            }
            if let Some(events) = self.poll().await.ok()? {
                return Some(events);
            }
            if self.log.needs_sign() {
                return Some(Bytes::from_static(b": still here\n\n"));
            }
            sleep(LogFollower::INTERVAL).await;
        }
    }

    async fn poll(&mut self) -> Result<Option<Bytes>, Error> {
        match self.log.poll(&self.dashboard.services.logs, &self.visitor).await? {
            Followed::Lines(lines) => events(&lines).map(Some),
            Followed::Nothing => Ok(None),
            Followed::End => {
                self.is_over = true;
                Ok(Some(Bytes::from_static(b"event: end\ndata: {}\n\n")))
            }
        }
    }

    /// Checks that the visitor may still read. The end of the session or the membership ends the stream too.
    async fn may_still_read(&mut self) -> bool {
        if self.last_check.elapsed() < CHECK_EVERY {
            return true;
        }
        self.last_check = Instant::now();
        match Visitor::authenticate(&self.request).await {
            Ok(visitor) => {
                self.visitor = visitor;
                true
            }
            Err(_refused) => false,
        }
    }
}

fn events(lines: &[LogLine]) -> Result<Bytes, Error> {
    let mut events = String::new();
    for line in lines {
        let event =
            Event { n: line.number, t: line.at.timestamp_millis(), l: line.level.as_str(), x: &line.text };
        let data = serde_json::to_string(&event).map_err(|error| Error::Internal(error.into()))?;
        events.push_str(&format!("id: {}\ndata: {data}\n\n", line.id()));
    }
    Ok(events.into())
}
