//! Events of logins from new devices.

use diesel::prelude::*;
use launchway_domain::{auth::Session, clock::Timestamp, ids::Ids as _, notifications::Login, users::User};
use launchway_system::clock::TimeOrderedIds;

use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::QueryError,
    notifications::{announce, has_channel},
    schema::{memberships, organizations, sessions, users},
    users::UserRow,
};

/// Stores the events of a login that is about to open `session`.
pub(super) fn announce_login(connection: &mut AnyConnection, session: &Session) -> Result<(), QueryError> {
    let login = Login { session, last: last_login(connection, session)? };
    let notified: Vec<(DbId, String)> = memberships::table
        .inner_join(organizations::table.on(organizations::id.eq(memberships::organization_id)))
        .filter(memberships::user_id.eq(DbId::from(session.user_id)))
        .filter(memberships::deleted_at.is_null())
        .filter(organizations::deleted_at.is_null())
        .filter(memberships::created_at.le(DbTs(login.joined_by())))
        .filter(has_channel!(memberships::organization_id))
        .order((memberships::created_at.asc(), organizations::id.asc()))
        .limit(Login::MOST_NOTIFIED.into())
        .select((organizations::id, organizations::name))
        .load(connection)?;
    if notified.is_empty() || !login.is_from_new_device(last_seen(connection, session)?) {
        return Ok(());
    }
    let user: UserRow =
        users::table.find(DbId::from(session.user_id)).select(UserRow::as_select()).first(connection)?;
    let user = User::try_from(user)?;
    notified.into_iter().try_for_each(|(organization, name)| {
        let id = TimeOrderedIds.next().into();
        announce(connection, &login.event(id, (organization.into(), &name), &user))
    })
}

/// The time of the user's last login.
fn last_login(connection: &mut AnyConnection, session: &Session) -> Result<Option<Timestamp>, QueryError> {
    let last: Option<DbTs> = sessions::table
        .filter(sessions::user_id.eq(DbId::from(session.user_id)))
        .select(sessions::created_at)
        .order(sessions::created_at.desc())
        .first(connection)
        .optional()?;
    Ok(last.map(Timestamp::from))
}

/// The time when the user last used a session from the same device, which may have ended. Opening one counts
/// as extending it.
fn last_seen(connection: &mut AnyConnection, session: &Session) -> Result<Option<Timestamp>, QueryError> {
    let last: Option<DbTs> = sessions::table
        .filter(sessions::user_id.eq(DbId::from(session.user_id)))
        .filter(sessions::address.eq(session.client.address.to_string()))
        .filter(sessions::user_agent.eq(&session.client.user_agent))
        .select(sessions::extended_at)
        .order(sessions::extended_at.desc())
        .first(connection)
        .optional()?;
    Ok(last.map(Timestamp::from))
}
