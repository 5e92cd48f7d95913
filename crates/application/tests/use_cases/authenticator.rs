//! A user's authenticator, and the stored half of its shared secret.

use launchway_domain::{
    auth::{TotpSecret, TwoFactor},
    clock::Timestamp,
    ids::UserId,
    secret::{Sealed, Secret, SecretBoxError},
};
use launchway_testkit::CountingEntropy;

use crate::ports::MockedPorts;

/// Returns the shared secret.
pub(crate) fn shared_secret() -> TotpSecret {
    TotpSecret::new(CountingEntropy::nth(4_711))
}

/// Returns the secret as it is stored.
pub(crate) fn sealed() -> Sealed {
    Sealed("sealed".to_owned())
}

/// Returns a second factor that is enabled.
pub(crate) fn enabled(at: Timestamp) -> TwoFactor {
    TwoFactor { secret: sealed(), enabled_at: Some(at) }
}

/// Returns a second factor that is not enabled yet.
pub(crate) fn being_set_up() -> TwoFactor {
    TwoFactor { secret: sealed(), enabled_at: None }
}

/// Returns the time step of `now`.
pub(crate) fn step_at(now: Timestamp) -> i64 {
    now.timestamp() / 30
}

/// Returns a code of six digits that is not valid around `now`.
pub(crate) fn wrong_code(now: Timestamp) -> String {
    let shown = [-1, 0, 1].map(|steps| shared_secret().code_at(step_at(now) + steps));
    (0..4).map(|digit| digit.to_string().repeat(6)).find(|code| !shown.contains(code)).unwrap_or_default()
}

impl MockedPorts {
    /// Expects that the stored secret of `user_id` is decrypted.
    pub(crate) fn expect_opening(&mut self, user_id: UserId) {
        self.expect_opening_of(user_id, Ok(shared_secret().as_bytes().to_vec()));
    }

    /// Expects that the stored secret of `user_id` is decrypted, with `outcome`.
    pub(crate) fn expect_opening_of(&mut self, user_id: UserId, outcome: Result<Vec<u8>, SecretBoxError>) {
        self.secrets
            .expect_open()
            .withf(move |place, stored| place == TotpSecret::associated_data(user_id) && *stored == sealed())
            .once()
            .return_once(|_, _| outcome.map(Secret::new));
    }
}
