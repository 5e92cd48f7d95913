//! Reads applications from the database.
//!
//! **Invariant:** every change to an application or one of its deployments takes the lock of the
//! application first. It is also the lock of its jobs' subject, so that the two cannot deadlock on
//! PostgreSQL.

mod changes;
mod copies;
mod hosts;
mod names;
mod rows;
mod state;
mod watch_paths;
mod writes;

use std::collections::HashMap;

use async_trait::async_trait;
use diesel::prelude::*;
use launchway_domain::{
    applications::{
        Application, ApplicationDetail, ApplicationFilter, ApplicationRepository, ApplicationState,
        ApplicationSummary, CopyCount, NamedApplication,
    },
    ids::ApplicationId,
    organizations::Scope,
    page::{Page, PageRequest},
    store::StoreError,
};
use uuid::Uuid;

pub(super) use self::{
    rows::{ApplicationRow, read},
    state::{follow, set_state},
    writes::apply,
};
use super::{
    Database,
    columns::DbId,
    connection::{AnyConnection, MultiBackend},
    deployments,
    dialect::each_backend,
    error::QueryError,
    logs,
    organizations::OrganizationRow,
    schema::{applications, deployments as deployment_rows, organizations as organization_table, users},
    search::containing,
    statement::ListComparison as _,
    users::UserRow,
};

#[async_trait]
impl ApplicationRepository for Database {
    async fn page(
        &self,
        scope: Scope,
        filter: &ApplicationFilter,
        page: PageRequest,
    ) -> Result<Page<ApplicationSummary>, StoreError> {
        let filter = filter.clone();
        self.read(move |connection| page_of(connection, scope, &filter, page)).await
    }

    async fn get(&self, scope: Scope, id: ApplicationId) -> Result<Option<Application>, StoreError> {
        self.read_point(move |connection| {
            let row: Option<ApplicationRow> = each_backend!(connection, backend => applications::table
                .find(DbId::from(id))
                .filter(applications::organization_id.eq(DbId::from(scope.id())))
                .filter(applications::deleted_at.is_null())
                .select(ApplicationRow::as_select())
                .first(backend))
            .optional()?;
            row.map(Application::try_from).transpose()
        })
        .await
    }

    async fn detail(&self, scope: Scope, id: ApplicationId) -> Result<Option<ApplicationDetail>, StoreError> {
        self.read(move |connection| {
            let Some(summary) = summary_of(connection, scope, id)? else { return Ok(None) };
            let deployments = deployments::newest(connection, id, ApplicationDetail::DEPLOYMENTS)?;
            let logs = logs::newest(connection, id, ApplicationDetail::LOGS)?;
            Ok(Some(ApplicationDetail { summary, deployments, logs }))
        })
        .await
    }

    async fn named(&self) -> Result<Vec<NamedApplication>, StoreError> {
        self.read(hosts::all).await
    }

    async fn is_named(&self, host: &str) -> Result<bool, StoreError> {
        let host = host.to_owned();
        self.read_point(move |connection| hosts::is_there(connection, &host)).await
    }
}

/// An application, its organization and its creator.
pub(super) type SummaryRow = (ApplicationRow, OrganizationRow, UserRow);

fn summary((application, organization, user): SummaryRow) -> Result<ApplicationSummary, QueryError> {
    Ok(ApplicationSummary {
        application: application.try_into()?,
        organization: organization.into(),
        user: user.try_into()?,
        breakdown: None,
    })
}

/// Adds the reason for not serving to each application that has a live version and failed, or has several copies,
/// of which some may not serve.
fn add_breakdowns(
    connection: &mut AnyConnection,
    summaries: &mut [ApplicationSummary],
) -> Result<(), QueryError> {
    let is_asked = |application: &Application| match application.status.state {
        ApplicationState::Failed => true,
        ApplicationState::Running => application.blueprint.copies > CopyCount::ONE,
        _ => false,
    };
    let asked = summaries.iter().filter(|summary| is_asked(&summary.application));
    let live: Vec<DbId> = asked.filter_map(|summary| Some(DbId::from(summary.application.live?))).collect();
    if live.is_empty() {
        return Ok(());
    }
    let reasons: HashMap<Uuid, Option<String>> = deployment_rows::table
        .filter(deployment_rows::id.one_of(live))
        .select((deployment_rows::id, deployment_rows::breakdown))
        .load::<(DbId, Option<String>)>(connection)?
        .into_iter()
        .map(|(id, reason)| (id.0, reason))
        .collect();
    for summary in summaries {
        let live = summary.application.live.map(Uuid::from);
        summary.breakdown = live.and_then(|live| reasons.get(&live).cloned().flatten());
    }
    Ok(())
}

/// Returns an application with its organization; `None` when the organization has none with that id.
fn summary_of(
    connection: &mut AnyConnection,
    scope: Scope,
    id: ApplicationId,
) -> Result<Option<ApplicationSummary>, QueryError> {
    let row: Option<SummaryRow> = applications::table
        .inner_join(organization_table::table.on(organization_table::id.eq(applications::organization_id)))
        // The user may have been deleted since.
        .inner_join(users::table.on(users::id.eq(applications::user_id)))
        .filter(applications::id.eq(DbId::from(id)))
        .filter(applications::organization_id.eq(DbId::from(scope.id())))
        .filter(applications::deleted_at.is_null())
        .select((ApplicationRow::as_select(), OrganizationRow::as_select(), UserRow::as_select()))
        .first(connection)
        .optional()?;
    row.map(|row| summary_from(connection, row)).transpose()
}

/// Returns the summary of a row.
pub(super) fn summary_from(
    connection: &mut AnyConnection,
    row: SummaryRow,
) -> Result<ApplicationSummary, QueryError> {
    let mut summaries = [summary(row)?];
    add_breakdowns(connection, &mut summaries)?;
    let [summary] = summaries;
    Ok(summary)
}

fn page_of(
    connection: &mut AnyConnection,
    scope: Scope,
    filter: &ApplicationFilter,
    page: PageRequest,
) -> Result<Page<ApplicationSummary>, QueryError> {
    // PostgreSQL does not even compare a text that contains NUL, and the searched texts are separated by
    // line breaks.
    if filter.search.as_ref().is_some_and(|search| search.contains(['\0', '\n'])) {
        return Ok(Page { items: Vec::new(), request: page, total: 0 });
    }
    let total = matching(scope, filter).count().get_result(connection)?;
    let ids: Vec<DbId> = matching(scope, filter)
        .order((applications::created_at.desc(), applications::id.desc()))
        .limit(page.size())
        .offset(page.offset())
        .select(applications::id)
        .load(connection)?;
    let rows: Vec<SummaryRow> = applications::table
        .inner_join(organization_table::table.on(organization_table::id.eq(applications::organization_id)))
        .inner_join(users::table.on(users::id.eq(applications::user_id)))
        .filter(applications::id.one_of(ids))
        .order((applications::created_at.desc(), applications::id.desc()))
        .select((ApplicationRow::as_select(), OrganizationRow::as_select(), UserRow::as_select()))
        .load(connection)?;
    let mut items = rows.into_iter().map(summary).collect::<Result<Vec<_>, _>>()?;
    add_breakdowns(connection, &mut items)?;
    Ok(Page { items, request: page, total })
}

/// The applications of an organization that pass the filter.
fn matching(scope: Scope, filter: &ApplicationFilter) -> applications::BoxedQuery<'static, MultiBackend> {
    let mut matching = applications::table
        .filter(applications::organization_id.eq(DbId::from(scope.id())))
        .filter(applications::deleted_at.is_null())
        .into_boxed();
    if let Some(environment) = &filter.environment {
        matching = matching.filter(applications::environment.eq(environment.as_str().to_owned()));
    }
    if let Some(state) = filter.state {
        matching = matching.filter(applications::status.eq(state.as_str()));
    }
    if let Some(search) = &filter.search {
        matching = matching.filter(applications::search.like(containing(search)).escape('\\'));
    }
    matching
}
