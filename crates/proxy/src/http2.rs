//! HTTP/2 to clients: every stream becomes a request of HTTP/1.1.
//!
//! h2 resets the streams that RFC 9113 calls malformed: connection headers, pseudo headers that are missing or in the wrong
//! place, a content length that differs from the data. WebSockets need HTTP/1.1, which browsers use for them, because the
//! proxy does not offer extended CONNECT (RFC 8441).
//!
//! **Invariant:** a request over HTTP/2 counts against the limits of its client as a connection does.

mod request;
mod streams;

use std::{
    convert::Infallible,
    future::{Future as _, poll_fn},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use http::{Method, Request, Response, header};
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, MissedTickBehavior, interval},
};

use self::streams::Streams;
use crate::{
    Limits,
    body::{self, Body},
    close::Phase,
    exchange::{Peer, StreamPermit},
    forward,
    pages::{Problem, page},
    proxy::Proxy,
};

/// Concurrent streams of one connection.
const STREAMS: u32 = 100;
/// Streams that a client may reset before they are answered, and streams that it may have reset by errors, before the
/// connection is closed (CVE-2023-44487).
const RESETS: usize = 20;
/// The bytes that are buffered for each stream.
const SEND_BUFFER: usize = 64 * 1_024;
/// The bytes that a client may send before they are read, for each stream and for the connection.
const WINDOWS: (u32, u32) = (64 * 1_024, 1_024 * 1_024);
/// The interval of pings, and the time for the answer.
const PINGS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(20));

/// Serves a connection until it ends, is idle for too long, or has a stream that the client does not read.
pub(crate) async fn serve<S>(proxy: &Arc<Proxy>, stream: S, peer: Arc<Peer>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (limits, streams) = (&proxy.limits, Streams::default());
    let service = service_fn(|request| {
        let (proxy, peer, streams) = (Arc::clone(proxy), Arc::clone(&peer), streams.clone());
        async move {
            let (response, permit) = answer(&proxy, &peer, request).await;
            Ok::<_, Infallible>(streams.watch(response, permit))
        }
    });
    let mut connection = pin!(
        http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_pending_accept_reset_streams(RESETS)
            .max_local_error_reset_streams(RESETS)
            .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
            .max_send_buf_size(SEND_BUFFER)
            .initial_stream_window_size(WINDOWS.0)
            .initial_connection_window_size(WINDOWS.1)
            .keep_alive_interval(PINGS.0)
            .keep_alive_timeout(PINGS.1)
            .serve_connection(TokioIo::new(stream), service)
    );
    let mut ticks = interval(limits.request_head.min(limits.keep_alive).min(limits.client_stall) / 2);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut watch, mut idle) = (proxy.closing.watch(), Idle::new());
    let (mut is_told, mut cut_at) = (false, None);
    let ended = poll_fn(|cx| {
        let mut must_leave = match watch.poll_phase(cx) {
            Phase::Serving => false,
            // The client opens its next stream elsewhere, and those in progress end first.
            Phase::Leaving | Phase::ClosingIdle => true,
            Phase::Cutting => return Poll::Ready(Ok(())),
        };
        while let Poll::Ready(now) = ticks.poll_tick(cx) {
            let is_over = idle.is_over(&peer, &streams, now, limits);
            if is_over || streams.has_stalled(now, limits.client_stall) {
                cut_at.get_or_insert(now + limits.leave_idle);
            }
            if cut_at.is_some_and(|at| at <= now) {
                return Poll::Ready(Ok(()));
            }
            must_leave |= cut_at.is_some();
        }
        if must_leave && !is_told {
            is_told = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(cx)
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "client connection failed");
    }
}

/// The time since the last request of a connection.
struct Idle {
    since: Instant,
    requests: u64,
}

impl Idle {
    fn new() -> Self {
        Self { since: Instant::now(), requests: 0 }
    }

    /// Returns whether there has been no request for too long: the first one has the timeout of a head.
    fn is_over(&mut self, peer: &Peer, streams: &Streams, now: Instant, limits: &Limits) -> bool {
        let requests = streams.begun();
        if peer.is_busy() || requests != self.requests {
            *self = Self { since: now, requests };
            return false;
        }
        let limit = if requests == 0 { limits.request_head } else { limits.keep_alive };
        now.duration_since(self.since) >= limit
    }
}

/// Answers a request as one of HTTP/1.1.
async fn answer(
    proxy: &Arc<Proxy>,
    peer: &Arc<Peer>,
    request: Request<Incoming>,
) -> (Response<Body>, Option<StreamPermit>) {
    let is_head = request.method() == Method::HEAD;
    let (mut response, permit) = match peer.admit_stream(proxy) {
        None => (page(Problem::TooBusy, request.headers()), None),
        Some(permit) => {
            let response = match request::as_http_1_1(request, proxy.limits.headers) {
                Ok(request) => forward::answer(proxy, peer, request).await,
                Err((problem, headers)) => page(problem, &headers),
            };
            (response, Some(permit))
        }
    };
    // Unlike over HTTP/1.1, hyper would send it.
    if is_head {
        *response.body_mut() = body::empty();
    }
    // It is about a connection that the client does not have.
    response.headers_mut().remove(header::CONNECTION);
    (response, permit)
}
