//! Registration of the first administrator.

use std::time::Duration;

use launchway_application::{
    Error,
    auth::{LoggedIn, NewAdmin, SetupProof},
};
use launchway_domain::{
    audit::{Action, Resource},
    auth::{HasherError, PasswordHash, Session, Token, TokenKind, Write as AuthWrite},
    clock::Timestamp,
    organizations::{Membership, Organization, Role, Write as OrganizationWrite},
    secret::Secret,
    store::{StoreError, Unique, Write},
    users::{Profile, User, UserKind, Write as UserWrite},
};
use launchway_testkit::{
    CountingEntropy, CountingIds,
    builders::{
        EntryBuilder, a_client, a_password, a_profile, a_user, an_entry, an_organization, an_origin, parsed,
    },
};
use mockall::predicate::eq;

use crate::{
    audit_log::audited,
    ports::{MockedPorts, SETUP_TOKEN, unavailable},
    refusals::assert_refused,
};

const PASSWORD: &str = "correct horse battery";

fn new_admin() -> NewAdmin {
    NewAdmin {
        email: parsed("ada@example.com"),
        password: a_password(PASSWORD),
        username: parsed("ada"),
        organization: None,
    }
}

fn hash() -> PasswordHash {
    PasswordHash("$argon2id$ada".to_owned())
}

fn setup_token(text: &str) -> SetupProof {
    SetupProof::Token(Secret::new(text.to_owned()))
}

/// Returns ports of an installation with or without its first administrator.
fn ports_of_installation(claimed: bool) -> MockedPorts {
    let mut ports = MockedPorts::default();
    ports.credentials.expect_admin_registered().once().returning(move || Ok(claimed));
    ports
}

/// Returns ports that allow a registration up to the commit.
fn ports_until_commit() -> MockedPorts {
    let mut ports = ports_of_installation(false);
    ports.hasher.expect_hash().with(eq(a_password(PASSWORD))).once().returning(|_| Ok(hash()));
    ports
}

/// Returns the administrator of an organization, with deterministic ids.
fn admin_of(organization: &str) -> Profile {
    let user =
        User { id: CountingIds::nth(1).into(), ..a_user().of_kind(UserKind::Admin).unverified().build() };
    let organization =
        Organization { id: CountingIds::nth(2).into(), ..an_organization().named(organization).build() };
    let mut profile = a_profile().of(&user).member_of(&organization, Role::Admin).build();
    for detail in &mut profile.memberships {
        detail.membership = Membership { id: CountingIds::nth(3).into(), ..detail.membership.clone() };
    }
    profile
}

/// Returns the writes that create `admin`.
fn writes_for(admin: &Profile, at: Timestamp) -> Vec<Write> {
    let user = &admin.user;
    let detail = &admin.memberships[0];
    vec![
        UserWrite::Insert(user.clone()).into(),
        AuthWrite::ClaimInstallation { admin: user.id, at }.into(),
        AuthWrite::SetPassword { user_id: user.id, hash: hash(), at }.into(),
        OrganizationWrite::Insert(detail.organization.clone()).into(),
        OrganizationWrite::InsertMembership(detail.membership.clone()).into(),
    ]
}

/// Returns the first two entries in the audit log of the organization: its admin, then itself.
fn first_entries(admin: &Profile) -> [EntryBuilder; 2] {
    let (user, organization) = (&admin.user, &admin.memberships[0].organization);
    let entry = an_entry().by(user).in_audit_log_of(organization);
    [
        entry
            .clone()
            .of(Action::Create, Resource::User, user.id)
            .with_message("registered ada@example.com as the first administrator")
            .with("email", "ada@example.com"),
        entry
            .of(Action::Create, Resource::Organization, organization.id)
            .with_message(&format!("created the organization `{}`", organization.name))
            .with("name", &organization.name),
    ]
}

/// Returns the session that a registration opens, and its token.
fn first_session(admin: &Profile, now: Timestamp) -> (Token, Session) {
    let token = Token::new(TokenKind::Session, CountingEntropy::nth(1));
    let session = Session::open(CountingIds::nth(4).into(), admin.user.id, token.hash(), a_client(), now);
    (token, session)
}

/// Returns the writes of the registration of `admin`.
fn registration_writes(admin: &Profile, session: &Session, at: Timestamp) -> Vec<Write> {
    let [made, created] = first_entries(admin);
    let mut writes = writes_for(admin, at);
    writes.push(AuthWrite::OpenSession(session.clone()).into());
    writes.extend([audited(5, made), audited(6, created)]);
    writes
}

/// Returns the writes that create `admin` with access to the files of the server.
fn offline_writes(admin: &Profile, at: Timestamp) -> Vec<Write> {
    let [made, created] = first_entries(admin).map(EntryBuilder::by_operator);
    let mut writes = writes_for(admin, at);
    writes.extend([audited(4, made), audited(5, created)]);
    writes
}

#[tokio::test]
async fn an_installation_says_whether_it_has_an_administrator() {
    for claimed in [true, false] {
        let registered = ports_of_installation(claimed).services().registration.admin_registered().await;

        assert_eq!(registered.unwrap(), claimed);
    }
}

#[tokio::test]
async fn an_installation_says_nothing_without_a_database() {
    let mut ports = MockedPorts::default();
    ports.credentials.expect_admin_registered().once().returning(|| Err(unavailable()));

    assert_refused(ports.services().registration.admin_registered().await, unavailable());
}

#[tokio::test]
async fn local_registration_creates_a_team_and_a_session() {
    let mut ports = ports_until_commit();
    let admin = admin_of("ada's Team");
    let (token, session) = first_session(&admin, ports.now());
    ports.expect_commit(registration_writes(&admin, &session, ports.now()));

    let outcome = ports.services().registration.register(new_admin(), SetupProof::Local, an_origin()).await;

    let logged_in: LoggedIn = outcome.unwrap();
    assert_eq!((logged_in.token, logged_in.session, logged_in.profile), (token, session, admin));
}

#[tokio::test]
async fn remote_registration_works_with_the_setup_token() {
    let mut ports = ports_until_commit();
    let admin = admin_of("ada's Team");
    let (token, session) = first_session(&admin, ports.now());
    ports.expect_commit(registration_writes(&admin, &session, ports.now()));

    let outcome =
        ports.services().registration.register(new_admin(), setup_token(SETUP_TOKEN), an_origin()).await;

    let logged_in: LoggedIn = outcome.unwrap();
    assert_eq!((logged_in.token, logged_in.session, logged_in.profile), (token, session, admin));
}

#[tokio::test]
async fn remote_registration_needs_the_right_setup_token() {
    for proof in [SetupProof::None, setup_token(""), setup_token("lwi_guess"), setup_token("lwi_setup ")] {
        let ports = ports_of_installation(false);

        let outcome = ports.services().registration.register(new_admin(), proof, an_origin()).await;

        assert_refused(outcome, Error::SetupTokenNeeded);
    }
}

#[tokio::test]
async fn registration_is_closed_after_the_first_whatever_the_proof() {
    for proof in [SetupProof::Local, setup_token(SETUP_TOKEN), SetupProof::None] {
        let ports = ports_of_installation(true);

        let outcome = ports.services().registration.register(new_admin(), proof, an_origin()).await;

        assert_refused(outcome, Error::RegistrationClosed);
    }
}

#[tokio::test]
async fn later_of_two_concurrent_registrations_is_closed() {
    for taken in [Unique::Installation, Unique::UserEmail, Unique::OrganizationName] {
        let mut ports = ports_until_commit();
        ports.expect_failing_commit(StoreError::Taken(taken));

        let outcome =
            ports.services().registration.register(new_admin(), SetupProof::Local, an_origin()).await;

        assert_refused(outcome, Error::RegistrationClosed);
    }
}

#[tokio::test]
async fn nobody_registers_without_a_database() {
    let mut ports = ports_until_commit();
    ports.expect_failing_commit(unavailable());

    let outcome = ports.services().registration.register(new_admin(), SetupProof::Local, an_origin()).await;

    assert_refused(outcome, unavailable());
}

#[tokio::test]
async fn failed_hash_after_another_registration_reports_closed() {
    let mut ports = MockedPorts::default();
    ports.credentials.expect_admin_registered().once().returning(|| Ok(false));
    ports.hasher.expect_hash().once().returning(|_| Err(HasherError::Busy));
    ports.credentials.expect_admin_registered().once().returning(|| Ok(true));

    let outcome = ports.services().registration.register(new_admin(), SetupProof::Local, an_origin()).await;

    assert_refused(outcome, Error::RegistrationClosed);
}

#[tokio::test]
async fn registering_during_a_flood_of_passwords_is_asked_to_wait() {
    let mut ports = MockedPorts::default();
    ports.credentials.expect_admin_registered().times(2).returning(|| Ok(false));
    ports.hasher.expect_hash().once().returning(|_| Err(HasherError::Busy));

    let outcome = ports.services().registration.register(new_admin(), SetupProof::Local, an_origin()).await;

    assert_refused(outcome, Error::RateLimited { retry_after: Duration::from_secs(1) });
}

#[tokio::test]
async fn offline_creation_opens_no_session() {
    let mut ports = ports_until_commit();
    let admin = admin_of("ada's Team");
    ports.expect_commit(offline_writes(&admin, ports.now()));

    let outcome = ports.services().registration.create_admin(new_admin()).await;

    assert_eq!(outcome.unwrap(), admin);
}

#[tokio::test]
async fn the_organization_has_the_name_that_was_chosen() {
    let mut ports = ports_until_commit();
    let admin = admin_of("Analytical Engines");
    ports.expect_commit(offline_writes(&admin, ports.now()));
    let new = NewAdmin { organization: Some(parsed("Analytical Engines")), ..new_admin() };

    let outcome = ports.services().registration.create_admin(new).await;

    assert_eq!(outcome.unwrap(), admin);
}

#[tokio::test]
async fn who_has_the_servers_files_makes_no_second_administrator() {
    let outcome = ports_of_installation(true).services().registration.create_admin(new_admin()).await;

    assert_refused(outcome, Error::RegistrationClosed);
}

#[tokio::test]
async fn offline_creation_fails_after_a_concurrent_registration() {
    let mut ports = ports_until_commit();
    ports.expect_failing_commit(StoreError::Taken(Unique::Installation));

    let outcome = ports.services().registration.create_admin(new_admin()).await;

    assert_refused(outcome, Error::RegistrationClosed);
}
