//! Runs of extensions.

use actix_web::web::Data;
use launchway_domain::{
    auth::{Action, Permission, Resource},
    ids::ExecutionId,
};

use super::ExtensionPath;
use crate::{
    Api,
    caller::Caller,
    endpoint::Endpoint,
    envelope::{Reply, success},
    error::Code,
    fields::AtLeast,
    input::input,
    pages::Paged,
    query::{Path, Query},
    views::executions::{ExecutionLogsView, ExecutionView, ExecutionsView},
};

const READ: Permission = Permission::new(Resource::Extension, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Extension, Action::Update);

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::get(
            "/api/v1/extensions/by-extension-id/{extension_id}/executions",
            "extension_executions",
            extension_executions,
        )
        .summary("List the runs of an extension by this organization, newest first")
        .cli("launchway extensions executions <ID>")
        .requires(READ)
        .fails(&[Code::NotFound]),
        Endpoint::get("/api/v1/extensions/execution/{execution_id}", "execution", execution)
            .summary("Get a run with its extension and its steps")
            .requires(READ)
            .fails(&[Code::NotFound]),
        Endpoint::get("/api/v1/extensions/execution/{execution_id}/logs", "execution_logs", execution_logs)
            .summary("Get the log of a run, oldest first, 1,000 lines at most")
            .cli("launchway extensions follow <EXECUTION>")
            .requires(READ)
            .fails(&[Code::NotFound]),
        Endpoint::post(
            "/api/v1/extensions/execution/{execution_id}/cancel",
            "cancel_execution",
            cancel_execution,
        )
        .summary("Cancel a run and roll it back")
        .cli("launchway extensions cancel <EXECUTION>")
        .requires(UPDATE)
        .fails(&[Code::Conflict, Code::NotFound]),
    ]
}

input! {
    struct ListExecutions {
        page: Paged<10, 100>,
    }
}

input! {
    struct ExecutionPath {
        /// Id of an execution of this organization
        execution_id: ExecutionId,
    }
}

input! {
    struct ExecutionLogsQuery {
        /// Only lines after this number: `next_seq` of the last response
        after_seq: Option<AtLeast<0>>,
    }
}

async fn extension_executions(
    api: Data<Api>,
    caller: Caller,
    path: Path<ExtensionPath>,
    query: Query<ListExecutions>,
) -> Reply<ExecutionsView> {
    let ListExecutions { page } = query.read()?;
    let found = api.services.extensions.executions(&caller, &path.read()?.key()?, page.0).await?;
    Ok(success("Executions retrieved successfully", found.into()))
}

async fn execution(api: Data<Api>, caller: Caller, path: Path<ExecutionPath>) -> Reply<ExecutionView> {
    let id = path.read()?.execution_id;
    let detail = api.services.extensions.execution_detail(&caller, id).await?;
    Ok(success("Execution retrieved successfully", detail.into()))
}

async fn execution_logs(
    api: Data<Api>,
    caller: Caller,
    path: Path<ExecutionPath>,
    query: Query<ExecutionLogsQuery>,
) -> Reply<ExecutionLogsView> {
    let after = query.read()?.after_seq.map_or(0, |after| after.0);
    let id = path.read()?.execution_id;
    let found = api.services.extensions.lines(&caller, id, after).await?;
    Ok(success("Execution logs retrieved successfully", found.into()))
}

async fn cancel_execution(api: Data<Api>, caller: Caller, path: Path<ExecutionPath>) -> Reply<ExecutionView> {
    let id = path.read()?.execution_id;
    let detail = api.services.extensions.cancel(&caller, id).await?;
    Ok(success("Execution cancellation requested successfully", detail.into()))
}
