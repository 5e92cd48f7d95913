//! Forwards a request to the application of its host, and returns the response.

mod attempt;
mod headers;
mod tunnel;

use std::{
    borrow::Cow,
    sync::{Arc, Weak},
    time::Duration,
};

use http::{HeaderValue, Request, Response, StatusCode, Uri, header};
use hyper::{
    body::{Body as _, Incoming},
    upgrade::OnUpgrade,
};
use tokio::time::sleep;

use self::attempt::Failure;
use crate::{
    body::Body,
    close::Phase,
    exchange::{Application, Exchange, Peer},
    host,
    pages::{Problem, page},
    proxy::Proxy,
    site, tls,
    upstream::{Destination, Slot, Upstream},
};

/// The delays before each retry. A target that refuses connections is often about to be replaced.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(40),
    Duration::from_millis(80),
];

/// A request that is being forwarded.
struct Forward<'a> {
    proxy: &'a Arc<Proxy>,
    exchange: Arc<Exchange>,
    head: Request<()>,
    /// The slot of the body, if there is one.
    slot: Option<Arc<Slot>>,
    /// The client's side of a tunnel, if it requests one.
    upgrade: Option<OnUpgrade>,
    is_chunked: bool,
}

/// Answers a request.
pub(crate) async fn answer(
    proxy: &Arc<Proxy>,
    peer: &Arc<Peer>,
    request: Request<Incoming>,
) -> Response<Body> {
    let wants_upgrade = request.headers().contains_key(header::UPGRADE);
    let host = host::of(request.uri(), request.headers());
    let early = tls::early_answer(proxy, peer, &request, &host);
    let hsts = tls::hsts(proxy, peer, &host);
    let found = find(proxy, &host, request.uri(), &[]);
    drop(host);
    let (application, upstream) = match found {
        Ok((application, upstream)) => (Some(application), Ok(upstream)),
        Err(problem) => (None, Err(problem)),
    };
    let exchange = Exchange::begin(peer, application, &request);
    let is_own = upstream.is_err();
    let mut response = match (early, upstream) {
        (Some(response), _) => response,
        (None, Err(problem)) => page(problem, request.headers()),
        (None, Ok(_)) if !exchange.fits() => page(Problem::TooBusy, request.headers()),
        (None, Ok(None)) => page(Problem::NotAnswering, request.headers()),
        (None, Ok(Some(upstream))) => {
            Forward::new(proxy, peer, Arc::clone(&exchange), request).run(upstream).await
        }
    };
    tls::add_hsts(response.headers_mut(), hsts);
    exchange.answered(response.status().as_u16());
    response.body_mut().ends(exchange);
    let is_tunnel = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    // After a request for an upgrade, or a bad one, it is undefined what the client sends next.
    let is_doubtful = wants_upgrade || response.status() == StatusCode::BAD_REQUEST && is_own;
    if !is_tunnel && (is_doubtful || proxy.closing.phase() >= Phase::Leaving) {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Returns the application of a host, and an upstream of it that is not among `tried`, if there is one.
fn find(
    proxy: &Proxy,
    host: &Result<Cow<'_, str>, &'static str>,
    uri: &Uri,
    tried: &[Weak<Upstream>],
) -> Result<(Arc<Application>, Option<Arc<Upstream>>), Problem> {
    let host = host.as_deref().map_err(|reason| Problem::BadRequest(reason))?;
    if !uri.path().starts_with('/') && uri.path() != "*" {
        return Err(Problem::BadRequest("the request's target is no path"));
    }
    let table = proxy.routes.table();
    match table.find(host) {
        Some(entry) => Ok((Arc::clone(&entry.application), entry.balancer.pick(tried))),
        None if table.is_complete() => Err(Problem::UnknownHost),
        None => Err(Problem::Starting),
    }
}

impl<'a> Forward<'a> {
    fn new(
        proxy: &'a Arc<Proxy>,
        peer: &Peer,
        exchange: Arc<Exchange>,
        mut request: Request<Incoming>,
    ) -> Self {
        let has_body = !request.body().is_end_stream();
        let upgrade =
            headers::asks_for_a_tunnel(&request, has_body).then(|| hyper::upgrade::on(&mut request));
        let (mut parts, body) = request.into_parts();
        let is_chunked = has_body && parts.headers.contains_key(header::TRANSFER_ENCODING);
        headers::clean_request(&mut parts.headers, upgrade.is_some());
        headers::set_forwarding_headers(&mut parts.headers, peer);
        Self {
            proxy,
            exchange,
            head: Request::from_parts(parts, ()),
            slot: has_body.then(|| Slot::holding(body)),
            upgrade,
            is_chunked,
        }
    }

    async fn run(mut self, mut upstream: Arc<Upstream>) -> Response<Body> {
        let (mut pauses, mut tried) = (PAUSES.into_iter(), Vec::new());
        loop {
            let failure = match &upstream.destination {
                Destination::Container(_) if !upstream.is_trusted => return self.page(Problem::Starting),
                Destination::Container(endpoint) => match self.attempt(&upstream, endpoint.address).await {
                    Ok(response) => return response,
                    Err(failure) => failure,
                },
                Destination::Site { folder } => {
                    let mut response = site::serve(folder, &self.head).await;
                    response.body_mut().reads(upstream);
                    return response;
                }
                Destination::Stopped => return self.page(Problem::Stopped),
                Destination::Absent => return self.page(Problem::Absent),
            };
            if let Failure::Final(problem) = failure {
                return self.page(problem);
            }
            if !matches!(failure, Failure::Stale) {
                tried.push(Arc::downgrade(&upstream));
            }
            // A request that waits for another target must not keep this one alive.
            drop(upstream);
            upstream = match self.another(&mut tried, &failure, &mut pauses).await {
                Ok(upstream) => upstream,
                Err(problem) => return self.page(problem),
            };
        }
    }

    /// Returns the upstream for the next attempt: one that was not tried, at once, or after a pause any.
    async fn another(
        &self,
        tried: &mut Vec<Weak<Upstream>>,
        failure: &Failure,
        pauses: &mut impl Iterator<Item = Duration>,
    ) -> Result<Arc<Upstream>, Problem> {
        let host = host::of(self.head.uri(), self.head.headers());
        if let (_, Some(upstream)) = find(self.proxy, &host, self.head.uri(), tried)? {
            return Ok(upstream);
        }
        if matches!(failure, Failure::Unreachable) {
            return Err(Problem::NotAnswering);
        }
        sleep(pauses.next().ok_or(Problem::NotAnswering)?).await;
        tried.clear();
        find(self.proxy, &host, self.head.uri(), tried)?.1.ok_or(Problem::NotAnswering)
    }

    fn page(&self, problem: Problem) -> Response<Body> {
        page(problem, self.head.headers())
    }
}
