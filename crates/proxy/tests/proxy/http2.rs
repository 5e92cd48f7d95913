//! HTTP/2: requests, limits, and clients that mean harm.

mod client;
mod floods;
mod frames;
mod malformed;

use std::time::{Duration, Instant};

use http::{Method, Request};
use launchway_proxy::Settings;
use tokio::time::sleep;

use self::client::{Http2Client, Load, body_of};
use crate::{
    application::{named, scripted},
    client::TIMEOUT,
    process::{Proxy, proxy_in, proxy_with},
    tls::client::{Authority, TlsClient},
};

/// A proxy with TLS and a certificate for `shop.example`, and clients that trust it.
struct Shop {
    proxy: Proxy,
    client: TlsClient,
}

impl Shop {
    async fn open(change: impl FnOnce(&mut Settings)) -> Self {
        let proxy = proxy_with(|settings| {
            settings.tls_bind = Some("127.0.0.1:0".parse().unwrap());
            change(settings);
        })
        .await;
        let authority = Authority::new();
        proxy.control.set_certificates("1", vec![authority.certificate(&["shop.example"])]).await.unwrap();
        let client = TlsClient::trusting(&authority).with_alpn(&["h2", "http/1.1"]);
        Self { proxy, client }
    }

    async fn connect(&self) -> Http2Client {
        Http2Client::connect(&self.client, self.proxy.tls_address.unwrap()).await
    }
}

#[tokio::test]
async fn streams_of_one_connection_are_answered_side_by_side() {
    let (shop, mut slow) = (Shop::open(|_| {}).await, scripted().await);
    shop.proxy.route_to("shop", slow.address).await;
    let client = shop.connect().await;
    let first = tokio::spawn(client.get("/first"));
    let mut first_upstream = slow.connection().await;
    first_upstream.until(b"\r\n\r\n").await.unwrap();
    let second = tokio::spawn(client.get("/second"));
    let mut second_upstream = slow.connection().await;
    second_upstream.until(b"\r\n\r\n").await.unwrap();
    second_upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond").await;
    assert_eq!(body_of(second.await.unwrap().unwrap()).await, b"second");
    first_upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst").await;
    assert_eq!(body_of(first.await.unwrap().unwrap()).await, b"first");
}

#[tokio::test]
async fn a_request_reaches_the_application_as_http_1_1() {
    let (shop, mut application) = (Shop::open(|_| {}).await, scripted().await);
    shop.proxy.route_to("shop", application.address).await;
    let request = Request::post("https://shop.example/cart?item=1")
        .header("cookie", "a=1")
        .header("cookie", "b=2")
        .header("te", "trailers")
        .header("x-forwarded-for", "203.0.113.7")
        .body(client::chunks(&["hello, ", "world"]))
        .unwrap();
    let client = shop.connect().await;
    let answer = tokio::spawn(client.send(request));
    let mut upstream = application.connection().await;
    let head = String::from_utf8(upstream.until(b"\r\n\r\n").await.unwrap()).unwrap();
    assert!(head.starts_with("POST /cart?item=1 HTTP/1.1\r\n"), "{head}");
    for line in [
        "host: shop.example",
        "cookie: a=1; b=2",
        "te: trailers",
        "transfer-encoding: chunked",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-proto: https",
    ] {
        assert!(head.lines().any(|known| known.eq_ignore_ascii_case(line)), "{line} is not in\n{head}");
    }
    let body = String::from_utf8(upstream.until(b"0\r\n\r\n").await.unwrap()).unwrap();
    assert_eq!(body, "7\r\nhello, \r\n5\r\nworld\r\n0\r\n\r\n");
    let response = "HTTP/1.1 201 Created\r\nConnection: close, x-hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n\
                    Transfer-Encoding: chunked\r\nTrailer: x-sum\r\n\r\n2\r\nok\r\n0\r\nx-sum: 7\r\n\r\n";
    upstream.send(response.as_bytes()).await;
    let answer = answer.await.unwrap().unwrap();
    assert_eq!(answer.status(), 201);
    for name in ["connection", "x-hop", "keep-alive", "transfer-encoding"] {
        assert!(!answer.headers().contains_key(name), "{name}");
    }
    let (body, trailers) = client::body_and_trailers_of(answer).await;
    assert_eq!((body.as_slice(), &trailers.unwrap()["x-sum"]), (&b"ok"[..], &"7".parse().unwrap()));
}

#[tokio::test]
async fn large_bodies_pass_in_both_directions() {
    const LARGE: usize = 10 * 1_024 * 1_024;
    let (shop, mut application) = (Shop::open(|_| {}).await, scripted().await);
    shop.proxy.route_to("shop", application.address).await;
    let client = shop.connect().await;
    let request = Request::put("https://shop.example/").body(client::full(vec![7; LARGE])).unwrap();
    let answer = tokio::spawn(client.send(request));
    let mut upstream = application.connection().await;
    let head = String::from_utf8(upstream.until(b"\r\n\r\n").await.unwrap()).unwrap();
    assert!(head.contains(&format!("content-length: {LARGE}\r\n")), "{head}");
    tokio::spawn(async move {
        let received = upstream.take(LARGE).await.unwrap();
        upstream.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n").as_bytes()).await;
        upstream.send(&received).await;
    });
    assert_eq!(body_of(answer.await.unwrap().unwrap()).await.len(), LARGE);
}

#[tokio::test]
async fn a_response_to_head_has_no_body() {
    let shop = Shop::open(|_| {}).await;
    let client = shop.connect().await;
    let request = Request::head("https://shop.example/").body(client::full(Vec::new())).unwrap();
    let answer = client.send(request).await.unwrap();
    assert_eq!(answer.status(), 404);
    assert_ne!(answer.headers()["content-length"], "0");
    assert_eq!(body_of(answer).await, b"");
}

#[tokio::test]
async fn errors_of_the_proxy_are_pages() {
    let shop = Shop::open(|_| {}).await;
    let client = shop.connect().await;
    assert_eq!(client.get("/").await.unwrap().status(), 404);
    let connect = Request::builder().method(Method::CONNECT).uri("shop.example:443");
    let answer = client.send(connect.body(client::full(Vec::new())).unwrap()).await;
    assert!(answer.is_err() || answer.unwrap().status() == 400);
    let other = Request::get("https://shop.example/").header("host", "other.example");
    let answer = client.send(other.body(client::full(Vec::new())).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_switches_under_http_2_load_fail_no_request() {
    let shop = Shop::open(|_| {}).await;
    let mut old = named("shop").await;
    shop.proxy.route_to("shop", old.address).await;
    let load = Load::begin(&shop.client, shop.proxy.tls_address.unwrap(), 4);
    for _ in 0..20 {
        let new = named("shop").await;
        shop.proxy.route_to("shop", new.address).await;
        assert!(shop.proxy.control.drain("shop", None, TIMEOUT).await.unwrap());
        old.kill();
        old = new;
        load.go_on(20).await;
    }
    assert!(load.end().await >= 400);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handover_under_http_2_load_fails_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("proxy");
    let with_tls = |version: String| {
        move |settings: &mut Settings| {
            settings.version = version;
            settings.tls_bind = Some("127.0.0.1:0".parse().unwrap());
        }
    };
    let (authority, shop) = (Authority::new(), named("shop").await);
    let mut proxy = proxy_in(&folder, with_tls("first".to_owned())).await;
    proxy.control.replace_all(Vec::new()).await.unwrap();
    proxy.route_to("shop", shop.address).await;
    proxy.control.set_certificates("1", vec![authority.certificate(&["shop.example"])]).await.unwrap();
    let client = TlsClient::trusting(&authority).with_alpn(&["h2"]);
    let load = Load::begin(&client, proxy.tls_address.unwrap(), 4);
    for round in 0..3 {
        load.go_on(50).await;
        let next = proxy_in(&folder, with_tls(format!("round {round}"))).await;
        let old = std::mem::replace(&mut proxy, next);
        tokio::time::timeout(TIMEOUT, old.task).await.expect("it ends").unwrap().unwrap();
    }
    load.go_on(50).await;
    load.end().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_used_one_stays() {
    let (shop, application) = (
        Shop::open(|settings| {
            settings.limits.request_head = Duration::from_millis(200);
            settings.limits.keep_alive = Duration::from_secs(1);
            settings.limits.leave_idle = Duration::from_millis(100);
        })
        .await,
        named("shop").await,
    );
    shop.proxy.route_to("shop", application.address).await;
    let began = Instant::now();
    let silent = shop.connect().await;
    let used = shop.connect().await;
    assert_eq!(used.get("/").await.unwrap().status(), 200);
    silent.closed().await;
    assert!(began.elapsed() >= Duration::from_millis(200));
    used.closed().await;
    assert!(began.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let (shop, mut application) = (
        Shop::open(|settings| {
            settings.limits.client_stall = Duration::from_millis(400);
            settings.limits.leave_idle = Duration::from_millis(100);
        })
        .await,
        scripted().await,
    );
    shop.proxy.route_to("shop", application.address).await;
    let client = shop.connect().await;
    let answer = tokio::spawn(client.get("/"));
    let mut upstream = application.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n").await;
    // Held, and never read.
    let _answer = answer.await.unwrap().unwrap();
    // More than the client buffers.
    tokio::spawn(async move { upstream.send(&vec![0; 10_000_000]).await });
    client.closed().await;
}

#[tokio::test]
async fn a_slow_application_is_waited_for() {
    let (shop, mut application) = (
        Shop::open(|settings| {
            settings.limits.client_stall = Duration::from_millis(200);
            settings.limits.request_head = Duration::from_millis(200);
            settings.limits.keep_alive = Duration::from_millis(200);
            settings.limits.leave_idle = Duration::from_millis(50);
        })
        .await,
        scripted().await,
    );
    shop.proxy.route_to("shop", application.address).await;
    let client = shop.connect().await;
    let answer = tokio::spawn(client.get("/"));
    let mut upstream = application.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    sleep(Duration::from_millis(600)).await;
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab").await;
    let answer = answer.await.unwrap().unwrap();
    sleep(Duration::from_millis(600)).await;
    upstream.send(b"cd").await;
    assert_eq!(body_of(answer).await, b"abcd");
}

#[tokio::test]
async fn streams_count_as_connections_of_their_client() {
    let (shop, mut application) =
        (Shop::open(|settings| settings.limits.per_client = 3).await, scripted().await);
    shop.proxy.route_to("shop", application.address).await;
    let client = shop.connect().await;
    let (first, second) = (tokio::spawn(client.get("/1")), tokio::spawn(client.get("/2")));
    let (mut one, mut two) = (application.connection().await, application.connection().await);
    for upstream in [&mut one, &mut two] {
        upstream.until(b"\r\n\r\n").await.unwrap();
    }
    assert_eq!(client.get("/3").await.unwrap().status(), 503);
    for upstream in [&mut one, &mut two] {
        upstream.send(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    }
    assert_eq!(first.await.unwrap().unwrap().status(), 204);
    assert_eq!(second.await.unwrap().unwrap().status(), 204);
}
