//! The rate limit of test messages.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use launchway_domain::ids::OrganizationId;
use tokio::time::Instant;

/// The most test messages of an organization within the window below.
const MOST: usize = 20;
/// The window of the rate limit. It keeps slow receivers from delaying others, and test mails from being
/// sent without end.
const WITHIN: Duration = Duration::from_secs(60 * 60);
/// The time to wait while another test of the organization runs.
const ONE_AT_A_TIME: Duration = Duration::from_secs(5);

/// The recent test messages of every organization.
#[derive(Default)]
pub(in crate::notifications) struct TestMessageLimiter(Mutex<HashMap<OrganizationId, Made>>);

#[derive(Default)]
struct Made {
    at: Vec<Instant>,
    is_in_progress: bool,
}

/// A permit for one test message.
pub(in crate::notifications) struct Leave<'a> {
    tries: &'a TestMessageLimiter,
    organization: OrganizationId,
}

impl TestMessageLimiter {
    /// Returns a permit for a test message now, or else the time to wait.
    pub(in crate::notifications) fn leave(
        &self,
        organization: OrganizationId,
    ) -> Result<Leave<'_>, Duration> {
        let now = Instant::now();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, made| {
            made.at.retain(|at| now - *at < WITHIN);
            made.is_in_progress || !made.at.is_empty()
        });
        let made = all.entry(organization).or_default();
        if made.is_in_progress {
            return Err(ONE_AT_A_TIME);
        }
        if made.at.len() >= MOST {
            let first = made.at.first().copied().unwrap_or(now);
            return Err(WITHIN.saturating_sub(now - first));
        }
        made.at.push(now);
        made.is_in_progress = true;
        Ok(Leave { tries: self, organization })
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        let mut all = self.tries.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = all.get_mut(&self.organization) {
            made.is_in_progress = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn organization(n: u128) -> OrganizationId {
        Uuid::from_u128(n).into()
    }

    #[tokio::test(start_paused = true)]
    async fn allows_one_test_at_a_time_per_organization() {
        let tries = TestMessageLimiter::default();
        let one = tries.leave(organization(1)).unwrap();
        assert_eq!(tries.leave(organization(1)).err(), Some(Duration::from_secs(5)));
        assert!(tries.leave(organization(2)).is_ok());
        drop(one);
        assert!(tries.leave(organization(1)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn twenty_tries_within_an_hour_and_no_more() {
        let tries = TestMessageLimiter::default();
        for _ in 0..20 {
            drop(tries.leave(organization(1)).unwrap());
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        assert_eq!(tries.leave(organization(1)).err(), Some(Duration::from_secs(40 * 60)));
        tokio::time::advance(Duration::from_secs(40 * 60)).await;
        assert!(tries.leave(organization(1)).is_ok());
        assert!(tries.leave(organization(1)).is_err());
    }
}
