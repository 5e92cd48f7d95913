//! Forwards a request to the application of its host, and returns the response.

mod attempt;
mod headers;
mod tunnel;

use std::{sync::Arc, time::Duration};

use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::{
    body::{Body as _, Incoming},
    upgrade::OnUpgrade,
};
use tokio::time::sleep;

use self::attempt::Failure;
use crate::{
    body::Body,
    close::Phase,
    exchange::{Exchange, Peer},
    host,
    pages::{Problem, page},
    proxy::Proxy,
    routes::Target,
    site,
    table::RouteEntry,
    tls,
    upstream::Slot,
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
    let early = tls::early_answer(proxy, peer, &request);
    let hsts = tls::hsts(proxy, peer, &request);
    let found = find(proxy, &request);
    let application = found.as_ref().ok().map(|entry| &entry.application);
    let exchange = Exchange::begin(proxy, peer, application, &request);
    let is_own = found.is_err();
    let mut response = match (early, found) {
        (Some(response), _) => response,
        (None, Err(problem)) => page(problem, request.headers()),
        (None, Ok(_)) if !exchange.fits() => page(Problem::TooBusy, request.headers()),
        (None, Ok(entry)) => Forward::new(proxy, peer, Arc::clone(&exchange), request).run(entry).await,
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

fn find<B>(proxy: &Proxy, request: &Request<B>) -> Result<RouteEntry, Problem> {
    let host = host::of(request.uri(), request.headers()).map_err(Problem::BadRequest)?;
    if !request.uri().path().starts_with('/') && request.uri().path() != "*" {
        return Err(Problem::BadRequest("the request's target is no path"));
    }
    let table = proxy.routes.table();
    match table.find(&host) {
        Some(entry) => Ok(entry.clone()),
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
        headers::say_for_whom(&mut parts.headers, peer);
        Self {
            proxy,
            exchange,
            head: Request::from_parts(parts, ()),
            slot: has_body.then(|| Slot::holding(body)),
            upgrade,
            is_chunked,
        }
    }

    async fn run(mut self, mut entry: RouteEntry) -> Response<Body> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let failure = match &entry.upstream.target {
                Target::Container { .. } if !entry.upstream.is_trusted => {
                    return self.page(Problem::Starting);
                }
                Target::Container { address, .. } => match self.attempt(&entry.upstream, *address).await {
                    Ok(response) => return response,
                    Err(failure) => failure,
                },
                Target::Site { folder } => {
                    let mut response = site::serve(folder, &self.head).await;
                    response.body_mut().reads(entry.upstream);
                    return response;
                }
                Target::Stopped => return self.page(Problem::Stopped),
                Target::Absent => return self.page(Problem::Absent),
            };
            // A request that waits for another target must not keep this one alive.
            let tried = Arc::downgrade(&entry.upstream);
            drop(entry);
            match &failure {
                Failure::Final(problem) => return self.page(*problem),
                Failure::Stale | Failure::Unreachable => {}
                Failure::Unseen => match pauses.next() {
                    Some(pause) => sleep(pause).await,
                    None => return self.page(Problem::NotAnswering),
                },
            }
            entry = match find(self.proxy, &self.head) {
                Ok(entry)
                    if matches!(failure, Failure::Unreachable)
                        && Arc::as_ptr(&entry.upstream) == tried.as_ptr() =>
                {
                    return self.page(Problem::NotAnswering);
                }
                Ok(entry) => entry,
                Err(problem) => return self.page(problem),
            };
        }
    }

    fn page(&self, problem: Problem) -> Response<Body> {
        page(problem, self.head.headers())
    }
}
