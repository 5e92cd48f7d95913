//! Detection of logins from new devices.

use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    auth::Session,
    clock::Timestamp,
    ids::Ids as _,
    notifications::{DEVICE_KNOWN_FOR, Event, EventKind, Fact},
    users::User,
};

use crate::{
    clock::TimeOrderedIds,
    database::{
        columns::{DbId, DbTs},
        connection::AnyConnection,
        error::QueryError,
        notifications::{announce, is_told},
        schema::{memberships, organizations, sessions, users},
        users::UserRow,
    },
};

/// The most organizations that are notified of one login, because the login waits for it.
const MOST_TOLD: i64 = 20;

/// Notifies the organizations of a user that they are about to log in from a device that was not seen
/// before, or not recently.
///
/// Only organizations that the user was a member of at their last login are notified: adding a user to an
/// organization must not reveal where they are. If the last login is too long ago to be stored, all of them
/// are.
pub(super) fn announce_new_device(
    connection: &mut AnyConnection,
    session: &Session,
) -> Result<(), QueryError> {
    let known_until = last_login(connection, session)?.unwrap_or(session.created_at);
    let told: Vec<(DbId, String)> = memberships::table
        .inner_join(organizations::table.on(organizations::id.eq(memberships::organization_id)))
        .filter(memberships::user_id.eq(DbId::from(session.user_id)))
        .filter(memberships::deleted_at.is_null())
        .filter(organizations::deleted_at.is_null())
        .filter(memberships::created_at.le(DbTs(known_until)))
        .filter(is_told!(memberships::organization_id))
        .order((memberships::created_at.asc(), organizations::id.asc()))
        .limit(MOST_TOLD)
        .select((organizations::id, organizations::name))
        .load(connection)?;
    if told.is_empty() || is_known(connection, session)? {
        return Ok(());
    }
    let user: UserRow =
        users::table.find(DbId::from(session.user_id)).select(UserRow::as_select()).first(connection)?;
    let user = User::try_from(user)?;
    for (organization, name) in told {
        let id = TimeOrderedIds.next().into();
        let event = Event::new(id, organization.into(), EventKind::LoginNewDevice, session.created_at)
            .with(Fact::Organization, name)
            .new_device(&user, &session.client);
        announce(connection, &event)?;
    }
    Ok(())
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

/// Returns whether the user recently had a session from there, which may have ended.
fn is_known(connection: &mut AnyConnection, session: &Session) -> Result<bool, QueryError> {
    let before = sessions::table
        .filter(sessions::user_id.eq(DbId::from(session.user_id)))
        .filter(sessions::address.eq(session.client.address.to_string()))
        .filter(sessions::user_agent.eq(&session.client.user_agent))
        // Opening one counts as extending it.
        .filter(sessions::extended_at.ge(DbTs(session.created_at - DEVICE_KNOWN_FOR)));
    Ok(diesel::select(exists(before)).get_result(connection)?)
}
