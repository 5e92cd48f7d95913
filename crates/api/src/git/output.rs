//! The body of a response that is written while it is sent.

use std::convert::Infallible;

use actix_web::web::Bytes;
use futures_util::{Stream, stream};
use launchway_domain::deployments::Output;
use tokio::sync::mpsc::{Receiver, Sender, channel as bounded};

/// The number of pieces that wait for the client.
const PIECES: usize = 16;

/// The end that writes.
#[derive(Debug, Clone)]
pub(super) struct ResponseOutput(Sender<Bytes>);

/// Returns the two ends of a body.
pub(super) fn channel() -> (ResponseOutput, impl Stream<Item = Result<Bytes, Infallible>> + 'static) {
    let (sender, receiver) = bounded(PIECES);
    let stream = stream::unfold(receiver, |mut receiver: Receiver<Bytes>| async move {
        let piece = receiver.recv().await?;
        Some((Ok(piece), receiver))
    });
    (ResponseOutput(sender), stream)
}

impl ResponseOutput {
    /// Sends a piece, and returns whether the client is still there.
    pub(super) async fn send(&self, piece: Vec<u8>) -> bool {
        piece.is_empty() || self.0.send(piece.into()).await.is_ok()
    }

    /// Waits until the client has gone.
    pub(super) async fn closed(&self) {
        self.0.closed().await;
    }
}

#[async_trait::async_trait]
impl Output for ResponseOutput {
    async fn write(&self, piece: &[u8]) {
        // A client that has gone needs nothing more.
        let _is_there = self.send(piece.to_vec()).await;
    }
}
