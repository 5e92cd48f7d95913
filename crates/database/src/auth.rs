//! Reads sessions, tokens, passwords and second factors from the database.

mod devices;
mod rows;
mod second_factor;
mod writes;

use async_trait::async_trait;
use diesel::{
    dsl::{auto_type, exists},
    prelude::*,
};
use launchway_domain::{
    auth::{ApiToken, Credential, CredentialRepository, Credentials, PasswordHash, Session, TokenHash},
    clock::Timestamp,
    ids::UserId,
    organizations::Scope,
    store::StoreError,
    users::EmailAddress,
};

use self::rows::{ApiTokenRow, SessionRow, TwoFactorRow};
pub(super) use self::{
    rows::stored_hash,
    writes::{apply, token_hash_of},
};
use super::{
    Database,
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::QueryError,
    schema::{api_tokens, installation, password_setups, passwords, sessions, two_factor, users},
};

#[async_trait]
impl CredentialRepository for Database {
    async fn admin_registered(&self) -> Result<bool, StoreError> {
        self.read_point(|connection| {
            Ok(diesel::select(exists(installation::table.select(installation::id))).get_result(connection)?)
        })
        .await
    }

    async fn by_email(&self, email: &EmailAddress) -> Result<Option<Credentials>, StoreError> {
        let key = email.key();
        self.read_point(move |connection| {
            let row = users_with_credentials()
                .filter(users::email_key.eq(&key))
                .select((users::id, passwords::hash.nullable(), Option::<TwoFactorRow>::as_select()))
                .first(connection)
                .optional()?;
            Ok(row.map(credentials))
        })
        .await
    }

    async fn by_user(&self, user_id: UserId) -> Result<Option<Credentials>, StoreError> {
        self.read_point(move |connection| {
            let row = users_with_credentials()
                .filter(users::id.eq(DbId::from(user_id)))
                .select((users::id, passwords::hash.nullable(), Option::<TwoFactorRow>::as_select()))
                .first(connection)
                .optional()?;
            Ok(row.map(credentials))
        })
        .await
    }

    async fn api_tokens(&self, scope: Scope, user_id: UserId) -> Result<Vec<ApiToken>, StoreError> {
        self.read(move |connection| {
            let rows: Vec<ApiTokenRow> = api_tokens::table
                .inner_join(users::table.on(users::id.eq(api_tokens::user_id)))
                .filter(api_tokens::organization_id.eq(DbId::from(scope.id())))
                .filter(api_tokens::user_id.eq(DbId::from(user_id)))
                .filter(api_tokens::revoked_at.is_null())
                .filter(users::deleted_at.is_null())
                .order((api_tokens::created_at.desc(), api_tokens::id.desc()))
                .select(ApiTokenRow::as_select())
                .load(connection)?;
            rows.into_iter().map(ApiToken::try_from).collect()
        })
        .await
    }

    async fn sessions(&self, user_id: UserId, now: Timestamp) -> Result<Vec<Session>, StoreError> {
        self.read(move |connection| {
            let rows: Vec<SessionRow> = sessions::table
                .filter(sessions::user_id.eq(DbId::from(user_id)))
                .filter(sessions::ended_at.is_null())
                .filter(sessions::expires_at.gt(DbTs(now)))
                .order((sessions::created_at.desc(), sessions::id.desc()))
                .select(SessionRow::as_select())
                .load(connection)?;
            rows.into_iter().map(Session::try_from).collect()
        })
        .await
    }

    async fn by_password_setup(
        &self,
        token: &TokenHash,
        now: Timestamp,
    ) -> Result<Option<UserId>, StoreError> {
        let token = *token;
        self.read_point(move |connection| {
            let user_id: Option<DbId> = password_setups::table
                .inner_join(users::table.on(users::id.eq(password_setups::user_id)))
                .filter(password_setups::token_hash.eq(token.as_bytes().as_slice()))
                .filter(password_setups::expires_at.gt(DbTs(now)))
                .filter(users::deleted_at.is_null())
                .select(users::id)
                .first(connection)
                .optional()?;
            Ok(user_id.map(UserId::from))
        })
        .await
    }
}

#[auto_type(no_type_alias)]
fn users_with_credentials() -> _ {
    users::table
        .left_join(passwords::table.on(passwords::user_id.eq(users::id)))
        .left_join(two_factor::table.on(two_factor::user_id.eq(users::id)))
        .filter(users::deleted_at.is_null())
}

fn credentials((user_id, hash, two_factor): (DbId, Option<String>, Option<TwoFactorRow>)) -> Credentials {
    Credentials {
        user_id: user_id.into(),
        password: hash.map(PasswordHash),
        two_factor: two_factor.map(Into::into),
    }
}

/// Returns the session or API token with that hash, if it is still valid, and its user.
pub(super) fn credential_of(
    connection: &mut AnyConnection,
    hash: &TokenHash,
) -> Result<Option<(UserId, Credential)>, QueryError> {
    let session: Option<SessionRow> = sessions::table
        .filter(sessions::token_hash.eq(hash.as_bytes().as_slice()))
        .filter(sessions::ended_at.is_null())
        .select(SessionRow::as_select())
        .first(connection)
        .optional()?;
    if let Some(session) = session {
        return Ok(Some((session.user_id, Credential::Session(session.try_into()?))));
    }
    let token: Option<ApiTokenRow> = api_tokens::table
        .filter(api_tokens::token_hash.eq(hash.as_bytes().as_slice()))
        .filter(api_tokens::revoked_at.is_null())
        .select(ApiTokenRow::as_select())
        .first(connection)
        .optional()?;
    token.map(|token| Ok((token.user_id, Credential::ApiToken(token.try_into()?)))).transpose()
}
