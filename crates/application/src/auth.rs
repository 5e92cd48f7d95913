//! Registration, login, and authentication of requests.

mod api_tokens;
mod authentication;
mod login_attempts;
mod logins;
mod passwords;
mod registration;
mod second_factor;
mod two_factor;

use launchway_domain::{
    audit::{Author, Chain},
    auth::{Client, Origin, Session, Token, TokenKind},
    ids::UserId,
    users::Profile,
};

pub use self::{
    api_tokens::{ApiTokens, IssuedApiToken, NewApiToken},
    authentication::Authentication,
    login_attempts::LoginAttempts,
    logins::{LoginRequest, Logins},
    passwords::{PasswordChange, PasswordSetupRequest, Passwords},
    registration::{NewAdmin, Registration, SetupProof},
    two_factor::{TwoFactorLogin, TwoFactorSetup},
};
use crate::ServiceContext;

/// A session that was just opened, with its token, which is shown only once.
#[derive(Debug)]
pub struct LoggedIn {
    /// The bearer token of the session.
    pub token: Token,
    /// The session.
    pub session: Session,
    /// The user who logged in.
    pub profile: Profile,
}

/// The author of an audit event of a user who is not an actor yet, or no longer. The event belongs to the
/// audit log of their oldest organization.
fn author(profile: &Profile, origin: Origin) -> Author {
    let organization = profile.memberships.first().map(|detail| detail.organization.id);
    Author {
        chain: Chain::from(organization),
        name: profile.user.username.as_str().to_owned(),
        user_id: Some(profile.user.id),
        origin: Some(origin),
    }
}

/// Creates a session of `user_id` and its token. The caller commits it.
fn new_session(context: &ServiceContext, user_id: UserId, client: Client) -> (Token, Session) {
    let token = Token::new(TokenKind::Session, context.entropy.bits_256());
    let session =
        Session::open(context.ids.next().into(), user_id, token.hash(), client, context.clock.now());
    (token, session)
}
