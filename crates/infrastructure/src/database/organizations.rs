//! Organizations and memberships in the database.

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    ids::{MembershipId, OrganizationId, UserId},
    organizations::{Description, Membership, MembershipDetail, Organization, OrganizationName, Role, Write},
};

use super::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::QueryError,
    schema::{memberships, organizations},
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = organizations)]
struct OrganizationRow {
    #[diesel(deserialize_as = DbId)]
    id: OrganizationId,
    #[diesel(deserialize_as = String)]
    name: OrganizationName,
    #[diesel(deserialize_as = String)]
    description: Description,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    updated_at: Timestamp,
    deleted_at: Option<DbTs>,
}

impl From<OrganizationRow> for Organization {
    fn from(row: OrganizationRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            description: row.description,
            created_at: row.created_at,
            updated_at: row.updated_at,
            deleted_at: row.deleted_at.map(Timestamp::from),
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = memberships)]
struct MembershipRow {
    #[diesel(deserialize_as = DbId)]
    id: MembershipId,
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    #[diesel(deserialize_as = DbId)]
    user_id: UserId,
    #[diesel(deserialize_as = String)]
    role: Role,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    updated_at: Timestamp,
    deleted_at: Option<DbTs>,
}

impl From<MembershipRow> for Membership {
    fn from(row: MembershipRow) -> Self {
        Self {
            id: row.id,
            organization_id: row.organization_id,
            user_id: row.user_id,
            role: row.role,
            created_at: row.created_at,
            updated_at: row.updated_at,
            deleted_at: row.deleted_at.map(Timestamp::from),
        }
    }
}

/// The memberships of a user with their organizations, oldest first, ties by id.
pub(super) fn memberships_of(
    connection: &mut AnyConnection,
    user_id: UserId,
) -> Result<Vec<MembershipDetail>, QueryError> {
    let rows: Vec<(MembershipRow, OrganizationRow)> = memberships::table
        .inner_join(organizations::table.on(organizations::id.eq(memberships::organization_id)))
        .filter(memberships::user_id.eq(DbId::from(user_id)))
        .filter(memberships::deleted_at.is_null())
        .filter(organizations::deleted_at.is_null())
        .order((memberships::created_at.asc(), memberships::id.asc()))
        .select((MembershipRow::as_select(), OrganizationRow::as_select()))
        .load(connection)?;
    let detail = |(membership, organization): (MembershipRow, OrganizationRow)| MembershipDetail {
        membership: membership.into(),
        organization: organization.into(),
    };
    Ok(rows.into_iter().map(detail).collect())
}

/// Carries out one change.
pub(super) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::Insert(organization) => insert(connection, organization),
        Write::InsertMembership(membership) => insert_membership(connection, membership),
    }
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

fn insert_membership(connection: &mut AnyConnection, membership: &Membership) -> Result<(), QueryError> {
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
