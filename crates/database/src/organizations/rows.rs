//! The rows of organizations and memberships.

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    ids::{MembershipId, OrganizationId, UserId},
    organizations::{Description, Membership, Organization, OrganizationName, Role},
};

use crate::{
    columns::{DbId, DbTs},
    schema::{memberships, organizations},
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = organizations)]
pub(crate) struct OrganizationRow {
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
pub(super) struct MembershipRow {
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
