//! The origin of a request.

use std::{
    future::{Ready, ready},
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use actix_web::{
    FromRequest, HttpMessage as _, HttpRequest,
    dev::Payload,
    http::{
        Version,
        header::{FORWARDED, HOST, HeaderMap, USER_AGENT, VIA},
    },
    web::Data,
};
use ipnet::IpNet;
use launchway_domain::auth::{Client, Origin};

use crate::{
    Api,
    endpoint::{Description, Part},
    error::ApiError,
    request_ids::RequestId,
};

/// An extractor of the origin of a request.
pub(crate) struct FromClient(pub(crate) Origin);

impl FromRequest for FromClient {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _payload: &mut Payload) -> Self::Future {
        ready(Ok(Self(origin(request))))
    }
}

impl Part for FromClient {
    fn describe(_description: &mut Description) {}
}

/// Returns the origin of `request`, and its id.
#[must_use]
pub fn origin(request: &HttpRequest) -> Origin {
    let trusted = request.app_data::<Data<Api>>().map(|api| api.options.trusted_proxies.as_slice());
    let address = address_behind(peer(request), request.headers(), trusted.unwrap_or_default());
    let user_agent = text(request.headers(), &USER_AGENT).unwrap_or_default();
    let user_agent = user_agent.chars().take(256).collect();
    let request_id = request.extensions().get::<RequestId>().map(RequestId::to_string);
    Origin { client: Client { address, user_agent }, request_id: request_id.unwrap_or_default() }
}

/// Returns whether the request comes from this machine, and not through a proxy on it.
#[must_use]
pub fn is_local(request: &HttpRequest) -> bool {
    let headers = request.headers();
    // A proxy with default settings may add no header; then its HTTP/1.0 reveals it.
    let forwarded = request.version() < Version::HTTP_11
        || headers.contains_key(FORWARDED)
        || headers.contains_key(VIA)
        || headers.contains_key("x-real-ip")
        || headers.keys().any(|name| name.as_str().starts_with("x-forwarded-"));
    peer(request).to_canonical().is_loopback()
        && !forwarded
        && text(headers, &HOST).is_some_and(is_loopback_name)
}

fn peer(request: &HttpRequest) -> IpAddr {
    request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip())
}

fn text<'a>(headers: &'a HeaderMap, name: &actix_web::http::header::HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn is_loopback_name(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _port)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _port)| name),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost"
        || name.ends_with(".localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Returns the address that the nearest trusted proxy saw: the last one in `X-Forwarded-For` that is not
/// itself a trusted proxy. The header of an untrusted peer is ignored.
fn address_behind(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |address: IpAddr| {
        let address = address.to_canonical();
        trusted.iter().any(|network| network.contains(&address))
    };
    let mut address = peer;
    let hops: Vec<&str> = headers
        .get_all("x-forwarded-for")
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .collect();
    for hop in hops.into_iter().rev() {
        if !is_trusted(address) {
            break;
        }
        let Some(next) = hop_address(hop.trim()) else { break };
        address = next;
    }
    address
}

/// Parses the address of a hop, which some proxies write with a port.
fn hop_address(hop: &str) -> Option<IpAddr> {
    hop.parse().or_else(|_not_plain| hop.parse().map(|address: SocketAddr| address.ip())).ok()
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    fn behind(peer: &str, forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append(HeaderName::from_static("x-forwarded-for"), HeaderValue::from_str(value).unwrap());
        }
        let trusted = ["10.0.0.0/8".parse().unwrap(), "127.0.0.1/32".parse().unwrap()];
        address_behind(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn an_untrusted_peer_is_not_believed() {
        assert_eq!(behind("192.0.2.1", &["198.51.100.9"]), "192.0.2.1");
    }

    #[test]
    fn behind_trusted_proxies_the_last_untrusted_hop_counts() {
        assert_eq!(behind("127.0.0.1", &["203.0.113.5, 198.51.100.9, 10.1.2.3"]), "198.51.100.9");
        assert_eq!(behind("127.0.0.1", &["203.0.113.5", "198.51.100.9"]), "198.51.100.9");
        assert_eq!(behind("::ffff:127.0.0.1", &["198.51.100.9"]), "198.51.100.9");
        assert_eq!(behind("127.0.0.1", &["198.51.100.9:4711"]), "198.51.100.9");
        assert_eq!(behind("127.0.0.1", &["[2001:db8::9]:4711"]), "2001:db8::9");
    }

    #[test]
    fn a_hop_that_is_no_address_ends_the_chain() {
        assert_eq!(behind("127.0.0.1", &["198.51.100.9, unknown"]), "127.0.0.1");
        assert_eq!(behind("127.0.0.1", &[]), "127.0.0.1");
    }

    #[test]
    fn loopback_names_are_known_in_every_spelling() {
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "localhost.",
            "127.0.0.1:80",
            "127.8.9.1",
            "[::1]:8080",
            "a.localhost",
        ] {
            assert!(is_loopback_name(host), "{host}");
        }
        for host in ["", "example.com", "localhost.example.com", "127.0.0.1.nip.io", "10.0.0.1", "[::2]:80"] {
            assert!(!is_loopback_name(host), "{host}");
        }
    }
}
