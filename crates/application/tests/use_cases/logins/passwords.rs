//! Logins with a password only.

use std::time::Duration;

use chrono::TimeDelta;
use launchway_application::Error;
use launchway_domain::{
    audit::{Action, Chain, Resource},
    auth::{Credentials, HasherError},
    store::StoreError,
};
use launchway_testkit::builders::{a_profile, an_entry};

use super::{
    WRONG, ada, assert_logged_in, credentials, expect_profile, login_writes, ports_that_find, profile,
    request,
};
use crate::{
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

#[tokio::test]
async fn a_right_password_opens_a_session_and_is_forgiven() {
    let mut ports = ports_that_find(Some(credentials(None)), true);
    let now = ports.now();
    expect_profile(&mut ports, Some(profile()));
    ports.expect_commit(login_writes(None, now));
    ports.expect_forgiveness();

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_logged_in(outcome, now);
}

#[tokio::test]
async fn login_without_organization_is_audited_by_the_installation() {
    let mut ports = ports_that_find(Some(credentials(None)), true);
    let outsider = a_profile().of(&ada()).build();
    expect_profile(&mut ports, Some(outsider.clone()));
    let mut writes = login_writes(None, ports.now());
    writes.pop();
    let login = an_entry().of(Action::Access, Resource::User, ada().id).with_message("logged in");
    writes.push(audited(3, login.in_chain(Chain::Installation)));
    ports.expect_commit(writes);
    ports.expect_forgiveness();

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_eq!(outcome.unwrap().profile, outsider);
}

#[tokio::test]
async fn a_wrong_password_is_refused_and_counts() {
    let ports = ports_that_find(Some(credentials(None)), false);

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_refused(outcome, WRONG);
}

#[tokio::test]
async fn for_an_unknown_address_a_password_is_verified_all_the_same() {
    // The mock expects exactly one `verify` without a hash.
    let ports = ports_that_find(None, false);

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_refused(outcome, WRONG);
}

#[tokio::test]
async fn whoever_has_set_no_password_cannot_log_in_with_one() {
    for hasher_says in [false, true] {
        let without_password = Credentials { password: None, ..credentials(None) };
        let ports = ports_that_find(Some(without_password), hasher_says);

        let outcome = ports.services().logins.log_in(request(None)).await;

        assert_refused(outcome, WRONG);
    }
}

#[tokio::test]
async fn a_login_too_many_reads_no_credentials() {
    let mut ports = MockedPorts::default();
    ports.expect_throttling(&ada().email, ports.now() + TimeDelta::seconds(30));

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_refused(outcome, Error::RateLimited { retry_after: Duration::from_secs(30) });
}

#[tokio::test]
async fn a_password_that_was_changed_meanwhile_is_wrong_and_counts() {
    let mut ports = ports_that_find(Some(credentials(None)), true);
    expect_profile(&mut ports, Some(profile()));
    ports.expect_failing_commit(StoreError::Stale);

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_refused(outcome, WRONG);
}

#[tokio::test]
async fn a_user_who_was_deleted_meanwhile_cannot_log_in() {
    let mut ports = ports_that_find(Some(credentials(None)), true);
    expect_profile(&mut ports, None);

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_refused(outcome, WRONG);
}

#[tokio::test]
async fn a_login_is_done_although_it_cannot_be_forgiven() {
    let mut ports = ports_that_find(Some(credentials(None)), true);
    let now = ports.now();
    expect_profile(&mut ports, Some(profile()));
    ports.expect_commit(login_writes(None, now));
    ports.expect_failing_forgiveness();

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_logged_in(outcome, now);
}

#[tokio::test]
async fn a_flood_of_passwords_is_asked_to_wait() {
    let mut ports = MockedPorts::default();
    ports.expect_admission(&ada().email);
    ports.credentials.expect_by_email().once().returning(|_| Ok(Some(credentials(None))));
    ports.hasher.expect_verify().once().returning(|_, _| Err(HasherError::Busy));
    ports.expect_forgiveness();

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_refused(outcome, HasherError::Busy);
}

#[tokio::test]
async fn nobody_logs_in_while_credentials_cannot_be_read() {
    let mut ports = MockedPorts::default();
    ports.expect_admission(&ada().email);
    ports.credentials.expect_by_email().once().returning(|_| Err(unavailable()));
    ports.expect_forgiveness();

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_refused(outcome, unavailable());
}

#[tokio::test]
async fn nobody_logs_in_while_profiles_cannot_be_read() {
    let mut ports = ports_that_find(Some(credentials(None)), true);
    ports.users.expect_profile().once().returning(|_| Err(unavailable()));
    ports.expect_forgiveness();

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_refused(outcome, unavailable());
}

#[tokio::test]
async fn nobody_logs_in_while_sessions_cannot_be_written() {
    let mut ports = ports_that_find(Some(credentials(None)), true);
    expect_profile(&mut ports, Some(profile()));
    ports.expect_failing_commit(unavailable());
    ports.expect_forgiveness();

    let outcome = ports.services().logins.log_in(request(None)).await;

    assert_refused(outcome, unavailable());
}
