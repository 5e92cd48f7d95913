//! Beginning the setup of two-factor login.

use launchway_domain::{
    auth::{Forbidden, TotpSecret, Write},
    secret::SecretBoxError,
    store::StoreError,
};
use launchway_testkit::{
    CountingEntropy,
    builders::{an_actor, an_entry},
};

use super::{ada, conflict, program};
use crate::{
    audit_log::audited,
    authenticator::sealed,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

fn new_secret() -> TotpSecret {
    TotpSecret::new(CountingEntropy::nth(1))
}

/// Returns ports that seal the new secret.
fn ports_that_seal() -> MockedPorts {
    let mut ports = MockedPorts::default();
    ports
        .secrets
        .expect_seal()
        .withf(|place, plain| {
            place == TotpSecret::associated_data(ada().id) && plain == new_secret().as_bytes()
        })
        .once()
        .returning(|_, _| Ok(sealed()));
    ports
}

#[tokio::test]
async fn a_new_secret_is_kept_sealed_and_shown_once() {
    let mut ports = ports_that_seal();
    let begin = Write::BeginTwoFactor { user_id: ada().id, secret: sealed(), at: ports.now() };
    let entry =
        an_entry().with_message("started the two-factor setup").with("two_factor_secret", "[changed]");
    ports.expect_commit(vec![begin.into(), audited(1, entry)]);

    let setup = ports.services().two_factor.set_up(&an_actor().build()).await.unwrap();

    assert_eq!(setup.secret.expose(), &new_secret().to_base32());
    assert_eq!(setup.otpauth_url.expose(), &new_secret().otpauth_url(&ada().email));
}

#[tokio::test]
async fn a_second_factor_that_is_on_is_not_replaced() {
    let mut ports = ports_that_seal();
    ports.expect_failing_commit(StoreError::Stale);

    let outcome = ports.services().two_factor.set_up(&an_actor().build()).await;

    assert_refused(outcome, conflict("two-factor login is on already; turn it off first"));
}

#[tokio::test]
async fn a_secret_that_cannot_be_sealed_is_not_stored() {
    let mut ports = MockedPorts::default();
    ports.secrets.expect_seal().once().returning(|_, _| Err(SecretBoxError::CannotSeal));

    let outcome = ports.services().two_factor.set_up(&an_actor().build()).await;

    assert_refused(outcome, SecretBoxError::CannotSeal);
}

#[tokio::test]
async fn no_secret_is_shown_that_could_not_be_stored() {
    let mut ports = ports_that_seal();
    ports.expect_failing_commit(unavailable());

    let outcome = ports.services().two_factor.set_up(&an_actor().build()).await;

    assert_refused(outcome, unavailable());
}

#[tokio::test]
async fn an_api_token_cannot_begin_the_setup() {
    let outcome = MockedPorts::default().services().two_factor.set_up(&program()).await;

    assert_refused(outcome, Forbidden::NeedsSession);
}
