//! Floods: the proxy closes the connection, or does bounded work, and serves others meanwhile.

use std::{fs, time::Duration};

use tokio::time::timeout;

use super::{
    Shop,
    frames::{
        CONTINUATION, END_HEADERS, END_STREAM, Frames, GET, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS,
        block, frame,
    },
};
use crate::{
    application::{named, scripted},
    client::TIMEOUT,
};

const ENHANCE_YOUR_CALM: u32 = 11;

/// The memory that a flood may cost, in kilobytes.
const MEMORY: u64 = 64 * 1_024;

/// Returns the resident memory of this process, in kilobytes. The proxy runs in it.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Sends the same bytes again and again, until the proxy closes the connection or `most` were sent. Returns the frame by
/// which it closed the connection.
async fn flood(frames: &mut Frames, bytes: &[u8], most: usize) -> Option<u32> {
    for _ in 0..most {
        // A proxy that does not read any more has bounded its work as well.
        match timeout(Duration::from_secs(2), frames.send_raw(bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => break,
            Err(_elapsed) => return None,
        }
    }
    frames.next_of(&[GOAWAY]).await.and_then(|end| end.code())
}

async fn others_are_served(shop: &Shop) {
    let answer = timeout(TIMEOUT, shop.connect().await.get("/")).await.expect("others wait").unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_resets_every_stream_is_cut_off() {
    let (shop, application) = (Shop::open(|_| {}).await, named("shop").await);
    shop.proxy.route_to("shop", application.address).await;
    let before = resident();
    let mut frames = Frames::connect(&shop).await;
    let get = block(&GET);
    let mut code = None;
    for number in 0..20_000 {
        let stream = 2 * number + 1;
        let request = frame(HEADERS, END_HEADERS | END_STREAM, stream, &get);
        let reset = frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
        if frames.send_raw(&[request, reset].concat()).await.is_err() {
            break;
        }
    }
    if let Some(end) = frames.next_of(&[GOAWAY]).await {
        code = end.code();
    }
    assert!(code.is_none_or(|code| code == ENHANCE_YOUR_CALM), "{code:?}");
    assert!(frames.next_of(&[HEADERS]).await.is_none(), "it is still served");
    assert!(resident() < before + MEMORY);
    others_are_served(&shop).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_headers_are_cut_off() {
    let (shop, application) = (Shop::open(|_| {}).await, named("shop").await);
    shop.proxy.route_to("shop", application.address).await;
    let before = resident();
    for payload in [block(&[("x-long", &"x".repeat(15_000))]), Vec::new()] {
        let mut frames = Frames::connect(&shop).await;
        frames.send(HEADERS, 0, 1, &block(&GET)).await.unwrap();
        flood(&mut frames, &frame(CONTINUATION, 0, 1, &payload), 20_000).await;
        assert!(frames.next_of(&[HEADERS]).await.is_none(), "it is still served");
    }
    assert!(resident() < before + MEMORY);
    others_are_served(&shop).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_of_pings_and_settings_are_bounded() {
    let (shop, application) = (Shop::open(|_| {}).await, named("shop").await);
    shop.proxy.route_to("shop", application.address).await;
    let before = resident();
    for bytes in [frame(PING, 0, 0, &[1; 8]), frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 1])] {
        let mut frames = Frames::connect(&shop).await;
        let many = bytes.repeat(1_000);
        for _ in 0..100 {
            // Nobody reads the answers, so the proxy stops to read, or ends the connection.
            if !matches!(timeout(Duration::from_secs(1), frames.send_raw(&many)).await, Ok(Ok(()))) {
                break;
            }
        }
        others_are_served(&shop).await;
    }
    assert!(resident() < before + MEMORY);
}

#[tokio::test]
async fn a_head_that_is_too_long_is_431() {
    let (shop, mut application) = (Shop::open(|_| {}).await, scripted().await);
    shop.proxy.route_to("shop", application.address).await;
    let client = shop.connect().await;
    let with = |count: usize, length: usize| {
        let mut request = http::Request::get("https://shop.example/");
        for number in 0..count {
            request = request.header(format!("x-{number}"), "x".repeat(length));
        }
        request.body(super::client::full(Vec::new())).unwrap()
    };
    assert_eq!(client.send(with(1, 40_000)).await.unwrap().status(), 431);
    assert_eq!(client.send(with(101, 1)).await.unwrap().status(), 431);
    assert!(application.is_untouched());
    let answer = tokio::spawn(client.send(with(100, 200)));
    let mut upstream = application.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    upstream.send(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(answer.await.unwrap().unwrap().status(), 204);
}

#[tokio::test]
async fn a_connection_has_at_most_100_streams() {
    let (shop, mut application) = (Shop::open(|_| {}).await, scripted().await);
    shop.proxy.route_to("shop", application.address).await;
    let mut frames = Frames::connect(&shop).await;
    let get = block(&GET);
    for number in 0..101 {
        frames.send(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &get).await.unwrap();
    }
    let refused = frames.next_of(&[RST_STREAM, GOAWAY]).await.unwrap();
    assert_eq!((refused.stream, refused.code()), (201, Some(7)), "REFUSED_STREAM");
    for _ in 0..100 {
        application.connection().await;
    }
}
