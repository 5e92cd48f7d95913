//! The age of the collected output of each application.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use launchway_domain::ids::ApplicationId;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep_until, timeout},
};

/// The age from which a reader triggers a new collection.
const STALE: Duration = Duration::from_secs(2);
/// The longest that a reader waits for it.
const TIMEOUT: Duration = Duration::from_millis(300);
/// The longest silence of a container that is still polled in every round.
const SHORT_SILENCE: Duration = Duration::from_secs(10);
/// A container that has been silent for a time is polled again after this fraction of it.
const PART: u32 = 5;
/// The longest interval between two polls.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60);

/// The age of the collected output of each running application, shared by the collector and the readers:
/// silent applications are polled less often, and one that is being read at once.
///
/// Following each log through the engine would take an inotify instance each, of which a user has 128 by
/// default.
#[derive(Debug, Clone, Default)]
pub struct LogFreshness(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    applications: Mutex<HashMap<ApplicationId, Collected>>,
    /// True if an application was requested since the collector last looked for requests.
    has_requests: AtomicBool,
    requested: Notify,
    answered: watch::Sender<()>,
}

/// The last collection of one application's output.
#[derive(Debug)]
struct Collected {
    at: Instant,
    last_output: Instant,
    is_requested: bool,
}

impl LogFreshness {
    /// Returns when the output of `application` was collected recently, or after a short wait. The output
    /// of one that does not run is complete.
    pub(crate) async fn refresh(&self, application: ApplicationId) {
        let mut answered = self.0.answered.subscribe();
        match self.applications().get_mut(&application) {
            Some(collected) if collected.at.elapsed() >= STALE => collected.is_requested = true,
            _ => return,
        }
        self.0.has_requests.store(true, Ordering::Release);
        self.0.requested.notify_one();
        // After a timeout the reader shows the lines that are stored.
        let _ = timeout(TIMEOUT, answered.changed()).await;
    }

    /// Waits for a request, or until `next`.
    pub(crate) async fn wait_for_request(&self, next: Instant) {
        tokio::select! {
            () = self.0.requested.notified() => {}
            () = sleep_until(next) => {}
        }
    }

    /// Ends the waits of the readers.
    pub(crate) fn answer(&self) {
        self.0.answered.send_replace(());
    }

    /// Returns whether an application was requested since the last call.
    pub(crate) fn take_requests(&self) -> bool {
        self.0.has_requests.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn is_requested(&self, application: ApplicationId) -> bool {
        self.applications().get(&application).is_some_and(|collected| collected.is_requested)
    }

    /// Returns whether the output of `application` is due in this round.
    pub(crate) fn is_due(&self, application: ApplicationId) -> bool {
        self.applications().get(&application).is_none_or(|Collected { at, last_output, is_requested }| {
            let silence = *at - *last_output;
            let interval = (silence / PART).min(LONGEST_INTERVAL);
            *is_requested || silence < SHORT_SILENCE || at.elapsed() >= interval
        })
    }

    /// Lets readers request the output of `application`, which nothing else collects here.
    pub(crate) fn watch(&self, application: ApplicationId) {
        let now = Instant::now();
        let unknown = || Collected { at: now, last_output: now, is_requested: false };
        self.applications().entry(application).or_insert_with(unknown);
    }

    /// Records a collection of the output of `application`, and whether there was any.
    pub(crate) fn record(&self, application: ApplicationId, has_output: bool) {
        let now = Instant::now();
        let mut applications = self.applications();
        let last_output = match applications.get(&application) {
            Some(collected) if !has_output => collected.last_output,
            _ => now,
        };
        applications.insert(application, Collected { at: now, last_output, is_requested: false });
    }

    /// Drops all applications but these.
    pub(crate) fn retain(&self, applications: &HashSet<ApplicationId>) {
        self.applications().retain(|id, _| applications.contains(id));
    }

    fn applications(&self) -> MutexGuard<'_, HashMap<ApplicationId, Collected>> {
        self.0.applications.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, sleep};
    use uuid::Uuid;

    use super::*;

    fn an_application() -> ApplicationId {
        Uuid::from_u128(1).into()
    }

    /// Collects in rounds of two seconds from a silent container; returns the number of polls.
    async fn asked_within(freshness: &LogFreshness, span: Duration) -> usize {
        let (start, mut asked) = (Instant::now(), 0);
        while start.elapsed() < span {
            if freshness.is_due(an_application()) {
                freshness.record(an_application(), false);
                asked += 1;
            }
            sleep(Duration::from_secs(2)).await;
        }
        asked
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_application_is_asked_less_and_less() {
        let freshness = LogFreshness::default();
        freshness.record(an_application(), true);
        assert_eq!(asked_within(&freshness, Duration::from_secs(10)).await, 5);
        asked_within(&freshness, Duration::from_secs(600)).await;
        assert_eq!(asked_within(&freshness, Duration::from_secs(600)).await, 10);
        freshness.record(an_application(), true);
        assert!(freshness.is_due(an_application()), "output ends the silence");
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_waits_for_a_collection_of_old_output_only() {
        let freshness = LogFreshness::default();
        let start = Instant::now();
        freshness.refresh(an_application()).await;
        freshness.record(an_application(), false);
        freshness.refresh(an_application()).await;
        assert!(start.elapsed().is_zero(), "nothing to wait for");
        advance(STALE).await;
        let collector = tokio::spawn({
            let freshness = freshness.clone();
            async move {
                freshness.wait_for_request(Instant::now() + Duration::from_secs(60)).await;
                assert!(freshness.take_requests() && freshness.is_requested(an_application()));
                sleep(Duration::from_millis(10)).await;
                freshness.record(an_application(), true);
                freshness.answer();
            }
        });
        freshness.refresh(an_application()).await;
        assert_eq!(start.elapsed(), STALE + Duration::from_millis(10));
        assert!(!freshness.take_requests() && !freshness.is_requested(an_application()));
        collector.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_does_not_wait_for_long() {
        let freshness = LogFreshness::default();
        freshness.record(an_application(), false);
        advance(STALE).await;
        let start = Instant::now();
        freshness.refresh(an_application()).await;
        assert_eq!(start.elapsed(), TIMEOUT);
    }

    #[tokio::test(start_paused = true)]
    async fn an_application_that_is_gone_is_forgotten() {
        let freshness = LogFreshness::default();
        freshness.record(an_application(), false);
        freshness.retain(&HashSet::new());
        advance(STALE).await;
        let start = Instant::now();
        freshness.refresh(an_application()).await;
        assert!(start.elapsed().is_zero());
    }
}
