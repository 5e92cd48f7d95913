//! The rows of sessions, tokens and second factors.

use diesel::prelude::*;
use launchway_domain::{
    auth::{ApiToken, ApiTokenName, Client, Permission, Session, TokenHash, TwoFactor},
    clock::Timestamp,
    ids::{ApiTokenId, OrganizationId, SessionId, UserId},
    secret::Sealed,
};

use crate::{
    columns::{DbId, DbTs},
    error::QueryError,
    schema::{api_tokens, sessions, two_factor},
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = sessions)]
pub(super) struct SessionRow {
    #[diesel(deserialize_as = DbId)]
    id: SessionId,
    #[diesel(deserialize_as = DbId)]
    pub(super) user_id: UserId,
    token_hash: Vec<u8>,
    address: String,
    user_agent: String,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    extended_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    expires_at: Timestamp,
}

impl TryFrom<SessionRow> for Session {
    type Error = QueryError;

    fn try_from(row: SessionRow) -> Result<Self, QueryError> {
        Ok(Self {
            id: row.id,
            user_id: row.user_id,
            token_hash: stored_hash(&row.token_hash)?,
            client: Client {
                address: row.address.parse().map_err(QueryError::unreadable)?,
                user_agent: row.user_agent,
            },
            created_at: row.created_at,
            extended_at: row.extended_at,
            expires_at: row.expires_at,
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_tokens)]
pub(super) struct ApiTokenRow {
    #[diesel(deserialize_as = DbId)]
    id: ApiTokenId,
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    #[diesel(deserialize_as = DbId)]
    pub(super) user_id: UserId,
    #[diesel(deserialize_as = String)]
    name: ApiTokenName,
    token_hash: Vec<u8>,
    permissions: String,
    expires_at: Option<DbTs>,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
}

impl TryFrom<ApiTokenRow> for ApiToken {
    type Error = QueryError;

    fn try_from(row: ApiTokenRow) -> Result<Self, QueryError> {
        let permissions = row.permissions.split_whitespace().map(str::parse::<Permission>);
        Ok(Self {
            id: row.id,
            organization_id: row.organization_id,
            user_id: row.user_id,
            name: row.name,
            token_hash: stored_hash(&row.token_hash)?,
            permissions: permissions.collect::<Result<_, _>>().map_err(QueryError::unreadable)?,
            expires_at: row.expires_at.map(Timestamp::from),
            created_at: row.created_at,
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = two_factor)]
pub(super) struct TwoFactorRow {
    secret: String,
    enabled_at: Option<DbTs>,
}

impl From<TwoFactorRow> for TwoFactor {
    fn from(row: TwoFactorRow) -> Self {
        Self { secret: Sealed(row.secret), enabled_at: row.enabled_at.map(Timestamp::from) }
    }
}

/// Reads a stored hash.
pub(crate) fn stored_hash(bytes: &[u8]) -> Result<TokenHash, QueryError> {
    <[u8; 32]>::try_from(bytes).map(TokenHash::from).map_err(QueryError::unreadable)
}
