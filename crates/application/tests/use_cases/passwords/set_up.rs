//! The first password of a new user.

use std::sync::Arc;

use chrono::TimeDelta;
use launchway_application::{Error, auth::PasswordSetupRequest};
use launchway_domain::{
    audit::Chain,
    auth::{HasherError, PasswordSetup, TokenHash, Write},
    clock::Timestamp,
    ids::UserId,
    organizations::Role,
    secret::Secret,
    store::{self, StoreError},
    users::Profile,
};
use launchway_testkit::builders::{
    EntryBuilder, a_password, a_profile, an_entry, an_organization, an_origin,
};
use mockall::predicate::eq;

use super::{NEW, ada, expect_hashing, expect_profile, new_hash};
use crate::{
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

/// The setup token of the new user.
const TOKEN: &str = "lwp_given";

const VOID: Error = Error::InvalidCredentials(
    "this `token` is unknown, was used before or has expired: ask the admin who added you for a new one",
);

fn request() -> PasswordSetupRequest {
    PasswordSetupRequest {
        token: Secret::new(TOKEN.to_owned()),
        password: a_password(NEW),
        origin: an_origin(),
    }
}

/// The audit log of a setup is that of the oldest membership: the first.
fn profile() -> Profile {
    let younger = an_organization().named("Younger").build();
    let oldest = an_organization().build();
    a_profile().of(&ada()).member_of(&oldest, Role::Viewer).member_of(&younger, Role::Admin).build()
}

/// Returns ports that resolve the hash of [`TOKEN`] at the current time to `found`.
fn ports_that_find(found: Option<UserId>) -> MockedPorts {
    let mut ports = MockedPorts::default();
    let now = ports.now();
    ports
        .credentials
        .expect_by_password_setup()
        .with(eq(TokenHash::of(TOKEN)), eq(now))
        .once()
        .returning(move |_, _| Ok(found));
    ports
}

/// Returns ports that accept [`TOKEN`] until `end`.
fn ports_that_find_until(end: Timestamp) -> MockedPorts {
    let mut ports = MockedPorts::default();
    ports
        .credentials
        .expect_by_password_setup()
        .once()
        .returning(move |_, now| Ok((now < end).then(|| ada().id)));
    ports
}

/// Returns ports that allow a setup up to the hash.
fn ports_until_hash() -> MockedPorts {
    let mut ports = ports_that_find(Some(ada().id));
    expect_profile(&mut ports, Some(profile()));
    ports
}

/// Returns ports that allow a setup up to the commit.
fn ports_until_commit() -> MockedPorts {
    let mut ports = ports_until_hash();
    expect_hashing(&mut ports);
    ports
}

/// Returns the audit entry of the first password in [`an_organization`].
fn setting_up() -> EntryBuilder {
    an_entry().with_message("set their first password").with("password", "[changed]")
}

fn setup_writes(entry: EntryBuilder, at: Timestamp) -> Vec<store::Write> {
    let user_id = ada().id;
    vec![
        Write::RedeemPasswordSetup { user_id, token: TokenHash::of(TOKEN), at }.into(),
        Write::SetPassword { user_id, hash: new_hash(), at }.into(),
        audited(1, entry.at(at)),
    ]
}

async fn set_up(ports: MockedPorts) -> Result<(), Error> {
    ports.services().passwords.set_up(request()).await
}

#[tokio::test]
async fn a_new_user_sets_the_first_password_and_uses_the_token_up() {
    let mut ports = ports_until_commit();
    ports.expect_commit(setup_writes(setting_up(), ports.now()));

    let outcome = set_up(ports).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn setup_of_a_removed_member_is_audited_by_the_installation() {
    let mut ports = ports_that_find(Some(ada().id));
    expect_profile(&mut ports, Some(a_profile().of(&ada()).build()));
    expect_hashing(&mut ports);
    ports.expect_commit(setup_writes(setting_up().in_chain(Chain::Installation), ports.now()));

    let outcome = set_up(ports).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_token_that_is_unknown_is_void_and_no_password_is_hashed() {
    assert_refused(set_up(ports_that_find(None)).await, VOID);
}

#[tokio::test]
async fn a_token_of_a_deleted_user_is_void() {
    let mut ports = ports_that_find(Some(ada().id));
    expect_profile(&mut ports, None);

    assert_refused(set_up(ports).await, VOID);
}

#[tokio::test]
async fn token_is_valid_until_just_before_24_hours() {
    let begin = MockedPorts::default().now();
    let last = begin + TimeDelta::hours(24) - TimeDelta::microseconds(1);
    let mut ports = ports_that_find_until(begin + PasswordSetup::LIFETIME);
    ports.clock.set(last);
    expect_profile(&mut ports, Some(profile()));
    expect_hashing(&mut ports);
    ports.expect_commit(setup_writes(setting_up(), last));

    let outcome = set_up(ports).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_token_is_void_when_its_24_hours_are_over() {
    let ports = ports_that_find_until(MockedPorts::default().now() + PasswordSetup::LIFETIME);
    ports.clock.advance(TimeDelta::hours(24));

    assert_refused(set_up(ports).await, VOID);
}

#[tokio::test]
async fn the_time_that_hashing_takes_counts() {
    let mut ports = ports_until_hash();
    let clock = Arc::clone(&ports.clock);
    ports.hasher.expect_hash().once().returning(move |_| {
        clock.advance(TimeDelta::seconds(2));
        Ok(new_hash())
    });
    ports.expect_commit(setup_writes(setting_up(), ports.now() + TimeDelta::seconds(2)));

    let outcome = set_up(ports).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_token_that_was_used_or_expired_meanwhile_is_void() {
    let mut ports = ports_until_commit();
    ports.expect_failing_commit(StoreError::Stale);

    assert_refused(set_up(ports).await, VOID);
}

#[tokio::test]
async fn a_setup_during_a_flood_of_passwords_is_asked_to_wait() {
    let mut ports = ports_until_hash();
    ports.hasher.expect_hash().once().returning(|_| Err(HasherError::Busy));

    assert_refused(set_up(ports).await, HasherError::Busy);
}

#[tokio::test]
async fn no_password_is_set_up_while_tokens_cannot_be_read() {
    let mut ports = MockedPorts::default();
    ports.credentials.expect_by_password_setup().once().returning(|_, _| Err(unavailable()));

    assert_refused(set_up(ports).await, unavailable());
}

#[tokio::test]
async fn no_password_is_set_up_while_profiles_cannot_be_read() {
    let mut ports = ports_that_find(Some(ada().id));
    ports.users.expect_profile().once().returning(|_| Err(unavailable()));

    assert_refused(set_up(ports).await, unavailable());
}

#[tokio::test]
async fn no_password_is_set_up_while_nothing_can_be_written() {
    let mut ports = ports_until_commit();
    ports.expect_failing_commit(unavailable());

    assert_refused(set_up(ports).await, unavailable());
}
