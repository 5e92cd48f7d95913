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

/// The error for an organization that does not exist or that the caller is not a member of.
const NO_ORGANIZATION: Error = Error::NotFound("the organization");
/// The error for a user who is not a member.
const NO_MEMBER: Error = Error::NotFound("the member");

fn ada() -> User {
    a_user().named("ada").build()
}

fn grace() -> User {
    a_user().named("grace").build()
}

/// Returns the scope of [`an_actor`].
fn scope() -> Scope {
    scope_of(&an_organization().build())
}

/// Returns a member of [`an_organization`].
fn member(user: &User, role: Role) -> Member {
    a_membership().of(user).with_role(role).member()
}

/// Returns [`an_organization`] with ada as its admin and grace as its viewer.
fn detail() -> OrganizationDetail {
    an_organization().with_members(vec![member(&ada(), Role::Admin), member(&grace(), Role::Viewer)])
}

/// Returns an API token of an admin with `permissions`.
fn program(permissions: &[&str]) -> Actor {
    an_actor().with_api_token(an_api_token().permitting(permissions).build()).build()
}

/// Returns an actor without an organization.
fn outsider() -> Actor {
    an_actor().of(a_profile().build()).build()
}

/// Returns actors of [`an_organization`] without the permission `named`: a viewer, a member, and an API
/// token with every other permission.
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

/// Returns an invitation of `user` to [`an_organization`] as a member, by ada.
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

/// Expects a read of the organization.
fn expect_detail(ports: &mut MockedPorts, scope: Scope, detail: Option<OrganizationDetail>) {
    ports.organizations.expect_detail().with(eq(scope)).once().return_once(|_| Ok(detail));
}

/// Expects a lookup of a member of [`an_organization`].
fn expect_member(ports: &mut MockedPorts, user: &User, found: Option<Member>) {
    ports.organizations.expect_member().with(eq(scope()), eq(user.id)).once().return_once(|_, _| Ok(found));
}
