//! Bounding how often a secret may be guessed.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    net::IpAddr,
    sync::Arc,
    time::Duration,
};

use launchway_domain::{
    auth::{Admission, LoginAttempt, LoginThrottle},
    ids::LoginAttemptId,
    users::EmailAddress,
};
use tokio::sync::{Mutex, Semaphore};

use crate::{Error, Tools};

/// Admits so many guesses at an account's secrets and no more.
#[derive(Clone)]
pub struct Guesses {
    throttle: Arc<dyn LoginThrottle>,
    tools: Tools,
    /// Guesses at one account from one address go one after the other. A guess counts until it
    /// is known to be right, so that several right ones at once would be in each other's way.
    lanes: Arc<[Mutex<()>; LANES]>,
    /// Who may wait at all, so that a flood is turned away and not queued.
    places: Arc<Semaphore>,
}

/// How many guesses may be under way or wait.
const PLACES: usize = 256;
/// How long a guess waits for those before it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fewer than the failures that one address may have, so that guesses under way never fill that.
const LANES: usize = 32;

impl Guesses {
    /// Counts with `throttle`.
    pub fn new(throttle: Arc<dyn LoginThrottle>, tools: Tools) -> Self {
        Self {
            throttle,
            tools,
            lanes: Arc::new(std::array::from_fn(|_| Mutex::new(()))),
            places: Arc::new(Semaphore::new(PLACES)),
        }
    }

    /// Lets someone at `address` make one guess at the secrets of `email`.
    ///
    /// It counts from the beginning, so that guesses at the same time cannot slip through
    /// together, and is taken back unless it ends in [`Error::InvalidCredentials`]: a fault of
    /// ours must not lock anybody out.
    ///
    /// # Errors
    /// [`Error::RateLimited`] when there were too many, or too many at once, and those of `guess`.
    pub async fn bounded<T>(
        &self,
        email: &EmailAddress,
        address: IpAddr,
        guess: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let busy = || Error::RateLimited { retry_after: Duration::from_secs(1) };
        let _place = self.places.try_acquire().map_err(|_full| busy())?;
        let lane = tokio::time::timeout(PATIENCE, self.lane(email, address).lock());
        let _lane = lane.await.map_err(|_elapsed| busy())?;
        let attempt = self.admit(email, address).await?;
        let outcome = guess.await;
        if !matches!(outcome, Err(Error::InvalidCredentials(_))) {
            self.forgive(attempt).await;
        }
        outcome
    }

    fn lane(&self, email: &EmailAddress, address: IpAddr) -> &Mutex<()> {
        let mut hasher = DefaultHasher::new();
        (email.key(), address).hash(&mut hasher);
        &self.lanes[(hasher.finish() % LANES as u64) as usize]
    }

    async fn admit(&self, email: &EmailAddress, address: IpAddr) -> Result<LoginAttemptId, Error> {
        let now = self.tools.clock.now();
        let attempt = LoginAttempt::new(self.tools.ids.next().into(), email, address, now);
        match self.throttle.admit(&attempt).await? {
            Admission::Granted => Ok(attempt.id),
            Admission::Refused { until } => {
                // Rounded up, so that a caller who waits that long is not early.
                let wait = (until - now).num_microseconds().unwrap_or(i64::MAX).max(1).unsigned_abs();
                let seconds = wait.div_ceil(1_000_000);
                Err(Error::RateLimited { retry_after: Duration::from_secs(seconds) })
            }
        }
    }

    /// Never fails, because what the guess was for is done by now. A guess that cannot be taken
    /// back counts until it is too old to count.
    async fn forgive(&self, attempt: LoginAttemptId) {
        if let Err(error) = self.throttle.forgive(attempt).await {
            tracing::warn!(login_attempt.id = %attempt, error = &error as &dyn std::error::Error, "could not take back a login attempt");
        }
    }
}
