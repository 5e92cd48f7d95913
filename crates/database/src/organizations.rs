//! Reads organizations and memberships from the database.

mod deploy_keys;
mod invitations;
mod rows;
mod writes;

use async_trait::async_trait;
use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    clock::Timestamp,
    ids::UserId,
    organizations::{
        Candidate, InvitationDetail, Member, MembershipDetail, OrganizationDetail, OrganizationRepository,
        Scope,
    },
    store::StoreError,
    users::EmailAddress,
};

use self::{invitations::Side, rows::MembershipRow};
pub(super) use self::{
    rows::OrganizationRow,
    writes::{apply, require, require_member},
};
use super::{
    Database,
    columns::DbId,
    connection::AnyConnection,
    error::QueryError,
    schema::{memberships, organizations, passwords, users},
    users::UserRow,
};

#[async_trait]
impl OrganizationRepository for Database {
    async fn detail(&self, scope: Scope) -> Result<Option<OrganizationDetail>, StoreError> {
        self.read(move |connection| {
            let id = DbId::from(scope.id());
            let organization: Option<OrganizationRow> = organizations::table
                .find(id)
                .filter(organizations::deleted_at.is_null())
                .select(OrganizationRow::as_select())
                .first(connection)
                .optional()?;
            let Some(organization) = organization else { return Ok(None) };
            let members: Vec<(MembershipRow, UserRow)> = memberships::table
                .inner_join(users::table.on(users::id.eq(memberships::user_id)))
                .filter(memberships::organization_id.eq(id))
                .filter(memberships::deleted_at.is_null())
                .filter(users::deleted_at.is_null())
                .order((memberships::created_at.asc(), memberships::id.asc()))
                .select((MembershipRow::as_select(), UserRow::as_select()))
                .load(connection)?;
            let members = members.into_iter().map(member).collect::<Result<_, _>>()?;
            Ok(Some(OrganizationDetail { organization: organization.into(), members }))
        })
        .await
    }

    async fn member(&self, scope: Scope, user_id: UserId) -> Result<Option<Member>, StoreError> {
        self.read_point(move |connection| {
            let row: Option<(MembershipRow, UserRow)> = memberships::table
                .inner_join(users::table.on(users::id.eq(memberships::user_id)))
                .inner_join(organizations::table.on(organizations::id.eq(memberships::organization_id)))
                .filter(memberships::organization_id.eq(DbId::from(scope.id())))
                .filter(memberships::user_id.eq(DbId::from(user_id)))
                .filter(memberships::deleted_at.is_null())
                .filter(users::deleted_at.is_null())
                .filter(organizations::deleted_at.is_null())
                .select((MembershipRow::as_select(), UserRow::as_select()))
                .first(connection)
                .optional()?;
            row.map(member).transpose()
        })
        .await
    }

    async fn candidate(&self, email: &EmailAddress) -> Result<Option<Candidate>, StoreError> {
        let key = email.key();
        self.read_point(move |connection| {
            let password = passwords::table.filter(passwords::user_id.eq(users::id));
            let membership = memberships::table
                .filter(memberships::user_id.eq(users::id))
                .filter(memberships::deleted_at.is_null());
            let row: Option<(UserRow, bool, bool)> = users::table
                .filter(users::email_key.eq(&key))
                .filter(users::deleted_at.is_null())
                .select((UserRow::as_select(), exists(password), exists(membership)))
                .first(connection)
                .optional()?;
            let Some((user, has_password, is_member)) = row else { return Ok(None) };
            Ok(Some(Candidate { user: user.try_into()?, is_unused: !has_password && !is_member }))
        })
        .await
    }

    async fn invitations(&self, scope: Scope, now: Timestamp) -> Result<Vec<InvitationDetail>, StoreError> {
        self.read(move |connection| invitations::pending(connection, Side::Organization(scope.id()), now))
            .await
    }

    async fn invitations_of(
        &self,
        user_id: UserId,
        now: Timestamp,
    ) -> Result<Vec<InvitationDetail>, StoreError> {
        self.read(move |connection| invitations::pending(connection, Side::User(user_id), now)).await
    }
}

fn member((membership, user): (MembershipRow, UserRow)) -> Result<Member, QueryError> {
    Ok(Member { membership: membership.into(), user: user.try_into()? })
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
