//! Rate limiting of login attempts.

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

use crate::{Error, ServiceContext};

/// Limits the number of attempts at the secrets of an account.
#[derive(Clone)]
pub struct LoginAttempts {
    throttle: Arc<dyn LoginThrottle>,
    context: ServiceContext,
    /// Attempts at one account from one address run one after the other. An attempt counts until it is
    /// known to be right, so concurrent right ones would otherwise block each other.
    lanes: Arc<[Mutex<()>; LANES]>,
    /// Limits the attempts that may wait, so that a flood is rejected instead of queued.
    places: Arc<Semaphore>,
}

/// The largest number of attempts that are running or waiting.
const PLACES: usize = 256;
/// The time that an attempt waits for those before it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Fewer than the failures that one address may have, so that running attempts never reach that limit.
const LANES: usize = 32;

impl LoginAttempts {
    /// Returns a limiter that counts with `throttle`.
    pub fn new(throttle: Arc<dyn LoginThrottle>, context: ServiceContext) -> Self {
        Self {
            throttle,
            context,
            lanes: Arc::new(std::array::from_fn(|_| Mutex::new(()))),
            places: Arc::new(Semaphore::new(PLACES)),
        }
    }

    /// Runs one attempt at the secrets of `email` from `address`.
    ///
    /// It counts from the start, so that concurrent attempts cannot bypass the limit together. It is taken
    /// back unless it ends in [`Error::InvalidCredentials`]: a fault of the server must not lock a user
    /// out.
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
        let lane = tokio::time::timeout(TIMEOUT, self.lane(email, address).lock());
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
        let now = self.context.clock.now();
        let attempt = LoginAttempt::new(self.context.ids.next().into(), email, address, now);
        match self.throttle.admit(&attempt).await? {
            Admission::Granted => Ok(attempt.id),
            Admission::Refused { until } => {
                // Rounded up, so that a client that waits exactly this long is not too early.
                let wait = (until - now).num_microseconds().unwrap_or(i64::MAX).max(1).unsigned_abs();
                let seconds = wait.div_ceil(1_000_000);
                Err(Error::RateLimited { retry_after: Duration::from_secs(seconds) })
            }
        }
    }

    /// Takes an attempt back. Never fails, because the guarded operation is done by now. An attempt that
    /// cannot be taken back counts until it expires.
    async fn forgive(&self, attempt: LoginAttemptId) {
        if let Err(error) = self.throttle.forgive(attempt).await {
            tracing::warn!(login_attempt.id = %attempt, error = &error as &dyn std::error::Error, "login attempt could not be taken back");
        }
    }
}
