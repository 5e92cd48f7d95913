//! Requests of HTTP/2 in the form of HTTP/1.1.

use http::{HeaderMap, HeaderValue, Request, Uri, Version, header, uri::PathAndQuery};
use hyper::body::{Body as _, Incoming};

use crate::pages::Problem;

/// Returns the request as one of HTTP/1.1: the authority is its host, cookies are in one header (RFC 9113, 8.2.3), and a
/// body without a length is chunked.
pub(super) fn as_http_1_1(
    request: Request<Incoming>,
    most_headers: usize,
) -> Result<Request<Incoming>, (Problem, HeaderMap)> {
    let is_endless =
        !request.body().is_end_stream() && !request.headers().contains_key(header::CONTENT_LENGTH);
    let (mut parts, body) = request.into_parts();
    if let Err(problem) = translate(&mut parts.uri, &mut parts.headers, most_headers) {
        return Err((problem, parts.headers));
    }
    if is_endless {
        parts.headers.insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    parts.version = Version::HTTP_11;
    Ok(Request::from_parts(parts, body))
}

fn translate(uri: &mut Uri, headers: &mut HeaderMap, most_headers: usize) -> Result<(), Problem> {
    // Cookies may be one header each, of which a browser has up to 180 for a domain.
    join_cookies(headers)?;
    if headers.len() > most_headers {
        return Err(Problem::HeadTooLarge);
    }
    set_host(uri, headers)?;
    let Some(path) = uri.path_and_query().cloned() else {
        return Err(Problem::BadRequest("the request's target is no path"));
    };
    *uri = origin_form(path);
    Ok(())
}

/// Sets the host to the authority. A host beside it must be the same.
fn set_host(uri: &Uri, headers: &mut HeaderMap) -> Result<(), Problem> {
    let Some(authority) = uri.authority() else { return Ok(()) };
    if authority.as_str().contains('@') {
        return Err(Problem::BadRequest("the request's target has a user"));
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    let is_same = |host: &HeaderValue| host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes());
    if !hosts.all(is_same) {
        return Err(Problem::BadRequest("the request's target and its host differ"));
    }
    let host = HeaderValue::from_str(authority.as_str());
    headers.insert(header::HOST, host.or(Err(Problem::BadRequest("the host is no name")))?);
    Ok(())
}

fn join_cookies(headers: &mut HeaderMap) -> Result<(), Problem> {
    let cookies: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if cookies.len() < 2 {
        return Ok(());
    }
    let joined = HeaderValue::from_bytes(&cookies.join(&b"; "[..]));
    headers.insert(header::COOKIE, joined.or(Err(Problem::BadRequest("the cookies are invalid")))?);
    Ok(())
}

fn origin_form(path: PathAndQuery) -> Uri {
    let mut parts = http::uri::Parts::default();
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(uri: &str, headers: &[(&'static str, &'static str)]) -> Result<(Uri, HeaderMap), Problem> {
        let mut uri = uri.parse().unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_static(value));
        }
        translate(&mut uri, &mut map, 100).map(|()| (uri, map))
    }

    #[test]
    fn the_authority_is_the_host() {
        let (uri, headers) = translated("https://Shop.example:8443/cart?item=1", &[]).unwrap();
        assert_eq!(uri, "/cart?item=1");
        assert_eq!(headers[header::HOST], "Shop.example:8443");
        let (_, headers) = translated("https://shop.example/", &[("host", "SHOP.example")]).unwrap();
        assert_eq!(headers.get_all(header::HOST).iter().count(), 1);
        assert!(translated("https://shop.example/", &[("host", "other.example")]).is_err());
        assert!(translated("https://me@shop.example/", &[]).is_err());
    }

    #[test]
    fn cookies_become_one_header() {
        let (_, headers) =
            translated("https://shop.example/", &[("cookie", "a=1"), ("cookie", "b=2; c=3")]).unwrap();
        let cookies: Vec<_> = headers.get_all(header::COOKIE).iter().collect();
        assert_eq!(cookies, ["a=1; b=2; c=3"]);
    }

    #[test]
    fn a_request_has_at_most_100_headers() {
        let many = |count| (0..count).map(|_| ("x-many", "1")).collect::<Vec<_>>();
        // The host is added.
        assert!(translated("https://shop.example/", &many(100)).is_ok());
        assert!(matches!(translated("https://shop.example/", &many(101)), Err(Problem::HeadTooLarge)));
    }
}
