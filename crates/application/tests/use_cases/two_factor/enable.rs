//! Enabling two-factor login.

use launchway_domain::{
    auth::{Forbidden, RecoveryCode, Write},
    secret::SecretBoxError,
    store::StoreError,
};
use launchway_testkit::{
    CountingEntropy,
    builders::{an_actor, an_entry},
};

use super::{WRONG, ada, conflict, credentials, ports_that_find, program};
use crate::{
    audit_log::audited,
    authenticator::{being_set_up, enabled, sealed, shared_secret, step_at, wrong_code},
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

const NOT_BEGUN: &str = "two-factor login is not being set up";

/// Returns ports of a caller who has begun the setup.
fn ports_during_setup() -> MockedPorts {
    let mut ports = ports_that_find(Some(credentials(Some(being_set_up()))));
    ports.expect_opening(ada().id);
    ports
}

fn recovery_codes() -> Vec<RecoveryCode> {
    (1..=10).map(|n| RecoveryCode::new(CountingEntropy::nth(n))).collect()
}

#[tokio::test]
async fn a_code_that_shows_that_the_authenticator_works_turns_it_on() {
    for steps_off in [-1, 0, 1] {
        let mut ports = ports_during_setup();
        let step = step_at(ports.now()) + steps_off;
        let enable = Write::EnableTwoFactor {
            user_id: ada().id,
            secret: sealed(),
            step,
            recovery_codes: recovery_codes()
                .iter()
                .map(|code| RecoveryCode::hash_of(code.expose()))
                .collect(),
            at: ports.now(),
        };
        ports.expect_commit(vec![
            enable.into(),
            audited(1, an_entry().with_message("turned two-factor login on")),
        ]);

        let code = shared_secret().code_at(step);
        let codes = ports.services().two_factor.enable(&an_actor().build(), &code).await;

        assert_eq!(codes.unwrap(), recovery_codes());
    }
}

#[tokio::test]
async fn white_space_around_a_code_does_not_matter() {
    let mut ports = ports_during_setup();
    ports.expect_any_commit();
    let code = format!(" {}\n", shared_secret().code_at(step_at(ports.now())));

    let codes = ports.services().two_factor.enable(&an_actor().build(), &code).await;

    assert_eq!(codes.unwrap(), recovery_codes());
}

#[tokio::test]
async fn a_wrong_code_turns_nothing_on() {
    for code in [wrong_code(MockedPorts::default().now()), String::new(), "aaaa-bbbb-cccc-dddd".to_owned()] {
        let ports = ports_during_setup();

        let outcome = ports.services().two_factor.enable(&an_actor().build(), &code).await;

        assert_refused(outcome, WRONG);
    }
}

#[tokio::test]
async fn what_was_not_begun_or_is_on_already_cannot_be_turned_on() {
    let on = enabled(MockedPorts::default().now());
    for found in [None, Some(credentials(None)), Some(credentials(Some(on)))] {
        let ports = ports_that_find(found);

        let outcome = ports.services().two_factor.enable(&an_actor().build(), "123456").await;

        assert_refused(outcome, conflict(NOT_BEGUN));
    }
}

#[tokio::test]
async fn a_setup_that_was_begun_anew_meanwhile_conflicts() {
    let mut ports = ports_during_setup();
    ports.expect_failing_commit(StoreError::Stale);
    let code = shared_secret().code_at(step_at(ports.now()));

    let outcome = ports.services().two_factor.enable(&an_actor().build(), &code).await;

    assert_refused(outcome, conflict("the two-factor setup was restarted in the meantime"));
}

#[tokio::test]
async fn a_secret_that_cannot_be_opened_turns_nothing_on() {
    let mut ports = ports_that_find(Some(credentials(Some(being_set_up()))));
    ports.expect_opening_of(ada().id, Err(SecretBoxError::CannotOpen));

    let outcome = ports.services().two_factor.enable(&an_actor().build(), "123456").await;

    assert_refused(outcome, SecretBoxError::CannotOpen);
}

#[tokio::test]
async fn no_recovery_codes_are_shown_that_could_not_be_stored() {
    let mut ports = ports_during_setup();
    ports.expect_failing_commit(unavailable());
    let code = shared_secret().code_at(step_at(ports.now()));

    let outcome = ports.services().two_factor.enable(&an_actor().build(), &code).await;

    assert_refused(outcome, unavailable());
}

#[tokio::test]
async fn an_api_token_cannot_turn_it_on() {
    let outcome = MockedPorts::default().services().two_factor.enable(&program(), "123456").await;

    assert_refused(outcome, Forbidden::NeedsSession);
}
