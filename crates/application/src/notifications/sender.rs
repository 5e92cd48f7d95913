//! The sender: claims deliveries that are due, sends them, and records the results.

use std::{sync::Arc, time::Duration};

use launchway_domain::{
    notifications::{ClaimedDelivery, Delivery, DeliveryQueue, Next, RetrySchedule, SenderId},
    store::StoreError,
};
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep},
};

use tracing::Instrument as _;

use super::{Notifier, document::Document, notifier::DeliveryResult};
use crate::ServiceContext;

/// The shortest time between two claims that found nothing.
const CLAIM_PAUSE: Duration = Duration::from_millis(50);

/// The timeouts and the concurrency of a sender.
#[derive(Debug, Clone)]
pub struct SenderTimings {
    /// The delays after failed attempts.
    pub schedule: RetrySchedule,
    /// The duration of a claim: longer than any attempt takes.
    pub lease: Duration,
    /// The interval at which the queue is polled without a notification.
    pub look: Duration,
    /// The interval of searches for lost deliveries.
    pub rescue: Duration,
    /// The interval at which old deliveries are deleted.
    pub forget: Duration,
    /// The time that running attempts get at shutdown.
    pub grace: Duration,
    /// The number of concurrent deliveries.
    pub at_once: usize,
}

impl SenderTimings {
    /// Returns the timings for attempts that take at most `attempt`, and are retried by `schedule`.
    #[must_use]
    pub fn of(schedule: RetrySchedule, attempt: Duration) -> Self {
        Self {
            schedule,
            lease: attempt * 2 + Duration::from_secs(30),
            look: Duration::from_secs(1),
            rescue: Duration::from_secs(10),
            forget: Duration::from_secs(60 * 60),
            grace: Duration::from_secs(5),
            at_once: 32,
        }
    }
}

/// Sends deliveries concurrently.
pub struct Sender {
    queue: Arc<dyn DeliveryQueue>,
    notifier: Arc<Notifier>,
    identity: SenderId,
    timings: SenderTimings,
    context: ServiceContext,
}

impl Sender {
    /// Returns a sender that claims deliveries from `queue` as `identity`.
    pub fn new(
        queue: Arc<dyn DeliveryQueue>,
        notifier: Arc<Notifier>,
        identity: SenderId,
        timings: SenderTimings,
        context: ServiceContext,
    ) -> Self {
        Self { queue, notifier, identity, timings, context }
    }

    /// Sends until `stop` is true. Deliveries that do not finish in time are sent at the next start.
    pub async fn run(self: Arc<Self>, stop: watch::Receiver<bool>) {
        let mut told = stop.clone();
        let out_of_time = async {
            told.wait_for(|stop| *stop).await.map(drop).unwrap_or_default();
            sleep(self.timings.grace).await;
        };
        tokio::select! {
            () = Arc::clone(&self).run_deliveries(stop) => {}
            ((), ()) = async { tokio::join!(self.run_rescue(), self.run_retention()) } => {}
            () = out_of_time => {}
        }
    }

    async fn run_deliveries(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let (mut wake, mut attempts) = (self.context.wake.listen_every(CLAIM_PAUSE), JoinSet::new());
        while !is_stopping(&stop) {
            while attempts.try_join_next().is_some() {}
            let claimed = self.claim(self.timings.at_once - attempts.len()).await;
            let is_idle = claimed.is_empty();
            for claimed in claimed {
                let sender = Arc::clone(&self);
                attempts.spawn(async move { sender.attempt(claimed).await });
            }
            if !is_idle && attempts.len() < self.timings.at_once {
                continue;
            }
            tokio::select! {
                // A slot is free, and a delivery may be waiting for it.
                Some(_) = attempts.join_next() => {}
                () = wake.wait_timeout(self.timings.look) => {}
                // Stopped, or the sender of the signal was dropped; the loop checks both.
                _ = stop.changed() => {}
            }
        }
        while attempts.join_next().await.is_some() {}
    }

    async fn claim(&self, most: usize) -> Vec<ClaimedDelivery> {
        if most == 0 {
            return Vec::new();
        }
        let now = self.context.clock.now();
        match self.queue.claim(self.identity, most, now, now + self.timings.lease).await {
            Ok(claimed) => claimed,
            Err(error) => {
                tracing::warn!(%error, "deliveries could not be claimed");
                Vec::new()
            }
        }
    }

    async fn attempt(&self, claimed: ClaimedDelivery) {
        let (channel, attempt) = (claimed.channel.kind().as_str(), claimed.claim.attempt);
        let span = tracing::info_span!("attempt", delivery.id = %claimed.claim.delivery, channel, attempt);
        self.deliver(claimed).instrument(span).await;
    }

    async fn deliver(&self, claimed: ClaimedDelivery) {
        let words = match self.words(&claimed).await {
            Ok(words) => words,
            Err(error) => {
                // The claim expires, and then the delivery is rescued.
                tracing::warn!(%error, "message could not be composed");
                return;
            }
        };
        let brought = self.notifier.deliver(&claimed.event, &words, &claimed.channel).await;
        let random = self.context.entropy.bits_256();
        let random = u32::from_le_bytes([random[0], random[1], random[2], random[3]]);
        let failures = claimed.failures.saturating_add(1);
        let next = self.timings.schedule.next(brought.verdict, failures, random, self.context.clock.now());
        match next {
            Next::Done => {}
            Next::Again(at) => tracing::debug!(%at, error = brought.error, "delivery attempt failed"),
            Next::GiveUp => tracing::warn!(error = brought.error, "delivery was given up"),
            Next::Disable => tracing::warn!(error = brought.error, "channel was disabled"),
        }
        self.record(&claimed, &brought, next).await;
    }

    /// Returns the message that every attempt sends: the one composed for the first.
    async fn words(&self, claimed: &ClaimedDelivery) -> Result<Document, StoreError> {
        if let Some(kept) = &claimed.body {
            return Ok(Document::kept(kept.clone()));
        }
        let composed = self.notifier.compose(&claimed.event).await?.as_str().to_owned();
        Ok(Document::kept(self.queue.keep_body(claimed.event.id, composed).await?))
    }

    /// Records an attempt, with retries: a delivery whose result is not recorded is sent again.
    async fn record(&self, claimed: &ClaimedDelivery, brought: &DeliveryResult, next: Next) {
        let attempt = brought.as_attempt(claimed.claim.attempt);
        let give_up = Instant::now() + self.timings.lease / 2;
        loop {
            match self.queue.record(claimed.claim, attempt.clone(), next).await {
                Ok(()) => return,
                Err(StoreError::Unavailable(_) | StoreError::StorageFull(_)) if Instant::now() < give_up => {
                    sleep(Duration::from_secs(1)).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "delivery attempt could not be recorded");
                    return;
                }
            }
        }
    }

    /// Takes over the deliveries of lost senders: at once those of an earlier run of this one.
    async fn run_rescue(&self) {
        loop {
            match self.queue.rescue(self.identity, self.context.clock.now()).await {
                Ok(0) => {}
                Ok(deliveries) => {
                    tracing::info!(deliveries, "deliveries taken from a lost sender");
                    self.context.wake.notify();
                }
                Err(error) => tracing::warn!(%error, "lost deliveries could not be read"),
            }
            sleep(self.timings.rescue).await;
        }
    }

    async fn run_retention(&self) {
        loop {
            let now = self.context.clock.now();
            let (delivered, dead) = (now - Delivery::DELIVERED_KEPT, now - Delivery::DEAD_KEPT);
            match self.queue.forget(delivered, dead, now).await {
                Ok(0) => {}
                Ok(deliveries) => {
                    tracing::info!(deliveries, "old deliveries removed");
                    continue;
                }
                Err(error) => tracing::warn!(%error, "old deliveries could not be removed"),
            }
            sleep(self.timings.forget).await;
        }
    }
}

/// Returns whether to stop. A dropped sender of the signal counts as a request to stop.
fn is_stopping(stop: &watch::Receiver<bool>) -> bool {
    *stop.borrow() || stop.has_changed().is_err()
}
