//! Writes webhooks to the database.

use diesel::prelude::*;
use launchway_domain::{
    clock::Timestamp,
    deployments::CommitHash,
    ids::ApplicationId,
    organizations::Scope,
    store::{StoreError, Unique},
    webhooks::{BranchHead, DeliveryMark, KeptSecret, RepositoryKey, Write},
};

use super::missed::is_missed;
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::{each_backend, hold_one},
    error::{QueryError, guarded},
    organizations,
    schema::{webhook_deliveries, webhook_secrets, webhook_skips},
    statement::{ListComparison as _, StatementCache as _},
};

/// Applies one change.
pub(crate) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::FirstSecret(secret) => {
            organizations::require(connection, secret.organization_id)?;
            guarded(insert(connection, secret, secret.confirmed_at)?)
        }
        Write::ReplaceSecret { secret, until } => replace(connection, secret, *until),
        Write::Confirm { scope, repository, at } => confirm(connection, *scope, repository, *at),
        Write::Take { application, mark, since, at } => take(connection, *application, mark, (*since, *at)),
        Write::PassOver { application, commit, at } => pass_over(connection, *application, commit, *at),
        Write::RequireMissed(head) => require_missed(connection, head),
    }
}

/// Inserts a secret of a repository, unless it has one. Returns the number of inserted secrets.
fn insert(
    connection: &mut AnyConnection,
    secret: &KeptSecret,
    confirmed_at: Option<Timestamp>,
) -> Result<usize, QueryError> {
    let row = (
        webhook_secrets::id.eq(DbId::from(secret.id)),
        webhook_secrets::organization_id.eq(DbId::from(secret.organization_id)),
        webhook_secrets::repository.eq(secret.repository.as_str()),
        webhook_secrets::secret.eq(secret.secret.0.as_str()),
        webhook_secrets::created_at.eq(DbTs(secret.created_at)),
        webhook_secrets::confirmed_at.eq(confirmed_at.map(DbTs)),
    );
    Ok(each_backend!(connection, backend => diesel::insert_into(webhook_secrets::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(backend))?)
}

fn replace(connection: &mut AnyConnection, secret: &KeptSecret, until: Timestamp) -> Result<(), QueryError> {
    // Concurrent replacements are serialized.
    hold_one(connection, secret.organization_id.into())?;
    organizations::require(connection, secret.organization_id)?;
    let organization = webhook_secrets::organization_id.eq(DbId::from(secret.organization_id));
    let repository = webhook_secrets::repository.eq(secret.repository.as_str());
    let confirmed_at: Option<Option<DbTs>> = webhook_secrets::table
        .filter(organization)
        .filter(repository)
        .filter(webhook_secrets::valid_until.is_null())
        .select(webhook_secrets::confirmed_at)
        .first(connection)
        .optional()?;
    diesel::update(webhook_secrets::table)
        .filter(organization)
        .filter(repository)
        .filter(webhook_secrets::valid_until.is_null())
        .set(webhook_secrets::valid_until.eq(DbTs(until)))
        .cached()
        .execute(connection)?;
    let too_many: Vec<DbId> = webhook_secrets::table
        .filter(organization)
        .filter(repository)
        .order((webhook_secrets::created_at.desc(), webhook_secrets::id.desc()))
        .offset(KeptSecret::MOST_REPLACED)
        // SQLite knows no offset without a limit.
        .limit(i64::MAX)
        .select(webhook_secrets::id)
        .load(connection)?;
    diesel::delete(webhook_secrets::table)
        .filter(webhook_secrets::id.one_of(too_many))
        .execute(connection)?;
    guarded(insert(connection, secret, confirmed_at.flatten().map(Timestamp::from))?)
}

fn confirm(
    connection: &mut AnyConnection,
    scope: Scope,
    repository: &RepositoryKey,
    at: Timestamp,
) -> Result<(), QueryError> {
    diesel::update(webhook_secrets::table)
        .filter(webhook_secrets::organization_id.eq(DbId::from(scope.id())))
        .filter(webhook_secrets::repository.eq(repository.as_str()))
        .filter(webhook_secrets::confirmed_at.is_null())
        .set(webhook_secrets::confirmed_at.eq(DbTs(at)))
        .cached()
        .execute(connection)?;
    Ok(())
}

fn take(
    connection: &mut AnyConnection,
    application: ApplicationId,
    mark: &DeliveryMark,
    (since, at): (Timestamp, Timestamp),
) -> Result<(), QueryError> {
    hold_one(connection, application.into())?;
    let application = DbId::from(application);
    // A delivery that is too old to count must not conflict.
    diesel::delete(webhook_deliveries::table)
        .filter(webhook_deliveries::application_id.eq(application))
        .filter(webhook_deliveries::taken_at.le(DbTs(since)))
        .execute(connection)?;
    let row = (
        webhook_deliveries::application_id.eq(application),
        webhook_deliveries::mark.eq(mark.to_string()),
        webhook_deliveries::taken_at.eq(DbTs(at)),
    );
    let taken = each_backend!(connection, backend => diesel::insert_into(webhook_deliveries::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(backend))?;
    if taken == 0 {
        return Err(StoreError::Taken(Unique::WebhookDelivery).into());
    }
    // The next push may have the text of one before this.
    diesel::delete(webhook_deliveries::table)
        .filter(webhook_deliveries::application_id.eq(application))
        .filter(webhook_deliveries::mark.like("body:%"))
        .filter(webhook_deliveries::mark.ne(mark.to_string()))
        .execute(connection)?;
    Ok(())
}

fn pass_over(
    connection: &mut AnyConnection,
    application: ApplicationId,
    commit: &CommitHash,
    at: Timestamp,
) -> Result<(), QueryError> {
    let skip = (webhook_skips::commit_hash.eq(commit.as_str()), webhook_skips::skipped_at.eq(DbTs(at)));
    each_backend!(connection, backend => diesel::insert_into(webhook_skips::table)
        .values((webhook_skips::application_id.eq(DbId::from(application)), skip))
        .on_conflict(webhook_skips::application_id)
        .do_update()
        .set(skip)
        .cached()
        .execute(backend))?;
    Ok(())
}

fn require_missed(connection: &mut AnyConnection, head: &BranchHead) -> Result<(), QueryError> {
    hold_one(connection, head.application.into())?;
    guarded(is_missed(connection, head)?.into())
}
