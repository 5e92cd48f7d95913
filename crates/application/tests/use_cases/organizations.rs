//! Organizations and their members.

mod add_member;
mod change_role;
mod create;
mod delete;
mod detail;
mod invitations;
mod remove_member;
mod update;

use launchway_application::Error;
use launchway_domain::{
    auth::{Actor, Forbidden},
    organizations::{Invitation, InvitationDetail, Member, OrganizationDetail, Role, Scope},
    users::User,
};
use launchway_testkit::builders::{
    a_membership, a_profile, a_user, an_actor, an_api_token, an_organization, parsed, scope_of,
};
use launchway_testkit::ids::id_of;
use mockall::predicate::eq;

use crate::ports::MockedPorts;

/// What an organization is called that is gone, and one that is none of the caller's.
const NO_ORGANIZATION: Error = Error::NotFound("the organization");
/// What someone is called who is no member.
const NO_MEMBER: Error = Error::NotFound("the member");

fn ada() -> User {
    a_user().named("ada").build()
}

fn grace() -> User {
    a_user().named("grace").build()
}

/// The scope that [`an_actor`] acts in.
fn scope() -> Scope {
    scope_of(&an_organization().build())
}

/// A member of [`an_organization`].
fn member(user: &User, role: Role) -> Member {
    a_membership().of(user).with_role(role).member()
}

/// [`an_organization`] with ada as its admin and grace as its viewer.
fn detail() -> OrganizationDetail {
    an_organization().with_members(vec![member(&ada(), Role::Admin), member(&grace(), Role::Viewer)])
}

/// A program of an admin, which may do what `permissions` name.
fn program(permissions: &[&str]) -> Actor {
    an_actor().with_api_token(an_api_token().permitting(permissions).build()).build()
}

/// Someone who is in no organization.
fn outsider() -> Actor {
    an_actor().of(a_profile().build()).build()
}

/// Those in [`an_organization`] who lack the permission `named`: viewers, members, and a program
/// that may do everything else.
fn actors_without(named: &str) -> [Actor; 3] {
    let others: Vec<&str> =
        Role::Admin.permissions().names().into_iter().filter(|name| *name != named).collect();
    [an_actor().with_role(Role::Viewer).build(), an_actor().with_role(Role::Member).build(), program(&others)]
}

fn lacks(permission: &str) -> Forbidden {
    Forbidden::Lacks(parsed(permission))
}

fn conflict(reason: &str) -> Error {
    Error::Conflict(reason.to_owned())
}

/// An invitation of `user` to [`an_organization`] as a member, by ada.
fn an_invitation(user: &User) -> InvitationDetail {
    let organization = an_organization().build();
    let invitation = Invitation {
        id: id_of("an invitation").into(),
        organization_id: organization.id,
        user_id: user.id,
        role: Role::Member,
        invited_by: ada().id,
        token: None,
        created_at: organization.created_at,
        expires_at: organization.created_at + Invitation::LIFETIME,
    };
    InvitationDetail { invitation, organization, user: user.clone(), invited_by: ada().username }
}

/// Foresees that the organization is read, as it is now.
fn expect_detail(ports: &mut MockedPorts, scope: Scope, detail: Option<OrganizationDetail>) {
    ports.organizations.expect_detail().with(eq(scope)).once().return_once(|_| Ok(detail));
}

/// Foresees that a member of [`an_organization`] is looked for.
fn expect_member(ports: &mut MockedPorts, user: &User, found: Option<Member>) {
    ports.organizations.expect_member().with(eq(scope()), eq(user.id)).once().return_once(|_, _| Ok(found));
}
