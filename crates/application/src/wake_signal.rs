//! A signal that wakes tasks which wait for work.

use std::time::Duration;

use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

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
        self.listen_every(Duration::ZERO)
    }

    /// Subscribes from now on. Notifications end waits at most once every `pause`, so that many of them in a short time
    /// cause little work.
    #[must_use]
    pub fn listen_every(&self, pause: Duration) -> WakeListener {
        WakeListener { notified: self.0.subscribe(), pause, next: Instant::now() }
    }
}

/// A subscription to notifications.
pub struct WakeListener {
    notified: watch::Receiver<u64>,
    pause: Duration,
    /// The time before which no notification ends a wait.
    next: Instant,
}

impl WakeListener {
    /// Returns at the next notification, at once if there was one since the last wait, or after `max_wait`.
    pub async fn wait_timeout(&mut self, max_wait: Duration) {
        let pause = self.next.saturating_duration_since(Instant::now()).min(max_wait);
        // Before the notification is taken: a wait that is dropped must not lose it.
        sleep(pause).await;
        match timeout(max_wait - pause, self.notified.changed()).await {
            Ok(Ok(())) => self.next = Instant::now() + self.pause,
            Ok(Err(_nobody_rings_any_more)) => sleep(max_wait).await,
            Err(_elapsed) => {}
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

    #[tokio::test(start_paused = true)]
    async fn many_rings_end_one_wait() {
        let wake = WakeSignal::default();
        let mut listener = wake.listen_every(Duration::from_millis(50));
        let start = tokio::time::Instant::now();
        for ends in [0, 50, 100] {
            wake.notify();
            listener.wait_timeout(Duration::from_secs(60)).await;
            assert_eq!(start.elapsed(), Duration::from_millis(ends));
        }
        wake.notify();
        assert!(
            timeout(Duration::from_millis(20), listener.wait_timeout(Duration::from_secs(60))).await.is_err()
        );
        listener.wait_timeout(Duration::from_secs(60)).await;
        assert_eq!(start.elapsed(), Duration::from_millis(150), "the dropped wait lost a notification");
        listener.wait_timeout(Duration::from_millis(10)).await;
        assert_eq!(start.elapsed(), Duration::from_millis(160), "a short wait ends in time");
    }
}
