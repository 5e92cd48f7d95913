//! The cases in which a request is retried, and those in which it is not.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::{
    application::{nobody, scripted},
    client::{connect, get},
    process::proxy,
};

/// Shorter than all retry delays together.
const SOON: Duration = Duration::from_millis(40);

#[tokio::test]
async fn a_large_upload_is_retried_while_the_target_refuses() {
    let (proxy, mut shop) = (proxy().await, scripted().await);
    proxy.route_to("shop", nobody().await).await;
    let mut client = connect(proxy.address).await;
    client.send(b"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 300000\r\n\r\n").await;
    let body: Vec<u8> = (0..300_000_u32).map(|number| (number % 251) as u8).collect();
    let sent = body.clone();
    let uploading = tokio::spawn(async move {
        client.send(&sent).await;
        client
    });
    sleep(SOON).await;
    proxy.route_to("shop", shop.address).await;
    let mut upstream = shop.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    assert!(upstream.take(body.len()).await.unwrap() == body);
    upstream.send(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(uploading.await.unwrap().answer().await.unwrap().status, 201);
}

#[tokio::test]
async fn when_nobody_ever_listens_the_answer_comes_soon() {
    let proxy = proxy().await;
    proxy.route_to("shop", nobody().await).await;
    let begun = Instant::now();
    assert_eq!(get(proxy.address, "shop.example", "/").await.status, 502);
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(155) && took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn only_idempotent_requests_are_retried_after_a_broken_response() {
    let (proxy, mut shop) = (proxy().await, scripted().await);
    proxy.route_to("shop", shop.address).await;
    for (request, is_asked_again) in [
        ("GET / HTTP/1.1\r\n", true),
        ("HEAD / HTTP/1.1\r\n", true),
        ("DELETE / HTTP/1.1\r\n", true),
        ("OPTIONS / HTTP/1.1\r\n", true),
        ("PUT / HTTP/1.1\r\nContent-Length: 0\r\n", true),
        ("POST / HTTP/1.1\r\nContent-Length: 0\r\n", false),
        ("PATCH / HTTP/1.1\r\nContent-Length: 0\r\n", false),
        ("BREW / HTTP/1.1\r\n", false),
    ] {
        let mut client = connect(proxy.address).await;
        client.send(format!("{request}Host: shop.example\r\n\r\n").as_bytes()).await;
        let mut upstream = shop.connection().await;
        let first = upstream.until(b"\r\n\r\n").await.unwrap();
        drop(upstream);
        if is_asked_again {
            let mut upstream = shop.connection().await;
            assert_eq!(upstream.until(b"\r\n\r\n").await.unwrap(), first, "{request}");
            upstream.send(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await;
        }
        let status = client.answer().await.unwrap().status;
        assert_eq!(status, if is_asked_again { 204 } else { 502 }, "{request}");
        assert!(shop.is_untouched(), "{request}");
    }
}

#[tokio::test]
async fn a_body_of_which_something_was_sent_is_not_sent_again() {
    let (proxy, mut shop) = (proxy().await, scripted().await);
    proxy.route_to("shop", shop.address).await;
    let mut client = connect(proxy.address).await;
    client.send(b"PUT / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\n\r\nab").await;
    let mut upstream = shop.connection().await;
    upstream.until(b"ab").await.unwrap();
    drop(upstream);
    assert_eq!(client.answer().await.unwrap().status, 502);
    assert!(shop.is_untouched());
}

#[tokio::test]
async fn a_kept_connection_that_the_application_closed_is_no_failure() {
    let (proxy, mut shop) = (proxy().await, scripted().await);
    proxy.route_to("shop", shop.address).await;
    let mut client = connect(proxy.address).await;
    for _ in 0..10 {
        for method in ["GET", "POST"] {
            client.send(format!("{method} / HTTP/1.1\r\nHost: shop.example\r\n\r\n").as_bytes()).await;
            let mut upstream = shop.connection().await;
            upstream.until(b"\r\n\r\n").await.unwrap();
            // It closes the connection without announcing it.
            upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
            assert_eq!(client.answer().await.unwrap().status, 200);
            drop(upstream);
            sleep(Duration::from_millis(2)).await;
        }
    }
}
