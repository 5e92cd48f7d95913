//! One connection to an application.

use std::{
    future::{Future as _, poll_fn},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, Connection, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};

use super::Outgoing;

/// The largest head of a response, and the size of the read buffer.
const MOST_BUFFERED: usize = 256 * 1_024;

/// A connection together with its driver.
#[derive(Debug)]
pub(crate) struct Link {
    sender: SendRequest<Outgoing>,
    /// `None` once the connection has ended or is driven by a task of its own.
    connection: Option<Connection<TokioIo<TcpStream>, Outgoing>>,
    pub(crate) idle_since: Instant,
}

/// The reason why a request has no response.
#[derive(Debug)]
pub(crate) enum SendError {
    /// Nothing of the request was sent; it is returned.
    Unsent(Box<Request<Outgoing>>),
    /// The request was sent, at least in part, and the connection ended.
    Unanswered,
    /// The response is malformed.
    Malformed(hyper::Error),
}

impl Link {
    /// Connects. Boxed once, because the link moves with every request that it serves.
    pub(crate) async fn open(address: SocketAddr, limit: Duration) -> io::Result<Box<Self>> {
        let stream = timeout(limit, TcpStream::connect(address)).await??;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MOST_BUFFERED)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        Ok(Box::new(Self { sender, connection: Some(connection), idle_since: Instant::now() }))
    }

    /// Returns whether an idle connection can take a request: the application may have closed it meanwhile.
    pub(crate) async fn is_usable(&mut self) -> bool {
        poll_fn(|cx| {
            self.poll_move(cx);
            Poll::Ready(self.connection.is_some() && self.sender.is_ready())
        })
        .await
    }

    /// Sends a request and waits for the head of its response.
    pub(crate) async fn send(&mut self, request: Request<Outgoing>) -> Result<Response<Incoming>, SendError> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let connection = &mut self.connection;
        let answer = poll_fn(|cx| {
            poll_move(connection, cx);
            answer.as_mut().poll(cx)
        });
        answer.await.map_err(|mut error| match error.take_message() {
            Some(request) => SendError::Unsent(Box::new(request)),
            None => match error.into_error() {
                error if error.is_parse() => SendError::Malformed(error),
                _ => SendError::Unanswered,
            },
        })
    }

    /// Drives the connection in a task of its own from now on: for an upgrade, or while both bodies are in
    /// transfer, when one must not wait for the other.
    pub(crate) fn detach(&mut self) {
        if let Some(connection) = self.connection.take() {
            tokio::spawn(connection.with_upgrades());
        }
    }

    pub(crate) fn poll_move(&mut self, cx: &mut Context<'_>) {
        poll_move(&mut self.connection, cx);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.connection.is_some()
    }
}

/// Drives the connection. Its errors are returned to the reader of the response.
fn poll_move(connection: &mut Option<Connection<TokioIo<TcpStream>, Outgoing>>, cx: &mut Context<'_>) {
    let ended = connection.as_mut().is_some_and(|connection| Pin::new(connection).poll(cx).is_ready());
    if ended {
        *connection = None;
    }
}
