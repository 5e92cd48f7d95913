//! The availability of the engine.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use launchway_domain::clock::Timestamp;

/// An outage of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// The time at which it began.
    pub since: Timestamp,
    /// A sentence that describes the failure.
    pub reason: String,
}

/// The last known availability of the engine. It is available until a first check fails.
#[derive(Debug, Clone, Default)]
pub struct EngineStatus(Arc<Mutex<Option<Outage>>>);

impl EngineStatus {
    /// Returns the current outage, if there is one.
    #[must_use]
    pub fn outage(&self) -> Option<Outage> {
        self.lock().clone()
    }

    /// Ends the outage; returns it if there was one.
    pub(crate) fn report_available(&self) -> Option<Outage> {
        self.lock().take()
    }

    /// Begins an outage at `now`, or updates the reason of the current one. Returns whether it is a new
    /// one.
    pub(crate) fn report_outage(&self, reason: String, now: Timestamp) -> bool {
        let mut outage = self.lock();
        match outage.as_mut() {
            Some(outage) => {
                outage.reason = reason;
                false
            }
            None => {
                *outage = Some(Outage { since: now, reason });
                true
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Outage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_keeps_its_beginning_until_it_ends() {
        let (status, begin) = (EngineStatus::default(), Timestamp::UNIX_EPOCH);
        assert_eq!(status.outage(), None);
        assert!(status.report_outage("refused".to_owned(), begin));
        assert!(!status.report_outage("timed out".to_owned(), begin + chrono::TimeDelta::seconds(9)));
        let outage = Outage { since: begin, reason: "timed out".to_owned() };
        assert_eq!(status.outage(), Some(outage.clone()));
        assert_eq!(status.report_available(), Some(outage));
        assert_eq!((status.outage(), status.report_available()), (None, None));
    }
}
