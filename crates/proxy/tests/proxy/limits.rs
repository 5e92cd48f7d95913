//! The limits and timeouts of the proxy, on both sides of each.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::{
    application::{Scripted, named, scripted},
    client::{Connection, connect, get},
    process::{Proxy, proxy, proxy_with},
};

/// A limit in a test.
const SHORT: Duration = Duration::from_secs(1);
/// A time that stays below the limit on a busy machine too.
const LESS: Duration = Duration::from_millis(300);

/// A client and the application it has sent a request to, after the head of the request.
async fn asked(proxy: &Proxy, lines: &str) -> (Connection, Connection, Scripted) {
    let mut application = scripted().await;
    proxy.route_to("a", application.address).await;
    let mut client = connect(proxy.address).await;
    client.send(format!("POST / HTTP/1.1\r\nHost: a.example\r\n{lines}\r\n").as_bytes()).await;
    let mut upstream = application.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    (client, upstream, application)
}

#[tokio::test]
async fn a_head_has_at_most_so_many_bytes() {
    let (proxy, a) = (proxy().await, named("a").await);
    proxy.route_to("a", a.address).await;
    for (bytes, status) in [(32 * 1_024, 200), (32 * 1_024 + 1, 431), (60_000, 431), (200_000, 431)] {
        let rest = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nX: \r\n\r\n";
        let value = "x".repeat(bytes - rest.len());
        let request = rest.replace("X: ", &format!("X: {value}"));
        assert_eq!(request.len(), bytes);
        let mut client = connect(proxy.address).await;
        client.send(request.as_bytes()).await;
        assert_eq!(client.head().await.unwrap().status, status, "{bytes}");
    }
}

#[tokio::test]
async fn a_head_has_at_most_so_many_headers() {
    let (proxy, a) = (proxy().await, named("a").await);
    proxy.route_to("a", a.address).await;
    for (headers, status) in [(100, 200), (101, 431)] {
        let lines: String = (1..headers).map(|number| format!("X{number}: y\r\n")).collect();
        let mut client = connect(proxy.address).await;
        client.send(format!("GET / HTTP/1.1\r\nHost: a.example\r\n{lines}\r\n").as_bytes()).await;
        assert_eq!(client.head().await.unwrap().status, status, "{headers}");
    }
}

#[tokio::test]
async fn a_slow_application_does_not_take_every_connection() {
    let proxy = proxy_with(|settings| settings.limits.per_application = 2).await;
    let (mut slow, other) = (scripted().await, named("other").await);
    proxy.route_to("slow", slow.address).await;
    proxy.route_to("other", other.address).await;
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let mut client = connect(proxy.address).await;
        client.send(b"GET / HTTP/1.1\r\nHost: slow.example\r\n\r\n").await;
        let mut upstream = slow.connection().await;
        upstream.until(b"\r\n\r\n").await.unwrap();
        waiting.push((client, upstream));
    }
    assert_eq!(get(proxy.address, "slow.example", "/").await.status, 503);
    assert_eq!(get(proxy.address, "other.example", "/").await.status, 200);
    let (mut client, mut upstream) = waiting.remove(0);
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(client.answer().await.unwrap().status, 200);
    client.send(b"GET / HTTP/1.1\r\nHost: slow.example\r\n\r\n").await;
    upstream.until(b"\r\n\r\n").await.unwrap();
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_for_their_turn() {
    let proxy = proxy_with(|settings| settings.limits.connections = 2).await;
    let a = named("a").await;
    proxy.route_to("a", a.address).await;
    let (mut first, mut second) = (connect(proxy.address).await, connect(proxy.address).await);
    first.get("a.example", "/").await.unwrap();
    second.get("a.example", "/").await.unwrap();
    let mut third = connect(proxy.address).await;
    third.send(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n").await;
    assert!(tokio::time::timeout(LESS, third.head()).await.is_err());
    drop(first);
    assert_eq!(third.answer().await.unwrap().status, 200);
}

#[tokio::test]
async fn one_client_cannot_have_every_connection_unless_it_is_a_front() {
    for (is_front, expected) in [(false, None), (true, Some(200))] {
        let proxy = proxy_with(|settings| {
            settings.limits.per_client = 2;
            settings.trusted = is_front.then(|| "127.0.0.0/8".parse().unwrap()).into_iter().collect();
        })
        .await;
        let a = named("a").await;
        proxy.route_to("a", a.address).await;
        let (mut first, mut second) = (connect(proxy.address).await, connect(proxy.address).await);
        assert_eq!(first.get("a.example", "/").await.unwrap().status, 200);
        assert_eq!(second.get("a.example", "/").await.unwrap().status, 200);
        let mut third = connect(proxy.address).await;
        assert_eq!(third.get("a.example", "/").await.ok().map(|answer| answer.status), expected);
    }
}

#[tokio::test]
async fn an_application_answers_in_time_or_not_at_all() {
    let proxy = proxy_with(|settings| settings.limits.response_head = SHORT).await;
    let (mut client, mut upstream, _application) = asked(&proxy, "Content-Length: 0\r\n").await;
    sleep(LESS).await;
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(client.answer().await.unwrap().status, 200);
    let (mut client, upstream, _application) = asked(&proxy, "Content-Length: 0\r\n").await;
    assert_eq!(client.answer().await.unwrap().status, 504);
    drop(upstream);
}

#[tokio::test]
async fn the_time_for_an_answer_does_not_run_while_the_body_comes() {
    let proxy = proxy_with(|settings| settings.limits.response_head = SHORT).await;
    let (mut client, mut upstream, _application) = asked(&proxy, "Content-Length: 6\r\n").await;
    for _ in 0..6 {
        sleep(LESS).await;
        client.send(b"x").await;
        upstream.take(1).await.unwrap();
    }
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(client.answer().await.unwrap().status, 200);
}

#[tokio::test]
async fn a_client_that_stops_in_its_body_is_not_waited_for() {
    let proxy = proxy_with(|settings| settings.limits.client_stall = SHORT).await;
    let (mut client, mut upstream, _application) = asked(&proxy, "Content-Length: 3\r\n").await;
    for _ in 0..2 {
        sleep(LESS).await;
        client.send(b"x").await;
        upstream.take(1).await.unwrap();
    }
    assert_eq!(client.answer().await.unwrap().status, 400);
    assert_eq!(upstream.rest().await, "");
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn an_application_that_stops_in_its_answer_is_not_waited_for() {
    let proxy = proxy_with(|settings| settings.limits.upstream_stall = SHORT).await;
    let (mut client, mut upstream, _application) = asked(&proxy, "Content-Length: 0\r\n").await;
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n").await;
    client.head().await.unwrap();
    for _ in 0..2 {
        sleep(LESS).await;
        upstream.send(b"x").await;
        client.take(1).await.unwrap();
    }
    assert_eq!(client.rest().await, "");
    assert_eq!(upstream.rest().await, "");
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_not_waited_for() {
    let proxy = proxy_with(|settings| settings.limits.client_stall = SHORT).await;
    let (client, upstream, _application) = asked(&proxy, "Content-Length: 0\r\n").await;
    let mut stream = upstream.stream;
    let sending = async {
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 200 OK\r\n\r\n").await?;
        loop {
            tokio::io::AsyncWriteExt::write_all(&mut stream, &[b'x'; 65_536]).await?;
        }
    };
    let ended: Result<Result<(), std::io::Error>, _> =
        tokio::time::timeout(crate::client::TIMEOUT, sending).await;
    assert!(ended.expect("the proxy gives up").is_err());
    drop(client);
}

#[tokio::test]
async fn an_unused_connection_is_kept_for_a_while() {
    let proxy = proxy_with(|settings| settings.limits.keep_alive = SHORT).await;
    let a = named("a").await;
    proxy.route_to("a", a.address).await;
    let mut client = connect(proxy.address).await;
    for _ in 0..3 {
        assert_eq!(client.get("a.example", "/").await.unwrap().status, 200);
        sleep(LESS).await;
    }
    assert_eq!(client.rest().await, "");
}

#[tokio::test]
async fn a_request_that_takes_long_is_no_unused_connection() {
    let proxy = proxy_with(|settings| {
        settings.limits.keep_alive = LESS;
        settings.limits.request_head = LESS;
    })
    .await;
    let (mut client, mut upstream, _application) = asked(&proxy, "Content-Length: 0\r\n").await;
    sleep(3 * LESS).await;
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no").await;
    client.head().await.unwrap();
    sleep(3 * LESS).await;
    upstream.send(b"k").await;
    assert_eq!(client.take(2).await.unwrap(), b"ok");
}

#[tokio::test]
async fn a_tunnel_may_be_silent_for_long_but_not_for_ever() {
    let proxy = proxy_with(|settings| {
        settings.limits.tunnel_stall = 2 * SHORT;
        settings.limits.keep_alive = LESS;
        settings.limits.client_stall = LESS;
        settings.limits.upstream_stall = LESS;
        settings.limits.request_head = LESS;
    })
    .await;
    let (mut client, mut upstream, _application) =
        asked(&proxy, "Connection: upgrade\r\nUpgrade: x\r\n").await;
    upstream.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").await;
    client.head().await.unwrap();
    for _ in 0..2 {
        sleep(SHORT).await;
        client.send(b"x").await;
        assert_eq!(upstream.take(1).await.unwrap(), b"x");
    }
    assert_eq!(client.rest().await, "");
    assert_eq!(upstream.rest().await, "");
}

#[tokio::test]
async fn an_application_that_cannot_be_reached_is_not_waited_for() {
    let proxy = proxy_with(|settings| settings.limits.connect = Duration::from_millis(50)).await;
    // Addresses for documentation lead nowhere.
    proxy.route_to("a", "192.0.2.1:80".parse().unwrap()).await;
    let begun = Instant::now();
    assert_eq!(get(proxy.address, "a.example", "/").await.status, 502);
    assert!(begun.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn the_head_timeout_pauses_while_a_client_waits_for_a_response() {
    let proxy = proxy_with(|settings| settings.limits.request_head = LESS).await;
    let (mut client, mut upstream, _application) = asked(&proxy, "Content-Length: 0\r\n").await;
    client.send(b"GET /next HTTP/1.1\r\nHost: a.exam").await;
    sleep(3 * LESS).await;
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(client.answer().await.unwrap().status, 200);
    client.send(b"ple\r\n\r\n").await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(client.answer().await.unwrap().status, 200);
}
