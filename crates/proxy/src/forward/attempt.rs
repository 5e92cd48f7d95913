//! One attempt to forward a request to a container.

use std::{io, net::SocketAddr, sync::Arc};

use http::{HeaderValue, Request, Response, StatusCode, Uri, Version, header};
use hyper::body::Incoming;

use super::{Forward, headers, tunnel};
use crate::{
    body::Body,
    pages::Problem,
    upstream::{Answer, Link, Outgoing, SendError, Upstream},
};

/// The reason why an attempt failed.
pub(super) enum Failure {
    /// The request can be retried, after a delay.
    Unseen,
    /// The request can be retried at once: an idle connection was closed meanwhile.
    Stale,
    /// Nothing of the request was sent, and waiting for the same target takes too long.
    Unreachable,
    /// The request cannot be retried.
    Final(Problem),
}

impl Forward<'_> {
    pub(super) async fn attempt(
        &mut self,
        upstream: &Arc<Upstream>,
        address: SocketAddr,
    ) -> Result<Response<Body>, Failure> {
        let is_idempotent = self.head.method().is_idempotent();
        let (mut link, is_reused) = match self.idle_link(upstream, !is_idempotent).await {
            Some(link) => (link, true),
            None => match Link::open(address, &self.proxy.limits).await {
                Ok(link) => {
                    upstream.welcome();
                    (link, false)
                }
                Err(error) => {
                    upstream.avoid();
                    return Err(match error.kind() {
                        io::ErrorKind::TimedOut => Failure::Unreachable,
                        _ => Failure::Unseen,
                    });
                }
            },
        };
        if self.upgrade.is_some() {
            link.detach();
        }
        let again = if is_reused { Failure::Stale } else { Failure::Unseen };
        let request = self.request(upstream, is_idempotent);
        match link.send(request, || self.exchange.bytes_received()).await {
            Ok(response) => self.response(response, Arc::clone(upstream), link),
            Err(SendError::TooSlow) => Err(Failure::Final(self.who_is_slow())),
            Err(SendError::Unsent(request)) => {
                *self.head.headers_mut() = request.into_parts().0.headers;
                Err(again)
            }
            Err(SendError::Unanswered) if is_idempotent && self.is_untouched() => Err(again),
            Err(SendError::Unanswered) => Err(Failure::Final(self.who_broke_off())),
            Err(SendError::Malformed(error)) => {
                tracing::debug!(%error, "application sent an invalid response");
                Err(Failure::Final(Problem::NotAnswering))
            }
        }
    }

    async fn idle_link(&self, upstream: &Upstream, must_be_fresh: bool) -> Option<Box<Link>> {
        loop {
            let mut link = upstream.take_idle(must_be_fresh)?;
            if link.is_usable().await {
                return Some(link);
            }
        }
    }

    fn request(&mut self, upstream: &Arc<Upstream>, keep_head: bool) -> Request<Outgoing> {
        let stall = self.proxy.limits.client_stall;
        let body = match &self.slot {
            Some(slot) => Outgoing::take(slot, upstream, &self.exchange, stall),
            None => Outgoing::Nothing,
        };
        let mut request = Request::new(body);
        *request.method_mut() = self.head.method().clone();
        *request.uri_mut() = target(self.head.uri());
        *request.version_mut() = Version::HTTP_11;
        *request.headers_mut() = match keep_head {
            true => self.head.headers().clone(),
            false => std::mem::take(self.head.headers_mut()),
        };
        if self.is_chunked {
            // Without it hyper ignores the body of a GET.
            let headers = request.headers_mut();
            headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        request
    }

    fn response(
        &mut self,
        response: Response<Incoming>,
        upstream: Arc<Upstream>,
        mut link: Box<Link>,
    ) -> Result<Response<Body>, Failure> {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            let client = self.upgrade.take().ok_or(Failure::Final(Problem::NotAnswering))?;
            return Ok(tunnel::open(self.proxy, Arc::clone(&self.exchange), upstream, client, response));
        }
        if self.slot.as_ref().is_some_and(|slot| !slot.is_sent()) {
            link.detach();
        }
        let (mut parts, body) = response.into_parts();
        parts.version = Version::HTTP_11;
        headers::clean_response(&mut parts.headers);
        let answer = Answer::new(body, upstream, link, self.proxy.limits.upstream_stall);
        Ok(Response::from_parts(parts, Body::from_upstream(answer)))
    }

    fn is_untouched(&self) -> bool {
        self.slot.as_ref().is_none_or(|slot| slot.is_untouched())
    }

    fn who_is_slow(&self) -> Problem {
        match &self.slot {
            Some(slot) if slot.is_stalled() => Problem::BadRequest("the body did not come in time"),
            _ => Problem::TooSlow,
        }
    }

    fn who_broke_off(&self) -> Problem {
        match &self.slot {
            Some(slot) if slot.is_stalled() => Problem::BadRequest("the body did not come in time"),
            Some(slot) if slot.is_broken() => Problem::BadRequest("the body is broken"),
            _ => Problem::NotAnswering,
        }
    }
}

/// Returns the URI in origin form, also if the request has it in absolute form.
fn target(uri: &Uri) -> Uri {
    match (uri.scheme(), uri.path_and_query()) {
        (Some(_), Some(path)) => Uri::from(path.clone()),
        _ => uri.clone(),
    }
}
