//! Forwarding of responses, bodies and other protocols.

use std::{num::NonZero, time::Duration};

use tokio::io::AsyncWriteExt as _;

use crate::{
    application::{Scripted, scripted},
    client::{Connection, connect},
    process::{Proxy, proxy, proxy_with},
};

pub(crate) async fn pair() -> (Proxy, Scripted) {
    let (proxy, application) = (proxy().await, scripted().await);
    proxy.route_to("a", application.address).await;
    (proxy, application)
}

/// Sends a head's lines after the first two, and returns what the application receives, in lower case.
pub(crate) async fn head_upstream(
    proxy: &Proxy,
    application: &mut Scripted,
    lines: &str,
) -> (String, Connection, Connection) {
    let mut client = connect(proxy.address).await;
    client.send(format!("GET /a?b=c HTTP/1.1\r\nHost: A.example:8000\r\n{lines}\r\n").as_bytes()).await;
    let mut upstream = application.connection().await;
    let head = String::from_utf8(upstream.until(b"\r\n\r\n").await.unwrap()).unwrap();
    (head.to_lowercase(), client, upstream)
}

#[tokio::test]
async fn an_answer_in_any_framing_arrives_whole() {
    let (proxy, mut application) = pair().await;
    for (answer, body, framing) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "abc", "content-length: 3"),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
            "abc",
            "chunked",
        ),
        ("HTTP/1.1 200 OK\r\n\r\nabc", "abc", "chunked"),
        ("HTTP/1.0 200 OK\r\n\r\nabc", "abc", "chunked"),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            "abc",
            "chunked",
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", "", "204 No Content"),
        ("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n", "", "etag: \"x\""),
        (
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "",
            "content-length: 0",
        ),
        ("HTTP/1.1 299 Whatever\r\nContent-Length: 0\r\n\r\n", "", "HTTP/1.1 299 "),
    ] {
        let (_, mut client, mut upstream) = head_upstream(&proxy, &mut application, "").await;
        upstream.send(answer.as_bytes()).await;
        drop(upstream);
        let got = client.answer().await.unwrap();
        assert_eq!(got.text(), body, "{answer:?}");
        assert!(got.head.contains(framing), "{answer:?}: {}", got.head);
        let ways = got.head.matches("content-length").count() + got.head.matches("transfer-encoding").count();
        assert!(ways <= 1, "{}", got.head);
    }
}

#[tokio::test]
async fn the_answer_to_head_has_a_length_and_no_body() {
    let (proxy, mut application) = pair().await;
    let mut client = connect(proxy.address).await;
    for _ in 0..2 {
        client.send(b"HEAD / HTTP/1.1\r\nHost: a.example\r\n\r\n").await;
    }
    let mut upstream = application.connection().await;
    for _ in 0..2 {
        upstream.until(b"\r\n\r\n").await.unwrap();
        upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n").await;
        assert_eq!(client.head().await.unwrap().header("content-length"), Some("12345"));
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_never_taken_for_a_whole_one() {
    let (proxy, mut application) = pair().await;
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nnonsense\r\n",
    ] {
        let (_, mut client, mut upstream) = head_upstream(&proxy, &mut application, "").await;
        upstream.send(answer.as_bytes()).await;
        drop(upstream);
        let got = client.rest().await;
        assert!(!got.contains("0\r\n\r\n"), "{answer:?}: {got:?}");
        let body = got.split_once("\r\n\r\n").map_or(0, |(_, body)| body.len());
        assert!(body < 9, "{answer:?}: {got:?}");
    }
}

#[tokio::test]
async fn what_is_no_answer_is_a_bad_gateway() {
    let (proxy, mut application) = pair().await;
    for answer in [
        "nonsense\r\n\r\n",
        "HTTP/1.1 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\u{0}b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\na",
        "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: y\r\n z\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: ",
    ] {
        let mut client = connect(proxy.address).await;
        client.send(b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\n\r\n").await;
        let mut upstream = application.connection().await;
        upstream.until(b"\r\n\r\n").await.unwrap();
        upstream.send(answer.as_bytes()).await;
        drop(upstream);
        assert_eq!(client.answer().await.unwrap().status, 502, "{answer:?}");
    }
}

#[tokio::test]
async fn bytes_arrive_while_others_are_still_to_come() {
    let (proxy, mut application) = pair().await;
    let mut client = connect(proxy.address).await;
    client
        .send(b"POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        .await;
    let mut upstream = application.connection().await;
    upstream.until(b"\r\n\r\n").await.unwrap();
    assert_eq!(upstream.chunk().await.unwrap().unwrap(), b"one");
    // Also the answer, before the request is complete.
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n").await;
    assert_eq!(client.head().await.unwrap().header("content-type"), Some("text/event-stream"));
    assert_eq!(client.chunk().await.unwrap().unwrap(), b"data: 1\n\n");
    client.send(b"3\r\ntwo\r\n").await;
    assert_eq!(upstream.chunk().await.unwrap().unwrap(), b"two");
    upstream.send(b"data: 2\n\n").await;
    assert_eq!(client.chunk().await.unwrap().unwrap(), b"data: 2\n\n");
    client.send(b"0\r\n\r\n").await;
    assert_eq!(upstream.chunk().await.unwrap(), None);
    drop(upstream);
    assert_eq!(client.chunk().await.unwrap(), None);
}

#[tokio::test]
async fn trailers_go_both_ways() {
    let (proxy, mut application) = pair().await;
    let mut client = connect(proxy.address).await;
    let head = "POST / HTTP/1.1\r\nHost: a.example\r\nTE: trailers\r\nConnection: TE\r\nTrailer: X-Sum\r\n\
                Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-Sum: 7\r\n\r\n";
    client.send(head.as_bytes()).await;
    let mut upstream = application.connection().await;
    let head = String::from_utf8(upstream.until(b"\r\n\r\n").await.unwrap()).unwrap();
    assert!(head.contains("te: trailers\r\n") && head.contains("trailer: X-Sum\r\n"), "{head}");
    assert_eq!(upstream.until(b"\r\n\r\n").await.unwrap(), b"2\r\nab\r\n0\r\nx-sum: 7\r\n\r\n");
    let answer = "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\nX-Sum: 9\r\n\r\n";
    upstream.send(answer.as_bytes()).await;
    client.head().await.unwrap();
    assert_eq!(client.until(b"\r\n\r\n").await.unwrap(), b"1\r\nc\r\n0\r\nx-sum: 9\r\n\r\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_megabytes_go_both_ways_at_once() {
    let (proxy, mut application) = pair().await;
    let body: Vec<u8> =
        (0..5_000_000_u32).map(|number| number.to_le_bytes()[(number % 3) as usize]).collect();
    for is_chunked in [false, true] {
        let client = connect(proxy.address).await;
        let (read, mut write) = client.stream.into_split();
        let sent = body.clone();
        let sending = tokio::spawn(async move {
            let framing = if is_chunked { "Transfer-Encoding: chunked" } else { "Content-Length: 5000000" };
            let head = format!("POST / HTTP/1.1\r\nHost: a.example\r\n{framing}\r\n\r\n");
            write.write_all(head.as_bytes()).await.unwrap();
            for piece in sent.chunks(50_000) {
                if is_chunked {
                    write.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await.unwrap();
                }
                write.write_all(piece).await.unwrap();
                if is_chunked {
                    write.write_all(b"\r\n").await.unwrap();
                }
            }
            if is_chunked {
                write.write_all(b"0\r\n\r\n").await.unwrap();
            }
            write
        });
        // An echo that answers from the first byte on.
        let mut upstream = application.connection().await;
        let echo = tokio::spawn(async move {
            upstream.until(b"\r\n\r\n").await.unwrap();
            upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n").await;
            let mut left = 5_000_000;
            while left > 0 {
                let piece = match is_chunked {
                    true => upstream.chunk().await.unwrap().unwrap(),
                    false => upstream.take(left.min(10_000)).await.unwrap(),
                };
                left -= piece.len();
                upstream.send(&piece).await;
            }
        });
        let (mut read, begun) = (read, std::time::Instant::now());
        let mut got = Vec::new();
        while !got.ends_with(&body[body.len() - 64..]) {
            assert!(begun.elapsed() < crate::client::TIMEOUT, "{} bytes so far", got.len());
            tokio::io::AsyncReadExt::read_buf(&mut read, &mut got).await.unwrap();
        }
        echo.await.unwrap();
        sending.await.unwrap();
        let start = got.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
        assert!(got[start..] == body[..], "what came back differs");
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_makes_the_application_wait() {
    let (proxy, mut application) = pair().await;
    let (_, client, upstream) = head_upstream(&proxy, &mut application, "").await;
    let mut stream = upstream.stream;
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    let (mut sent, piece) = (0, vec![b'x'; 65_536]);
    while tokio::time::timeout(Duration::from_millis(300), stream.write_all(&piece)).await.is_ok() {
        sent += piece.len();
        assert!(sent < 200_000_000, "the proxy takes everything");
    }
    drop(client);
}

#[tokio::test]
async fn a_client_that_waits_for_leave_to_send_gets_it() {
    let (proxy, mut application) = pair().await;
    let mut client = connect(proxy.address).await;
    client
        .send(b"POST / HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        .await;
    assert_eq!(client.head().await.unwrap().status, 100);
    client.send(b"ab").await;
    let mut upstream = application.connection().await;
    upstream.until(b"\r\n\r\nab").await.unwrap();
    upstream.send(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").await;
    assert_eq!(client.answer().await.unwrap().status, 201);
}

#[tokio::test]
async fn an_upgraded_connection_carries_anything_both_ways() {
    let (proxy, mut application) = pair().await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: x\r\n";
    let (head, mut client, mut upstream) = head_upstream(&proxy, &mut application, upgrade).await;
    assert!(head.contains("connection: upgrade\r\n") && head.contains("upgrade: websocket\r\n"), "{head}");
    // The application speaks first, in the same packet.
    upstream.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Accept: y\r\n\r\n\x00hello").await;
    let answer = client.head().await.unwrap();
    assert_eq!((answer.status, answer.header("upgrade")), (101, Some("WebSocket")));
    assert_eq!(client.take(6).await.unwrap(), b"\x00hello");
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let (sent, expected) = (bytes.clone(), bytes.clone());
    let echo = tokio::spawn(async move {
        let got = upstream.take(sent.len()).await.unwrap();
        upstream.send(&got).await;
        upstream
    });
    client.send(&bytes).await;
    assert!(client.take(expected.len()).await.unwrap() == expected);
    // One side can end before the other.
    let mut upstream = echo.await.unwrap();
    client.stream.shutdown().await.unwrap();
    assert_eq!(upstream.rest().await, "");
    upstream.send(b"last words").await;
    assert_eq!(client.take(10).await.unwrap(), b"last words");
}

#[tokio::test]
async fn an_upgrade_that_is_declined_is_an_answer_like_any_other() {
    let (proxy, mut application) = pair().await;
    let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
    let (_, mut client, mut upstream) = head_upstream(&proxy, &mut application, upgrade).await;
    upstream.send(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno").await;
    let answer = client.answer().await.unwrap();
    assert_eq!((answer.status, answer.text(), answer.header("connection")), (426, "no", Some("close")));
}

#[tokio::test]
async fn connections_to_an_application_are_used_again() {
    // Each thread has connections of its own.
    let proxy = proxy_with(|settings| settings.threads = NonZero::new(1)).await;
    let mut application = scripted().await;
    proxy.route_to("a", application.address).await;
    let mut client = connect(proxy.address).await;
    client.send(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n").await;
    let mut upstream = application.connection().await;
    for number in 0..20 {
        upstream.until(b"\r\n\r\n").await.unwrap();
        let body = if number % 2 == 0 {
            "Content-Length: 2\r\n\r\nok"
        } else {
            "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        };
        upstream.send(format!("HTTP/1.1 200 OK\r\n{body}").as_bytes()).await;
        assert_eq!(client.answer().await.unwrap().text(), "ok");
        // From another client, too.
        client = connect(proxy.address).await;
        client.send(b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n").await;
    }
    assert!(application.is_untouched());
}
