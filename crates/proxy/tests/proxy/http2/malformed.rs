//! Requests that RFC 9113 calls malformed, and frames that break the protocol. None reaches an application.

use super::{
    Shop,
    frames::{
        CONTINUATION, DATA, END_HEADERS, END_STREAM, Frames, GET, GOAWAY, HEADERS, PING, RST_STREAM,
        Received, SETTINGS, WINDOW_UPDATE, block, frame,
    },
};
use crate::application::{Scripted, scripted};

const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE_ERROR: u32 = 6;
const COMPRESSION_ERROR: u32 = 9;

async fn shop() -> (Shop, Scripted) {
    let (shop, application) = (Shop::open(|_| {}).await, scripted().await);
    shop.proxy.route_to("shop", application.address).await;
    (shop, application)
}

/// Headers of a request with some replaced or added.
fn with(changes: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    let mut headers: Vec<_> =
        GET.into_iter().filter(|(name, _)| changes.iter().all(|(other, _)| other != name)).collect();
    let is_pseudo = |(name, _): &&(&str, &str)| name.starts_with(':');
    headers.extend(changes.iter().filter(is_pseudo));
    headers.extend(changes.iter().filter(|change| !is_pseudo(change)));
    headers
}

fn without(name: &str) -> Vec<(&'static str, &'static str)> {
    GET.into_iter().filter(|(other, _)| *other != name).collect()
}

#[tokio::test]
async fn malformed_requests_are_reset() {
    let (shop, mut application) = shop().await;
    let mut late = with(&[("x-early", "1")]);
    late.swap(0, 4);
    let twice = [&GET[..], &[(":path", "/again")]].concat();
    for headers in [
        with(&[("connection", "close")]),
        with(&[("transfer-encoding", "chunked")]),
        with(&[("keep-alive", "timeout=5")]),
        with(&[("proxy-connection", "close")]),
        with(&[("upgrade", "websocket")]),
        with(&[("te", "gzip")]),
        with(&[("X-Upper", "1")]),
        with(&[("x-line", "a\r\nb: c")]),
        with(&[("x-nul", "a\0b")]),
        with(&[("x y", "1")]),
        with(&[(":status", "200")]),
        with(&[(":unknown", "1")]),
        with(&[(":path", "")]),
        without(":method"),
        without(":scheme"),
        without(":path"),
        late,
        twice,
    ] {
        let mut frames = Frames::connect(&shop).await;
        // It may be gone before everything is sent.
        let _sent = frames.send(HEADERS, END_HEADERS | END_STREAM, 1, &block(&headers)).await;
        let end = frames.next_of(&[RST_STREAM, GOAWAY, HEADERS]).await;
        let code = end.as_ref().and_then(Received::code);
        assert!(end.is_none() || code == Some(PROTOCOL_ERROR), "{headers:?}: {end:?}");
    }
    assert!(application.is_untouched());
}

#[tokio::test]
async fn a_length_that_differs_from_the_data_is_reset() {
    let (shop, mut application) = shop().await;
    for (length, data) in [("5", &b"1234"[..]), ("3", b"1234"), ("0", b"1")] {
        let headers = with(&[(":method", "POST"), ("content-length", length)]);
        let mut frames = Frames::connect(&shop).await;
        frames.send(HEADERS, END_HEADERS, 1, &block(&headers)).await.unwrap();
        frames.send(DATA, END_STREAM, 1, data).await.unwrap();
        let end = frames.next_of(&[RST_STREAM, GOAWAY, HEADERS]).await.unwrap();
        assert_eq!(end.code(), Some(PROTOCOL_ERROR), "{length} {data:?} {end:?}");
    }
    // The head may have been forwarded before the data came; a whole request never is.
    while !application.is_untouched() {}
}

#[tokio::test]
async fn frames_that_break_the_protocol_end_the_connection() {
    let (shop, mut application) = shop().await;
    let get = block(&GET);
    let begun = frame(HEADERS, END_HEADERS, 1, &get);
    let unfinished = frame(HEADERS, 0, 1, &get);
    for (name, bytes, code) in [
        ("data before headers", frame(DATA, 0, 1, b"x"), PROTOCOL_ERROR),
        ("data for the connection", frame(DATA, 0, 0, b"x"), PROTOCOL_ERROR),
        ("an even stream", frame(HEADERS, END_HEADERS | END_STREAM, 2, &get), PROTOCOL_ERROR),
        ("headers for the connection", frame(HEADERS, END_HEADERS | END_STREAM, 0, &get), PROTOCOL_ERROR),
        ("a continuation of nothing", frame(CONTINUATION, END_HEADERS, 1, &get), PROTOCOL_ERROR),
        ("a ping within headers", [unfinished.clone(), frame(PING, 0, 0, &[0; 8])].concat(), PROTOCOL_ERROR),
        (
            "a continuation of another stream",
            [unfinished, frame(CONTINUATION, END_HEADERS, 3, &get)].concat(),
            PROTOCOL_ERROR,
        ),
        ("a short ping", frame(PING, 0, 0, &[0; 7]), FRAME_SIZE_ERROR),
        ("settings of half a length", frame(SETTINGS, 0, 0, &[0; 5]), FRAME_SIZE_ERROR),
        ("settings of a stream", frame(SETTINGS, 0, 1, &[]), PROTOCOL_ERROR),
        ("an acknowledgement with settings", frame(SETTINGS, 1, 0, &[0; 6]), FRAME_SIZE_ERROR),
        ("a window of nothing", frame(WINDOW_UPDATE, 0, 0, &[0; 4]), PROTOCOL_ERROR),
        (
            "a window beyond its limit",
            frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]).repeat(2),
            FLOW_CONTROL_ERROR,
        ),
        ("a frame that is too long", frame(DATA, 0, 1, &[0; 16_385]), FRAME_SIZE_ERROR),
        (
            "headers that cannot be decoded",
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0xff; 9]),
            COMPRESSION_ERROR,
        ),
        ("a reset of a stream that never was", frame(RST_STREAM, 0, 1, &[0; 4]), PROTOCOL_ERROR),
        (
            "data after the end of a stream",
            [begun, frame(DATA, END_STREAM, 1, b""), frame(DATA, 0, 1, b"x")].concat(),
            STREAM_CLOSED,
        ),
    ] {
        let mut frames = Frames::connect(&shop).await;
        let _sent = frames.send_raw(&bytes).await;
        let end = frames.next_of(&[RST_STREAM, GOAWAY]).await;
        let found = end.as_ref().and_then(Received::code);
        // The library has the general code for some errors that have one of their own.
        assert!(end.is_none() || [Some(code), Some(PROTOCOL_ERROR)].contains(&found), "{name}: {end:?}");
    }
    // Requests before the fault may have come through.
    let _is_untouched = application.is_untouched();
    let mut frames = Frames::connect(&shop).await;
    frames.send(PING, 0, 0, b"12345678").await.unwrap();
    assert_eq!(frames.next_of(&[PING]).await.unwrap().payload, b"12345678");
}
