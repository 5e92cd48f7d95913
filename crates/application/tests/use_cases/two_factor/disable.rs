//! Disabling two-factor login.

use std::time::Duration;

use chrono::TimeDelta;
use launchway_application::Error;
use launchway_domain::{
    auth::{Forbidden, RecoveryCode, Write},
    clock::Timestamp,
    secret::SecretBoxError,
    store::{self, StoreError},
};
use launchway_testkit::{
    CountingEntropy,
    builders::{an_actor, an_entry},
};

use super::{WRONG, ada, conflict, credentials, ports_that_find, program};
use crate::{
    audit_log::audited,
    authenticator::{being_set_up, enabled, shared_secret, step_at, wrong_code},
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

/// Returns ports of a caller with two-factor login, whose attempt is admitted.
fn ports_while_on() -> MockedPorts {
    let mut ports = ports_that_find(Some(credentials(Some(enabled(MockedPorts::default().now())))));
    ports.expect_admission(&ada().email);
    ports
}

fn right_code(now: Timestamp) -> String {
    shared_secret().code_at(step_at(now))
}

fn disable_writes(code_use: Write, at: Timestamp) -> Vec<store::Write> {
    vec![
        code_use.into(),
        Write::DisableTwoFactor { user_id: ada().id, at }.into(),
        audited(2, an_entry().with_message("turned two-factor login off").at(at)),
    ]
}

async fn disable(ports: MockedPorts, code: &str) -> Result<(), Error> {
    ports.services().two_factor.disable(&an_actor().build(), code).await
}

#[tokio::test]
async fn a_code_of_the_authenticator_turns_it_off_and_is_forgiven() {
    let mut ports = ports_while_on();
    let now = ports.now();
    ports.expect_opening(ada().id);
    ports.expect_commit(disable_writes(Write::UseTotpStep { user_id: ada().id, step: step_at(now) }, now));
    ports.expect_forgiveness();

    let outcome = disable(ports, &right_code(now)).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_recovery_code_turns_it_off_and_is_forgiven() {
    let mut ports = ports_while_on();
    let now = ports.now();
    let code = RecoveryCode::new(CountingEntropy::nth(7));
    let code_use =
        Write::UseRecoveryCode { user_id: ada().id, code: RecoveryCode::hash_of(code.expose()), at: now };
    ports.expect_commit(disable_writes(code_use, now));
    ports.expect_forgiveness();

    let outcome = disable(ports, code.expose()).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn it_is_off_although_the_guess_cannot_be_forgiven() {
    let mut ports = ports_while_on();
    let code = right_code(ports.now());
    ports.expect_opening(ada().id);
    ports.expect_any_commit();
    ports.expect_failing_forgiveness();

    let outcome = disable(ports, &code).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_wrong_code_turns_nothing_off_and_counts() {
    let mut ports = ports_while_on();
    let code = wrong_code(ports.now());
    ports.expect_opening(ada().id);

    let outcome = disable(ports, &code).await;

    assert_refused(outcome, WRONG);
}

#[tokio::test]
async fn a_code_that_was_used_before_turns_nothing_off_and_counts() {
    let mut ports = ports_while_on();
    let code = right_code(ports.now());
    ports.expect_opening(ada().id);
    ports.expect_failing_commit(StoreError::Stale);

    let outcome = disable(ports, &code).await;

    assert_refused(outcome, WRONG);
}

#[tokio::test]
async fn a_guess_too_many_at_a_code_opens_no_secret() {
    let mut ports = ports_that_find(Some(credentials(Some(enabled(MockedPorts::default().now())))));
    let now = ports.now();
    ports.expect_throttling(&ada().email, now + TimeDelta::seconds(5));

    let outcome = disable(ports, &right_code(now)).await;

    assert_refused(outcome, Error::RateLimited { retry_after: Duration::from_secs(5) });
}

#[tokio::test]
async fn what_is_off_cannot_be_turned_off_and_is_no_guess() {
    for found in [None, Some(credentials(None)), Some(credentials(Some(being_set_up())))] {
        let outcome = disable(ports_that_find(found), "123456").await;

        assert_refused(outcome, conflict("two-factor login is off"));
    }
}

#[tokio::test]
async fn a_secret_that_cannot_be_opened_turns_nothing_off() {
    let mut ports = ports_while_on();
    ports.expect_opening_of(ada().id, Err(SecretBoxError::CannotOpen));
    ports.expect_forgiveness();

    let outcome = disable(ports, "123456").await;

    assert_refused(outcome, SecretBoxError::CannotOpen);
}

#[tokio::test]
async fn nothing_is_turned_off_without_a_database() {
    let mut ports = ports_while_on();
    let code = right_code(ports.now());
    ports.expect_opening(ada().id);
    ports.expect_failing_commit(unavailable());
    ports.expect_forgiveness();

    let outcome = disable(ports, &code).await;

    assert_refused(outcome, unavailable());
}

#[tokio::test]
async fn an_api_token_cannot_turn_it_off() {
    let outcome = MockedPorts::default().services().two_factor.disable(&program(), "123456").await;

    assert_refused(outcome, Forbidden::NeedsSession);
}
