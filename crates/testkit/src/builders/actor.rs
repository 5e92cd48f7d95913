//! Actors and identities.

use std::sync::Arc;

use launchway_domain::{
    auth::{Actor, ApiToken, Credential, Identity, Origin, Session},
    ids::OrganizationId,
    organizations::{Organization, Role, Scope},
    users::{Profile, UserKind},
};

use super::{a_membership, a_profile, a_session, an_organization, an_origin};

/// The scope of a member of `organization`.
///
/// # Panics
/// Never: a member may act there.
#[must_use]
pub fn scope_of(organization: &Organization) -> Scope {
    let member = a_profile().member_of(organization, Role::Viewer).build();
    an_actor().of(member).build().organization().unwrap()
}

/// The admin of [`an_organization`], with a session, by the request [`an_origin`].
pub fn an_actor() -> ActorBuilder {
    ActorBuilder {
        profile: a_profile().member_of(&an_organization().build(), Role::Admin).build(),
        credential: None,
        organization: None,
        origin: an_origin(),
    }
}

/// Builds an [`Actor`], or the [`Identity`] that an actor comes from.
#[derive(Debug, Clone)]
#[must_use]
pub struct ActorBuilder {
    profile: Profile,
    credential: Option<Credential>,
    organization: Option<OrganizationId>,
    origin: Origin,
}

impl ActorBuilder {
    /// Sets the user and their memberships.
    pub fn of(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// Sets whether they are an administrator of the installation.
    pub fn of_kind(mut self, kind: UserKind) -> Self {
        self.profile.user.kind = kind;
        self
    }

    /// Makes them a member only of [`an_organization`], with this role.
    pub fn with_role(mut self, role: Role) -> Self {
        self.profile.memberships = vec![a_membership().of(&self.profile.user).with_role(role).detail()];
        self
    }

    /// Sets the session; the default is [`a_session`] of the user.
    pub fn with_session(mut self, session: Session) -> Self {
        self.credential = Some(Credential::Session(session));
        self
    }

    /// Authenticates with an API token instead of a session.
    pub fn with_api_token(mut self, token: ApiToken) -> Self {
        self.credential = Some(Credential::ApiToken(token));
        self
    }

    /// Sets the organization to act in; the default is the token's organization or the oldest membership.
    pub fn acting_in(mut self, organization: &Organization) -> Self {
        self.organization = Some(organization.id);
        self
    }

    /// Sets the request.
    pub fn by_request(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Returns the identity, without an organization.
    #[must_use]
    pub fn identity(self) -> Arc<Identity> {
        let credential = self
            .credential
            .unwrap_or_else(|| Credential::Session(a_session().of(&self.profile.user).build()));
        Arc::new(Identity { credential, profile: Arc::new(self.profile) })
    }

    /// Returns the actor.
    ///
    /// # Panics
    /// If the token is void, or does not let its holder act there.
    #[must_use]
    #[track_caller]
    pub fn build(self) -> Actor {
        let (organization, origin) = (self.organization, self.origin.clone());
        self.identity().act_in(organization, origin).unwrap().unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builders::{a_user, an_api_token};

    #[test]
    fn an_actor_comes_with_a_session_of_their_own() {
        let grace = a_user().named("grace").build();
        let actor = an_actor().of(a_profile().of(&grace).build()).build();
        assert_eq!(actor.session(), Ok(&a_session().of(&grace).build()));
    }

    #[test]
    fn an_actor_may_be_a_program() {
        let token = an_api_token().permitting(&["deploy:read"]).build();
        let actor = an_actor().with_api_token(token).build();
        assert_eq!(actor.permissions().names(), ["deploy:read"]);
    }

    #[test]
    fn a_scope_is_that_of_its_organization() {
        let engines = an_organization().named("Engines").build();
        assert_eq!(scope_of(&engines).id(), engines.id);
    }
}
