//! TLS: which certificate a client gets, and what happens to its requests.

pub(crate) mod client;
mod handover;
mod hsts;
mod redirects;
mod tls_challenges;

use std::{
    os::unix::fs::MetadataExt as _,
    time::{Duration, Instant},
};

use tokio::io::AsyncReadExt as _;
use tokio_rustls::rustls::{HandshakeKind, ProtocolVersion, version};

use self::client::{Authority, Connected, LONG_AGO, TlsClient};
use crate::{
    application::{named, scripted},
    client::TIMEOUT,
    process::{Proxy, proxy_in, proxy_with},
};

async fn tls_proxy() -> Proxy {
    proxy_with(|settings| settings.tls_bind = Some("127.0.0.1:0".parse().unwrap())).await
}

#[tokio::test]
async fn a_name_gets_its_own_certificate_or_that_of_its_wildcard() {
    let (proxy, authority, shop) = (tls_proxy().await, Authority::new(), named("shop").await);
    proxy.route_to("shop", shop.address).await;
    let exact = authority.certificate(&["shop.example", "a.shops.example"]);
    let wildcard = authority.certificate(&["*.shops.example"]);
    proxy.control.set_certificates("1", vec![wildcard.clone(), exact.clone()]).await.unwrap();
    let client = TlsClient::trusting(&authority);
    for (name, expected) in
        [("shop.example", &exact), ("A.Shops.example", &exact), ("b.shops.example", &wildcard)]
    {
        let connected = client.connect(&proxy, name).await.unwrap();
        assert_eq!(connected.certificate(), client::leaf(expected), "{name}");
    }
    for name in ["shops.example", "a.b.shops.example", "shop.example.org"] {
        assert!(client.connect(&proxy, name).await.is_err(), "{name}");
    }
    let mut connected = client.connect(&proxy, "shop.example").await.unwrap();
    assert_eq!(connected.get("shop.example", "/").await.unwrap().text(), "shop");
    assert_eq!(proxy.control.status().await.unwrap().certificates.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_client_without_a_name_is_refused() {
    let (proxy, authority) = (tls_proxy().await, Authority::new());
    proxy.control.set_certificates("1", vec![authority.certificate(&["shop.example"])]).await.unwrap();
    assert!(TlsClient::trusting(&authority).without_sni().connect(&proxy, "shop.example").await.is_err());
}

#[tokio::test]
async fn both_versions_of_tls_are_spoken_and_http_2_is_preferred() {
    let (proxy, authority) = (tls_proxy().await, Authority::new());
    proxy.control.set_certificates("1", vec![authority.certificate(&["shop.example"])]).await.unwrap();
    for (version, expected) in
        [(&version::TLS12, ProtocolVersion::TLSv1_2), (&version::TLS13, ProtocolVersion::TLSv1_3)]
    {
        let client = TlsClient::of_version(&authority, version);
        for (offered, chosen) in
            [(&["http/1.1", "h2"][..], Some(&b"h2"[..])), (&["http/1.1"], Some(b"http/1.1")), (&[], None)]
        {
            let connected = client.with_alpn(offered).connect(&proxy, "shop.example").await.unwrap();
            let (_, session) = connected.stream.get_ref();
            assert_eq!((session.protocol_version(), session.alpn_protocol()), (Some(expected), chosen));
        }
        assert!(client.with_alpn(&["h3"]).connect(&proxy, "shop.example").await.is_err());
    }
}

#[tokio::test]
async fn a_session_is_resumed() {
    let (proxy, authority, shop) = (tls_proxy().await, Authority::new(), named("shop").await);
    proxy.route_to("shop", shop.address).await;
    proxy.control.set_certificates("1", vec![authority.certificate(&["shop.example"])]).await.unwrap();
    for version in [&version::TLS12, &version::TLS13] {
        let client = TlsClient::of_version(&authority, version);
        for expected in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let mut connected = client.connect(&proxy, "shop.example").await.unwrap();
            // The ticket comes after the handshake.
            assert_eq!(connected.get("shop.example", "/").await.unwrap().status, 200);
            assert_eq!(connected.stream.get_ref().1.handshake_kind(), Some(expected), "{version:?}");
        }
    }
}

#[tokio::test]
async fn an_expired_certificate_is_refused_in_a_resumed_session_too() {
    let (proxy, authority, shop) = (tls_proxy().await, Authority::new(), named("shop").await);
    proxy.route_to("shop", shop.address).await;
    let mut certificate = authority.certificate(&["shop.example"]);
    proxy.control.set_certificates("1", vec![certificate.clone()]).await.unwrap();
    let client = TlsClient::trusting(&authority);
    let mut connected = client.connect(&proxy, "shop.example").await.unwrap();
    assert_eq!(connected.get("shop.example", "/").await.unwrap().status, 200);
    certificate.not_after = LONG_AGO;
    proxy.control.set_certificates("2", vec![certificate]).await.unwrap();
    assert!(client.connect(&proxy, "shop.example").await.is_err());
    // Whoever is connected stays so.
    assert_eq!(connected.get("shop.example", "/").await.unwrap().status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_replacements_under_load_drop_no_connection() {
    let (proxy, authority, shop) = (tls_proxy().await, Authority::new(), named("shop").await);
    proxy.route_to("shop", shop.address).await;
    proxy.control.set_certificates("0", vec![authority.certificate(&["shop.example"])]).await.unwrap();
    let load = client::Load::begin(&proxy, &authority, 8);
    for revision in 1..=20 {
        let certificate = authority.certificate(&["shop.example"]);
        proxy.control.set_certificates(&revision.to_string(), vec![certificate.clone()]).await.unwrap();
        let connected = TlsClient::trusting(&authority).connect(&proxy, "shop.example").await.unwrap();
        assert_eq!(connected.certificate(), client::leaf(&certificate));
        load.go_on(20).await;
    }
    assert!(load.end().await >= 400);
}

#[tokio::test]
async fn one_bad_certificate_leaves_the_others_in_use() {
    let (proxy, authority) = (tls_proxy().await, Authority::new());
    let good = authority.certificate(&["shop.example"]);
    let mut bad = authority.certificate(&["bad.example"]);
    bad.key.clone_from(&good.key);
    proxy.control.set_certificates("1", vec![bad, good]).await.unwrap();
    let client = TlsClient::trusting(&authority);
    client.connect(&proxy, "shop.example").await.unwrap();
    assert!(client.connect(&proxy, "bad.example").await.is_err());
}

#[tokio::test]
async fn certificates_survive_a_restart_in_a_private_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("proxy");
    let with_tls = |settings: &mut launchway_proxy::Settings| {
        settings.tls_bind = Some("127.0.0.1:0".parse().unwrap());
    };
    let authority = Authority::new();
    let mut proxy = proxy_in(&folder, with_tls).await;
    proxy.control.set_certificates("7", vec![authority.certificate(&["shop.example"])]).await.unwrap();
    let mode = std::fs::metadata(folder.join("certificates.json")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600);
    proxy.stop();
    tokio::time::timeout(TIMEOUT, proxy.task).await.unwrap().unwrap().unwrap();
    let proxy = proxy_in(&folder, with_tls).await;
    TlsClient::trusting(&authority).connect(&proxy, "shop.example").await.unwrap();
    assert_eq!(proxy.control.status().await.unwrap().certificates.as_deref(), Some("7"));
}

#[tokio::test]
async fn a_proxy_without_tls_takes_no_certificates() {
    let (proxy, authority) = (proxy_with(|_| {}).await, Authority::new());
    let certificates = vec![authority.certificate(&["shop.example"])];
    let refused = proxy.control.set_certificates("1", certificates).await.unwrap_err();
    assert!(refused.to_string().contains("does not serve TLS"), "{refused}");
    assert!(!proxy.folder().join("certificates.json").exists());
    assert_eq!(proxy.control.status().await.unwrap().certificates, None);
}

#[tokio::test]
async fn an_application_learns_that_a_request_came_by_https() {
    let (proxy, authority, mut shop) = (tls_proxy().await, Authority::new(), scripted().await);
    proxy.route_to("shop", shop.address).await;
    proxy.control.set_certificates("1", vec![authority.certificate(&["shop.example"])]).await.unwrap();
    let mut client = TlsClient::trusting(&authority).connect(&proxy, "shop.example").await.unwrap();
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\nX-Forwarded-Proto: http\r\n\r\n").await;
    let mut upstream = shop.connection().await;
    let head = String::from_utf8(upstream.until(b"\r\n\r\n").await.unwrap()).unwrap();
    assert!(head.contains("x-forwarded-proto: https\r\n"), "{head}");
    assert!(head.contains("forwarded: for=127.0.0.1;proto=https\r\n"), "{head}");
}

#[tokio::test]
async fn bytes_pass_a_tunnel_over_tls_in_both_directions() {
    let (proxy, authority, mut shop) = (tls_proxy().await, Authority::new(), scripted().await);
    proxy.route_to("shop", shop.address).await;
    proxy.control.set_certificates("1", vec![authority.certificate(&["shop.example"])]).await.unwrap();
    let mut client = TlsClient::trusting(&authority).connect(&proxy, "shop.example").await.unwrap();
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").await;
    let mut upstream = shop.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    upstream.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").await;
    assert_eq!(client.head().await.unwrap().status, 101);
    client.send(b"ping").await;
    assert_eq!(upstream.take(4).await.unwrap(), b"ping");
    upstream.send(b"pong").await;
    assert_eq!(client.take(4).await.unwrap(), b"pong");
}

#[tokio::test]
async fn a_handshake_has_a_time_limit() {
    let limit = Duration::from_millis(200);
    let proxy = proxy_with(|settings| {
        settings.tls_bind = Some("127.0.0.1:0".parse().unwrap());
        settings.limits.handshake = limit;
    })
    .await;
    let began = Instant::now();
    let mut silent = tokio::net::TcpStream::connect(proxy.tls_address.unwrap()).await.unwrap();
    let read = tokio::time::timeout(TIMEOUT, silent.read(&mut [0; 1])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    assert!(began.elapsed() >= limit);
}

#[tokio::test]
async fn connections_of_a_client_are_counted_over_both_ports() {
    let proxy = proxy_with(|settings| {
        settings.tls_bind = Some("127.0.0.1:0".parse().unwrap());
        settings.limits.per_client = 2;
    })
    .await;
    let authority = Authority::new();
    proxy.control.set_certificates("1", vec![authority.certificate(&["shop.example"])]).await.unwrap();
    let client = TlsClient::trusting(&authority);
    let mut plain = crate::client::connect(proxy.address).await;
    assert_eq!(plain.get("nobody.example", "/").await.unwrap().status, 404);
    let second: Connected = client.connect(&proxy, "shop.example").await.unwrap();
    assert!(client.connect(&proxy, "shop.example").await.is_err(), "a third one is admitted");
    drop(second);
    let deadline = Instant::now() + TIMEOUT;
    while client.connect(&proxy, "shop.example").await.is_err() {
        assert!(Instant::now() < deadline, "the place is not given back");
    }
}
