//! Answers that never reach an application: to ACME challenges, and redirects to HTTPS.

use std::{borrow::Cow, time::SystemTime};

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};

use super::Tls;
use crate::{
    body::{self, Body},
    exchange::{Peer, Scheme},
    proxy::Proxy,
};

/// The path of HTTP-01 challenges (RFC 8555, 8.3).
const CHALLENGES: &str = "/.well-known/acme-challenge/";

/// The port of HTTPS, which addresses leave out.
const HTTPS: u16 = 443;

/// Returns the answer to a request that no application gets: an ACME challenge, or a request over HTTP to a name that
/// has a valid certificate, or is served over HTTPS only. Requests of a trusted front are not redirected, as it decides that itself.
pub(crate) fn early_answer<B>(
    proxy: &Proxy,
    peer: &Peer,
    request: &Request<B>,
    host: &Result<Cow<'_, str>, &'static str>,
) -> Option<Response<Body>> {
    let tls = proxy.tls.as_ref()?;
    if let Some(token) = request.uri().path().strip_prefix(CHALLENGES) {
        // An application may answer challenges of its own, and is never redirected for them.
        return challenge(tls, request.method(), token);
    }
    if peer.scheme == Scheme::Https || peer.is_trusted {
        return None;
    }
    let host = host.as_deref().ok()?;
    let https_only = || proxy.routes.table().find(host).is_some_and(|entry| entry.https_only);
    match tls.certificates.has_valid(host, SystemTime::now()) || https_only() {
        true => redirect(host, tls.port(), request),
        false => None,
    }
}

/// Returns the value of `Strict-Transport-Security` for the host of a request over TLS.
pub(crate) fn hsts(
    proxy: &Proxy,
    peer: &Peer,
    host: &Result<Cow<'_, str>, &'static str>,
) -> Option<HeaderValue> {
    let tls = proxy.tls.as_ref()?;
    if peer.scheme != Scheme::Https {
        return None;
    }
    tls.certificates.hsts_of(host.as_deref().ok()?)
}

/// Adds `Strict-Transport-Security`, unless the application has set it.
pub(crate) fn add_hsts(headers: &mut HeaderMap, value: Option<HeaderValue>) {
    if let Some(value) = value {
        headers.entry(header::STRICT_TRANSPORT_SECURITY).or_insert(value);
    }
}

fn challenge(tls: &Tls, method: &Method, token: &str) -> Option<Response<Body>> {
    if method != Method::GET && method != Method::HEAD {
        return None;
    }
    let key_authorization = tls.certificates.key_authorization(token)?;
    let mut response = Response::new(body::full(key_authorization));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    Some(response)
}

fn redirect<B>(host: &str, port: u16, request: &Request<B>) -> Option<Response<Body>> {
    let path = request.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    if !path.starts_with('/') {
        return None;
    }
    let port = if port == HTTPS { String::new() } else { format!(":{port}") };
    let target = HeaderValue::try_from(format!("https://{host}{port}{path}")).ok()?;
    let mut response = Response::new(body::empty());
    *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
    response.headers_mut().insert(header::LOCATION, target);
    Some(response)
}
