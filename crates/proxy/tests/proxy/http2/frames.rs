//! A client that writes the frames of HTTP/2 itself (RFC 9113, 4 and 6).

use std::io;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::client::TlsStream;

use super::Shop;
use crate::client::TIMEOUT;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

/// The pseudo headers of a plain request.
pub(super) const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "shop.example"), (":path", "/")];

/// A frame that the proxy sent.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) kind: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

impl Received {
    /// Returns the error code of a frame that ends a stream or the connection.
    pub(super) fn code(&self) -> Option<u32> {
        let start = match self.kind {
            RST_STREAM => 0,
            GOAWAY => 4,
            _ => return None,
        };
        Some(u32::from_be_bytes(self.payload[start..start + 4].try_into().unwrap()))
    }
}

/// A connection whose settings were exchanged.
pub(super) struct Frames(TlsStream<TcpStream>);

impl Frames {
    pub(super) async fn connect(shop: &Shop) -> Self {
        let address = shop.proxy.tls_address.unwrap();
        let mut stream = shop.client.stream(address, "shop.example").await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let mut frames = Self(stream);
        frames.send(SETTINGS, 0, 0, &[]).await.unwrap();
        frames
    }

    pub(super) async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        self.0.write_all(&frame(kind, flags, stream, payload)).await?;
        self.0.flush().await
    }

    pub(super) async fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await?;
        self.0.flush().await
    }

    /// Returns the next frame; `None` at the end of the connection.
    pub(super) async fn next(&mut self) -> Option<Received> {
        let mut head = [0; 9];
        timeout(TIMEOUT, self.0.read_exact(&mut head)).await.expect("a frame in time").ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        timeout(TIMEOUT, self.0.read_exact(&mut payload)).await.expect("a frame in time").ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
        Some(Received { kind: head[3], stream, payload })
    }

    /// Returns the next frame of one of these kinds; `None` at the end of the connection.
    pub(super) async fn next_of(&mut self, kinds: &[u8]) -> Option<Received> {
        loop {
            let received = self.next().await?;
            if kinds.contains(&received.kind) {
                return Some(received);
            }
        }
    }
}

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Encodes headers as literals that are not indexed (RFC 7541, 6.2.2).
pub(super) fn block(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in headers {
        bytes.push(0);
        for text in [name, value] {
            let mut rest = text.len();
            if rest < 127 {
                bytes.push(u8::try_from(rest).unwrap());
            } else {
                bytes.push(127);
                rest -= 127;
                while rest >= 128 {
                    bytes.push(u8::try_from(rest % 128 + 128).unwrap());
                    rest /= 128;
                }
                bytes.push(u8::try_from(rest).unwrap());
            }
            bytes.extend(text.as_bytes());
        }
    }
    bytes
}
