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
    logs::{OpenLog, StreamPermit},
};
use launchway_domain::logs::LogLineId;
use tokio::time::{Instant, sleep};

use crate::{
    Api,
    caller::Caller,
    error::ApiError,
    views::logs::{LogEvent, LogView},
};

/// The number of lines that are read at once.
const BATCH: i64 = 500;
/// The interval at which new lines are polled.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The interval of keep-alive comments without new lines, so that proxies do not close the connection.
const SIGN_EVERY: Duration = Duration::from_secs(15);
/// The interval of checks that the caller may still read.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// A stream that follows a log.
struct Follower {
    api: Data<Api>,
    caller: Caller,
    log: OpenLog,
    seen: Option<LogLineId>,
    request: HttpRequest,
    last_sign: Instant,
    last_check: Instant,
    is_over: bool,
    _permit: StreamPermit,
}

/// Streams the lines of `log` after `seen`, and every later one.
pub(super) async fn follow(
    api: Data<Api>,
    caller: Caller,
    log: OpenLog,
    seen: Option<LogLineId>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let now = Instant::now();
    let permit = api.services.streams.open(&caller)?;
    let mut follower = Follower {
        api,
        caller,
        log,
        seen,
        request,
        last_sign: now,
        last_check: now,
        is_over: false,
        _permit: permit,
    };
    // Errors of the query are returned before the stream begins.
    let first = follower.new_lines().await?.unwrap_or_else(|| Bytes::from_static(b": follow\n\n"));
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
            // Checked first, so that a line between the two queries is not missed.
            let is_complete = self.api.services.logs.is_complete(&self.caller, &self.log).await.ok()?;
            match self.new_lines().await.ok()? {
                Some(lines) => return Some(lines),
                None if is_complete => {
                    self.is_over = true;
                    return Some(LogEvent::end().to_string().into());
                }
                None => {}
            }
            if self.last_sign.elapsed() >= SIGN_EVERY {
                self.last_sign = Instant::now();
                return Some(Bytes::from_static(b": still here\n\n"));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    async fn new_lines(&mut self) -> Result<Option<Bytes>, Error> {
        let lines = self.api.services.logs.lines_after(&self.caller, &self.log, self.seen, BATCH).await?;
        let Some(last) = lines.last() else { return Ok(None) };
        self.seen = Some(last.id());
        self.last_sign = Instant::now();
        let mut events = String::new();
        for line in lines {
            let id = line.id();
            let data =
                serde_json::to_string(&LogView::from(line)).map_err(|error| Error::Internal(error.into()))?;
            events.push_str(&LogEvent::of(id, data).to_string());
        }
        Ok(Some(events.into()))
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
