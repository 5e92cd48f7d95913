//! The body of an application's response.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};

use super::{Link, Upstream};
use crate::{body::BoxError, stall::Stall};

/// Reads the body, and returns the connection to the pool at its end.
#[derive(Debug)]
pub(crate) struct Answer {
    body: Incoming,
    stall: Stall,
    /// `None` after the last byte.
    source: Option<(Arc<Upstream>, Box<Link>)>,
}

impl Answer {
    pub(crate) fn new(body: Incoming, upstream: Arc<Upstream>, link: Box<Link>, limit: Duration) -> Self {
        let mut answer = Self { body, stall: Stall::new(limit), source: Some((upstream, link)) };
        answer.release_at_end();
        answer
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut frame = Pin::new(&mut self.body).poll_frame(cx);
        if frame.is_pending()
            && let Some((_, link)) = &mut self.source
        {
            link.poll_move(cx);
            frame = Pin::new(&mut self.body).poll_frame(cx);
        }
        match frame {
            Poll::Ready(Some(Ok(frame))) => {
                self.stall.reset();
                self.release_at_end();
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.source = None;
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(None) => {
                self.release();
                Poll::Ready(None)
            }
            Poll::Pending => match self.stall.poll_over(cx) {
                Poll::Ready(()) => {
                    self.source = None;
                    Poll::Ready(Some(Err(io::Error::from(io::ErrorKind::TimedOut).into())))
                }
                Poll::Pending => Poll::Pending,
            },
        }
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }

    fn release_at_end(&mut self) {
        if self.body.is_end_stream() {
            self.release();
        }
    }

    fn release(&mut self) {
        if let Some((upstream, link)) = self.source.take()
            && link.is_open()
        {
            upstream.put_idle(link);
        }
    }
}
