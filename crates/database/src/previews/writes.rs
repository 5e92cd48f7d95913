//! Writes previews to the database.

use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    clock::Timestamp,
    deployments::CommitHash,
    ids::ApplicationId,
    organizations::Scope,
    previews::{Preview, PreviewSettings, Write},
    store::{Rule, StoreError},
    webhooks::{HeadCommit, RequestNumber},
};

use super::statuses;
use crate::{
    columns::{DbId, DbTs},
    connection::AnyConnection,
    dialect::{each_backend, hold_one},
    error::{QueryError, guarded},
    schema::{applications, preview_settings, previews},
    statement::StatementCache as _,
};

/// Applies one change.
pub(crate) fn apply(connection: &mut AnyConnection, write: &Write) -> Result<(), QueryError> {
    match write {
        Write::SetSettings { scope, settings, seen } => set_settings(connection, *scope, settings, *seen),
        Write::Put { scope, preview, seen, most } => put(connection, *scope, preview, *seen, *most),
        Write::Remove { parent, number, seen } => remove(connection, *parent, *number, *seen),
        Write::SetToken(token) => statuses::set_token(connection, token),
        Write::RemoveToken { scope, host } => statuses::remove_token(connection, *scope, host),
        Write::RecordStatus { parent, number, status } => {
            statuses::record(connection, *parent, *number, status)
        }
        Write::RecordProblem { organization, host, problem } => {
            statuses::record_problem(connection, *organization, host, problem.as_deref())
        }
    }
}

/// Removes the preview settings of an application that is deleted, and the record of the preview that it ran. The
/// records of its own previews stay until those are deleted.
pub(crate) fn give_up(connection: &mut AnyConnection, application: ApplicationId) -> Result<(), QueryError> {
    diesel::delete(preview_settings::table.find(DbId::from(application))).execute(connection)?;
    diesel::delete(previews::table)
        .filter(previews::application_id.eq(DbId::from(application)))
        .execute(connection)?;
    Ok(())
}

fn set_settings(
    connection: &mut AnyConnection,
    scope: Scope,
    settings: &PreviewSettings,
    seen: Option<Timestamp>,
) -> Result<(), QueryError> {
    let id = DbId::from(settings.application);
    hold_one(connection, id)?;
    let is_there = is_there(connection, scope, id)?;
    let preview = previews::table.filter(previews::application_id.eq(id));
    let is_preview: bool = diesel::select(exists(preview)).get_result(connection)?;
    let known: Option<DbTs> =
        preview_settings::table.find(id).select(preview_settings::updated_at).first(connection).optional()?;
    guarded((is_there && !is_preview && known.map(Timestamp::from) == seen).into())?;
    let columns = (
        preview_settings::is_enabled.eq(settings.is_enabled),
        preview_settings::most_at_once.eq(i64::from(settings.limit.get())),
        preview_settings::lifetime_hours.eq(i64::from(settings.lifetime.hours())),
        preview_settings::shared_variables
            .eq(serde_json::Value::from_iter(settings.shared.iter()).to_string()),
        preview_settings::runs_commands.eq(settings.runs_commands),
        preview_settings::build_variables.eq(settings.build_variables.0.as_str()),
        preview_settings::environment_variables.eq(settings.environment_variables.0.as_str()),
        preview_settings::updated_at.eq(DbTs(settings.updated_at)),
    );
    each_backend!(connection, backend => diesel::insert_into(preview_settings::table)
        .values((preview_settings::application_id.eq(id), columns.clone()))
        .on_conflict(preview_settings::application_id)
        .do_update()
        .set(columns)
        .cached()
        .execute(backend))?;
    Ok(())
}

fn is_there(connection: &mut AnyConnection, scope: Scope, application: DbId) -> Result<bool, QueryError> {
    let there = applications::table
        .find(application)
        .filter(applications::organization_id.eq(DbId::from(scope.id())))
        .filter(applications::deleted_at.is_null());
    Ok(diesel::select(exists(there)).get_result(connection)?)
}

fn put(
    connection: &mut AnyConnection,
    scope: Scope,
    preview: &Preview,
    seen: Option<Timestamp>,
    most: u16,
) -> Result<(), QueryError> {
    let parent = DbId::from(preview.parent);
    hold_one(connection, parent)?;
    let is_there = is_there(connection, scope, parent)?;
    let known: Option<DbTs> = previews::table
        .find((parent, preview.number.get()))
        .select(previews::updated_at)
        .first(connection)
        .optional()?;
    guarded((is_there && known.map(Timestamp::from) == seen).into())?;
    let others: i64 = previews::table
        .filter(previews::parent_id.eq(parent))
        .filter(previews::number.ne(preview.number.get()))
        .filter(previews::state.eq(preview.state.as_str()))
        .count()
        .get_result(connection)?;
    if others >= i64::from(most) {
        return Err(StoreError::Refused(Rule::MostPreviews).into());
    }
    let columns = (
        previews::code_host.eq(preview.code_host.as_str()),
        previews::application_id.eq(preview.application.map(DbId::from)),
        previews::state.eq(preview.state.as_str()),
        previews::branch.eq(preview.branch.as_str()),
        previews::head_commit.eq(preview.head.as_ref().map(HeadCommit::as_str)),
        previews::is_from_fork.eq(preview.is_from_fork),
        previews::approved_commit.eq(preview.approved.as_ref().map(CommitHash::as_str)),
        previews::expires_at.eq(DbTs(preview.expires_at)),
        previews::created_at.eq(DbTs(preview.created_at)),
        previews::updated_at.eq(DbTs(preview.updated_at)),
    );
    let key = (previews::parent_id.eq(parent), previews::number.eq(preview.number.get()));
    each_backend!(connection, backend => diesel::insert_into(previews::table)
        .values((key, columns))
        .on_conflict((previews::parent_id, previews::number))
        .do_update()
        .set(columns)
        .cached()
        .execute(backend))?;
    Ok(())
}

fn remove(
    connection: &mut AnyConnection,
    parent: ApplicationId,
    number: RequestNumber,
    seen: Timestamp,
) -> Result<(), QueryError> {
    hold_one(connection, parent.into())?;
    guarded(
        diesel::delete(previews::table.find((DbId::from(parent), number.get())))
            .filter(previews::updated_at.eq(DbTs(seen)))
            .execute(connection)?,
    )
}
