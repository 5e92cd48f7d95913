//! Reads previews from the database.

mod statuses;
mod writes;

use std::collections::HashMap;

use async_trait::async_trait;
use diesel::{dsl::exists, prelude::*};
use launchway_domain::{
    applications::{Application, VariableNames},
    clock::Timestamp,
    ids::{ApplicationId, OrganizationId},
    organizations::Scope,
    previews::{
        CodeHostToken, ExpiredPreview, Preview, PreviewLifetime, PreviewLimit, PreviewRepository,
        PreviewSettings, PreviewState, PreviewSummary, UnreportedStatus,
    },
    secret::Sealed,
    store::StoreError,
    webhooks::{CodeHost, RequestNumber},
};

pub(super) use self::writes::{apply, give_up};
use super::{
    Database,
    applications::{ApplicationRow, read},
    columns::{DbId, DbTs},
    connection::AnyConnection,
    error::QueryError,
    schema::{applications, preview_settings, previews},
    statement::ListComparison as _,
};

#[derive(Queryable, Selectable)]
#[diesel(table_name = preview_settings)]
struct SettingsRow {
    #[diesel(deserialize_as = DbId)]
    application_id: ApplicationId,
    is_enabled: bool,
    #[diesel(deserialize_as = i64)]
    most_at_once: PreviewLimit,
    #[diesel(deserialize_as = i64)]
    lifetime_hours: PreviewLifetime,
    shared_variables: String,
    runs_commands: bool,
    build_variables: String,
    environment_variables: String,
    #[diesel(deserialize_as = DbTs)]
    updated_at: Timestamp,
}

impl TryFrom<SettingsRow> for PreviewSettings {
    type Error = QueryError;

    fn try_from(row: SettingsRow) -> Result<Self, QueryError> {
        let shared: Vec<String> =
            serde_json::from_str(&row.shared_variables).map_err(QueryError::unreadable)?;
        Ok(Self {
            application: row.application_id,
            is_enabled: row.is_enabled,
            limit: row.most_at_once,
            lifetime: row.lifetime_hours,
            shared: VariableNames::try_from(shared).map_err(QueryError::unreadable)?,
            runs_commands: row.runs_commands,
            build_variables: Sealed(row.build_variables),
            environment_variables: Sealed(row.environment_variables),
            updated_at: row.updated_at,
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = previews)]
struct PreviewRow {
    #[diesel(deserialize_as = DbId)]
    parent_id: ApplicationId,
    #[diesel(deserialize_as = i64)]
    number: RequestNumber,
    code_host: String,
    application_id: Option<DbId>,
    #[diesel(deserialize_as = String)]
    state: PreviewState,
    branch: String,
    head_commit: Option<String>,
    is_from_fork: bool,
    approved_commit: Option<String>,
    #[diesel(deserialize_as = DbTs)]
    expires_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    created_at: Timestamp,
    #[diesel(deserialize_as = DbTs)]
    updated_at: Timestamp,
}

impl TryFrom<PreviewRow> for Preview {
    type Error = QueryError;

    fn try_from(row: PreviewRow) -> Result<Self, QueryError> {
        Ok(Self {
            parent: row.parent_id,
            number: row.number,
            code_host: row.code_host.parse::<CodeHost>().map_err(QueryError::unreadable)?,
            application: row.application_id.map(ApplicationId::from),
            state: row.state,
            branch: row.branch,
            head: read(row.head_commit)?,
            is_from_fork: row.is_from_fork,
            approved: read(row.approved_commit)?,
            expires_at: row.expires_at,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

#[async_trait]
impl PreviewRepository for Database {
    async fn settings(
        &self,
        scope: Scope,
        applications: &[ApplicationId],
    ) -> Result<Vec<PreviewSettings>, StoreError> {
        let wanted: Vec<DbId> = applications.iter().copied().map(DbId::from).collect();
        self.read_point(move |connection| {
            let rows: Vec<SettingsRow> = preview_settings::table
                .inner_join(applications::table.on(applications::id.eq(preview_settings::application_id)))
                .filter(preview_settings::application_id.one_of(wanted.clone()))
                .filter(applications::organization_id.eq(DbId::from(scope.id())))
                .filter(applications::deleted_at.is_null())
                .order(preview_settings::application_id)
                .select(SettingsRow::as_select())
                .load(connection)?;
            rows.into_iter().map(PreviewSettings::try_from).collect()
        })
        .await
    }

    async fn of_request(
        &self,
        scope: Scope,
        parents: &[ApplicationId],
        number: RequestNumber,
    ) -> Result<Vec<Preview>, StoreError> {
        let parents: Vec<DbId> = parents.iter().copied().map(DbId::from).collect();
        self.read_point(move |connection| {
            let rows: Vec<PreviewRow> = previews::table
                .inner_join(applications::table.on(applications::id.eq(previews::parent_id)))
                .filter(previews::parent_id.one_of(parents.clone()))
                .filter(previews::number.eq(number.get()))
                .filter(applications::organization_id.eq(DbId::from(scope.id())))
                .filter(applications::deleted_at.is_null())
                .order(previews::parent_id)
                .select(PreviewRow::as_select())
                .load(connection)?;
            rows.into_iter().map(Preview::try_from).collect()
        })
        .await
    }

    async fn of_application(
        &self,
        scope: Scope,
        parent: ApplicationId,
    ) -> Result<Vec<PreviewSummary>, StoreError> {
        self.read(move |connection| summaries(connection, scope, parent)).await
    }

    async fn is_preview(&self, scope: Scope, application: ApplicationId) -> Result<bool, StoreError> {
        self.read_point(move |connection| {
            let found = previews::table
                .inner_join(applications::table.on(applications::id.eq(previews::parent_id)))
                .filter(previews::application_id.eq(DbId::from(application)))
                .filter(applications::organization_id.eq(DbId::from(scope.id())));
            Ok(diesel::select(exists(found)).get_result(connection)?)
        })
        .await
    }

    async fn expired(&self, now: Timestamp) -> Result<Vec<ExpiredPreview>, StoreError> {
        self.read(move |connection| {
            let is_due = previews::expires_at.le(DbTs(now)).or(applications::deleted_at.is_not_null());
            let rows: Vec<(DbId, PreviewRow)> = previews::table
                .inner_join(applications::table.on(applications::id.eq(previews::parent_id)))
                .filter(is_due)
                .order((previews::parent_id, previews::number))
                .limit(ExpiredPreview::MOST)
                .select((applications::organization_id, PreviewRow::as_select()))
                .load(connection)?;
            let expired = rows.into_iter().map(|(organization, row)| {
                Ok(ExpiredPreview {
                    organization: OrganizationId::from(organization),
                    preview: row.try_into()?,
                })
            });
            expired.collect()
        })
        .await
    }

    async fn tokens(&self, scope: Scope) -> Result<Vec<CodeHostToken>, StoreError> {
        self.read_point(move |connection| statuses::tokens(connection, scope)).await
    }

    async fn unreported(&self) -> Result<Vec<UnreportedStatus>, StoreError> {
        self.read(statuses::unreported).await
    }
}

fn summaries(
    connection: &mut AnyConnection,
    scope: Scope,
    parent: ApplicationId,
) -> Result<Vec<PreviewSummary>, QueryError> {
    let rows: Vec<PreviewRow> = previews::table
        .inner_join(applications::table.on(applications::id.eq(previews::parent_id)))
        .filter(previews::parent_id.eq(DbId::from(parent)))
        .filter(previews::state.ne(PreviewState::Closed.as_str()))
        .filter(applications::organization_id.eq(DbId::from(scope.id())))
        .filter(applications::deleted_at.is_null())
        .order(previews::number)
        .select(PreviewRow::as_select())
        .load(connection)?;
    let found = rows.into_iter().map(Preview::try_from).collect::<Result<Vec<_>, _>>()?;
    let ids: Vec<DbId> = found.iter().filter_map(|preview| Some(DbId::from(preview.application?))).collect();
    let rows: Vec<ApplicationRow> = applications::table
        .filter(applications::id.one_of(ids))
        .filter(applications::deleted_at.is_null())
        .select(ApplicationRow::as_select())
        .load(connection)?;
    let mut running = HashMap::new();
    for row in rows {
        let application = Application::try_from(row)?;
        running.insert(application.id, application);
    }
    let summary = |preview: Preview| {
        let application = preview.application.and_then(|id| running.remove(&id));
        PreviewSummary { preview, application }
    };
    Ok(found.into_iter().map(summary).collect())
}
