//! The intervals and limits of the reconciler.

use std::time::Duration;

use launchway_domain::deployments::KeptVersions;

use super::StabilityLimits;

/// The most checks of healthy versions in a second, on average.
pub const MOST_CHECKS: u64 = 33;
/// The intervals of the reconciler.
#[derive(Debug, Clone, Copy)]
pub struct ReconcilerTimings {
    /// The interval of rounds without an event of the engine.
    pub round: Duration,
    /// The interval of full scans without an event of the engine.
    pub look: Duration,
    /// The timeout of a scan, after which the engine counts as unavailable.
    pub engine: Duration,
    /// The interval of checks of a healthy version, where there are not too many for [`MOST_CHECKS`].
    pub check: Duration,
    /// The interval of checks of an unhealthy version.
    pub recheck: Duration,
    /// The interval of searches for orphans.
    pub orphans: Duration,
    /// The grace period of an orphan before it is removed.
    pub grace: Duration,
}

impl Default for ReconcilerTimings {
    fn default() -> Self {
        Self {
            round: Duration::from_secs(2),
            look: Duration::from_secs(10),
            engine: Duration::from_secs(10),
            check: Duration::from_secs(15),
            recheck: Duration::from_secs(2),
            orphans: Duration::from_secs(30),
            grace: Duration::from_secs(120),
        }
    }
}

impl ReconcilerTimings {
    /// Returns the default intervals with this grace period of orphans: they are searched for four times
    /// within it.
    #[must_use]
    pub fn with_grace(grace: Duration) -> Self {
        Self { orphans: (grace / 4).min(Duration::from_secs(30)), grace, ..Self::default() }
    }

    /// Returns the interval of checks of a healthy version among `versions`: checks cost what the number of
    /// versions costs, and an idle installation should cost next to nothing.
    pub(super) fn check_interval(&self, versions: usize) -> Duration {
        let spread = u64::try_from(versions).unwrap_or(u64::MAX).div_ceil(MOST_CHECKS);
        self.check.max(Duration::from_secs(spread))
    }
}

/// The limits of the reconciler.
#[derive(Debug, Clone, Copy)]
pub struct ReconcilerLimits {
    /// The number of restarts after which a container counts as unstable.
    pub stability: StabilityLimits,
    /// The time that a version which was never seen to pass its check may take until it does: that of a
    /// deployment, at which it passed.
    pub start_period: Duration,
    /// The number of versions of an application that are kept.
    pub kept_versions: KeptVersions,
}

impl Default for ReconcilerLimits {
    fn default() -> Self {
        Self {
            stability: StabilityLimits::default(),
            start_period: Duration::from_secs(60),
            kept_versions: KeptVersions::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_spread_when_versions_are_many() {
        let timings = ReconcilerTimings::default();
        for (versions, seconds) in [(0, 15), (495, 15), (496, 16), (1000, 31), (10_000, 304)] {
            assert_eq!(timings.check_interval(versions), Duration::from_secs(seconds), "{versions}");
        }
    }
}
