//! The number of copies of live versions.
//!
//! A change of `replicas` is carried out by a job that is enqueued with it. Here a job is enqueued for versions
//! whose number still differs some time later: because the job failed, or because the number changed while a
//! deployment was running.

use std::{sync::Arc, time::Duration};

use launchway_domain::deployments::LiveVersion;
use tokio::time::Instant;

use super::{Backoff, Reconciler, decision::is_scaled};

/// The time that the job of a change gets before another one is enqueued.
const PATIENCE: Duration = Duration::from_secs(10);

/// The attempts at another number of copies of one version.
#[derive(Debug, Default)]
pub(super) struct ScaleRecord {
    backoff: Backoff,
    /// The time since which the number differs.
    since: Option<Instant>,
}

impl ScaleRecord {
    /// Returns whether a job is due for a version whose number differs, unless it `is_scaled`.
    fn is_due(&mut self, is_scaled: bool, now: Instant) -> bool {
        if is_scaled {
            *self = Self::default();
            return false;
        }
        let since = *self.since.get_or_insert(now);
        let is_due = now - since >= PATIENCE && self.backoff.begin(now).is_some();
        self.backoff.end();
        is_due
    }
}

impl Reconciler {
    /// Enqueues a job for a version that has had another number of copies than it should have for a while.
    pub(super) async fn scale(self: &Arc<Self>, version: &LiveVersion, is_busy: bool) {
        let is_scaled = is_scaled(version);
        let key = (version.deployment.id, 1);
        let is_due = {
            let mut versions = self.versions();
            match (is_scaled, versions.get_mut(&key)) {
                (true, None) => false,
                (_, Some(watched)) => watched.scaling.is_due(is_scaled, Instant::now()),
                (false, None) => versions.entry(key).or_default().scaling.is_due(is_scaled, Instant::now()),
            }
        };
        if is_due && !is_busy {
            let (count, wanted) =
                (version.deployment.copies().count(), version.application.blueprint.copies.get());
            self.enqueue_now(version, format!("{count} of {wanted} copies exist")).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_due_after_a_while_and_not_at_every_look() {
        let (mut scaling, start) = (ScaleRecord::default(), Instant::now());
        let mut due = |is_scaled, seconds| scaling.is_due(is_scaled, start + Duration::from_secs(seconds));
        assert!(!due(false, 0) && !due(false, 9));
        assert!(due(false, 10));
        assert!(!due(false, 10), "the first pause is one second");
        assert!(due(false, 11));
        assert!(!due(true, 20));
        assert!(!due(false, 21) && due(false, 31), "it begins anew");
    }
}
