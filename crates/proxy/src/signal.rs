//! Something that is so or not, and for which one can wait.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Down at first.
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

    /// Resolves when it is so.
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
