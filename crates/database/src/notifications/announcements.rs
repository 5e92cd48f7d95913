//! Stores events and their deliveries.
//!
//! **Invariant:** the event of the end of a deployment or of a run, or of a login from a new device, is
//! stored in the transaction that makes it true. An organization without an active channel costs one query.

use diesel::prelude::*;
use launchway_domain::{
    ids::{Ids as _, OrganizationId},
    notifications::{ChannelKind, DeliveryState, Event},
};
use launchway_system::clock::TimeOrderedIds;

use super::rows::facts_text;

use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::QueryError,
    schema::{deliveries, events, organizations, smtp_configs, webhook_configs},
};

/// The condition that an organization, named by a column, has an active channel.
///
/// It is part of the query that collects the data of an event, so that an organization without a channel
/// costs only two index lookups.
macro_rules! has_channel {
    ($organization:expr) => {
        diesel::dsl::exists(
            $crate::schema::webhook_configs::table
                .filter($crate::schema::webhook_configs::organization_id.eq($organization))
                .filter($crate::schema::webhook_configs::is_active.eq(true)),
        )
        .or(diesel::dsl::exists(
            $crate::schema::smtp_configs::table
                .filter($crate::schema::smtp_configs::organization_id.eq($organization))
                .filter($crate::schema::smtp_configs::is_active.eq(true)),
        ))
    };
}
pub(crate) use has_channel;

/// Inserts a delivery for every active channel of the organization. Without one nothing is written.
pub(crate) fn announce(connection: &mut AnyConnection, event: &Event) -> Result<(), QueryError> {
    let channels = active_channels(connection, event.organization_id)?;
    if channels.is_empty() {
        return Ok(());
    }
    diesel::insert_into(events::table)
        .values((
            events::id.eq(DbId::from(event.id)),
            events::organization_id.eq(DbId::from(event.organization_id)),
            events::kind.eq(event.kind.as_str()),
            events::facts.eq(facts_text(&event.facts)?),
            events::created_at.eq(DbTs(event.at)),
        ))
        .execute(connection)?;
    channels.into_iter().try_for_each(|channel| insert_delivery(connection, event, channel))
}

/// The id and the kind of an active channel.
type ActiveChannel = (DbId, String);

fn active_channels(
    connection: &mut AnyConnection,
    organization: OrganizationId,
) -> Result<Vec<ActiveChannel>, QueryError> {
    let of_webhook =
        webhook_configs::organization_id.eq(organizations::id).and(webhook_configs::is_active.eq(true));
    let of_mail = smtp_configs::organization_id.eq(organizations::id).and(smtp_configs::is_active.eq(true));
    // The mail channel is joined to each webhook, and is alone if there is none.
    let found: Vec<(Option<ActiveChannel>, Option<DbId>)> = organizations::table
        .left_join(webhook_configs::table.on(of_webhook))
        .left_join(smtp_configs::table.on(of_mail))
        .filter(organizations::id.eq(DbId::from(organization)))
        .filter(organizations::deleted_at.is_null())
        .order(organizations::id.asc())
        .select(((webhook_configs::id, webhook_configs::kind).nullable(), smtp_configs::id.nullable()))
        .load(connection)?;
    let mail = found.first().and_then(|(_, mail)| *mail);
    let mail = mail.map(|id| (id, ChannelKind::Smtp.as_str().to_owned()));
    Ok(found.into_iter().filter_map(|(webhook, _)| webhook).chain(mail).collect())
}

fn insert_delivery(
    connection: &mut AnyConnection,
    event: &Event,
    (config, kind): ActiveChannel,
) -> Result<(), QueryError> {
    diesel::insert_into(deliveries::table)
        .values((
            deliveries::id.eq(DbId(TimeOrderedIds.next())),
            deliveries::event_id.eq(DbId::from(event.id)),
            deliveries::organization_id.eq(DbId::from(event.organization_id)),
            deliveries::channel.eq(kind),
            deliveries::config_id.eq(config),
            deliveries::state.eq(DeliveryState::Pending.as_str()),
            deliveries::attempt.eq(0),
            deliveries::failures.eq(0),
            deliveries::next_at.eq(DbTs(event.at)),
            deliveries::reason.eq(""),
            deliveries::created_at.eq(DbTs(event.at)),
        ))
        .execute(connection)?;
    Ok(())
}
