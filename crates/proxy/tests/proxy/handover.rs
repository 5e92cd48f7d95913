//! The handover from one proxy to another.

use std::{
    num::NonZero,
    time::{Duration, Instant},
};

use launchway_proxy::control::Client;
use tokio::{io::AsyncWriteExt as _, net::UnixStream, time::timeout};

use crate::{
    application::{named, scripted},
    client::{TIMEOUT, connect, get},
    process::{Proxy, proxy_in, route},
    switch::Load,
};

const SHORT: Duration = Duration::from_millis(100);

async fn first(folder: &tempfile::TempDir) -> Proxy {
    let proxy = proxy_in(&folder.path().join("proxy"), |_| {}).await;
    proxy.control.replace_all(Vec::new()).await.unwrap();
    proxy
}

async fn successor(folder: &tempfile::TempDir, name: &str) -> Proxy {
    proxy_in(&folder.path().join("proxy"), |settings| settings.version = name.to_owned()).await
}

async fn ended(proxy: Proxy) {
    timeout(TIMEOUT, proxy.task).await.expect("it ends").unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_hand_overs_under_load_fail_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let shop = named("shop").await;
    let mut proxy = first(&folder).await;
    proxy.route_to("shop", shop.address).await;
    let load = Load::begin(&proxy, 8);
    for round in 0..5 {
        load.go_on(50).await;
        let next = successor(&folder, &format!("round {round}")).await;
        assert_eq!(next.address, proxy.address);
        ended(std::mem::replace(&mut proxy, next)).await;
    }
    load.go_on(50).await;
    load.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_of_routes_is_lost_by_a_hand_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut proxy = first(&folder).await;
    let shop = named("shop").await;
    let control = proxy.control.clone();
    let changes = tokio::spawn(async move {
        for number in 0..60 {
            control.set(route(&format!("app{number}"), shop.address)).await.unwrap();
        }
        shop
    });
    for round in 0..5 {
        let next = successor(&folder, &format!("round {round}")).await;
        ended(std::mem::replace(&mut proxy, next)).await;
    }
    let _shop = changes.await.unwrap();
    assert_eq!(proxy.control.status().await.unwrap().routes, 60);
    for number in 0..60 {
        assert_eq!(get(proxy.address, &format!("app{number}.example"), "/").await.status, 200, "{number}");
    }
}

#[tokio::test]
async fn a_drain_waits_for_requests_in_flight_at_the_predecessor() {
    let folder = tempfile::tempdir().unwrap();
    let (mut old, new) = (scripted().await, named("new").await);
    let proxy = first(&folder).await;
    proxy.route_to("shop", old.address).await;
    let mut client = connect(proxy.address).await;
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    let mut upstream = old.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    let next = successor(&folder, "next").await;
    next.route_to("shop", new.address).await;
    assert_eq!(get(next.address, "shop.example", "/").await.text(), "new");
    assert!(!next.control.drain("shop", None, SHORT).await.unwrap());
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold").await;
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.text(), answer.header("connection")), ("old", Some("close")));
    assert!(next.control.drain("shop", None, TIMEOUT).await.unwrap());
    ended(proxy).await;
}

#[tokio::test]
async fn a_predecessor_closes_idle_connections_first_and_then_all() {
    let folder = tempfile::tempdir().unwrap();
    let mut shop = scripted().await;
    let proxy = proxy_in(&folder.path().join("proxy"), |settings| {
        settings.limits.leave_idle = SHORT;
        settings.limits.leave = 20 * SHORT;
        // Each thread has connections to applications of its own.
        settings.threads = NonZero::new(1);
    })
    .await;
    proxy.route_to("shop", shop.address).await;
    let mut idle = connect(proxy.address).await;
    idle.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    let mut upstream = shop.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    idle.answer().await.unwrap();
    let mut tunnel = connect(proxy.address).await;
    tunnel.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    upstream.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").await;
    tunnel.head().await.unwrap();

    let begun = Instant::now();
    let _next = successor(&folder, "next").await;
    assert_eq!(idle.rest().await, "");
    tunnel.send(b"still here").await;
    assert_eq!(upstream.take(10).await.unwrap(), b"still here");
    assert_eq!(tunnel.rest().await, "");
    assert!(begun.elapsed() >= 19 * SHORT, "{:?}", begun.elapsed());
    ended(proxy).await;
}

#[tokio::test]
async fn a_successor_that_vanishes_leaves_everything_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let (proxy, shop) = (first(&folder).await, named("shop").await);
    proxy.route_to("shop", shop.address).await;
    for said in [
        "{\"ask\":\"hand_over\",\"protocol\":1}\n",
        "{\"ask\":\"hand_over\",\"protocol\":99}\n",
        "{\"ask\":\"hand_over\"}\n",
    ] {
        let mut stream = UnixStream::connect(proxy.folder().join("control.sock")).await.unwrap();
        stream.write_all(said.as_bytes()).await.unwrap();
        stream.readable().await.unwrap();
        drop(stream);
        proxy.control.set(route("blog", shop.address)).await.unwrap();
        proxy.control.remove("blog").await.unwrap();
        assert_eq!(get(proxy.address, "shop.example", "/").await.text(), "shop");
    }
    // And one that does it right still can.
    let next = successor(&folder, "next").await;
    assert_eq!(get(next.address, "shop.example", "/").await.text(), "shop");
    ended(proxy).await;
}

#[tokio::test]
async fn a_stopped_proxy_answers_requests_in_flight_and_no_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let (mut proxy, mut shop) = (first(&folder).await, scripted().await);
    proxy.route_to("shop", shop.address).await;
    let mut idle = connect(proxy.address).await;
    idle.send(b"GET / HTTP/1.1\r\nHost: nobody.example\r\n\r\n").await;
    assert_eq!(idle.answer().await.unwrap().status, 404);
    let mut client = connect(proxy.address).await;
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    let mut upstream = shop.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    proxy.stop();
    assert_eq!(idle.rest().await, "");
    assert!(!proxy.task.is_finished());
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    assert_eq!(client.answer().await.unwrap().text(), "ok");
    let (address, control) = (proxy.address, proxy.control.clone());
    ended(proxy).await;
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
    assert!(matches!(control.status().await, Err(launchway_proxy::control::ControlError::Absent)));
}

#[tokio::test]
async fn a_proxy_ends_when_the_control_plane_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = first(&folder).await;
    proxy.control.stop().await.unwrap();
    ended(proxy).await;
}

#[tokio::test]
async fn an_address_in_use_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let proxy = first(&folder).await;
    let other = tempfile::tempdir().unwrap();
    let mut settings = crate::process::settings(&other.path().join("proxy"));
    settings.bind = proxy.address;
    let error = launchway_proxy::run(settings, std::future::pending()).await.unwrap_err();
    assert!(error.to_string().contains(&proxy.address.to_string()), "{error}");
    assert!(matches!(
        Client::at(other.path().join("proxy")).status().await,
        Err(launchway_proxy::control::ControlError::Absent)
    ));
}

#[tokio::test]
async fn a_new_proxy_takes_the_address_while_another_shuts_down() {
    let folder = tempfile::tempdir().unwrap();
    let (proxy, mut shop, new) = (first(&folder).await, scripted().await, named("new").await);
    proxy.route_to("shop", shop.address).await;
    let mut client = connect(proxy.address).await;
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    let mut upstream = shop.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    proxy.control.stop().await.unwrap();
    while tokio::net::TcpStream::connect(proxy.address).await.is_ok() {}
    let next = proxy_in(&folder.path().join("proxy"), |settings| {
        settings.bind = proxy.address;
        settings.version = "next".to_owned();
    })
    .await;
    assert!(!proxy.task.is_finished());
    next.route_to("shop", new.address).await;
    assert_eq!(get(next.address, "shop.example", "/").await.text(), "new");
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold").await;
    assert_eq!(client.answer().await.unwrap().text(), "old");
    ended(proxy).await;
}
