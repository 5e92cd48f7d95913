//! Sessions, tokens and passwords in the database: what changes.

use diesel::prelude::*;
use launchway_domain::{
    auth::{ApiToken, PasswordHash, Session, TokenHash, Write},
    clock::Timestamp,
    ids::{SessionId, UserId},
};

use super::{rows::stored_hash, second_factor};
use crate::database::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::each_backend,
    error::{QueryError, guarded},
    schema::{api_tokens, installation, passwords, sessions},
};

/// Carries out one change.
pub(in crate::database) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::ClaimInstallation { admin, at } => claim_installation(connection, *admin, *at),
        Write::SetPassword { user_id, hash, at } => set_password(connection, *user_id, hash, *at),
        Write::ConfirmPassword { user_id, hash } => confirm_password(connection, *user_id, hash),
        Write::OpenSession(session) => open_session(connection, session),
        Write::ExtendSession { id, at, expires_at } => guarded(
            diesel::update(sessions::table)
                .filter(sessions::id.eq(DbId::from(*id)))
                .filter(sessions::ended_at.is_null())
                .set((sessions::extended_at.eq(DbTs(*at)), sessions::expires_at.eq(DbTs(*expires_at))))
                .execute(connection)?,
        ),
        Write::EndSession { id, at } => guarded(
            diesel::update(sessions::table)
                .filter(sessions::id.eq(DbId::from(*id)))
                .filter(sessions::ended_at.is_null())
                .set(sessions::ended_at.eq(DbTs(*at)))
                .execute(connection)?,
        ),
        Write::EndSessions { user_id, keep, at } => end_sessions(connection, *user_id, *keep, *at),
        Write::IssueApiToken(token) => issue_api_token(connection, token),
        Write::RevokeApiToken { id, organization_id, user_id, at } => guarded(
            diesel::update(api_tokens::table)
                .filter(api_tokens::id.eq(DbId::from(*id)))
                .filter(api_tokens::organization_id.eq(DbId::from(*organization_id)))
                .filter(api_tokens::user_id.eq(DbId::from(*user_id)))
                .filter(api_tokens::revoked_at.is_null())
                .set(api_tokens::revoked_at.eq(DbTs(*at)))
                .execute(connection)?,
        ),
        Write::BeginTwoFactor { user_id, secret, at } => {
            second_factor::begin(connection, *user_id, secret, *at)
        }
        Write::EnableTwoFactor { user_id, secret, step, recovery_codes, at } => {
            second_factor::enable(connection, *user_id, secret, *step, *at)?;
            second_factor::replace_recovery_codes(connection, *user_id, recovery_codes)
        }
        Write::DisableTwoFactor { user_id, at } => {
            second_factor::disable(connection, *user_id, *at)?;
            second_factor::replace_recovery_codes(connection, *user_id, &[])
        }
        Write::UseTotpStep { user_id, step } => second_factor::use_step(connection, *user_id, *step),
        Write::UseRecoveryCode { user_id, code, at } => {
            second_factor::use_recovery_code(connection, *user_id, code, *at)
        }
    }
}

/// What recognises a session's token.
pub(in crate::database) fn token_hash_of(
    connection: &mut AnyConnection,
    id: SessionId,
) -> Result<TokenHash, QueryError> {
    let bytes: Vec<u8> =
        sessions::table.find(DbId::from(id)).select(sessions::token_hash).first(connection)?;
    stored_hash(&bytes)
}

fn claim_installation(
    connection: &mut AnyConnection,
    admin: UserId,
    at: Timestamp,
) -> Result<(), QueryError> {
    diesel::insert_into(installation::table)
        .values((
            installation::id.eq(1),
            installation::admin_user_id.eq(DbId::from(admin)),
            installation::created_at.eq(DbTs(at)),
        ))
        .execute(connection)?;
    Ok(())
}

fn set_password(
    connection: &mut AnyConnection,
    user_id: UserId,
    hash: &PasswordHash,
    at: Timestamp,
) -> Result<(), QueryError> {
    let password = (passwords::hash.eq(hash.0.as_str()), passwords::changed_at.eq(DbTs(at)));
    each_backend!(connection, backend => diesel::insert_into(passwords::table)
        .values((passwords::user_id.eq(DbId::from(user_id)), password))
        .on_conflict(passwords::user_id)
        .do_update()
        .set(password)
        .execute(backend))?;
    Ok(())
}

/// Writes the hash over itself: on PostgreSQL that locks the row, so that a change of the
/// password waits for this transaction or is seen by it.
fn confirm_password(
    connection: &mut AnyConnection,
    user_id: UserId,
    hash: &PasswordHash,
) -> Result<(), QueryError> {
    guarded(
        diesel::update(passwords::table)
            .filter(passwords::user_id.eq(DbId::from(user_id)))
            .filter(passwords::hash.eq(&hash.0))
            .set(passwords::hash.eq(&hash.0))
            .execute(connection)?,
    )
}

fn open_session(connection: &mut AnyConnection, session: &Session) -> Result<(), QueryError> {
    diesel::insert_into(sessions::table)
        .values((
            sessions::id.eq(DbId::from(session.id)),
            sessions::user_id.eq(DbId::from(session.user_id)),
            sessions::token_hash.eq(session.token_hash.as_bytes().as_slice()),
            sessions::address.eq(session.client.address.to_string()),
            sessions::user_agent.eq(&session.client.user_agent),
            sessions::created_at.eq(DbTs(session.created_at)),
            sessions::extended_at.eq(DbTs(session.extended_at)),
            sessions::expires_at.eq(DbTs(session.expires_at)),
        ))
        .execute(connection)?;
    Ok(())
}

fn end_sessions(
    connection: &mut AnyConnection,
    user_id: UserId,
    keep: Option<SessionId>,
    at: Timestamp,
) -> Result<(), QueryError> {
    let running = diesel::update(sessions::table)
        .filter(sessions::user_id.eq(DbId::from(user_id)))
        .filter(sessions::ended_at.is_null())
        .set(sessions::ended_at.eq(DbTs(at)));
    match keep {
        None => running.execute(connection)?,
        Some(kept) => running.filter(sessions::id.ne(DbId::from(kept))).execute(connection)?,
    };
    Ok(())
}

fn issue_api_token(connection: &mut AnyConnection, token: &ApiToken) -> Result<(), QueryError> {
    diesel::insert_into(api_tokens::table)
        .values((
            api_tokens::id.eq(DbId::from(token.id)),
            api_tokens::organization_id.eq(DbId::from(token.organization_id)),
            api_tokens::user_id.eq(DbId::from(token.user_id)),
            api_tokens::name.eq(token.name.as_str()),
            api_tokens::token_hash.eq(token.token_hash.as_bytes().as_slice()),
            api_tokens::permissions.eq(token.permissions.names().join(" ")),
            api_tokens::expires_at.eq(token.expires_at.map(DbTs)),
            api_tokens::created_at.eq(DbTs(token.created_at)),
        ))
        .execute(connection)?;
    Ok(())
}
