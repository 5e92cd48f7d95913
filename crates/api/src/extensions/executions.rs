//! Runs of extensions.

pub(super) mod views;

use actix_web::web::{Data, Path};

use self::views::{ExecutionLogsView, ExecutionView, ExecutionsView};
use super::{PAGES, key};
use crate::{
    Api,
    caller::Caller,
    envelope::{Envelope, Reply, success},
    error::path_id,
    query::Query,
    routes::Routes,
};

pub(super) fn routes(routes: &mut Routes) {
    routes
        .get("/api/v1/extensions/by-extension-id/{extension_id}/executions", extension_executions)
        .get("/api/v1/extensions/execution/{execution_id}", execution)
        .get("/api/v1/extensions/execution/{execution_id}/logs", execution_logs)
        .post("/api/v1/extensions/execution/{execution_id}/cancel", cancel_execution);
}

/// List the runs of an extension by this organization, newest first
#[utoipa::path(get, path = "/api/v1/extensions/by-extension-id/{extension_id}/executions", tag = "extensions",
    security(("bearer" = [])),
    params(
        ("extension_id" = String, Path, description = "Id of a catalog extension or a fork of this organization"),
        ("page" = Option<i64>, Query, description = "Page number, from 1"),
        ("page_size" = Option<i64>, Query, description = "Page size: default 10, at most 100; also `pageSize`"),
    ),
    responses((status = 200, body = Envelope<ExecutionsView>)))]
pub(crate) async fn extension_executions(
    api: Data<Api>,
    caller: Caller,
    path: Path<String>,
    query: Query,
) -> Reply<ExecutionsView> {
    let mut query = query.read()?;
    let page = PAGES.take(&mut query);
    query.finish_query()?;
    let found = api.services.extensions.executions(&caller, &key(&path)?, page?).await?;
    Ok(success("Executions retrieved successfully", found.into()))
}

/// Get a run with its extension and its steps
#[utoipa::path(get, path = "/api/v1/extensions/execution/{execution_id}", tag = "extensions",
    security(("bearer" = [])),
    params(("execution_id" = String, Path, description = "Id of an execution of this organization")),
    responses((status = 200, body = Envelope<ExecutionView>)))]
pub(crate) async fn execution(api: Data<Api>, caller: Caller, path: Path<String>) -> Reply<ExecutionView> {
    let id = path_id("execution_id", &path)?;
    let detail = api.services.extensions.execution_detail(&caller, id).await?;
    Ok(success("Execution retrieved successfully", detail.into()))
}

/// Get the log of a run, oldest first, 1,000 lines at most
#[utoipa::path(get, path = "/api/v1/extensions/execution/{execution_id}/logs", tag = "extensions",
    security(("bearer" = [])),
    params(
        ("execution_id" = String, Path, description = "Id of an execution of this organization"),
        ("after_seq" = Option<i64>, Query, description = "Only lines after this number: `next_seq` of the last response"),
    ),
    responses((status = 200, body = Envelope<ExecutionLogsView>)))]
pub(crate) async fn execution_logs(
    api: Data<Api>,
    caller: Caller,
    path: Path<String>,
    query: Query,
) -> Reply<ExecutionLogsView> {
    let mut query = query.read()?;
    let after = query.optional::<i64>("after_seq");
    let after = after.and_then(|after| match after.unwrap_or_default() {
        after if after >= 0 => Ok(after),
        after => query.refuse(format!("after_seq must be at least 0, got {after}")),
    });
    query.finish_query()?;
    let id = path_id("execution_id", &path)?;
    let found = api.services.extensions.lines(&caller, id, after?).await?;
    Ok(success("Execution logs retrieved successfully", found.into()))
}

/// Cancel a run and roll it back
#[utoipa::path(post, path = "/api/v1/extensions/execution/{execution_id}/cancel", tag = "extensions",
    security(("bearer" = [])),
    params(("execution_id" = String, Path, description = "Id of an execution of this organization")),
    responses((status = 200, body = Envelope<ExecutionView>)))]
pub(crate) async fn cancel_execution(
    api: Data<Api>,
    caller: Caller,
    path: Path<String>,
) -> Reply<ExecutionView> {
    let id = path_id("execution_id", &path)?;
    let detail = api.services.extensions.cancel(&caller, id).await?;
    Ok(success("Execution cancellation requested successfully", detail.into()))
}
