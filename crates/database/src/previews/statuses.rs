//! The tokens of code hosts, and the statuses that were reported with them.

use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    applications::Application,
    clock::Timestamp,
    ids::{ApplicationId, OrganizationId},
    organizations::Scope,
    previews::{CodeHostApi, CodeHostName, CodeHostToken, CommitStatus, Preview, UnreportedStatus},
    secret::Sealed,
    webhooks::RequestNumber,
};

use super::PreviewRow;
use crate::{
    applications::{ApplicationRow, read},
    columns::{DbId, DbTs},
    connection::AnyConnection,
    deployments::newest_of,
    dialect::each_backend,
    error::{QueryError, guarded},
    schema::{applications, code_host_tokens, organizations, previews},
    statement::StatementCache as _,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = code_host_tokens)]
struct TokenRow {
    #[diesel(deserialize_as = DbId)]
    organization_id: OrganizationId,
    #[diesel(deserialize_as = String)]
    host: CodeHostName,
    api_url: Option<String>,
    token: String,
    #[diesel(deserialize_as = DbTs)]
    updated_at: Timestamp,
    problem: Option<String>,
}

impl TryFrom<TokenRow> for CodeHostToken {
    type Error = QueryError;

    fn try_from(row: TokenRow) -> Result<Self, QueryError> {
        Ok(Self {
            organization: row.organization_id,
            host: row.host,
            api: read(row.api_url)?,
            token: Sealed(row.token),
            updated_at: row.updated_at,
            problem: row.problem,
        })
    }
}

pub(super) fn tokens(connection: &mut AnyConnection, scope: Scope) -> Result<Vec<CodeHostToken>, QueryError> {
    let rows: Vec<TokenRow> = code_host_tokens::table
        .inner_join(organizations::table.on(organizations::id.eq(code_host_tokens::organization_id)))
        .filter(code_host_tokens::organization_id.eq(DbId::from(scope.id())))
        .filter(organizations::deleted_at.is_null())
        .order(code_host_tokens::host)
        .select(TokenRow::as_select())
        .load(connection)?;
    rows.into_iter().map(CodeHostToken::try_from).collect()
}

/// A preview with its parent, and the status that was reported last.
type ReportedRow = (PreviewRow, ApplicationRow, Option<String>, Option<String>);

pub(super) fn unreported(connection: &mut AnyConnection) -> Result<Vec<UnreportedStatus>, QueryError> {
    let has_token = exists(
        code_host_tokens::table
            .filter(code_host_tokens::organization_id.eq(applications::organization_id))
            .select(code_host_tokens::host),
    );
    let rows: Vec<ReportedRow> = previews::table
        .inner_join(applications::table.on(applications::id.eq(previews::parent_id)))
        .filter(previews::application_id.is_not_null())
        .filter(applications::deleted_at.is_null())
        .filter(has_token)
        .order((previews::parent_id, previews::number))
        .select((
            PreviewRow::as_select(),
            ApplicationRow::as_select(),
            previews::reported_commit,
            previews::reported_state,
        ))
        .load(connection)?;
    let mut found = Vec::new();
    for (preview, parent, commit, state) in rows {
        let preview = Preview::try_from(preview)?;
        let parent = Application::try_from(parent)?;
        let (organization, Some(id)) = (parent.organization_id, preview.application) else { continue };
        let Some(newest) = newest_of(connection, Scope::of_record(organization), id)? else { continue };
        let Some(status) = CommitStatus::of(&preview, &newest) else { continue };
        if (commit.as_deref(), state.as_deref())
            == (Some(status.commit.as_str()), Some(status.state.as_str()))
        {
            continue;
        }
        let application: ApplicationRow =
            applications::table.find(DbId::from(id)).select(ApplicationRow::as_select()).first(connection)?;
        let application = Application::try_from(application)?;
        found.push(UnreportedStatus { organization, preview, parent, application, status });
    }
    Ok(found)
}

pub(super) fn set_token(connection: &mut AnyConnection, token: &CodeHostToken) -> Result<(), QueryError> {
    let organization = DbId::from(token.organization);
    let there = organizations::table.find(organization).filter(organizations::deleted_at.is_null());
    let is_there: bool = diesel::select(exists(there)).get_result(connection)?;
    guarded(is_there.into())?;
    let columns = (
        code_host_tokens::api_url.eq(token.api.as_ref().map(CodeHostApi::as_str)),
        code_host_tokens::token.eq(token.token.0.as_str()),
        code_host_tokens::updated_at.eq(DbTs(token.updated_at)),
        code_host_tokens::problem.eq(token.problem.as_deref()),
    );
    let key =
        (code_host_tokens::organization_id.eq(organization), code_host_tokens::host.eq(token.host.as_str()));
    each_backend!(connection, backend => diesel::insert_into(code_host_tokens::table)
        .values((key, columns))
        .on_conflict((code_host_tokens::organization_id, code_host_tokens::host))
        .do_update()
        .set(columns)
        .cached()
        .execute(backend))?;
    // Statuses that an earlier token could not report, or that nobody reported.
    let owned =
        applications::table.filter(applications::organization_id.eq(organization)).select(applications::id);
    diesel::update(previews::table.filter(previews::parent_id.eq_any(owned)))
        .set((previews::reported_commit.eq(None::<String>), previews::reported_state.eq(None::<String>)))
        .cached()
        .execute(connection)?;
    Ok(())
}

pub(super) fn remove_token(
    connection: &mut AnyConnection,
    scope: Scope,
    host: &CodeHostName,
) -> Result<(), QueryError> {
    let key = (DbId::from(scope.id()), host.as_str());
    guarded(diesel::delete(code_host_tokens::table.find(key)).execute(connection)?)
}

pub(super) fn record(
    connection: &mut AnyConnection,
    parent: ApplicationId,
    number: RequestNumber,
    status: &CommitStatus,
) -> Result<(), QueryError> {
    diesel::update(previews::table.find((DbId::from(parent), number.get())))
        .set((
            previews::reported_commit.eq(Some(status.commit.as_str())),
            previews::reported_state.eq(Some(status.state.as_str())),
        ))
        .cached()
        .execute(connection)?;
    Ok(())
}

pub(super) fn record_problem(
    connection: &mut AnyConnection,
    organization: OrganizationId,
    host: &CodeHostName,
    problem: Option<&str>,
) -> Result<(), QueryError> {
    diesel::update(code_host_tokens::table.find((DbId::from(organization), host.as_str())))
        .set(code_host_tokens::problem.eq(problem))
        .cached()
        .execute(connection)?;
    Ok(())
}
