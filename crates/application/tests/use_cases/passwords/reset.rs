//! Resetting a password with access to the files of the server.

use launchway_application::Error;
use launchway_domain::{
    audit::Chain,
    auth::{HasherError, Write},
    clock::Timestamp,
    organizations::Role,
    store,
    users::EmailAddress,
};
use launchway_testkit::builders::{EntryBuilder, a_password, a_profile, an_entry, an_organization, parsed};
use mockall::predicate::eq;

use super::{NEW, ada, credentials, expect_hashing, expect_profile, new_hash, old_hash};
use crate::{
    audit_log::audited,
    ports::{MockedPorts, unavailable},
    refusals::assert_refused,
};

/// Returns ports that know the address.
fn ports_that_know_ada() -> MockedPorts {
    let mut ports = MockedPorts::default();
    ports
        .credentials
        .expect_by_email()
        .with(eq(ada().email))
        .once()
        .returning(|_| Ok(Some(credentials(Some(old_hash())))));
    ports
}

/// Returns ports that allow a reset up to the read of the profile.
fn ports_until_profile() -> MockedPorts {
    let mut ports = ports_that_know_ada();
    expect_hashing(&mut ports);
    ports
}

/// Returns the audit entry of the reset in [`an_organization`].
fn resetting() -> EntryBuilder {
    an_entry()
        .by_operator()
        .with_message("reset the password of ada@example.com")
        .with("password", "[changed]")
}

fn reset_writes(entry: EntryBuilder, at: Timestamp) -> Vec<store::Write> {
    let user_id = ada().id;
    vec![
        Write::SetPassword { user_id, hash: new_hash(), at }.into(),
        Write::EndSessions { user_id, keep: None, at }.into(),
        audited(1, entry),
    ]
}

async fn reset(ports: MockedPorts) -> Result<(), Error> {
    ports.services().passwords.reset(&ada().email, &a_password(NEW)).await
}

#[tokio::test]
async fn a_reset_needs_no_present_password_and_ends_all_sessions() {
    let mut ports = ports_until_profile();
    let profile = a_profile().member_of(&an_organization().build(), Role::Viewer).build();
    expect_profile(&mut ports, Some(profile));
    ports.expect_commit(reset_writes(resetting(), ports.now()));

    let outcome = reset(ports).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn a_reset_is_in_the_audit_log_of_the_oldest_membership() {
    let [oldest, other] = ["Oldest", "Other"].map(|name| an_organization().named(name).build());
    let mut ports = ports_until_profile();
    let profile = a_profile().member_of(&oldest, Role::Viewer).member_of(&other, Role::Admin).build();
    expect_profile(&mut ports, Some(profile));
    ports.expect_commit(reset_writes(resetting().in_audit_log_of(&oldest), ports.now()));

    let outcome = reset(ports).await;

    assert!(outcome.is_ok(), "{outcome:?}");
}

#[tokio::test]
async fn reset_without_organization_is_audited_by_the_installation() {
    for profile in [Some(a_profile().build()), None] {
        let mut ports = ports_until_profile();
        expect_profile(&mut ports, profile);
        ports.expect_commit(reset_writes(resetting().in_chain(Chain::Installation), ports.now()));

        let outcome = reset(ports).await;

        assert!(outcome.is_ok(), "{outcome:?}");
    }
}

#[tokio::test]
async fn a_reset_for_nobody_is_not_found() {
    let nobody: EmailAddress = parsed("nobody@example.com");
    let mut ports = MockedPorts::default();
    ports.credentials.expect_by_email().with(eq(nobody.clone())).once().returning(|_| Ok(None));

    let outcome = ports.services().passwords.reset(&nobody, &a_password(NEW)).await;

    assert_refused(outcome, Error::NotFound("a user with that e-mail address"));
}

#[tokio::test]
async fn a_reset_during_a_flood_of_passwords_is_asked_to_wait() {
    let mut ports = ports_that_know_ada();
    ports.hasher.expect_hash().once().returning(|_| Err(HasherError::Busy));

    assert_refused(reset(ports).await, HasherError::Busy);
}

#[tokio::test]
async fn no_password_is_reset_while_credentials_cannot_be_read() {
    let mut ports = MockedPorts::default();
    ports.credentials.expect_by_email().once().returning(|_| Err(unavailable()));

    assert_refused(reset(ports).await, unavailable());
}

#[tokio::test]
async fn no_password_is_reset_while_profiles_cannot_be_read() {
    let mut ports = ports_until_profile();
    ports.users.expect_profile().once().returning(|_| Err(unavailable()));

    assert_refused(reset(ports).await, unavailable());
}

#[tokio::test]
async fn no_password_is_reset_while_nothing_can_be_written() {
    let mut ports = ports_until_profile();
    expect_profile(&mut ports, Some(a_profile().build()));
    ports.expect_failing_commit(unavailable());

    assert_refused(reset(ports).await, unavailable());
}
