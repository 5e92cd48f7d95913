//! Routes with several endpoints: balance, ejection and retries.

use std::{
    collections::BTreeMap,
    fs,
    net::SocketAddr,
    time::{Duration, Instant},
};

use tokio::time::{sleep, timeout};

use crate::{
    application::{listen, named, nobody, scripted},
    client::{connect, get},
    process::{Proxy, endpoint, proxy, proxy_in, route, route_to_all},
};

/// Returns the number of responses of each application among `count`.
async fn answers(address: SocketAddr, count: usize) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for _ in 0..count {
        let answer = get(address, "shop.example", "/").await;
        assert_eq!(answer.status, 200);
        *counted.entry(answer.text().to_owned()).or_default() += 1;
    }
    counted
}

async fn route_all(proxy: &Proxy, addresses: &[SocketAddr]) {
    proxy.control.set(route_to_all("shop", addresses)).await.unwrap();
}

#[tokio::test]
async fn requests_are_balanced_over_all_endpoints() {
    let proxy = proxy().await;
    let (one, two, three) = (named("one").await, named("two").await, named("three").await);
    route_all(&proxy, &[one.address, two.address, three.address]).await;
    let counted = answers(proxy.address, 30).await;
    assert_eq!(counted.into_values().collect::<Vec<_>>(), [10, 10, 10]);
}

#[tokio::test]
async fn a_busy_endpoint_gets_no_further_requests() {
    let (proxy, mut slow, quick) = (proxy().await, scripted().await, named("quick").await);
    route_all(&proxy, &[slow.address, quick.address]).await;
    let mut client = connect(proxy.address).await;
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    let mut upstream = slow.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    assert_eq!(answers(proxy.address, 10).await, BTreeMap::from([("quick".to_owned(), 10)]));
    assert!(slow.is_untouched());
    upstream.send(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(client.answer().await.unwrap().status, 204);
}

#[tokio::test]
async fn a_dead_endpoint_is_avoided_at_once_and_fails_no_request() {
    let (proxy, alive, dead) = (proxy().await, named("alive").await, named("dead").await);
    route_all(&proxy, &[dead.address, alive.address]).await;
    assert_eq!(answers(proxy.address, 10).await.len(), 2);
    dead.kill();
    sleep(Duration::from_millis(10)).await;
    assert_eq!(answers(proxy.address, 100).await, BTreeMap::from([("alive".to_owned(), 100)]));
}

#[tokio::test]
async fn an_endpoint_that_is_back_is_used_again_after_5_s() {
    let (proxy, alive) = (proxy().await, named("alive").await);
    let (listener, address) = listen().await;
    drop(listener);
    route_all(&proxy, &[address, alive.address]).await;
    assert_eq!(answers(proxy.address, 10).await.len(), 1);
    let avoided = Instant::now();
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    while timeout(Duration::from_millis(20), listener.accept()).await.is_err() {
        assert!(avoided.elapsed() < Duration::from_secs(60), "it is never used again");
        // The endpoint that is back never answers.
        let _ = timeout(Duration::from_millis(20), get(proxy.address, "shop.example", "/")).await;
    }
    assert!(avoided.elapsed() >= Duration::from_millis(4_500), "{:?}", avoided.elapsed());
}

#[tokio::test]
async fn when_all_endpoints_refuse_every_one_is_tried() {
    let proxy = proxy().await;
    let (back, address) = listen().await;
    drop(back);
    route_all(&proxy, &[nobody().await, address, nobody().await]).await;
    assert_eq!(get(proxy.address, "shop.example", "/").await.status, 502);
    // All are avoided now, and one of them listens again.
    let listener = tokio::net::TcpListener::bind(address).await.unwrap();
    let answer = tokio::spawn(async move { listener.accept().await.map(|_| ()) });
    let _ = timeout(Duration::from_secs(1), get(proxy.address, "shop.example", "/")).await;
    assert!(timeout(Duration::from_secs(1), answer).await.is_ok());
}

#[tokio::test]
async fn an_upload_is_sent_to_another_endpoint_if_one_refuses() {
    let (proxy, mut shop) = (proxy().await, scripted().await);
    route_all(&proxy, &[nobody().await, shop.address]).await;
    let mut client = connect(proxy.address).await;
    client.send(b"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\n\r\nabcd").await;
    let mut upstream = shop.connection().await;
    upstream.until(b"abcd").await.unwrap();
    upstream.send(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(client.answer().await.unwrap().status, 201);
    assert!(shop.is_untouched());
}

#[tokio::test]
async fn a_body_that_was_sent_goes_to_no_other_endpoint() {
    for method in ["POST", "PUT"] {
        let (proxy, mut first, mut second) = (proxy().await, scripted().await, scripted().await);
        route_all(&proxy, &[first.address, second.address]).await;
        let mut client = connect(proxy.address).await;
        let head = format!("{method} / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\n\r\nab");
        client.send(head.as_bytes()).await;
        let mut upstream = first.connection().await;
        upstream.until(b"ab").await.unwrap();
        drop(upstream);
        assert_eq!(client.answer().await.unwrap().status, 502, "{method}");
        assert!(first.is_untouched() && second.is_untouched(), "{method}");
    }
}

#[tokio::test]
async fn one_endpoint_is_drained_while_another_is_busy() {
    let (proxy, mut leaving, mut staying) = (proxy().await, scripted().await, scripted().await);
    route_all(&proxy, &[leaving.address, staying.address]).await;
    let mut clients = Vec::new();
    for _ in 0..2 {
        let mut client = connect(proxy.address).await;
        client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
        clients.push(client);
    }
    let (mut leaving_request, mut staying_request) = (leaving.connection().await, staying.connection().await);
    leaving_request.until(b"\r\n\r\n").await.unwrap();
    staying_request.until(b"\r\n\r\n").await.unwrap();
    route_all(&proxy, &[staying.address]).await;
    let id = endpoint(leaving.address).id;
    let drain = |limit| proxy.control.drain("shop", Some(&id), limit);
    assert!(!drain(Duration::from_millis(100)).await.unwrap(), "a request is in flight");
    leaving_request.send(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    assert!(drain(Duration::from_secs(5)).await.unwrap());
    assert!(drain(Duration::ZERO).await.unwrap(), "the other one is still busy");
    staying_request.send(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    for mut client in clients {
        assert_eq!(client.answer().await.unwrap().status, 204);
    }
}

#[tokio::test]
async fn several_endpoints_survive_a_handover() {
    let own_folder = tempfile::tempdir().unwrap();
    let folder = own_folder.path().join("proxy");
    let first = proxy_in(&folder, |_| {}).await;
    let (one, two) = (named("one").await, named("two").await);
    first.control.replace_all(vec![route_to_all("shop", &[one.address, two.address])]).await.unwrap();
    let second = proxy_in(&folder, |settings| settings.version = "second".to_owned()).await;
    assert_eq!(answers(second.address, 10).await.len(), 2);
    let status = second.control.status().await.unwrap();
    assert!(status.is_trusted);
}

#[tokio::test]
async fn the_routes_of_an_earlier_version_are_read() {
    let (own_folder, one) = (tempfile::tempdir().unwrap(), named("one").await);
    let folder = own_folder.path().join("proxy");
    fs::create_dir(&folder).unwrap();
    let document = format!(
        r#"{{"format":1,"is_complete":true,"routes":[{{"boot_id":"this boot","application":"shop",
        "hosts":["shop.example"],"target":{{"kind":"container","id":"c","address":"{}"}}}}]}}"#,
        one.address
    );
    fs::write(folder.join("routes.json"), document).unwrap();
    let proxy = proxy_in(&folder, |_| {}).await;
    let status = proxy.control.status().await.unwrap();
    assert_eq!((status.routes, status.is_trusted), (1, true));
    assert_eq!(get(proxy.address, "shop.example", "/").await.text(), "one");
    // And one that is written now is read by the earlier version, unless there are several copies.
    proxy.control.set(route("shop", one.address)).await.unwrap();
    let written = fs::read_to_string(folder.join("routes.json")).unwrap();
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    let id = endpoint(one.address).id;
    let target = serde_json::json!({"kind": "container", "id": id, "address": one.address});
    assert_eq!((&written["format"], &written["routes"][0]["target"]), (&1.into(), &target));
}
