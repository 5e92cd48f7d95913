//! Configurations of mail channels.

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    ids::SmtpConfigId,
    notifications::{MailUsername, SmtpConfig},
    organizations::Scope,
};

use super::{
    outcome::{REMOVED, SWITCHED_OFF, end_waiting},
    rows::recipients_text,
};
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::{QueryError, guarded},
    organizations,
    schema::smtp_configs,
    statement::StatementCache as _,
};

/// The columns that may change: all of them change together.
#[derive(AsChangeset, Insertable)]
#[diesel(table_name = smtp_configs, treat_none_as_null = true, treat_none_as_default_value = false)]
struct MailColumns<'a> {
    host: &'a str,
    port: i64,
    security: &'static str,
    username: Option<&'a str>,
    password: Option<&'a str>,
    from_email: &'a str,
    from_name: &'a str,
    recipients: String,
    is_active: bool,
    updated_at: DbTs,
}

impl<'a> MailColumns<'a> {
    fn of(config: &'a SmtpConfig) -> Result<Self, QueryError> {
        Ok(Self {
            host: config.host.as_str(),
            port: config.port.into(),
            security: config.security.as_str(),
            username: config.username.as_ref().map(MailUsername::as_str),
            password: config.password.as_ref().map(|password| password.0.as_str()),
            from_email: config.from_email.as_str(),
            from_name: config.from_name.as_str(),
            recipients: recipients_text(&config.to)?,
            is_active: config.is_active,
            updated_at: DbTs(config.updated_at),
        })
    }
}

pub(super) fn insert(connection: &mut AnyConnection, config: &SmtpConfig) -> Result<(), QueryError> {
    organizations::require(connection, config.organization_id)?;
    diesel::insert_into(smtp_configs::table)
        .values((
            smtp_configs::id.eq(DbId::from(config.id)),
            smtp_configs::user_id.eq(DbId::from(config.user_id)),
            smtp_configs::organization_id.eq(DbId::from(config.organization_id)),
            MailColumns::of(config)?,
            smtp_configs::created_at.eq(DbTs(config.created_at)),
        ))
        .execute(connection)?;
    Ok(())
}

pub(super) fn update(connection: &mut AnyConnection, config: &SmtpConfig) -> Result<(), QueryError> {
    let id = DbId::from(config.id);
    guarded(
        diesel::update(smtp_configs::table)
            .filter(smtp_configs::id.eq(id))
            .filter(smtp_configs::organization_id.eq(DbId::from(config.organization_id)))
            .set(MailColumns::of(config)?)
            .cached()
            .execute(connection)?,
    )?;
    if config.is_active { Ok(()) } else { end_waiting(connection, id, SWITCHED_OFF, config.updated_at) }
}

pub(super) fn delete(
    connection: &mut AnyConnection,
    scope: Scope,
    id: SmtpConfigId,
    at: Timestamp,
) -> Result<(), QueryError> {
    let id = DbId::from(id);
    guarded(
        diesel::delete(smtp_configs::table)
            .filter(smtp_configs::id.eq(id))
            .filter(smtp_configs::organization_id.eq(DbId::from(scope.id())))
            .execute(connection)?,
    )?;
    end_waiting(connection, id, REMOVED, at)
}
