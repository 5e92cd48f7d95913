//! The members of an organization, and their roles.

use launchway_domain::{
    audit::{Action as Did, Event, Resource as Audited},
    auth::{Actor, PasswordSetup, Token, TokenKind, Write as AuthWrite},
    ids::UserId,
    notifications::{EventKind, Write as Announcement},
    organizations::{Member, Membership, Organization, Role, Scope, Write},
    store::{self, Rule, StoreError, Unique},
    users::{EmailAddress, User, Username, Write as UserWrite},
};

use super::{ORGANIZATION, Organizations, SentInvitation, UPDATE};
use crate::Error;

const MEMBER: Error = Error::NotFound("the member");

/// The request to add a member.
#[derive(Debug)]
pub struct NewMember {
    /// The email address of the user.
    pub email: EmailAddress,
    /// The role of the member.
    pub role: Role,
    /// The name of a new account; if absent, it is derived from the address.
    pub username: Option<Username>,
}

/// The result of adding a member.
#[derive(Debug)]
pub enum Added {
    /// The address had no account in use: the user is a member now.
    Member(AddedMember),
    /// The address has an account in use: the user is invited.
    Invited(SentInvitation),
}

/// A member who was just added.
#[derive(Debug)]
pub struct AddedMember {
    /// The organization of the member.
    pub organization: Organization,
    /// The new member.
    pub member: Member,
    /// The token with which a new user sets the first password, shown only once.
    pub setup_token: Token,
}

impl Organizations {
    /// Adds a member to the actor's current organization. A user without an account gets one; a user with
    /// an account is invited.
    ///
    /// # Errors
    /// [`Error::Conflict`] when they are a member already, [`Error::Forbidden`] without the permission
    /// `organization:update` and those of the role, or when an API token would be shown the setup token.
    pub async fn add_member(&self, actor: &Actor, new: NewMember) -> Result<Added, Error> {
        let scope = actor.require(UPDATE)?;
        let NewMember { email, role, username } = new;
        actor.require_all(role.permissions())?;
        let now = self.context.clock.now();
        let mut writes: Vec<store::Write> = Vec::new();
        let user_id = match self.organizations.candidate(&email).await? {
            // An account that is in use belongs to its user alone, so they have to agree.
            Some(candidate) if !candidate.is_unused => {
                return self.invite(actor, scope, candidate.user, role).await.map(Added::Invited);
            }
            Some(candidate) => candidate.user.id,
            None => {
                let username = username.unwrap_or_else(|| email.local_part());
                let user = User::invited(self.context.ids.next().into(), username, email.clone(), now);
                let id = user.id;
                writes.push(UserWrite::Insert(user).into());
                id
            }
        };
        // The token sets a password, which an API token may not do.
        actor.session()?;
        let setup_token = Token::new(TokenKind::PasswordSetup, self.context.entropy.bits_256());
        let expires_at = now + PasswordSetup::LIFETIME;
        let setup = PasswordSetup { user_id, token: setup_token.hash(), expires_at };
        writes.push(AuthWrite::OfferPasswordSetup(setup).into());
        let membership = Membership::new(self.context.ids.next().into(), scope.id(), user_id, role, now);
        writes.push(Write::InsertMembership(membership).into());
        let added = self.context.event(scope, EventKind::MemberAdded);
        let added = added.member_added((email.as_str(), role), user_id, actor.user());
        writes.push(Announcement::Announce(added).into());
        let event =
            Event::new(Did::Create, Audited::User, user_id, format!("added {email} as {}", role.as_str()))
                .with("email", &email)
                .with("role", role.as_str());
        writes.push(self.context.record(actor.author(), event));
        self.context.store.commit(writes).await.map_err(|error| match error {
            StoreError::Taken(Unique::Membership) => {
                Error::Conflict(format!("{email} is a member of this organization already"))
            }
            StoreError::Taken(Unique::UserEmail) | StoreError::Refused(Rule::AccountInUse) => {
                Error::Conflict(format!("{email} was added by someone else at the same moment; try again"))
            }
            StoreError::Stale => ORGANIZATION,
            error => error.into(),
        })?;
        let (organization, member) = self.member_of(scope, user_id).await?;
        Ok(Added::Member(AddedMember { organization, member, setup_token }))
    }

    /// Changes the role of a member of the actor's current organization.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a user who is not a member, [`Error::Conflict`] when no admin would be left,
    /// [`Error::Forbidden`] without the permission `organization:update` and those of the role.
    pub async fn change_role(
        &self,
        actor: &Actor,
        user_id: UserId,
        role: Role,
    ) -> Result<(Organization, Member), Error> {
        let scope = actor.require(UPDATE)?;
        actor.require_all(role.permissions())?;
        let member = self.organizations.member(scope, user_id).await?.ok_or(MEMBER)?;
        let what = format!("changed the role of {} to {}", member.user.email, role.as_str());
        let event = Event::new(Did::Update, Audited::User, user_id, what).with("role", role.as_str());
        let at = self.context.clock.now();
        let change = Write::ChangeRole { scope, user_id, role, at };
        self.change_membership(actor, vec![change.into()], event).await?;
        self.member_of(scope, user_id).await
    }

    /// Removes a member from the actor's current organization, or withdraws an invitation. Every member may
    /// leave.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a user who is neither a member nor invited, [`Error::Conflict`] when no
    /// admin would be left, [`Error::Forbidden`] without the permission `organization:update`.
    pub async fn remove_member(&self, actor: &Actor, user_id: UserId) -> Result<(), Error> {
        let leaves = user_id == actor.user_id() && actor.session().is_ok();
        let scope = if leaves { actor.organization()? } else { actor.require(UPDATE)? };
        let Some(member) = self.organizations.member(scope, user_id).await? else {
            if leaves {
                return Err(MEMBER);
            }
            let invitations = self.organizations.invitations(scope, self.context.clock.now()).await?;
            let invited = invitations.into_iter().find(|detail| detail.user.id == user_id).ok_or(MEMBER)?;
            return self.withdraw(actor, scope, &invited.user).await;
        };
        let what = if leaves {
            "left the organization".to_owned()
        } else {
            format!("removed {}", member.user.email)
        };
        let event = Event::new(Did::Delete, Audited::User, user_id, what);
        let at = self.context.clock.now();
        let removed = self.context.event(scope, EventKind::MemberRemoved);
        let removed = removed.member_removed(&member.user, actor.user());
        let writes =
            vec![Write::RemoveMember { scope, user_id, at }.into(), Announcement::Announce(removed).into()];
        self.change_membership(actor, writes, event).await
    }

    async fn change_membership(
        &self,
        actor: &Actor,
        mut writes: Vec<store::Write>,
        event: Event,
    ) -> Result<(), Error> {
        writes.push(self.context.record(actor.author(), event));
        self.context.store.commit(writes).await.map_err(|error| match error {
            StoreError::Stale => MEMBER,
            StoreError::Refused(Rule::LastAdmin) => {
                Error::Conflict("an organization needs an admin: make someone else admin first".to_owned())
            }
            error => error.into(),
        })
    }

    pub(super) async fn member_of(
        &self,
        scope: Scope,
        user_id: UserId,
    ) -> Result<(Organization, Member), Error> {
        let detail = self.detail_of(scope).await?;
        let member = detail.members.into_iter().find(|member| member.user.id == user_id).ok_or(MEMBER)?;
        Ok((detail.organization, member))
    }
}
