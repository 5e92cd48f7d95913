//! Traffic counters and the access log.

use std::{fs, time::Duration};

use launchway_proxy::traffic::ApplicationTraffic;
use tokio::time::sleep;

use crate::{
    application::{named, scripted},
    client::{TIMEOUT, connect, get},
    process::{Proxy, proxy, proxy_with},
};

async fn traffic_of(proxy: &Proxy, application: &str) -> ApplicationTraffic {
    let all = proxy.control.traffic().await.unwrap().applications;
    all.into_iter().find(|one| one.application == application).unwrap()
}

#[tokio::test]
async fn an_applications_requests_are_counted() {
    let (proxy, mut shop) = (proxy().await, scripted().await);
    proxy.route_to("shop", shop.address).await;
    let mut client = connect(proxy.address).await;
    client.send(b"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 3\r\n\r\nabc").await;
    let mut upstream = shop.connection().await;
    upstream.until(b"abc").await.unwrap();
    assert_eq!(traffic_of(&proxy, "shop").await.in_flight, 1);
    upstream.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nabcde").await;
    client.answer().await.unwrap();
    // Its counters go on with another target.
    let other = named("other").await;
    proxy.route_to("shop", other.address).await;
    get(proxy.address, "shop.example", "/").await;
    let begun = std::time::Instant::now();
    while traffic_of(&proxy, "shop").await.in_flight > 0 {
        assert!(begun.elapsed() < TIMEOUT);
        sleep(Duration::from_millis(1)).await;
    }
    let counted = traffic_of(&proxy, "shop").await;
    assert_eq!(counted.requests, [0, 1, 0, 1, 0]);
    assert_eq!((counted.bytes_in, counted.bytes_out, counted.unanswered), (3, 10, 0));
}

#[tokio::test]
async fn a_tunnel_counts_as_a_request_until_it_ends() {
    let (proxy, mut shop) = (proxy().await, scripted().await);
    proxy.route_to("shop", shop.address).await;
    let mut client = connect(proxy.address).await;
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").await;
    let mut upstream = shop.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    upstream.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").await;
    client.head().await.unwrap();
    assert_eq!(traffic_of(&proxy, "shop").await.in_flight, 1);
    drop((client, upstream));
    let begun = std::time::Instant::now();
    while traffic_of(&proxy, "shop").await.in_flight > 0 {
        assert!(begun.elapsed() < TIMEOUT);
        sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(traffic_of(&proxy, "shop").await.requests, [1, 0, 0, 0, 0]);
}

#[tokio::test]
async fn each_request_is_a_line_of_the_access_log() {
    let mut proxy = proxy_with(|settings| settings.access_log = true).await;
    let shop = named("shop").await;
    proxy.route_to("shop", shop.address).await;
    get(proxy.address, "shop.example", "/secret?token=x").await;
    get(proxy.address, "nobody.example", "/").await;
    proxy.stop();
    (&mut proxy.task).await.unwrap().unwrap();
    let file = proxy.folder().join("access.log");
    let begun = std::time::Instant::now();
    while fs::read_to_string(&file).unwrap().lines().count() < 2 {
        assert!(begun.elapsed() < TIMEOUT);
        sleep(Duration::from_millis(1)).await;
    }
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert!(
        lines[0].contains("\"application\":\"shop\"") && lines[0].contains("\"path\":\"/secret\""),
        "{text}"
    );
    assert!(lines[0].contains("\"status\":200") && lines[0].contains("\"bytes_out\":4"), "{text}");
    assert!(lines[1].contains("\"application\":null") && lines[1].contains("\"status\":404"), "{text}");
    assert!(!text.contains("token"), "{text}");
}
