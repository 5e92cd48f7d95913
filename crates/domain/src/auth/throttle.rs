//! Rate limits for failed logins.

use std::net::{IpAddr, Ipv6Addr};

use async_trait::async_trait;
use chrono::TimeDelta;

use super::TokenHash;
use crate::{clock::Timestamp, ids::LoginAttemptId, store_error::StoreError, users::EmailAddress};

/// The maximum numbers of failures within [`window`](ThrottleLimits::window).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThrottleLimits {
    /// The time for which a failure counts.
    pub window: TimeDelta,
    /// From one address for one account.
    pub account_and_address: i64,
    /// From one address.
    pub address: i64,
    /// For one account.
    pub account: i64,
}

impl ThrottleLimits {
    /// The default limits.
    pub const CONTRACT: Self =
        Self { window: TimeDelta::minutes(15), account_and_address: 10, address: 50, account: 100 };
}

/// The key of the account in a login attempt. A hash instead of the email address, because most guessed
/// addresses belong to no user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountKey(TokenHash);

impl From<&EmailAddress> for AccountKey {
    fn from(email: &EmailAddress) -> Self {
        Self(TokenHash::of(&email.key()))
    }
}

impl AccountKey {
    /// Returns the bytes to store.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }
}

/// An attempt to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginAttempt {
    /// The id of the login attempt.
    pub id: LoginAttemptId,
    /// The account.
    pub account: AccountKey,
    /// The address of the client; see [`LoginAttempt::new`].
    pub address: String,
    /// The time of the attempt.
    pub at: Timestamp,
}

impl LoginAttempt {
    /// Creates an attempt. An IPv6 address counts as its /64, because one customer has a whole one.
    #[must_use]
    pub fn new(id: LoginAttemptId, email: &EmailAddress, address: IpAddr, at: Timestamp) -> Self {
        let address = match address.to_canonical() {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => {
                let [a, b, c, d, ..] = v6.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).to_string()
            }
        };
        Self { id, account: email.into(), address, at }
    }
}

/// The decision about an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may proceed, and counts as failed until it is forgiven.
    Granted,
    /// It may not proceed, nor may the next one before `until`.
    Refused {
        /// When the oldest failure that counts against the limit expires.
        until: Timestamp,
    },
}

/// Counts failed logins durably.
///
/// Promises: an attempt counts as soon as it is admitted, so that concurrent attempts cannot exceed the
/// limit together; counts survive a restart and are shared by all replicas; a refused attempt is not
/// counted.
#[cfg_attr(feature = "mock", mockall::automock)]
#[async_trait]
pub trait LoginThrottle: Send + Sync {
    /// Admits `attempt` unless one of the limits is reached.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn admit(&self, attempt: &LoginAttempt) -> Result<Admission, StoreError>;

    /// Removes an attempt that was not a failure.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] or [`StoreError::Internal`].
    async fn forgive(&self, id: LoginAttemptId) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn address_of(address: &str) -> String {
        let email = "ada@example.com".parse().unwrap();
        let at = Timestamp::UNIX_EPOCH;
        LoginAttempt::new(Uuid::nil().into(), &email, address.parse().unwrap(), at).address
    }

    #[test]
    fn an_ipv6_address_counts_as_its_network() {
        assert_eq!(address_of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }

    #[test]
    fn an_ipv4_address_counts_as_itself_in_both_spellings() {
        assert_eq!(address_of("192.0.2.7"), "192.0.2.7");
        assert_eq!(address_of("::ffff:192.0.2.7"), "192.0.2.7");
    }

    #[test]
    fn an_account_is_the_same_in_any_case() {
        let [one, other]: [EmailAddress; 2] =
            ["ada@example.com", "ADA@Example.com"].map(|a| a.parse().unwrap());
        assert_eq!(AccountKey::from(&one), AccountKey::from(&other));
    }
}
