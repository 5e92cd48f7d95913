//! Getting in: registering, logging in, and being recognised on every request.

mod api_tokens;
mod authentication;
mod guesses;
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
    guesses::Guesses,
    logins::{LoginRequest, Logins},
    passwords::{PasswordChange, PasswordSetupRequest, Passwords},
    registration::{NewAdmin, Registration, SetupProof},
    two_factor::{TwoFactorLogin, TwoFactorSetup},
};
use crate::Tools;

/// A session that was just opened, with the token that is shown this once.
#[derive(Debug)]
pub struct LoggedIn {
    /// What the caller presents from now on.
    pub token: Token,
    /// The session.
    pub session: Session,
    /// Who logged in.
    pub profile: Profile,
}

/// How the audit trail knows someone who is not an actor yet, or not any more: in the trail of
/// their oldest membership.
fn author(profile: &Profile, origin: Origin) -> Author {
    let organization = profile.memberships.first().map(|detail| detail.organization.id);
    Author {
        chain: Chain::from(organization),
        name: profile.user.username.as_str().to_owned(),
        user_id: Some(profile.user.id),
        origin: Some(origin),
    }
}

/// A new session of `user_id` and its token; committing it is the caller's part.
fn new_session(tools: &Tools, user_id: UserId, client: Client) -> (Token, Session) {
    let token = Token::new(TokenKind::Session, tools.entropy.bits_256());
    let session = Session::open(tools.ids.next().into(), user_id, token.hash(), client, tools.clock.now());
    (token, session)
}
