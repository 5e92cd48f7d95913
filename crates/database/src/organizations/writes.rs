//! Writes organizations and memberships to the database.

use diesel::{
    dsl::{auto_type, exists, not},
    prelude::*,
};
use launchway_domain::{
    clock::Timestamp,
    ids::{OrganizationId, UserId},
    organizations::{Description, Membership, Organization, OrganizationName, Role, Scope, Write},
    store::{Rule, StoreError},
};

use super::{deploy_keys, invitations};
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::{QueryError, guarded},
    extensions, notifications,
    schema::{api_tokens, applications, memberships, organizations, password_setups, users},
    statement::StatementCache as _,
};

/// Applies one change.
pub(crate) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::Insert(organization) => insert(connection, organization),
        Write::Update { scope, name, description, at } => {
            update(connection, *scope, name.as_ref(), description.as_ref(), *at)
        }
        Write::Delete { scope, at } => delete(connection, *scope, *at),
        Write::InsertMembership(membership) => {
            hold(connection, membership.organization_id)?;
            insert_membership(connection, membership)
        }
        Write::Invite(invitation) => {
            hold(connection, invitation.organization_id)?;
            invitations::insert(connection, invitation)
        }
        Write::AcceptInvitation { id, user_id, token, membership, at } => {
            invitations::accept(connection, *id, *user_id, token.as_ref(), *membership, *at)
        }
        Write::DeclineInvitation { id, user_id, at } => invitations::decline(connection, *id, *user_id, *at),
        Write::WithdrawInvitation { scope, user_id, at } => {
            hold(connection, scope.id())?;
            invitations::withdraw(connection, *scope, *user_id, *at)
        }
        Write::ChangeRole { scope, user_id, role, at } => {
            hold(connection, scope.id())?;
            change_role(connection, *scope, *user_id, *role, *at)?;
            if *role != Role::Admin {
                invitations::forget_those_by(connection, *scope, *user_id)?;
            }
            require_an_admin(connection, *scope)
        }
        Write::RemoveMember { scope, user_id, at } => {
            hold(connection, scope.id())?;
            remove_member(connection, *scope, *user_id, *at)?;
            invitations::forget_those_by(connection, *scope, *user_id)?;
            require_an_admin(connection, *scope)
        }
        Write::FirstDeployKey(key) => {
            hold(connection, key.organization_id)?;
            deploy_keys::insert_first(connection, key)
        }
        Write::ReplaceDeployKey(key) => {
            hold(connection, key.organization_id)?;
            deploy_keys::replace(connection, key)
        }
    }
}

#[auto_type(no_type_alias)]
fn not_deleted(id: DbId) -> _ {
    organizations::table
        .filter(organizations::id.eq(id))
        .filter(organizations::deleted_at.is_null())
        .select(organizations::id)
}

/// Fails if an organization is deleted. On PostgreSQL no other transaction deletes it or changes its
/// members until this one ends.
pub(super) fn hold(connection: &mut AnyConnection, id: OrganizationId) -> Result<(), QueryError> {
    let organization = not_deleted(id.into());
    let found: Option<DbId> = match connection {
        AnyConnection::Sqlite(sqlite) => organization.get_result(sqlite),
        AnyConnection::Postgres(postgres) => organization.for_no_key_update().get_result(postgres),
    }
    .optional()?;
    guarded(found.into_iter().count())
}

/// Fails if an organization is deleted. On PostgreSQL it is not deleted until this transaction ends.
pub(crate) fn require(connection: &mut AnyConnection, id: OrganizationId) -> Result<(), QueryError> {
    let organization = not_deleted(id.into());
    let found: Option<DbId> = match connection {
        AnyConnection::Sqlite(sqlite) => organization.get_result(sqlite),
        // A shared lock: only changes of the organization or its members have to wait.
        AnyConnection::Postgres(postgres) => organization.for_share().get_result(postgres),
    }
    .optional()?;
    guarded(found.into_iter().count())
}

/// Fails if the user is no member. On PostgreSQL the organization is not deleted and no member leaves until
/// this transaction ends.
pub(crate) fn require_member(
    connection: &mut AnyConnection,
    organization_id: OrganizationId,
    user_id: UserId,
) -> Result<(), QueryError> {
    require(connection, organization_id)?;
    let id = DbId::from(organization_id);
    // A separate statement, because the one that waited sees the members as of its start.
    let membership = memberships::table
        .inner_join(users::table.on(users::id.eq(memberships::user_id)))
        .filter(memberships::organization_id.eq(id))
        .filter(memberships::user_id.eq(DbId::from(user_id)))
        .filter(memberships::deleted_at.is_null())
        .filter(users::deleted_at.is_null())
        .select(memberships::id);
    let is_member: bool = diesel::select(exists(membership)).get_result(connection)?;
    guarded(is_member.into())
}

/// Fails, and thereby rolls the change back, if the organization is left without an admin.
fn require_an_admin(connection: &mut AnyConnection, scope: Scope) -> Result<(), QueryError> {
    let admins = memberships::table
        .inner_join(users::table.on(users::id.eq(memberships::user_id)))
        .filter(memberships::organization_id.eq(DbId::from(scope.id())))
        .filter(memberships::role.eq(Role::Admin.as_str()))
        .filter(memberships::deleted_at.is_null())
        .filter(users::deleted_at.is_null())
        .select(memberships::id);
    let has_one: bool = diesel::select(exists(admins)).get_result(connection)?;
    if has_one { Ok(()) } else { Err(StoreError::Refused(Rule::LastAdmin).into()) }
}

fn insert(connection: &mut AnyConnection, organization: &Organization) -> Result<(), QueryError> {
    diesel::insert_into(organizations::table)
        .values((
            organizations::id.eq(DbId::from(organization.id)),
            organizations::name.eq(organization.name.as_str()),
            organizations::name_key.eq(organization.name.key()),
            organizations::description.eq(organization.description.as_str()),
            organizations::created_at.eq(DbTs(organization.created_at)),
            organizations::updated_at.eq(DbTs(organization.updated_at)),
            organizations::deleted_at.eq(organization.deleted_at.map(DbTs)),
        ))
        .execute(connection)?;
    Ok(())
}

/// The columns that change.
#[derive(AsChangeset)]
#[diesel(table_name = organizations)]
struct Changes<'a> {
    name: Option<&'a str>,
    name_key: Option<String>,
    description: Option<&'a str>,
    updated_at: DbTs,
}

fn update(
    connection: &mut AnyConnection,
    scope: Scope,
    name: Option<&OrganizationName>,
    description: Option<&Description>,
    at: Timestamp,
) -> Result<(), QueryError> {
    let changes = Changes {
        name: name.map(OrganizationName::as_str),
        name_key: name.map(OrganizationName::key),
        description: description.map(Description::as_str),
        updated_at: DbTs(at),
    };
    guarded(
        diesel::update(organizations::table)
            .filter(organizations::id.eq(DbId::from(scope.id())))
            .filter(organizations::deleted_at.is_null())
            .set(changes)
            .cached()
            .execute(connection)?,
    )
}

fn delete(connection: &mut AnyConnection, scope: Scope, at: Timestamp) -> Result<(), QueryError> {
    let (id, at) = (DbId::from(scope.id()), DbTs(at));
    guarded(
        diesel::update(organizations::table)
            .filter(organizations::id.eq(id))
            .filter(organizations::deleted_at.is_null())
            .set((organizations::deleted_at.eq(at), organizations::updated_at.eq(at)))
            .cached()
            .execute(connection)?,
    )?;
    require_no_application(connection, id)?;
    invitations::forget_all(connection, id)?;
    extensions::leave(connection, scope, at.0)?;
    notifications::leave(connection, scope, at.0)?;
    // In a fixed order, to avoid deadlocks.
    let invited: Vec<DbId> = password_setups::table
        .inner_join(memberships::table.on(memberships::user_id.eq(password_setups::user_id)))
        .filter(memberships::organization_id.eq(id))
        .filter(memberships::deleted_at.is_null())
        .order(password_setups::user_id.asc())
        .select(password_setups::user_id)
        .load(connection)?;
    diesel::update(memberships::table)
        .filter(memberships::organization_id.eq(id))
        .filter(memberships::deleted_at.is_null())
        .set((memberships::deleted_at.eq(at), memberships::updated_at.eq(at)))
        .cached()
        .execute(connection)?;
    diesel::update(api_tokens::table)
        .filter(api_tokens::organization_id.eq(id))
        .filter(api_tokens::revoked_at.is_null())
        .set(api_tokens::revoked_at.eq(at))
        .cached()
        .execute(connection)?;
    invited.into_iter().try_for_each(|user_id| void_password_setup(connection, user_id))
}

/// A separate statement, because the one before waited for transactions that create an application.
fn require_no_application(connection: &mut AnyConnection, id: DbId) -> Result<(), QueryError> {
    let applications = applications::table
        .filter(applications::organization_id.eq(id))
        .filter(applications::deleted_at.is_null());
    let has_one: bool = diesel::select(exists(applications)).get_result(connection)?;
    if has_one { Err(StoreError::Refused(Rule::HasApplications).into()) } else { Ok(()) }
}

pub(super) fn insert_membership(
    connection: &mut AnyConnection,
    membership: &Membership,
) -> Result<(), QueryError> {
    invitations::forget(connection, membership.organization_id, membership.user_id)?;
    diesel::insert_into(memberships::table)
        .values((
            memberships::id.eq(DbId::from(membership.id)),
            memberships::organization_id.eq(DbId::from(membership.organization_id)),
            memberships::user_id.eq(DbId::from(membership.user_id)),
            memberships::role.eq(membership.role.as_str()),
            memberships::created_at.eq(DbTs(membership.created_at)),
            memberships::updated_at.eq(DbTs(membership.updated_at)),
            memberships::deleted_at.eq(membership.deleted_at.map(DbTs)),
        ))
        .execute(connection)?;
    Ok(())
}

fn change_role(
    connection: &mut AnyConnection,
    scope: Scope,
    user_id: UserId,
    role: Role,
    at: Timestamp,
) -> Result<(), QueryError> {
    guarded(
        diesel::update(memberships::table)
            .filter(memberships::organization_id.eq(DbId::from(scope.id())))
            .filter(memberships::user_id.eq(DbId::from(user_id)))
            .filter(memberships::deleted_at.is_null())
            .set((memberships::role.eq(role.as_str()), memberships::updated_at.eq(DbTs(at))))
            .cached()
            .execute(connection)?,
    )
}

fn remove_member(
    connection: &mut AnyConnection,
    scope: Scope,
    user_id: UserId,
    at: Timestamp,
) -> Result<(), QueryError> {
    let (organization_id, user_id, at) = (DbId::from(scope.id()), DbId::from(user_id), DbTs(at));
    guarded(
        diesel::update(memberships::table)
            .filter(memberships::organization_id.eq(organization_id))
            .filter(memberships::user_id.eq(user_id))
            .filter(memberships::deleted_at.is_null())
            .set((memberships::deleted_at.eq(at), memberships::updated_at.eq(at)))
            .cached()
            .execute(connection)?,
    )?;
    diesel::update(api_tokens::table)
        .filter(api_tokens::organization_id.eq(organization_id))
        .filter(api_tokens::user_id.eq(user_id))
        .filter(api_tokens::revoked_at.is_null())
        .set(api_tokens::revoked_at.eq(at))
        .cached()
        .execute(connection)?;
    void_password_setup(connection, user_id)
}

/// Voids the password setup of a user who left, unless they are still a member elsewhere.
fn void_password_setup(connection: &mut AnyConnection, user_id: DbId) -> Result<(), QueryError> {
    if let AnyConnection::Postgres(postgres) = connection {
        // If two organizations remove them at once, the later one has to see the change of the other.
        let _held: Option<DbId> = password_setups::table
            .find(user_id)
            .select(password_setups::user_id)
            .for_update()
            .first(postgres)
            .optional()?;
    }
    let elsewhere =
        memberships::table.filter(memberships::user_id.eq(user_id)).filter(memberships::deleted_at.is_null());
    diesel::delete(password_setups::table)
        .filter(password_setups::user_id.eq(user_id))
        .filter(not(exists(elsewhere)))
        .execute(connection)?;
    Ok(())
}
