//! Follows a log by server-sent events.

use std::{convert::Infallible, time::Duration};

use actix_web::{
    FromRequest as _, HttpRequest, HttpResponse,
    dev::Payload,
    http::header::CACHE_CONTROL,
    web::{Bytes, Data},
};
use futures_util::stream;
use launchway_application::{
    Error,
    logs::{Followed, LogFollower, OpenLog},
};
use launchway_domain::logs::{LogLine, LogLineId};
use tokio::time::{Instant, sleep};

use crate::{
    Api,
    caller::Caller,
    error::ApiError,
    views::logs::{LogEvent, LogView},
};

/// The interval of checks that the caller may still read.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// A stream that follows a log.
struct Follower {
    api: Data<Api>,
    caller: Caller,
    log: LogFollower,
    request: HttpRequest,
    last_check: Instant,
    is_over: bool,
}

/// Streams the lines of `log` after `seen`, and every later one.
pub(super) async fn follow(
    api: Data<Api>,
    caller: Caller,
    log: OpenLog,
    seen: Option<LogLineId>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let permit = api.services.streams.open(&caller)?;
    let log = LogFollower::new(log, seen, permit);
    let mut follower = Follower { api, caller, log, request, last_check: Instant::now(), is_over: false };
    // Errors of the query are returned before the stream begins.
    let first = follower.poll().await?.unwrap_or_else(|| Bytes::from_static(b": follow\n\n"));
    let rest = stream::unfold(follower, |mut follower| async move {
        let piece = follower.next().await?;
        Some((Ok::<_, Infallible>(piece), follower))
    });
    let first = stream::iter([Ok::<_, Infallible>(first)]);
    Ok(HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header(("x-accel-buffering", "no"))
        .streaming(futures_util::StreamExt::chain(first, rest)))
}

impl Follower {
    /// Returns the next chunk of the stream; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.is_over || self.api.is_stopping() || !self.may_still_read().await {
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
        match self.log.poll(&self.api.services.logs, &self.caller).await? {
            Followed::Lines(lines) => events(lines).map(Some),
            Followed::Nothing => Ok(None),
            Followed::End => {
                self.is_over = true;
                Ok(Some(LogEvent::end().to_string().into()))
            }
        }
    }

    /// Checks that the caller may still read. The end of the session or the membership ends the stream too.
    async fn may_still_read(&mut self) -> bool {
        if self.last_check.elapsed() < CHECK_EVERY {
            return true;
        }
        self.last_check = Instant::now();
        match Caller::from_request(&self.request, &mut Payload::None).await {
            Ok(caller) => {
                self.caller = caller;
                true
            }
            Err(_refused) => false,
        }
    }
}

fn events(lines: Vec<LogLine>) -> Result<Bytes, Error> {
    let mut events = String::new();
    for line in &lines {
        let data =
            serde_json::to_string(&LogView::from(line)).map_err(|error| Error::Internal(error.into()))?;
        events.push_str(&LogEvent::of(line.id(), data).to_string());
    }
    Ok(events.into())
}
