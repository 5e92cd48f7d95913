//! Writes sessions, tokens and passwords to the database.

use chrono::TimeDelta;
use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    auth::{ApiToken, PasswordHash, PasswordSetup, Session, TokenHash, Write},
    clock::Timestamp,
    ids::{SessionId, UserId},
    notifications::DEVICE_KNOWN_FOR,
    store::{Rule, StoreError},
};

use super::{devices::announce_login, rows::stored_hash, second_factor};
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::each_backend,
    error::{QueryError, guarded},
    organizations::require_member,
    schema::{api_tokens, installation, memberships, password_setups, passwords, sessions, users},
    setup_token,
    statement::StatementCache as _,
};

/// The retention of ended sessions: they show whether a device is known.
const KEPT: TimeDelta = DEVICE_KNOWN_FOR;

/// Applies one change.
pub(crate) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::ClaimInstallation { admin, at } => claim_installation(connection, *admin, *at),
        Write::SetPassword { user_id, hash, at } => set_password(connection, *user_id, hash, *at),
        Write::ConfirmPassword { user_id, hash } => confirm_password(connection, *user_id, hash),
        Write::OfferPasswordSetup(setup) => offer_password_setup(connection, setup),
        Write::RedeemPasswordSetup { user_id, token, at } => {
            redeem_password_setup(connection, *user_id, token, *at)
        }
        Write::OpenSession(session) => {
            forget_sessions(connection, session.user_id, session.created_at - KEPT)?;
            announce_login(connection, session)?;
            open_session(connection, session)
        }
        Write::ExtendSession { id, at, expires_at } => guarded(
            diesel::update(sessions::table)
                .filter(sessions::id.eq(DbId::from(*id)))
                .filter(sessions::ended_at.is_null())
                .set((sessions::extended_at.eq(DbTs(*at)), sessions::expires_at.eq(DbTs(*expires_at))))
                .cached()
                .execute(connection)?,
        ),
        Write::EndSession { id, at } => guarded(
            diesel::update(sessions::table)
                .filter(sessions::id.eq(DbId::from(*id)))
                .filter(sessions::ended_at.is_null())
                .set(sessions::ended_at.eq(DbTs(*at)))
                .cached()
                .execute(connection)?,
        ),
        Write::EndSessions { user_id, keep, at } => end_sessions(connection, *user_id, *keep, *at),
        Write::IssueApiToken(token) => {
            require_member(connection, token.organization_id, token.user_id)?;
            issue_api_token(connection, token)
        }
        Write::RevokeApiToken { id, organization_id, user_id, at } => guarded(
            diesel::update(api_tokens::table)
                .filter(api_tokens::id.eq(DbId::from(*id)))
                .filter(api_tokens::organization_id.eq(DbId::from(*organization_id)))
                .filter(api_tokens::user_id.eq(DbId::from(*user_id)))
                .filter(api_tokens::revoked_at.is_null())
                .set(api_tokens::revoked_at.eq(DbTs(*at)))
                .cached()
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

/// Returns the token hash of a session.
pub(crate) fn token_hash_of(connection: &mut AnyConnection, id: SessionId) -> Result<TokenHash, QueryError> {
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
    setup_token::forget(connection)
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
        .cached()
        .execute(backend))?;
    diesel::delete(password_setups::table.find(DbId::from(user_id))).execute(connection)?;
    Ok(())
}

/// Writes the hash over itself: on PostgreSQL that locks the row, so that a change of the password waits
/// for this transaction or is seen by it.
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
            .cached()
            .execute(connection)?,
    )
}

fn offer_password_setup(connection: &mut AnyConnection, setup: &PasswordSetup) -> Result<(), QueryError> {
    if is_in_use(connection, setup.user_id)? {
        return Err(StoreError::Refused(Rule::AccountInUse).into());
    }
    let offer = (
        password_setups::token_hash.eq(setup.token.as_bytes().as_slice()),
        password_setups::expires_at.eq(DbTs(setup.expires_at)),
    );
    each_backend!(connection, backend => diesel::insert_into(password_setups::table)
        .values((password_setups::user_id.eq(DbId::from(setup.user_id)), offer))
        .on_conflict(password_setups::user_id)
        .do_update()
        .set(offer)
        .cached()
        .execute(backend))?;
    Ok(())
}

/// Returns whether the account is in use. On PostgreSQL no use begins until this transaction ends: whatever
/// refers to the user waits for the row.
fn is_in_use(connection: &mut AnyConnection, user_id: UserId) -> Result<bool, QueryError> {
    let user_id = DbId::from(user_id);
    let user = users::table.find(user_id).filter(users::deleted_at.is_null()).select(users::id);
    let found: Option<DbId> = match connection {
        AnyConnection::Sqlite(sqlite) => user.get_result(sqlite),
        AnyConnection::Postgres(postgres) => user.for_update().get_result(postgres),
    }
    .optional()?;
    guarded(found.into_iter().count())?;
    let password = passwords::table.filter(passwords::user_id.eq(user_id));
    let membership =
        memberships::table.filter(memberships::user_id.eq(user_id)).filter(memberships::deleted_at.is_null());
    Ok(diesel::select(exists(password).or(exists(membership))).get_result(connection)?)
}

/// Deletes the used token. It does not verify the email address, because an admin handed it out.
fn redeem_password_setup(
    connection: &mut AnyConnection,
    user_id: UserId,
    token: &TokenHash,
    at: Timestamp,
) -> Result<(), QueryError> {
    // The user first, as when a setup is offered, to avoid deadlocks.
    guarded(
        diesel::update(users::table)
            .filter(users::id.eq(DbId::from(user_id)))
            .filter(users::deleted_at.is_null())
            .set(users::updated_at.eq(DbTs(at)))
            .cached()
            .execute(connection)?,
    )?;
    guarded(
        diesel::delete(password_setups::table)
            .filter(password_setups::user_id.eq(DbId::from(user_id)))
            .filter(password_setups::token_hash.eq(token.as_bytes().as_slice()))
            .filter(password_setups::expires_at.gt(DbTs(at)))
            .execute(connection)?,
    )
}

/// Deletes the sessions of a user that had ended at that time, so that the table stays small.
fn forget_sessions(
    connection: &mut AnyConnection,
    user_id: UserId,
    over_at: Timestamp,
) -> Result<(), QueryError> {
    diesel::delete(sessions::table)
        .filter(sessions::user_id.eq(DbId::from(user_id)))
        .filter(sessions::ended_at.lt(DbTs(over_at)).or(sessions::expires_at.lt(DbTs(over_at))))
        .execute(connection)?;
    Ok(())
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
        None => running.cached().execute(connection)?,
        Some(kept) => running.filter(sessions::id.ne(DbId::from(kept))).cached().execute(connection)?,
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
