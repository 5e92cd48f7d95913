//! Detects stalled transfers.

use std::{
    future::Future as _,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// A timeout that runs only while a task waits.
///
/// It is polled at nearly every read, so the timer is not moved with every byte: when it fires too
/// early, it is set again.
#[derive(Debug)]
pub(crate) struct Stall {
    limit: Duration,
    deadline: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Stall {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, deadline: None, timer: None }
    }

    /// Restarts the timeout after progress.
    pub(crate) fn reset(&mut self) {
        self.deadline = None;
    }

    /// Ready when a task has waited for the whole limit.
    pub(crate) fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.limit);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        while timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}
