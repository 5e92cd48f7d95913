//! One connection to an application.

use std::{
    future::{Future as _, poll_fn},
    io,
    net::SocketAddr,
    pin::{Pin, pin},
    task::{Context, Poll},
    time::Instant,
};

use http::{Request, Response};
use hyper::{
    body::Incoming,
    client::conn::{
        TrySendError,
        http1::{self, Connection, SendRequest},
    },
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, time::timeout};

use super::Outgoing;
use crate::{Limits, stall::Stall};

/// The largest head of a response, and the size of the read buffer.
const MOST_BUFFERED: usize = 256 * 1_024;

/// A connection together with its driver.
#[derive(Debug)]
pub(crate) struct Link {
    sender: SendRequest<Outgoing>,
    /// `None` once the connection has ended or is driven by a task of its own.
    connection: Option<Connection<TokioIo<TcpStream>, Outgoing>>,
    pub(crate) idle_since: Instant,
    /// Runs while the application has not answered. A timer for each request would cost more.
    patience: Stall,
}

/// The reason why a request has no response.
#[derive(Debug)]
pub(crate) enum SendError {
    /// Nothing of the request was sent; it is returned.
    Unsent(Box<Request<Outgoing>>),
    /// The request was sent, at least in part, and the connection ended.
    Unanswered,
    /// There was no answer in time.
    TooSlow,
    /// The response is malformed.
    Malformed(hyper::Error),
}

impl Link {
    /// Connects. Boxed once, because the link moves with every request that it serves.
    pub(crate) async fn open(address: SocketAddr, limits: &Limits) -> io::Result<Box<Self>> {
        let stream = timeout(limits.connect, TcpStream::connect(address)).await??;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(MOST_BUFFERED)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        let patience = Stall::new(limits.response_head);
        Ok(Box::new(Self { sender, connection: Some(connection), idle_since: Instant::now(), patience }))
    }

    /// Returns whether an idle connection can take a request: the application may have closed it meanwhile.
    pub(crate) async fn is_usable(&mut self) -> bool {
        poll_fn(|cx| {
            self.poll_move(cx);
            Poll::Ready(self.connection.is_some() && self.sender.is_ready())
        })
        .await
    }

    /// Sends a request and waits for the head of its response, but no longer than the limit while `moved`, the number of
    /// bytes of the body, stays the same.
    pub(crate) async fn send(
        &mut self,
        request: Request<Outgoing>,
        moved: impl Fn() -> u64,
    ) -> Result<Response<Incoming>, SendError> {
        let mut answer = pin!(self.sender.try_send_request(request));
        let (connection, patience) = (&mut self.connection, &mut self.patience);
        patience.reset();
        let mut moved_before = moved();
        poll_fn(|cx| {
            poll_move(connection, cx);
            if let Poll::Ready(answer) = answer.as_mut().poll(cx) {
                return Poll::Ready(answer.map_err(SendError::from));
            }
            while patience.poll_over(cx).is_ready() {
                let moved = moved();
                if moved == moved_before {
                    return Poll::Ready(Err(SendError::TooSlow));
                }
                moved_before = moved;
                patience.reset();
            }
            Poll::Pending
        })
        .await
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

impl From<TrySendError<Request<Outgoing>>> for SendError {
    fn from(mut error: TrySendError<Request<Outgoing>>) -> Self {
        match error.take_message() {
            Some(request) => Self::Unsent(Box::new(request)),
            None => match error.into_error() {
                error if error.is_parse() => Self::Malformed(error),
                _ => Self::Unanswered,
            },
        }
    }
}

/// Drives the connection. Its errors are returned to the reader of the response.
fn poll_move(connection: &mut Option<Connection<TokioIo<TcpStream>, Outgoing>>, cx: &mut Context<'_>) {
    let ended = connection.as_mut().is_some_and(|connection| Pin::new(connection).poll(cx).is_ready());
    if ended {
        *connection = None;
    }
}
