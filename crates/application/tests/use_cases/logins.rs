//! Login and logout.

mod log_out;
mod passwords;
mod second_factors;

use launchway_application::{
    Error,
    auth::{LoggedIn, LoginRequest},
};
use launchway_domain::{
    audit::{Action, Resource},
    auth::{Credentials, PasswordHash, Session, Token, TokenKind, TwoFactor, Write},
    clock::Timestamp,
    organizations::Role,
    secret::Secret,
    store,
    users::{Profile, User},
};
use launchway_testkit::{
    CountingEntropy, CountingIds,
    builders::{a_client, a_profile, a_user, an_entry, an_organization, an_origin},
};
use mockall::predicate::eq;

use crate::{audit_log::audited, ports::MockedPorts};

/// The same message for every wrong credential.
const WRONG: Error = Error::InvalidCredentials("the e-mail address, the password or the code is incorrect");

fn ada() -> User {
    a_user().named("ada").build()
}

/// The audit log of a login is that of the oldest membership: the first.
fn profile() -> Profile {
    let younger = an_organization().named("Younger").build();
    let oldest = an_organization().build();
    a_profile().of(&ada()).member_of(&oldest, Role::Viewer).member_of(&younger, Role::Admin).build()
}

fn hash() -> PasswordHash {
    PasswordHash("$argon2id$ada".to_owned())
}

fn credentials(two_factor: Option<TwoFactor>) -> Credentials {
    Credentials { user_id: ada().id, password: Some(hash()), two_factor }
}

fn password() -> Secret<String> {
    Secret::new("correct horse battery".to_owned())
}

fn request(code: Option<&str>) -> LoginRequest {
    LoginRequest {
        email: ada().email,
        password: password(),
        totp_code: code.map(|code| Secret::new(code.to_owned())),
        origin: an_origin(),
    }
}

/// Returns ports that admit a login, find `found` and accept or reject the password.
fn ports_that_find(found: Option<Credentials>, password_is_right: bool) -> MockedPorts {
    let mut ports = MockedPorts::default();
    ports.expect_admission(&ada().email);
    let stored = found.as_ref().and_then(|credentials| credentials.password.clone());
    ports.credentials.expect_by_email().with(eq(ada().email)).once().return_once(|_| Ok(found));
    ports
        .hasher
        .expect_verify()
        .with(eq(password()), eq(stored))
        .once()
        .returning(move |_, _| Ok(password_is_right));
    ports
}

fn expect_profile(ports: &mut MockedPorts, profile: Option<Profile>) {
    ports.users.expect_profile().with(eq(ada().id)).once().return_once(|_| Ok(profile));
}

/// Returns the session that a login opens, and its token.
fn opened_session(now: Timestamp) -> (Token, Session) {
    let token = Token::new(TokenKind::Session, CountingEntropy::nth(1));
    let session = Session::open(CountingIds::nth(2).into(), ada().id, token.hash(), a_client(), now);
    (token, session)
}

/// Returns the writes of a login, with the one that consumes a code.
fn login_writes(code_use: Option<Write>, now: Timestamp) -> Vec<store::Write> {
    let mut writes = vec![Write::ConfirmPassword { user_id: ada().id, hash: hash() }];
    writes.extend(code_use);
    writes.push(Write::OpenSession(opened_session(now).1));
    let login = an_entry().of(Action::Access, Resource::User, ada().id).with_message("logged in").at(now);
    writes.into_iter().map(Into::into).chain([audited(3, login)]).collect()
}

#[track_caller]
fn assert_logged_in(outcome: Result<LoggedIn, Error>, now: Timestamp) {
    match outcome {
        Ok(LoggedIn { token, session, profile: shown }) => {
            let (expected_token, expected_session) = opened_session(now);
            assert_eq!((token, session, shown), (expected_token, expected_session, profile()));
        }
        Err(error) => panic!("not logged in: {error:?}"),
    }
}
