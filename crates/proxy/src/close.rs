//! Graceful shutdown: first the proxy asks clients to disconnect, then it closes idle connections, then all
//! of them.

use std::{
    future::Future as _,
    pin::Pin,
    sync::atomic::{AtomicU8, Ordering},
    task::{Context, Poll},
};

use tokio::sync::{Notify, futures::Notified};

/// The phase of the shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Phase {
    /// The proxy serves requests.
    Serving,
    /// Each response is the last one on its connection.
    Leaving,
    /// Connections without a request are closed.
    ClosingIdle,
    /// Every connection is closed.
    Cutting,
}

/// Publishes the phase of the shutdown to every connection.
#[derive(Debug, Default)]
pub(crate) struct Closing {
    phase: AtomicU8,
    moved: Notify,
}

impl Closing {
    pub(crate) fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Acquire) {
            0 => Phase::Serving,
            1 => Phase::Leaving,
            2 => Phase::ClosingIdle,
            _ => Phase::Cutting,
        }
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.fetch_max(phase as u8, Ordering::AcqRel);
        self.moved.notify_waiters();
    }

    /// Resolves when the phase is reached.
    pub(crate) async fn reached(&self, phase: Phase) {
        loop {
            let moved = self.moved.notified();
            if self.phase() >= phase {
                return;
            }
            moved.await;
        }
    }

    pub(crate) fn watch(&self) -> Watch<'_> {
        Watch { closing: self, moved: Box::pin(self.moved.notified()), seen: None }
    }
}

/// One connection's view of the phase. Reading it costs one atomic load, because every poll does.
pub(crate) struct Watch<'a> {
    closing: &'a Closing,
    moved: Pin<Box<Notified<'a>>>,
    seen: Option<Phase>,
}

impl Watch<'_> {
    /// Returns the current phase, and wakes the task of `cx` when it changes. The task must always be the
    /// same one.
    pub(crate) fn poll_phase(&mut self, cx: &mut Context<'_>) -> Phase {
        while self.seen != Some(self.closing.phase()) {
            self.seen = Some(self.closing.phase());
            while let Poll::Ready(()) = self.moved.as_mut().poll(cx) {
                self.moved.set(self.closing.moved.notified());
            }
        }
        self.closing.phase()
    }
}
