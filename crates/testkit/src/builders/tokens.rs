//! Sessions and API tokens.

use launchway_domain::{
    auth::{ApiToken, Client, Permission, Permissions, Session, TokenHash},
    clock::Timestamp,
    organizations::{Organization, Role},
    users::User,
};

use super::{a_client, a_user, an_organization, parsed};
use crate::{
    clock::{NEW_YEAR, moment},
    ids::id_of,
};

/// A session of [`a_user`], opened at [`NEW_YEAR`] by [`a_client`].
pub fn a_session() -> SessionBuilder {
    SessionBuilder {
        user: a_user().build(),
        token: None,
        client: a_client(),
        opened_at: moment(NEW_YEAR),
        extended_at: None,
        expires_at: None,
    }
}

/// Builds a [`Session`].
#[derive(Debug, Clone)]
#[must_use]
pub struct SessionBuilder {
    user: User,
    token: Option<String>,
    client: Client,
    opened_at: Timestamp,
    extended_at: Option<Timestamp>,
    expires_at: Option<Timestamp>,
}

impl SessionBuilder {
    /// Sets the user.
    pub fn of(mut self, user: &User) -> Self {
        self.user = user.clone();
        self
    }

    /// Sets the token: another text is another session, with another id.
    pub fn recognised_by(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// Sets the client of the login.
    pub fn from_client(mut self, client: Client) -> Self {
        self.client = client;
        self
    }

    /// Sets the time of the login; the session expires a lifetime later.
    pub fn opened_at(mut self, at: Timestamp) -> Self {
        self.opened_at = at;
        self
    }

    /// Sets the time of the last extension; the session expires a lifetime later.
    pub fn extended_at(mut self, at: Timestamp) -> Self {
        self.extended_at = Some(at);
        self
    }

    /// Sets the time of expiry, whatever the lifetime is.
    pub fn expires_at(mut self, at: Timestamp) -> Self {
        self.expires_at = Some(at);
        self
    }

    /// Returns the session.
    #[must_use]
    pub fn build(self) -> Session {
        let token = self.token.unwrap_or_else(|| format!("lws_{}", self.user.id));
        let id = id_of(&format!("session {token}")).into();
        let extended_at = self.extended_at.unwrap_or(self.opened_at);
        let expires_at = self.expires_at.unwrap_or(extended_at + Session::LIFETIME);
        let opened = Session::open(id, self.user.id, TokenHash::of(&token), self.client, self.opened_at);
        Session { extended_at, expires_at, ..opened }
    }
}

/// The token `ci` of [`a_user`] in [`an_organization`], with all permissions and without expiry.
pub fn an_api_token() -> ApiTokenBuilder {
    ApiTokenBuilder {
        user: a_user().build(),
        organization: an_organization().build(),
        name: "ci".to_owned(),
        token: None,
        permissions: Role::Admin.permissions(),
        expires_at: None,
        created_at: moment(NEW_YEAR),
    }
}

/// Builds an [`ApiToken`].
#[derive(Debug, Clone)]
#[must_use]
pub struct ApiTokenBuilder {
    user: User,
    organization: Organization,
    name: String,
    token: Option<String>,
    permissions: Permissions,
    expires_at: Option<Timestamp>,
    created_at: Timestamp,
}

impl ApiTokenBuilder {
    /// Sets the user.
    pub fn of(mut self, user: &User) -> Self {
        self.user = user.clone();
        self
    }

    /// Sets the organization.
    pub fn in_organization(mut self, organization: &Organization) -> Self {
        self.organization = organization.clone();
        self
    }

    /// Sets the name, and so another id.
    pub fn named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the token text.
    pub fn recognised_by(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// Sets the permissions, by name.
    ///
    /// # Panics
    /// If there is no such permission.
    #[track_caller]
    pub fn permitting(mut self, names: &[&str]) -> Self {
        self.permissions = permissions(names);
        self
    }

    /// Sets the time of expiry.
    pub fn expires_at(mut self, at: Timestamp) -> Self {
        self.expires_at = Some(at);
        self
    }

    /// Sets the time of creation.
    pub fn created_at(mut self, at: Timestamp) -> Self {
        self.created_at = at;
        self
    }

    /// Returns the token.
    ///
    /// # Panics
    /// If it cannot have that name.
    #[must_use]
    #[track_caller]
    pub fn build(self) -> ApiToken {
        let id = id_of(&format!("api token {} {} {}", self.organization.id, self.user.id, self.name));
        ApiToken {
            id: id.into(),
            organization_id: self.organization.id,
            user_id: self.user.id,
            name: parsed(&self.name),
            token_hash: TokenHash::of(&self.token.unwrap_or_else(|| format!("lwa_{id}"))),
            permissions: self.permissions,
            expires_at: self.expires_at,
            created_at: self.created_at,
        }
    }
}

/// Returns the set of the permissions with these names.
///
/// # Panics
/// If there is no such permission.
#[must_use]
#[track_caller]
pub fn permissions(names: &[&str]) -> Permissions {
    names.iter().map(|name| parsed::<Permission>(name)).collect()
}
