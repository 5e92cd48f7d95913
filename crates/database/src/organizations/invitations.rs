//! Invitations in the database.

use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    auth::TokenHash,
    clock::Timestamp,
    ids::{InvitationId, MembershipId, OrganizationId, UserId},
    organizations::{Invitation, InvitationDetail, Membership, Role, Scope},
    store::{Rule, StoreError, Unique},
    users::Username,
};

use super::{
    rows::OrganizationRow,
    writes::{hold, insert_membership},
};
use crate::{
    auth::stored_hash,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::each_backend,
    error::{QueryError, guarded},
    schema::{invitations, memberships, organizations, users},
    statement::StatementCache as _,
    users::UserRow,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = invitations)]
struct InvitationRow {
    #[diesel(deserialize_as = DbId)]
    id: InvitationId,
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    #[diesel(deserialize_as = DbId)]
    user_id: UserId,
    #[diesel(deserialize_as = String)]
    role: Role,
    #[diesel(deserialize_as = DbId)]
    invited_by: UserId,
    token_hash: Option<Vec<u8>>,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    expires_at: Timestamp,
}

impl TryFrom<InvitationRow> for Invitation {
    type Error = QueryError;

    fn try_from(row: InvitationRow) -> Result<Self, QueryError> {
        Ok(Self {
            id: row.id,
            organization_id: row.organization_id,
            user_id: row.user_id,
            role: row.role,
            invited_by: row.invited_by,
            token: row.token_hash.as_deref().map(stored_hash).transpose()?,
            created_at: row.created_at,
            expires_at: row.expires_at,
        })
    }
}

/// The side from which invitations are listed.
#[derive(Debug, Clone, Copy)]
pub(super) enum Side {
    Organization(OrganizationId),
    User(UserId),
}

/// Returns the invitations that can be accepted at `now`, newest first.
pub(super) fn pending(
    connection: &mut AnyConnection,
    side: Side,
    now: Timestamp,
) -> Result<Vec<InvitationDetail>, QueryError> {
    let base = invitations::table
        .inner_join(organizations::table.on(organizations::id.eq(invitations::organization_id)))
        .inner_join(users::table.on(users::id.eq(invitations::user_id)))
        .filter(invitations::expires_at.gt(DbTs(now)))
        .filter(organizations::deleted_at.is_null())
        .filter(users::deleted_at.is_null())
        .order((invitations::created_at.desc(), invitations::id.desc()))
        .select((InvitationRow::as_select(), OrganizationRow::as_select(), UserRow::as_select()));
    let rows: Vec<(InvitationRow, OrganizationRow, UserRow)> = match side {
        Side::Organization(id) => {
            base.filter(invitations::organization_id.eq(DbId::from(id))).load(connection)?
        }
        Side::User(id) => base.filter(invitations::user_id.eq(DbId::from(id))).load(connection)?,
    };
    rows.into_iter().map(|row| detail(connection, row)).collect()
}

fn detail(
    connection: &mut AnyConnection,
    (invitation, organization, user): (InvitationRow, OrganizationRow, UserRow),
) -> Result<InvitationDetail, QueryError> {
    let inviter = users::table.find(DbId::from(invitation.invited_by)).select(users::username);
    let inviter: String = inviter.first(connection)?;
    Ok(InvitationDetail {
        invitation: invitation.try_into()?,
        organization: organization.into(),
        user: user.try_into()?,
        invited_by: Username::try_from(inviter).map_err(QueryError::unreadable)?,
    })
}

/// Inserts an invitation to an organization that the caller has locked. An earlier one becomes void.
pub(super) fn insert(connection: &mut AnyConnection, invitation: &Invitation) -> Result<(), QueryError> {
    let [organization_id, user_id] = [DbId::from(invitation.organization_id), DbId::from(invitation.user_id)];
    let membership = memberships::table
        .filter(memberships::organization_id.eq(organization_id))
        .filter(memberships::user_id.eq(user_id))
        .filter(memberships::deleted_at.is_null());
    if diesel::select(exists(membership)).get_result(connection)? {
        return Err(StoreError::Taken(Unique::Membership).into());
    }
    let values = (
        invitations::id.eq(DbId::from(invitation.id)),
        invitations::role.eq(invitation.role.as_str()),
        invitations::invited_by.eq(DbId::from(invitation.invited_by)),
        invitations::token_hash.eq(invitation.token.as_ref().map(|token| token.as_bytes().as_slice())),
        invitations::created_at.eq(DbTs(invitation.created_at)),
        invitations::expires_at.eq(DbTs(invitation.expires_at)),
    );
    let whose = (invitations::organization_id.eq(organization_id), invitations::user_id.eq(user_id));
    each_backend!(connection, backend => diesel::insert_into(invitations::table)
        .values((whose, values))
        .on_conflict((invitations::organization_id, invitations::user_id))
        .do_update()
        .set(values)
        .cached()
        .execute(backend))?;
    Ok(())
}

/// Turns an invitation into a membership.
pub(super) fn accept(
    connection: &mut AnyConnection,
    id: InvitationId,
    user_id: UserId,
    token: Option<&TokenHash>,
    membership: MembershipId,
    at: Timestamp,
) -> Result<(), QueryError> {
    let found = find(connection, id, user_id, at)?;
    hold(connection, found.organization_id)?;
    // Again, because it may have been withdrawn while this waited for the organization.
    let invitation = find(connection, id, user_id, at)?;
    let is_verified: bool =
        users::table.find(DbId::from(user_id)).select(users::is_verified).first(connection)?;
    let is_proved = is_verified || invitation.token.as_ref().is_some_and(|needed| Some(needed) == token);
    if !is_proved {
        return Err(StoreError::Refused(Rule::InvitationToken).into());
    }
    // Guarded, because its user may decline it at the same time.
    guarded(diesel::delete(invitations::table.find(DbId::from(id))).execute(connection)?)?;
    let Invitation { organization_id, role, .. } = invitation;
    insert_membership(connection, &Membership::new(membership, organization_id, user_id, role, at))
}

/// Deletes an invitation that its user declines.
pub(super) fn decline(
    connection: &mut AnyConnection,
    id: InvitationId,
    user_id: UserId,
    at: Timestamp,
) -> Result<(), QueryError> {
    guarded(
        diesel::delete(invitations::table)
            .filter(invitations::id.eq(DbId::from(id)))
            .filter(invitations::user_id.eq(DbId::from(user_id)))
            .filter(invitations::expires_at.gt(DbTs(at)))
            .execute(connection)?,
    )
}

/// Deletes an invitation that its organization withdraws.
pub(super) fn withdraw(
    connection: &mut AnyConnection,
    scope: Scope,
    user_id: UserId,
    at: Timestamp,
) -> Result<(), QueryError> {
    guarded(
        diesel::delete(invitations::table)
            .filter(invitations::organization_id.eq(DbId::from(scope.id())))
            .filter(invitations::user_id.eq(DbId::from(user_id)))
            .filter(invitations::expires_at.gt(DbTs(at)))
            .execute(connection)?,
    )
}

/// Deletes the invitation of a user who is a member now.
pub(super) fn forget(
    connection: &mut AnyConnection,
    organization: OrganizationId,
    user_id: UserId,
) -> Result<(), QueryError> {
    diesel::delete(invitations::table)
        .filter(invitations::organization_id.eq(DbId::from(organization)))
        .filter(invitations::user_id.eq(DbId::from(user_id)))
        .execute(connection)?;
    Ok(())
}

/// Deletes the invitations by a user who is no admin any more.
pub(super) fn forget_those_by(
    connection: &mut AnyConnection,
    scope: Scope,
    admin: UserId,
) -> Result<(), QueryError> {
    diesel::delete(invitations::table)
        .filter(invitations::organization_id.eq(DbId::from(scope.id())))
        .filter(invitations::invited_by.eq(DbId::from(admin)))
        .execute(connection)?;
    Ok(())
}

/// Deletes the invitations of an organization.
pub(super) fn forget_all(connection: &mut AnyConnection, organization: DbId) -> Result<(), QueryError> {
    diesel::delete(invitations::table)
        .filter(invitations::organization_id.eq(organization))
        .execute(connection)?;
    Ok(())
}

fn find(
    connection: &mut AnyConnection,
    id: InvitationId,
    user_id: UserId,
    at: Timestamp,
) -> Result<Invitation, QueryError> {
    let row: Option<InvitationRow> = invitations::table
        .find(DbId::from(id))
        .filter(invitations::user_id.eq(DbId::from(user_id)))
        .filter(invitations::expires_at.gt(DbTs(at)))
        .select(InvitationRow::as_select())
        .first(connection)
        .optional()?;
    row.ok_or(QueryError::Store(StoreError::Stale))?.try_into()
}
