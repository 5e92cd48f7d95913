//! A flag that tasks can wait for.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// A flag, initially false.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    is_up: AtomicBool,
    moved: Notify,
}

impl Signal {
    pub(crate) fn set(&self, is_up: bool) {
        self.is_up.store(is_up, Ordering::Release);
        self.moved.notify_waiters();
    }

    /// Resolves when the flag has this value.
    pub(crate) async fn until(&self, is_up: bool) {
        loop {
            let moved = self.moved.notified();
            if self.is_up.load(Ordering::Acquire) == is_up {
                return;
            }
            moved.await;
        }
    }
}
