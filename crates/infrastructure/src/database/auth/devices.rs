//! Devices that somebody logs in from.

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

/// How many organizations are told of one login: it waits for that.
const MOST_TOLD: i64 = 20;

/// Tells the organizations of a user that they are about to log in from a device that was not seen
/// before, or not for long.
///
/// Only those that the user knew of when they last logged in: whoever adds somebody does not get to know by
/// that where they are. Who did not log in for that long that nobody remembers is told of everywhere.
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

/// When the user last logged in.
fn last_login(connection: &mut AnyConnection, session: &Session) -> Result<Option<Timestamp>, QueryError> {
    let last: Option<DbTs> = sessions::table
        .filter(sessions::user_id.eq(DbId::from(session.user_id)))
        .select(sessions::created_at)
        .order(sessions::created_at.desc())
        .first(connection)
        .optional()?;
    Ok(last.map(Timestamp::from))
}

/// Whether the user had a session from there not long ago, which may be over.
fn is_known(connection: &mut AnyConnection, session: &Session) -> Result<bool, QueryError> {
    let before = sessions::table
        .filter(sessions::user_id.eq(DbId::from(session.user_id)))
        .filter(sessions::address.eq(session.client.address.to_string()))
        .filter(sessions::user_agent.eq(&session.client.user_agent))
        // Opening one counts as extending it.
        .filter(sessions::extended_at.ge(DbTs(session.created_at - DEVICE_KNOWN_FOR)));
    Ok(diesel::select(exists(before)).get_result(connection)?)
}
