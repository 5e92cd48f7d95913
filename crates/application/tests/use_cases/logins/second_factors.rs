//! Logins with a second factor.

use launchway_application::Error;
use launchway_domain::{
    auth::{Credentials, RecoveryCode, Write},
    secret::SecretBoxError,
    store::StoreError,
};
use launchway_testkit::CountingEntropy;

use super::{
    WRONG, ada, assert_logged_in, credentials, expect_profile, login_writes, ports_that_find, profile,
    request,
};
use crate::{
    authenticator::{being_set_up, enabled, shared_secret, step_at, wrong_code},
    ports::MockedPorts,
    refusals::assert_refused,
};

fn with_second_factor() -> Credentials {
    credentials(Some(enabled(MockedPorts::default().now())))
}

#[tokio::test]
async fn right_password_without_code_is_forgiven_without_session() {
    let mut ports = ports_that_find(Some(with_second_factor()), true);
    ports.expect_forgiveness();

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_refused(outcome, Error::TwoFactorRequired);
}

#[tokio::test]
async fn a_code_is_asked_for_although_the_password_cannot_be_forgiven() {
    let mut ports = ports_that_find(Some(with_second_factor()), true);
    ports.expect_failing_forgiveness();

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_refused(outcome, Error::TwoFactorRequired);
}

#[tokio::test]
async fn a_wrong_password_does_not_reveal_that_a_code_is_needed() {
    let ports = ports_that_find(Some(with_second_factor()), false);

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_refused(outcome, WRONG);
}

#[tokio::test]
async fn a_right_code_does_not_make_up_for_a_wrong_password() {
    let ports = ports_that_find(Some(with_second_factor()), false);
    let code = shared_secret().code_at(step_at(ports.now()));

    let outcome = ports.services().logins.log_in(request(Some(&code))).await;

    assert_refused(outcome, WRONG);
}

#[tokio::test]
async fn a_code_of_the_authenticator_is_used_up_at_its_own_step() {
    for steps_off in [-1, 0, 1] {
        let mut ports = ports_that_find(Some(with_second_factor()), true);
        let now = ports.now();
        let step = step_at(now) + steps_off;
        ports.expect_opening(ada().id);
        expect_profile(&mut ports, Some(profile()));
        ports.expect_commit(login_writes(Some(Write::UseTotpStep { user_id: ada().id, step }), now));
        ports.expect_forgiveness();

        let outcome = ports.services().logins.log_in(request(Some(&shared_secret().code_at(step)))).await;

        assert_logged_in(outcome, now);
    }
}

#[tokio::test]
async fn a_code_may_be_typed_with_spaces() {
    let mut ports = ports_that_find(Some(with_second_factor()), true);
    let now = ports.now();
    let step = step_at(now);
    let code = shared_secret().code_at(step);
    ports.expect_opening(ada().id);
    expect_profile(&mut ports, Some(profile()));
    ports.expect_commit(login_writes(Some(Write::UseTotpStep { user_id: ada().id, step }), now));
    ports.expect_forgiveness();

    let typed = format!(" {} {}\n", &code[..3], &code[3..]);
    let outcome = ports.services().logins.log_in(request(Some(&typed))).await;

    assert_logged_in(outcome, now);
}

#[tokio::test]
async fn wrong_code_fails_like_a_wrong_password_and_counts() {
    let mut ports = ports_that_find(Some(with_second_factor()), true);
    ports.expect_opening(ada().id);
    let code = wrong_code(ports.now());

    let outcome = ports.services().logins.log_in(request(Some(&code))).await;

    assert_refused(outcome, WRONG);
}

#[tokio::test]
async fn used_code_fails_like_a_wrong_password_and_counts() {
    let mut ports = ports_that_find(Some(with_second_factor()), true);
    let code = shared_secret().code_at(step_at(ports.now()));
    ports.expect_opening(ada().id);
    expect_profile(&mut ports, Some(profile()));
    ports.expect_failing_commit(StoreError::Stale);

    let outcome = ports.services().logins.log_in(request(Some(&code))).await;

    assert_refused(outcome, WRONG);
}

#[tokio::test]
async fn a_recovery_code_is_used_up_however_it_is_typed() {
    let code = RecoveryCode::new(CountingEntropy::nth(7));
    let without_hyphens = code.expose().replace('-', "");
    for typed in
        [code.expose(), &code.expose().to_uppercase(), &code.expose().replace('-', " "), &without_hyphens]
    {
        let mut ports = ports_that_find(Some(with_second_factor()), true);
        let now = ports.now();
        let code_use =
            Write::UseRecoveryCode { user_id: ada().id, code: RecoveryCode::hash_of(code.expose()), at: now };
        expect_profile(&mut ports, Some(profile()));
        ports.expect_commit(login_writes(Some(code_use), now));
        ports.expect_forgiveness();

        let outcome = ports.services().logins.log_in(request(Some(typed))).await;

        assert_logged_in(outcome, now);
    }
}

#[tokio::test]
async fn unknown_recovery_code_is_rejected_by_the_store_and_counts() {
    for typed in ["", "12345", "1234567", "aaaa-bbbb-cccc-dddd"] {
        let mut ports = ports_that_find(Some(with_second_factor()), true);
        expect_profile(&mut ports, Some(profile()));
        ports.expect_failing_commit(StoreError::Stale);

        let outcome = ports.services().logins.log_in(request(Some(typed))).await;

        assert_refused(outcome, WRONG);
    }
}

#[tokio::test]
async fn second_factor_during_setup_is_not_required() {
    for code in [None, Some("123456")] {
        let mut ports = ports_that_find(Some(credentials(Some(being_set_up()))), true);
        let now = ports.now();
        expect_profile(&mut ports, Some(profile()));
        ports.expect_commit(login_writes(None, now));
        ports.expect_forgiveness();

        let outcome = ports.services().logins.log_in(request(code)).await;

        assert_logged_in(outcome, now);
    }
}

#[tokio::test]
async fn a_code_that_nobody_asked_for_is_not_used() {
    let mut ports = ports_that_find(Some(credentials(None)), true);
    let now = ports.now();
    expect_profile(&mut ports, Some(profile()));
    ports.expect_commit(login_writes(None, now));
    ports.expect_forgiveness();

    let outcome = ports.services().logins.log_in(request(Some("123456"))).await;

    assert_logged_in(outcome, now);
}

#[tokio::test]
async fn undecryptable_secret_is_a_fault_and_rejects_the_login() {
    let mut ports = ports_that_find(Some(with_second_factor()), true);
    ports.expect_opening_of(ada().id, Err(SecretBoxError::CannotOpen));
    ports.expect_forgiveness();

    let outcome = ports.services().logins.log_in(request(Some("123456"))).await;

    assert_refused(outcome, SecretBoxError::CannotOpen);
}

#[tokio::test]
async fn secret_of_wrong_length_is_a_fault_and_rejects_the_login() {
    let mut ports = ports_that_find(Some(with_second_factor()), true);
    ports.expect_opening_of(ada().id, Ok(vec![0; 19]));
    ports.expect_forgiveness();

    let outcome = ports.services().logins.log_in(request(Some("123456"))).await;

    assert_refused(outcome, Error::Internal("a stored two-factor secret has a wrong length".into()));
}
