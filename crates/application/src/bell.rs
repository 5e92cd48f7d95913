//! A signal that wakes tasks which wait for work.

use std::time::Duration;

use tokio::{sync::watch, time::timeout};

/// Notifies waiting tasks of new work, so that they need not wait for the next poll.
#[derive(Clone)]
pub struct Bell(watch::Sender<u64>);

impl Default for Bell {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Bell {
    /// Wakes every listener.
    pub fn ring(&self) {
        self.0.send_modify(|rung| *rung = rung.wrapping_add(1));
    }

    /// Subscribes from now on: a notification between two waits is not missed.
    #[must_use]
    pub fn listen(&self) -> Listener {
        Listener(self.0.subscribe())
    }
}

/// A subscription to notifications.
pub struct Listener(watch::Receiver<u64>);

impl Listener {
    /// Returns at the next notification, at once if there was one since the last wait, or after `patience`.
    pub async fn wait(&mut self, patience: Duration) {
        if let Ok(Err(_nobody_rings_any_more)) = timeout(patience, self.0.changed()).await {
            tokio::time::sleep(patience).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_ring_between_two_waits_is_not_missed() {
        let bell = Bell::default();
        let mut listener = bell.listen();
        bell.ring();
        let start = tokio::time::Instant::now();
        listener.wait(Duration::from_secs(60)).await;
        assert!(start.elapsed().is_zero());
        listener.wait(Duration::from_secs(60)).await;
        assert_eq!(start.elapsed(), Duration::from_secs(60));
    }
}
