//! A signal that wakes tasks which wait for work.

use std::time::Duration;

use tokio::{sync::watch, time::timeout};

/// Notifies waiting tasks of new work, so that they need not wait for the next poll.
#[derive(Clone)]
pub struct WakeSignal(watch::Sender<u64>);

impl Default for WakeSignal {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl WakeSignal {
    /// Wakes every listener.
    pub fn notify(&self) {
        self.0.send_modify(|rung| *rung = rung.wrapping_add(1));
    }

    /// Subscribes from now on: a notification between two waits is not missed.
    #[must_use]
    pub fn listen(&self) -> WakeListener {
        WakeListener(self.0.subscribe())
    }
}

/// A subscription to notifications.
pub struct WakeListener(watch::Receiver<u64>);

impl WakeListener {
    /// Returns at the next notification, at once if there was one since the last wait, or after `max_wait`.
    pub async fn wait_timeout(&mut self, max_wait: Duration) {
        if let Ok(Err(_nobody_rings_any_more)) = timeout(max_wait, self.0.changed()).await {
            tokio::time::sleep(max_wait).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_ring_between_two_waits_is_not_missed() {
        let wake = WakeSignal::default();
        let mut listener = wake.listen();
        wake.notify();
        let start = tokio::time::Instant::now();
        listener.wait_timeout(Duration::from_secs(60)).await;
        assert!(start.elapsed().is_zero());
        listener.wait_timeout(Duration::from_secs(60)).await;
        assert_eq!(start.elapsed(), Duration::from_secs(60));
    }
}
