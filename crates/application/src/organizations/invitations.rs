//! Invitations: users with an account become members by their own consent.

use launchway_domain::{
    audit::{Action as Did, Author, Chain, Event, Resource as Audited},
    auth::{Actor, Token, TokenHash, TokenKind},
    ids::InvitationId,
    notifications::{EventKind, Write as Announcement},
    organizations::{Invitation, InvitationDetail, Member, Organization, Role, Scope, Write},
    secret::Secret,
    store::{Rule, StoreError, Unique},
    users::User,
};

use super::{ORGANIZATION, Organizations, UPDATE};
use crate::Error;

const INVITATION: Error = Error::NotFound("the invitation");

const TOKEN_NEEDED: Error = Error::InvalidCredentials(
    "this invitation needs its `token`, because your e-mail address is not verified: ask the admin who invited you for it",
);

/// An invitation that was just created.
#[derive(Debug)]
pub struct SentInvitation {
    /// The invitation with its user and organization.
    pub detail: InvitationDetail,
    /// The token that the user needs to accept it, shown only once; `None` if their address is verified.
    pub token: Option<Token>,
}

impl Organizations {
    /// Invites a user who has an account to the actor's current organization. An earlier invitation is
    /// void.
    pub(super) async fn invite(
        &self,
        actor: &Actor,
        scope: Scope,
        user: User,
        role: Role,
    ) -> Result<SentInvitation, Error> {
        // The holder of an account with an unverified address may be another person, so holding the account
        // is not enough.
        let token =
            (!user.is_verified).then(|| Token::new(TokenKind::Invitation, self.context.entropy.bits_256()));
        if token.is_some() {
            // An API token may not see it.
            actor.session()?;
        }
        let now = self.context.clock.now();
        let invitation = Invitation {
            id: self.context.ids.next().into(),
            organization_id: scope.id(),
            user_id: user.id,
            role,
            invited_by: actor.user_id(),
            token: token.as_ref().map(Token::hash),
            created_at: now,
            expires_at: now + Invitation::LIFETIME,
        };
        let email = user.email.clone();
        let what = format!("invited {email} as {}", role.as_str());
        let event = Event::new(Did::Create, Audited::User, user.id, what)
            .with("email", &email)
            .with("role", role.as_str());
        let writes =
            vec![Write::Invite(invitation.clone()).into(), self.context.record(actor.author(), event)];
        self.context.store.commit(writes).await.map_err(|error| match error {
            StoreError::Taken(Unique::Membership) => {
                Error::Conflict(format!("{email} is a member of this organization already"))
            }
            StoreError::Stale => ORGANIZATION,
            error => error.into(),
        })?;
        let organization = self.detail_of(scope).await?.organization;
        let invited_by = actor.user().username.clone();
        Ok(SentInvitation { detail: InvitationDetail { invitation, organization, user, invited_by }, token })
    }

    /// Returns the invitations of the actor's current organization that can still be accepted, newest
    /// first.
    ///
    /// # Errors
    /// [`Error::Forbidden`] without the permission `organization:update`.
    pub async fn invitations(&self, actor: &Actor) -> Result<Vec<InvitationDetail>, Error> {
        let scope = actor.require(UPDATE)?;
        Ok(self.organizations.invitations(scope, self.context.clock.now()).await?)
    }

    /// Returns the invitations of the actor that can still be accepted, newest first.
    ///
    /// # Errors
    /// [`Error::Unavailable`] without a database.
    pub async fn invitations_of(&self, actor: &Actor) -> Result<Vec<InvitationDetail>, Error> {
        Ok(self.organizations.invitations_of(actor.user_id(), self.context.clock.now()).await?)
    }

    /// Accepts an invitation of the actor, who is a member from then on.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none that can be accepted, [`Error::InvalidCredentials`] when it needs another
    /// token, [`Error::Conflict`] when they are a member already, [`Error::Forbidden`] without a session.
    pub async fn accept(
        &self,
        actor: &Actor,
        id: InvitationId,
        token: Option<Secret<String>>,
    ) -> Result<(Organization, Member), Error> {
        actor.session()?;
        let InvitationDetail { invitation, user, .. } = self.own_invitation(actor, id).await?;
        let scope = Scope::of_record(invitation.organization_id);
        let role = invitation.role;
        let accept = Write::AcceptInvitation {
            id,
            user_id: user.id,
            token: token.map(|token| TokenHash::of(token.expose())),
            membership: self.context.ids.next().into(),
            at: self.context.clock.now(),
        };
        let added = self.context.event(scope, EventKind::MemberAdded);
        let added = added.member_added((user.email.as_str(), role), user.id, actor.user());
        let what = format!("accepted the invitation as {}", role.as_str());
        let event = Event::new(Did::Create, Audited::User, user.id, what)
            .with("email", &user.email)
            .with("role", role.as_str());
        let writes = vec![
            accept.into(),
            Announcement::Announce(added).into(),
            self.context.record(author_in(actor, scope), event),
        ];
        self.context.store.commit(writes).await.map_err(|error| match error {
            StoreError::Stale => INVITATION,
            StoreError::Refused(Rule::InvitationToken) => TOKEN_NEEDED,
            StoreError::Taken(Unique::Membership) => {
                Error::Conflict("you are a member of this organization already".to_owned())
            }
            error => error.into(),
        })?;
        self.member_of(scope, user.id).await
    }

    /// Declines an invitation of the actor, which is void from then on.
    ///
    /// # Errors
    /// [`Error::NotFound`] when there is none that can be accepted, [`Error::Forbidden`] without a session.
    pub async fn decline(&self, actor: &Actor, id: InvitationId) -> Result<(), Error> {
        actor.session()?;
        let InvitationDetail { invitation, user, .. } = self.own_invitation(actor, id).await?;
        let scope = Scope::of_record(invitation.organization_id);
        let event = Event::new(Did::Delete, Audited::User, user.id, "declined the invitation")
            .with("email", &user.email);
        let decline = Write::DeclineInvitation { id, user_id: user.id, at: self.context.clock.now() };
        let writes = vec![decline.into(), self.context.record(author_in(actor, scope), event)];
        self.context.commit(writes, INVITATION).await
    }

    /// Withdraws an invitation to the organization of `scope`.
    pub(super) async fn withdraw(&self, actor: &Actor, scope: Scope, user: &User) -> Result<(), Error> {
        let event = Event::new(
            Did::Delete,
            Audited::User,
            user.id,
            format!("withdrew the invitation of {}", user.email),
        );
        let at = self.context.clock.now();
        let withdraw = Write::WithdrawInvitation { scope, user_id: user.id, at };
        let writes = vec![withdraw.into(), self.context.record(actor.author(), event)];
        self.context.commit(writes, INVITATION).await
    }

    async fn own_invitation(&self, actor: &Actor, id: InvitationId) -> Result<InvitationDetail, Error> {
        let own = self.invitations_of(actor).await?;
        own.into_iter().find(|detail| detail.invitation.id == id).ok_or(INVITATION)
    }
}

/// Returns the actor as the author of an entry of the organization that invites them.
fn author_in(actor: &Actor, scope: Scope) -> Author {
    Author { chain: Chain::Organization(scope.id()), ..actor.author() }
}
