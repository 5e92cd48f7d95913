//! Requests that are rejected, and the bytes that an application receives of the others.

use std::time::Duration;

use crate::{
    application::scripted,
    client::{connect, raw},
    process::{proxy, proxy_with},
};

/// The expected outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The proxy answers it itself, and closes the connection.
    Refused(u16),
    /// It is forwarded to the application.
    Passed,
}

use Fate::{Passed, Refused};

/// Requests byte for byte; `⌂` stands for the line with the host.
const REQUESTS: &[(&str, Fate)] = &[
    ("GET / HTTP/1.1\r\n⌂\r\n", Passed),
    ("\r\nGET / HTTP/1.1\r\n⌂\r\n", Passed),
    ("GET / HTTP/1.0\r\n⌂\r\n", Passed),
    ("PATCH / HTTP/1.1\r\n⌂Content-Length: 0\r\n\r\n", Passed),
    ("BREW /pot HTTP/1.1\r\n⌂\r\n", Passed),
    ("GET / HTTP/1.1\r\n⌂X-Tab:\ta\tb\t\r\n\r\n", Passed),
    ("GET / HTTP/1.1\r\n⌂X-Latin: \u{e9}\r\n\r\n", Passed),
    ("GET / HTTP/1.1\r\n⌂X-Empty:\r\n\r\n", Passed),
    ("POST / HTTP/1.1\r\n⌂Content-Length: 2\r\n\r\nab", Passed),
    ("POST / HTTP/1.1\r\n⌂Content-Length: 02\r\n\r\nab", Passed),
    ("POST / HTTP/1.1\r\n⌂Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", Passed),
    ("POST / HTTP/1.1\r\n⌂Transfer-Encoding: Chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", Passed),
    ("POST / HTTP/1.1\r\n⌂Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nab\r\n0\r\n\r\n", Passed),
    ("POST / HTTP/1.1\r\n⌂Transfer-Encoding: chunked\r\n\r\n0002\r\nab\r\n00\r\n\r\n", Passed),
    // Two contradictory ends of the body.
    ("POST / HTTP/1.1\r\n⌂Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Content_Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Content_Length: 2\r\n\r\nab", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Content-Length: 2\r\nContent-Length: 3\r\n\r\nab", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Content-Length: 2\r\nContent-Length: 2\r\n\r\nab", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Content-Length: 2, 2\r\n\r\nab", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Content-Length: +2\r\n\r\nab", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Content-Length: -2\r\n\r\nab", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Content-Length: 0x2\r\n\r\nab", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Content-Length: 2 2\r\n\r\nab", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Content-Length:\r\n\r\nab", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Content-Length: \"2\"\r\n\r\nab", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Content-Length: 99999999999999999999\r\n\r\nab", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Content-Length: two\r\n\r\nab", Refused(400)),
    ("POST / HTTP/1.0\r\n⌂Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Transfer-Encoding: identity\r\n\r\n", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", Refused(400)),
    (
        "POST / HTTP/1.1\r\n⌂Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        Refused(400),
    ),
    ("POST / HTTP/1.1\r\n⌂Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Transfer-Encoding:\u{b}chunked\r\n\r\n0\r\n\r\n", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Transfer-Encoding :chunked\r\n\r\n0\r\n\r\n", Refused(400)),
    ("POST / HTTP/1.1\r\n⌂Transfer_Encoding: x\r\n\r\n", Refused(400)),
    // Invalid line ends.
    ("GET / HTTP/1.1\nHost: a.example\n\n", Refused(400)),
    ("GET / HTTP/1.1\r\n⌂\n", Refused(400)),
    ("GET / HTTP/1.1\r\n⌂X: a\nY: b\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\n⌂X: a\rY: b\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\n⌂X: a\r\n b\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\n⌂X: a\r\n\tb\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\n X: a\r\n⌂\r\n", Refused(400)),
    ("\nGET / HTTP/1.1\r\n⌂\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\r\n⌂\r\n", Refused(400)),
    // Invalid headers.
    ("GET / HTTP/1.1\r\n⌂X : a\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\n⌂: a\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\n⌂no colon\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\n⌂X\u{0}: a\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\n⌂X: a\u{0}b\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\n⌂X: a\u{1f}b\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\n⌂X: a\u{7f}b\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\n⌂X(a): b\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\n⌂X\u{e9}: b\r\n\r\n", Refused(400)),
    // Invalid request lines.
    ("CONNECT a.example:80 HTTP/1.1\r\n⌂\r\n", Refused(400)),
    ("GET  / HTTP/1.1\r\n⌂\r\n", Refused(400)),
    ("GET / HTTP/1.1 \r\n⌂\r\n", Refused(400)),
    ("GET /a b HTTP/1.1\r\n⌂\r\n", Refused(400)),
    ("GET /\ta HTTP/1.1\r\n⌂\r\n", Refused(400)),
    ("GET / HTTP/1.2\r\n⌂\r\n", Refused(400)),
    ("GET / HTTP/2.0\r\n⌂\r\n", Refused(400)),
    ("GET / http/1.1\r\n⌂\r\n", Refused(400)),
    ("GET /\r\n⌂\r\n", Refused(400)),
    ("GET\r\n⌂\r\n", Refused(400)),
    ("G(T / HTTP/1.1\r\n⌂\r\n", Refused(400)),
    ("\u{0}GET / HTTP/1.1\r\n⌂\r\n", Refused(400)),
    (" GET / HTTP/1.1\r\n⌂\r\n", Refused(400)),
    ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Refused(400)),
    ("\u{16}\u{3}\u{1}\u{2}\r\n\r\n", Refused(400)),
    // Invalid hosts.
    ("GET / HTTP/1.1\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\n⌂⌂\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\nHost: a.example, b.example\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\nHost: a.example/b\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\nHost: b@a.example\r\n\r\n", Refused(400)),
    ("GET / HTTP/1.1\r\nHost: a.example:port\r\n\r\n", Refused(400)),
    ("GET http://b.example/ HTTP/1.1\r\n⌂\r\n", Refused(400)),
    ("GET //b.example HTTP/1.1\r\n⌂\r\n", Passed),
];

#[tokio::test]
async fn what_two_servers_may_understand_differently_is_refused() {
    let (proxy, mut application) = (proxy().await, scripted().await);
    proxy.route_to("a", application.address).await;
    for (request, fate) in REQUESTS {
        let request = request.replace('⌂', "Host: a.example\r\n");
        // One byte for each character, so that the table can say any byte.
        let bytes: Vec<_> = request.chars().map(|letter| u8::try_from(letter).unwrap()).collect();
        let mut client = connect(proxy.address).await;
        client.send(&bytes).await;
        match fate {
            Refused(status) => {
                let answer = client.rest().await;
                assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer:?}");
                assert!(application.is_untouched(), "{request:?} reached the application");
            }
            Passed => {
                let mut upstream = application.connection().await;
                upstream.until(b"\r\n\r\n").await.unwrap();
                upstream.send(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").await;
                assert_eq!(client.head().await.unwrap().status, 204, "{request:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_request_that_comes_byte_by_byte_is_judged_alike() {
    let (proxy, mut application) = (proxy().await, scripted().await);
    proxy.route_to("a", application.address).await;
    let bad =
        b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut client = connect(proxy.address).await;
    for byte in bad {
        client.send(&[*byte]).await;
        tokio::task::yield_now().await;
    }
    assert!(client.rest().await.starts_with("HTTP/1.1 400 "));
    assert!(application.is_untouched());

    let good = b"GET /slow HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let mut client = connect(proxy.address).await;
    for byte in good {
        client.send(&[*byte]).await;
        tokio::task::yield_now().await;
    }
    let mut upstream = application.connection().await;
    assert!(upstream.until(b"\r\n\r\n").await.unwrap().starts_with(b"GET /slow HTTP/1.1\r\n"));
}

#[tokio::test]
async fn rejects_a_bad_request_after_answering_the_good_one_before() {
    let (proxy, mut application) = (proxy().await, scripted().await);
    proxy.route_to("a", application.address).await;
    let both =
        "GET /one HTTP/1.1\r\nHost: a.example\r\n\r\nGET /two HTTP/1.1\r\nHost: a.example\nX: y\r\n\r\n";
    let mut client = connect(proxy.address).await;
    client.send(both.as_bytes()).await;
    let mut upstream = application.connection().await;
    assert!(upstream.until(b"\r\n\r\n").await.unwrap().starts_with(b"GET /one "));
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none").await;
    let answers = client.rest().await;
    assert!(answers.starts_with("HTTP/1.1 200 OK\r\n"), "{answers}");
    assert!(answers.contains("oneHTTP/1.1 400 Bad Request\r\n"), "{answers}");
    assert!(application.is_untouched());
}

#[tokio::test]
async fn requests_in_one_go_are_answered_in_their_order() {
    let (proxy, mut application) = (proxy().await, scripted().await);
    proxy.route_to("a", application.address).await;
    let host = "Host: a.example\r\n";
    let all = format!(
        "POST /1 HTTP/1.1\r\n{host}Content-Length: 5\r\n\r\nGET /POST /2 HTTP/1.1\r\n{host}\
         Transfer-Encoding: chunked\r\n\r\n3\r\nGET\r\n0\r\n\r\nGET /3 HTTP/1.1\r\n{host}\r\n"
    );
    let mut client = connect(proxy.address).await;
    client.send(all.as_bytes()).await;
    let mut upstream = application.connection().await;
    for (number, body) in [(1, &b"GET /"[..]), (2, b"3\r\nGET\r\n0\r\n\r\n"), (3, b"")] {
        let head = String::from_utf8(upstream.until(b"\r\n\r\n").await.unwrap()).unwrap();
        assert!(head.contains(&format!(" /{number} ")), "{head}");
        assert_eq!(upstream.take(body.len()).await.unwrap(), body);
        upstream.send(format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{number}").as_bytes()).await;
        assert_eq!(client.answer().await.unwrap().text(), number.to_string());
    }
}

#[tokio::test]
async fn what_is_no_chunk_ends_the_connections_on_both_sides() {
    let (proxy, mut application) = (proxy().await, scripted().await);
    proxy.route_to("a", application.address).await;
    for chunks in [
        "x\r\n",
        "2\r\nabc\r\n",
        "2\nab\r\n",
        "2 \r\nab\r\n",
        "-2\r\nab\r\n",
        "2\r\nab0\r\n\r\n",
        "\r\n",
        "11111111111111111\r\n",
        "0\r\nX: y\n\r\n",
        "0\r\n X: y\r\n\r\n",
        "2;\u{0}\r\nab\r\n",
    ] {
        let mut client = connect(proxy.address).await;
        let head = "POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n";
        client.send(head.as_bytes()).await;
        let mut upstream = application.connection().await;
        upstream.until(b"\r\n\r\n").await.unwrap();
        upstream.until(b"2\r\nok\r\n").await.unwrap();
        client.send(chunks.as_bytes()).await;
        assert_eq!(
            upstream.rest().await.find("0\r\n\r\n"),
            None,
            "{chunks:?} looks whole to the application"
        );
        let answer = client.rest().await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{chunks:?}: {answer:?}");
    }
}

#[tokio::test]
async fn a_head_that_never_ends_is_not_waited_for() {
    let proxy = proxy_with(|settings| settings.limits.request_head = Duration::from_millis(200)).await;
    let mut silent = connect(proxy.address).await;
    assert_eq!(silent.rest().await, "");
    let mut slow = connect(proxy.address).await;
    let begun = std::time::Instant::now();
    let drip = async {
        loop {
            slow.send(b"G").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            if begun.elapsed() > Duration::from_millis(700) {
                break;
            }
        }
        slow.rest().await
    };
    assert_eq!(drip.await, "");
}

#[tokio::test]
async fn a_request_for_http2_stays_a_request() {
    let (proxy, mut application) = (proxy().await, scripted().await);
    proxy.route_to("a", application.address).await;
    let request = "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
                   HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n";
    let answer = tokio::spawn(async move { raw(proxy.address, request.as_bytes()).await });
    let mut upstream = application.connection().await;
    let head = String::from_utf8(upstream.until(b"\r\n\r\n").await.unwrap()).unwrap().to_lowercase();
    assert!(!head.contains("upgrade") && !head.contains("http2-settings"), "{head}");
    upstream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let answer = answer.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("connection: close"), "{answer}");
}
