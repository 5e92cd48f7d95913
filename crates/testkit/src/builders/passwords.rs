//! Passwords.

use launchway_domain::auth::Password;

/// A password.
///
/// # Panics
///
/// If the password is not allowed.
#[must_use]
#[track_caller]
pub fn a_password(text: &str) -> Password {
    text.to_owned().try_into().unwrap()
}
