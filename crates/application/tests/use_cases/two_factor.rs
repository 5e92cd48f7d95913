//! Two-factor login.

mod disable;
mod enable;
mod set_up;

use launchway_application::Error;
use launchway_domain::{
    auth::{Actor, Credentials, PasswordHash, TwoFactor},
    users::User,
};
use launchway_testkit::builders::{a_user, an_actor, an_api_token};
use mockall::predicate::eq;

use crate::ports::MockedPorts;

const WRONG: Error = Error::InvalidCredentials("the code is incorrect or was already used");

fn ada() -> User {
    a_user().named("ada").build()
}

fn program() -> Actor {
    an_actor().with_api_token(an_api_token().build()).build()
}

fn conflict(reason: &str) -> Error {
    Error::Conflict(reason.to_owned())
}

fn credentials(two_factor: Option<TwoFactor>) -> Credentials {
    Credentials { user_id: ada().id, password: Some(PasswordHash("$argon2id$ada".to_owned())), two_factor }
}

/// Returns ports with the stored credentials of the caller.
fn ports_that_find(found: Option<Credentials>) -> MockedPorts {
    let mut ports = MockedPorts::default();
    ports.credentials.expect_by_user().with(eq(ada().id)).once().return_once(|_| Ok(found));
    ports
}
