//! Passwords.

use launchway_domain::auth::Password;

/// The password that someone chooses by typing `text`.
///
/// # Panics
/// When nobody may choose it.
#[must_use]
#[track_caller]
pub fn a_password(text: &str) -> Password {
    text.to_owned().try_into().unwrap()
}
