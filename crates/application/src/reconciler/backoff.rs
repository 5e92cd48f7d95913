//! Backoff between attempts at the same action.

use std::time::Duration;

use tokio::time::Instant;

/// The pause before the second attempt; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The attempts after which nothing is tried until the version serves again, is replaced, or the engine
/// recovers from an outage.
const MOST_ATTEMPTS: u32 = 10;

/// The attempts at starting one version.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    attempts: u32,
    is_in_progress: bool,
    next: Option<Instant>,
}

/// An attempt that is allowed now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    /// True if no other attempt follows.
    pub(super) is_last: bool,
}

impl Backoff {
    /// Begins an attempt; `None` while one is running, during a pause, or after the last one.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Attempt> {
        if self.is_in_progress || self.attempts >= MOST_ATTEMPTS || self.next.is_some_and(|next| now < next) {
            return None;
        }
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(self.attempts);
        self.attempts += 1;
        self.is_in_progress = true;
        self.next = Some(now + pause.min(LONGEST_PAUSE));
        Some(Attempt { is_last: self.attempts == MOST_ATTEMPTS })
    }

    /// Ends the running attempt.
    pub(super) fn end(&mut self) {
        self.is_in_progress = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_attempts_are_limited() {
        let (mut backoff, mut now) = (Backoff::default(), Instant::now());
        let mut pauses = Vec::new();
        while let Some(attempt) = backoff.begin(now) {
            assert_eq!(backoff.begin(now + LONGEST_PAUSE), None, "one attempt at a time");
            backoff.end();
            let pause = backoff.next.unwrap() - now;
            assert_eq!(backoff.begin(now + pause - Duration::from_millis(1)), None);
            pauses.push(pause.as_secs());
            assert_eq!(attempt.is_last, pauses.len() == 10);
            now += pause;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]);
    }
}
