//! Headers that are forwarded, removed and added.

use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Version,
    header::{self, Entry},
};

use crate::exchange::Peer;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const REAL_ADDRESS: HeaderName = HeaderName::from_static("x-real-ip");

/// Headers about one connection and not about the message (RFC 9110, 7.6.1).
const OF_THE_CONNECTION: [HeaderName; 8] = [
    header::CONNECTION,
    KEEP_ALIVE,
    PROXY_CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HTTP2_SETTINGS,
];

/// Headers that `Connection` cannot remove: without them the message would be another one.
const OF_THE_MESSAGE: [HeaderName; 2] = [header::HOST, header::CONTENT_LENGTH];

/// Headers that only a trusted front may set. Every front sets these itself.
const OF_A_FRONT: [HeaderName; 3] = [FORWARDED_FOR, FORWARDED_PROTO, FORWARDED_HOST];

/// Headers that are always removed: a front such as Caddy does not set them, and forwards those of its
/// client.
const OF_NOBODY: [HeaderName; 6] = [
    header::FORWARDED,
    REAL_ADDRESS,
    HeaderName::from_static("x-forwarded-port"),
    HeaderName::from_static("x-forwarded-prefix"),
    HeaderName::from_static("x-forwarded-server"),
    HeaderName::from_static("x-forwarded-ssl"),
];

/// Returns whether the client requests an upgrade to another protocol that we can forward.
pub(super) fn asks_for_a_tunnel<B>(request: &Request<B>, has_body: bool) -> bool {
    let headers = request.headers();
    let mut protocols = headers.get_all(header::UPGRADE).iter();
    let (Some(protocol), None) = (protocols.next(), protocols.next()) else { return false };
    // HTTP/2 to an application would be requests that the proxy does not inspect.
    let is_http2 = tokens(protocol).any(|token| starts_with(token, "h2"));
    request.version() == Version::HTTP_11 && !has_body && !is_http2 && names(headers, "upgrade")
}

/// Removes the headers that the application must not receive.
pub(super) fn clean_request(headers: &mut HeaderMap, is_tunnel: bool) {
    let upgrade = if is_tunnel { headers.remove(header::UPGRADE) } else { None };
    let wants_trailers = headers
        .get_all(header::TE)
        .iter()
        .flat_map(tokens)
        .any(|token| token.eq_ignore_ascii_case("trailers"));
    clean(headers);
    headers.remove(header::TE);
    if wants_trailers {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("te"));
    }
    // The proxy sends `100 Continue` itself, once the application reads the body.
    headers.remove(header::EXPECT);
    if let Some(protocol) = upgrade {
        headers.insert(header::UPGRADE, protocol);
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

/// Removes the headers that the client must not receive.
pub(super) fn clean_response(headers: &mut HeaderMap) {
    if headers.contains_key(header::TRANSFER_ENCODING) {
        // It is not the length of a chunked body.
        headers.remove(header::CONTENT_LENGTH);
    }
    clean(headers);
}

/// Sets the forwarding headers.
pub(super) fn set_forwarding_headers(headers: &mut HeaderMap, peer: &Peer) {
    remove_look_alikes(headers);
    remove_any(headers, &OF_NOBODY);
    if !peer.is_trusted {
        remove_any(headers, &OF_A_FRONT);
    }
    headers.reserve(OF_A_FRONT.len() + 1);
    if let Some(host) = headers.get(header::HOST).cloned() {
        headers.entry(FORWARDED_HOST).or_insert(host);
    }
    headers.entry(FORWARDED_PROTO).or_insert_with(|| peer.scheme.as_header());
    append(headers, FORWARDED_FOR, peer.as_header());
    if !peer.is_trusted {
        // Behind a front it would name only the front, and some applications read this header first.
        headers.insert(header::FORWARDED, peer.as_forwarded().clone());
    }
}

/// Removes headers with underscores in place of dashes. Some applications treat the two alike, and would
/// trust the header of any client.
fn remove_look_alikes(headers: &mut HeaderMap) {
    let is_look_alike = |name: &&HeaderName| {
        let is_same = |own: &HeaderName| {
            let bytes = name.as_str().bytes().map(|byte| if byte == b'_' { b'-' } else { byte });
            bytes.eq(own.as_str().bytes())
        };
        name.as_str().contains('_') && OF_A_FRONT.iter().chain(&OF_NOBODY).any(is_same)
    };
    while let Some(name) = headers.keys().find(is_look_alike).cloned() {
        headers.remove(name);
    }
}

fn append(headers: &mut HeaderMap, name: HeaderName, value: &HeaderValue) {
    match headers.entry(name) {
        Entry::Vacant(entry) => {
            entry.insert(value.clone());
        }
        Entry::Occupied(mut entry) => {
            let mut all = Vec::new();
            for one in entry.iter().chain([value]) {
                if !all.is_empty() {
                    all.extend_from_slice(b", ");
                }
                all.extend_from_slice(one.as_bytes());
            }
            if let Ok(all) = HeaderValue::from_bytes(&all) {
                entry.insert(all);
            }
        }
    }
}

fn clean(headers: &mut HeaderMap) {
    if let Some(values) = connection(headers) {
        for token in values.iter().flat_map(tokens) {
            if let Ok(name) = HeaderName::from_bytes(token.as_bytes())
                && !OF_THE_MESSAGE.contains(&name)
            {
                headers.remove(name);
            }
        }
    }
    remove_any(headers, &OF_THE_CONNECTION);
}

/// Removes headers that few messages have. A look at every header that there is takes less time than a search for each of
/// these.
fn remove_any(headers: &mut HeaderMap, names: &[HeaderName]) {
    if headers.keys().any(|name| names.contains(name)) {
        for name in names {
            headers.remove(name);
        }
    }
}

/// Returns the values of `Connection`, if there are others than the usual ones.
fn connection(headers: &HeaderMap) -> Option<Vec<HeaderValue>> {
    let is_usual = |value: &&HeaderValue| {
        let is = |word: &str| value.as_bytes().eq_ignore_ascii_case(word.as_bytes());
        !is("keep-alive") && !is("close")
    };
    let values: Vec<_> = headers.get_all(header::CONNECTION).iter().filter(is_usual).cloned().collect();
    (!values.is_empty()).then_some(values)
}

fn names(headers: &HeaderMap, wanted: &str) -> bool {
    headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(tokens)
        .any(|token| token.eq_ignore_ascii_case(wanted))
}

fn tokens(value: &HeaderValue) -> impl Iterator<Item = &str> {
    value.to_str().unwrap_or_default().split(',').map(str::trim)
}

fn starts_with(token: &str, prefix: &str) -> bool {
    token.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}
