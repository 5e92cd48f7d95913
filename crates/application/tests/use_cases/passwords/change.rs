//! Changing a password.

use std::time::Duration;

use chrono::TimeDelta;
use launchway_application::{Error, auth::PasswordChange};
use launchway_domain::{
    auth::{Actor, Credentials, Forbidden, HasherError, Write},
    clock::Timestamp,
    secret::Secret,
    store::{self, StoreError},
};
use launchway_testkit::builders::{a_password, a_session, an_actor, an_api_token, an_entry};
use mockall::predicate::eq;

use super::{NEW, ada, credentials, expect_hashing, new_hash, old_hash};
use crate::{
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

const WRONG: Error = Error::InvalidCredentials("`current_password` is incorrect");

fn actor() -> Actor {
    an_actor().with_session(a_session().recognised_by("lws_laptop").build()).build()
}

fn current() -> Secret<String> {
    Secret::new("correct horse battery".to_owned())
}

fn change() -> PasswordChange {
    PasswordChange { current: current(), new: a_password(NEW) }
}

/// Returns ports that admit an attempt, find `found` and accept or reject the current password.
fn ports_that_find(found: Option<Credentials>, password_is_right: bool) -> MockedPorts {
    let mut ports = MockedPorts::default();
    ports.expect_admission(&ada().email);
    let stored = found.as_ref().and_then(|credentials| credentials.password.clone());
    ports.credentials.expect_by_user().with(eq(ada().id)).once().return_once(|_| Ok(found));
    ports
        .hasher
        .expect_verify()
        .with(eq(current()), eq(stored))
        .once()
        .returning(move |_, _| Ok(password_is_right));
    ports
}

/// Returns ports that allow a change up to the commit.
fn ports_until_commit() -> MockedPorts {
    let mut ports = ports_that_find(Some(credentials(Some(old_hash()))), true);
    expect_hashing(&mut ports);
    ports
}

fn change_writes(at: Timestamp) -> Vec<store::Write> {
    let user_id = ada().id;
    let kept = a_session().recognised_by("lws_laptop").build().id;
    vec![
        Write::ConfirmPassword { user_id, hash: old_hash() }.into(),
        Write::SetPassword { user_id, hash: new_hash(), at }.into(),
        Write::EndSessions { user_id, keep: Some(kept), at }.into(),
        audited(2, an_entry().with_message("changed their password").with("password", "[changed]").at(at)),
    ]
}

#[tokio::test]
async fn change_ends_other_sessions_and_forgives_the_attempt() {
    let mut ports = ports_until_commit();
    ports.expect_commit(change_writes(ports.now()));
    ports.expect_forgiveness();

    let outcome = ports.services().passwords.change(&actor(), change()).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_change_is_done_although_it_cannot_be_forgiven() {
    let mut ports = ports_until_commit();
    ports.expect_commit(change_writes(ports.now()));
    ports.expect_failing_forgiveness();

    let outcome = ports.services().passwords.change(&actor(), change()).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_wrong_present_password_changes_nothing_and_counts() {
    let ports = ports_that_find(Some(credentials(Some(old_hash()))), false);

    let outcome = ports.services().passwords.change(&actor(), change()).await;

    assert_refused(outcome, WRONG);
}

#[tokio::test]
async fn whoever_has_no_password_has_none_to_change() {
    for found in [Some(credentials(None)), None] {
        for hasher_says in [false, true] {
            let ports = ports_that_find(found.clone(), hasher_says);

            let outcome = ports.services().passwords.change(&actor(), change()).await;

            assert_refused(outcome, WRONG);
        }
    }
}

#[tokio::test]
async fn throttled_attempt_reads_no_credentials() {
    let mut ports = MockedPorts::default();
    ports.expect_throttling(&ada().email, ports.now() + TimeDelta::minutes(2));

    let outcome = ports.services().passwords.change(&actor(), change()).await;

    assert_refused(outcome, Error::RateLimited { retry_after: Duration::from_secs(120) });
}

#[tokio::test]
async fn later_of_two_concurrent_changes_has_a_wrong_password() {
    let mut ports = ports_until_commit();
    ports.expect_failing_commit(StoreError::Stale);

    let outcome = ports.services().passwords.change(&actor(), change()).await;

    assert_refused(outcome, WRONG);
}

#[tokio::test]
async fn an_api_token_cannot_change_a_password() {
    let program = an_actor().with_api_token(an_api_token().build()).build();

    let outcome = MockedPorts::default().services().passwords.change(&program, change()).await;

    assert_refused(outcome, Forbidden::NeedsSession);
}

#[tokio::test]
async fn a_change_during_a_flood_of_passwords_is_asked_to_wait() {
    let mut ports = ports_that_find(Some(credentials(Some(old_hash()))), true);
    ports.hasher.expect_hash().once().returning(|_| Err(HasherError::Busy));
    ports.expect_forgiveness();

    let outcome = ports.services().passwords.change(&actor(), change()).await;

    assert_refused(outcome, HasherError::Busy);
}

#[tokio::test]
async fn no_password_changes_without_a_database() {
    let mut ports = ports_until_commit();
    ports.expect_failing_commit(unavailable());
    ports.expect_forgiveness();

    let outcome = ports.services().passwords.change(&actor(), change()).await;

    assert_refused(outcome, unavailable());
}
