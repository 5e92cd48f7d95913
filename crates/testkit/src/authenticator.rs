//! A TOTP authenticator, like an app on a telephone.

use std::{
    thread::sleep,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use data_encoding::BASE32_NOPAD;
use launchway_domain::auth::TotpSecret;
use serde_json::{Value, json};

use crate::client::Client;

/// The validity of a code in seconds.
const STEP: u64 = 30;
/// The time in seconds within which a code must arrive.
const ON_THE_WAY: u64 = 2;

/// An authenticator that never gives the same code twice.
pub struct Authenticator {
    /// The secret that it shares with the server.
    pub secret: String,
    last_step: i64,
}

impl Authenticator {
    /// Creates an authenticator with the secret of a setup response.
    #[must_use]
    pub fn new(setup: &Value) -> Self {
        Self { secret: setup["secret"].as_str().unwrap().to_owned(), last_step: 0 }
    }

    /// Sets up and enables two-factor login. Returns the recovery codes, too.
    pub fn enabled_for(client: &Client) -> (Self, Vec<String>) {
        let mut authenticator =
            Self::new(&client.post("/api/v1/auth/two-factor/setup", &json!({})).success());
        let enabling = json!({"code": authenticator.next_code()});
        let enabled = client.post("/api/v1/auth/two-factor/enable", &enabling).success();
        let codes = enabled["recovery_codes"].as_array().unwrap().iter();
        (authenticator, codes.map(|code| code.as_str().unwrap().to_owned()).collect())
    }

    /// Returns the next code that is valid now and was not returned before.
    ///
    /// The server accepts the codes of the current step and of the adjacent ones, so that three are
    /// available without waiting.
    pub fn next_code(&mut self) -> String {
        let oldest = step_at(now() + ON_THE_WAY) - 1;
        let step = oldest.max(self.last_step + 1);
        while step > step_at(now()) + 1 {
            sleep(Duration::from_millis(10));
        }
        self.last_step = step;
        self.code_at(step)
    }

    /// Returns the last code again.
    #[must_use]
    pub fn last_code(&self) -> String {
        self.code_at(self.last_step)
    }

    /// Returns a code that is not valid.
    #[must_use]
    pub fn wrong_code(&self) -> String {
        let valid: Vec<_> = (-3..=3).map(|near| self.code_at(step_at(now()) + near)).collect();
        (0..).map(|guess| format!("{guess:06}")).find(|guess| !valid.contains(guess)).unwrap()
    }

    fn code_at(&self, step: i64) -> String {
        let bytes = BASE32_NOPAD.decode(self.secret.as_bytes()).unwrap();
        TotpSecret::from_bytes(&bytes).unwrap().code_at(step)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn step_at(seconds: u64) -> i64 {
    (seconds / STEP).try_into().unwrap()
}
