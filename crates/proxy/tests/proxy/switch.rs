//! Changes of the target while requests are in flight.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use launchway_proxy::routes::Target;
use tokio::task::JoinSet;

use crate::{
    application::{named, scripted},
    client::{connect, get},
    process::{Proxy, proxy, route},
};

const LONG: Duration = Duration::from_secs(15);
const AT_ONCE: Duration = Duration::ZERO;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_switches_under_load_fail_no_request() {
    let proxy = proxy().await;
    let first = named("shop").await;
    proxy.route_to("shop", first.address).await;
    let load = Load::begin(&proxy, 8);
    let mut old = first;
    for _ in 0..200 {
        let new = named("shop").await;
        proxy.route_to("shop", new.address).await;
        assert!(proxy.control.drain("shop", None, LONG).await.unwrap());
        // As the control plane does: no request is in flight there any more.
        old.kill();
        old = new;
    }
    let answered = load.end().await;
    assert!(answered > 400, "only {answered} requests");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_does_not_wait_for_the_drain_breaks_requests() {
    let (proxy, mut old, new) = (proxy().await, scripted().await, named("new").await);
    proxy.route_to("shop", old.address).await;
    let mut client = connect(proxy.address).await;
    client.send(b"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n\r\n").await;
    let mut upstream = old.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    proxy.route_to("shop", new.address).await;
    assert!(!proxy.control.drain("shop", None, AT_ONCE).await.unwrap());
    drop(upstream);
    assert_eq!(client.answer().await.unwrap().status, 502);
    assert!(proxy.control.drain("shop", None, LONG).await.unwrap());
}

#[tokio::test]
async fn a_drain_waits_for_the_last_byte_of_an_answer() {
    let (proxy, mut old, new) = (proxy().await, scripted().await, named("new").await);
    proxy.route_to("shop", old.address).await;
    let mut client = connect(proxy.address).await;
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    let mut upstream = old.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    proxy.route_to("shop", new.address).await;
    assert_eq!(get(proxy.address, "shop.example", "/").await.text(), "new");
    assert!(!proxy.control.drain("shop", None, Duration::from_millis(50)).await.unwrap());
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nol").await;
    client.head().await.unwrap();
    assert_eq!(client.take(2).await.unwrap(), b"ol");
    assert!(!proxy.control.drain("shop", None, Duration::from_millis(50)).await.unwrap());
    let drained = proxy.control.drain("shop", None, LONG);
    upstream.send(b"d!").await;
    assert_eq!(client.take(2).await.unwrap(), b"d!");
    assert!(drained.await.unwrap());
    // The connection to the old target is closed, and not kept for another request.
    assert_eq!(upstream.rest().await, "");
}

#[tokio::test]
async fn a_drain_waits_for_the_last_byte_of_a_request() {
    let (proxy, mut old, new) = (proxy().await, scripted().await, named("new").await);
    proxy.route_to("shop", old.address).await;
    let mut client = connect(proxy.address).await;
    client.send(b"POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 4\r\n\r\nab").await;
    let mut upstream = old.connection().await;
    upstream.until(b"ab").await.unwrap();
    proxy.route_to("shop", new.address).await;
    assert!(!proxy.control.drain("shop", None, Duration::from_millis(50)).await.unwrap());
    client.send(b"cd").await;
    upstream.until(b"cd").await.unwrap();
    upstream.send(b"HTTP/1.1 204 No Content\r\n\r\n").await;
    assert_eq!(client.answer().await.unwrap().status, 204);
    assert!(proxy.control.drain("shop", None, LONG).await.unwrap());
}

#[tokio::test]
async fn a_drain_waits_for_the_end_of_an_upgraded_connection() {
    let (proxy, mut old, new) = (proxy().await, scripted().await, named("new").await);
    proxy.route_to("shop", old.address).await;
    let mut client = connect(proxy.address).await;
    let ask = "GET /chat HTTP/1.1\r\nHost: shop.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    client.send(ask.as_bytes()).await;
    let mut upstream = old.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    upstream
        .send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        .await;
    assert_eq!(client.head().await.unwrap().status, 101);
    proxy.route_to("shop", new.address).await;
    for _ in 0..3 {
        client.send(b"ping").await;
        assert_eq!(upstream.take(4).await.unwrap(), b"ping");
        upstream.send(b"pong").await;
        assert_eq!(client.take(4).await.unwrap(), b"pong");
    }
    assert!(!proxy.control.drain("shop", None, Duration::from_millis(50)).await.unwrap());
    drop(client);
    assert_eq!(upstream.rest().await, "");
    drop(upstream);
    assert!(proxy.control.drain("shop", None, LONG).await.unwrap());
}

#[tokio::test]
async fn a_client_that_leaves_holds_up_no_drain() {
    let (proxy, mut old, new) = (proxy().await, scripted().await, named("new").await);
    proxy.route_to("shop", old.address).await;
    let mut client = connect(proxy.address).await;
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    let mut upstream = old.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    proxy.route_to("shop", new.address).await;
    drop(client);
    assert!(proxy.control.drain("shop", None, LONG).await.unwrap());
}

#[tokio::test]
async fn other_names_for_the_same_target_retire_nothing() {
    let (proxy, mut shop) = (proxy().await, scripted().await);
    proxy.route_to("shop", shop.address).await;
    let mut client = connect(proxy.address).await;
    client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
    let mut upstream = shop.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    let mut renamed = route("shop", shop.address);
    renamed.hosts.push("store.example".to_owned());
    proxy.control.set(renamed.clone()).await.unwrap();
    assert!(proxy.control.drain("shop", None, AT_ONCE).await.unwrap());
    proxy.control.replace_all(vec![renamed]).await.unwrap();
    assert!(proxy.control.drain("shop", None, AT_ONCE).await.unwrap());
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(client.answer().await.unwrap().status, 200);
    // The connection is still the same one, by the other name.
    client.send(b"GET / HTTP/1.1\r\nHost: store.example\r\n\r\n").await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    assert!(shop.is_untouched());
}

#[tokio::test]
async fn an_application_that_is_removed_or_stopped_is_drained_too() {
    let (proxy, mut shop) = (proxy().await, scripted().await);
    for target in [None, Some(Target::Stopped)] {
        proxy.route_to("shop", shop.address).await;
        let mut client = connect(proxy.address).await;
        client.send(b"GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n").await;
        let mut upstream = shop.connection().await;
        upstream.until(b"\r\n\r\n").await.unwrap();
        match target {
            None => proxy.control.remove("shop").await.unwrap(),
            Some(target) => {
                proxy
                    .control
                    .set(launchway_proxy::routes::Route { target, ..route("shop", shop.address) })
                    .await
                    .unwrap();
            }
        }
        assert!(!proxy.control.drain("shop", None, AT_ONCE).await.unwrap());
        upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        assert_eq!(client.answer().await.unwrap().status, 200);
        assert!(proxy.control.drain("shop", None, LONG).await.unwrap());
    }
}

/// Clients that send requests without pause, half of them on one connection each, half on a new one each
/// time.
pub(crate) struct Load {
    clients: JoinSet<()>,
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
}

impl Load {
    pub(crate) fn begin(proxy: &Proxy, clients: usize) -> Self {
        let (is_over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut tasks = JoinSet::new();
        for number in 0..clients {
            let (is_over, answered, address) = (Arc::clone(&is_over), Arc::clone(&answered), proxy.address);
            tasks.spawn(async move {
                let mut connection = connect(address).await;
                while !is_over.load(Ordering::Relaxed) {
                    let answer = connection.get("shop.example", "/").await.expect("an answer");
                    assert_eq!((answer.status, answer.text()), (200, "shop"));
                    answered.fetch_add(1, Ordering::Relaxed);
                    if number % 2 == 0 || answer.header("connection") == Some("close") {
                        connection = connect(address).await;
                    }
                }
            });
        }
        Self { clients: tasks, is_over, answered }
    }

    /// Waits until this many more requests were answered.
    pub(crate) async fn go_on(&self, requests: usize) {
        let (enough, begun) = (self.answered.load(Ordering::Relaxed) + requests, Instant::now());
        while self.answered.load(Ordering::Relaxed) < enough {
            assert!(begun.elapsed() < LONG, "nobody is answered any more");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Returns the number of answered requests. Panics if one was not.
    pub(crate) async fn end(mut self) -> usize {
        self.is_over.store(true, Ordering::Relaxed);
        while let Some(client) = self.clients.join_next().await {
            client.unwrap();
        }
        self.answered.load(Ordering::Relaxed)
    }
}
