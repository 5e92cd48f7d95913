//! Setting and changing passwords.

mod change;
mod reset;
mod set_up;

use launchway_domain::{
    auth::{Credentials, PasswordHash},
    users::{Profile, User},
};
use launchway_testkit::builders::{a_password, a_user};
use mockall::predicate::eq;

use crate::ports::MockedPorts;

/// The new password.
const NEW: &str = "tea at half past four";

fn ada() -> User {
    a_user().named("ada").build()
}

fn old_hash() -> PasswordHash {
    PasswordHash("$argon2id$old".to_owned())
}

fn new_hash() -> PasswordHash {
    PasswordHash("$argon2id$new".to_owned())
}

fn credentials(password: Option<PasswordHash>) -> Credentials {
    Credentials { user_id: ada().id, password, two_factor: None }
}

fn expect_hashing(ports: &mut MockedPorts) {
    ports.hasher.expect_hash().with(eq(a_password(NEW))).once().returning(|_| Ok(new_hash()));
}

fn expect_profile(ports: &mut MockedPorts, profile: Option<Profile>) {
    ports.users.expect_profile().with(eq(ada().id)).once().return_once(|_| Ok(profile));
}
