//! The endpoints of extensions.

mod executions;
mod requests;

use actix_web::web::Data;
use launchway_application::Error;
use launchway_domain::{
    auth::{Action, Permission, Resource},
    extensions::{Category, ExtensionFilter, ExtensionKey, ExtensionKind},
};

use self::requests::{ForkExtension, RunExtension, UninstallExtension};
use crate::{
    Api,
    body::Body,
    caller::Caller,
    endpoint::Endpoint,
    envelope::{Envelope, List, Reply, success},
    error::{ApiError, Code},
    fields::{Choice, SearchTerm},
    idempotent::{Idempotent, Stored},
    input::input,
    pages::Paged,
    query::{Path, Query},
    views::{
        executions::ExecutionView,
        extensions::{ExtensionView, ExtensionsView},
    },
};

const CREATE: Permission = Permission::new(Resource::Extension, Action::Create);
const READ: Permission = Permission::new(Resource::Extension, Action::Read);
const DELETE: Permission = Permission::new(Resource::Extension, Action::Delete);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    let mut endpoints = vec![
        Endpoint::get("/api/v1/extensions", "list_extensions", list_extensions)
            .summary("List the catalog and this organization's forks, by name")
            .cli("launchway extensions")
            .requires(READ),
        Endpoint::get("/api/v1/extensions/categories", "extension_categories", extension_categories)
            .summary("List extension categories")
            .requires(READ),
        Endpoint::get("/api/v1/extensions/by-extension-id/{extension_id}", "extension", extension)
            .summary("Get an extension with its variables")
            .cli("launchway extensions show <ID>")
            .requires(READ)
            .fails(&[Code::NotFound]),
        Endpoint::post("/api/v1/extensions/{extension_id}/run", "run_extension", run_extension)
            .summary("Run an extension")
            .cli("launchway run <EXTENSION>")
            .requires(CREATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::post("/api/v1/extensions/{extension_id}/fork", "fork_extension", fork_extension)
            .summary("Fork an extension for this organization")
            .cli("launchway extensions fork <ID>")
            .requires(CREATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::post(
            "/api/v1/extensions/{extension_id}/uninstall",
            "uninstall_extension",
            uninstall_extension,
        )
        .summary("Uninstall an extension from this organization")
        .cli("launchway extensions uninstall <ID>")
        .requires(DELETE)
        .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::delete("/api/v1/extensions/{extension_id}", "delete_extension", delete_extension)
            .summary("Delete a fork of this organization and its resources")
            .cli("launchway extensions delete <ID>")
            .requires(DELETE)
            .fails(&[Code::Conflict, Code::NotFound]),
    ];
    endpoints.extend(executions::endpoints());
    endpoints
}

input! {
    struct ListExtensions {
        page: Paged<10, 100>,
        /// Text in key, name, description or author, ignoring case
        search: Option<SearchTerm>,
        /// Only those of this category
        category: Option<Category>,
        /// Only those of this type
        kind as "type": Option<ExtensionKind>,
    }
}

input! {
    struct ExtensionPath {
        /// Id of a catalog extension or a fork of this organization
        extension_id: String,
    }
}

impl ExtensionPath {
    /// Returns the key. An invalid key cannot exist, so it is not found.
    fn key(&self) -> Result<ExtensionKey, ApiError> {
        self.extension_id.parse().map_err(|_no_key| Error::NotFound("the extension").into())
    }
}

input! {
    struct DeleteExtension {
        /// True to remove its volumes; false by default
        volumes: Option<Choice>,
    }
}

async fn list_extensions(
    api: Data<Api>,
    caller: Caller,
    query: Query<ListExtensions>,
) -> Reply<ExtensionsView> {
    let ListExtensions { page, search, category, kind } = query.read()?;
    let filter = ExtensionFilter { search: search.map(Into::into), category, kind };
    let found = api.services.extensions.list(&caller, &filter, page.0).await?;
    Ok(success("Extensions retrieved successfully", found.into()))
}

async fn extension_categories(api: Data<Api>, caller: Caller) -> Reply<List<&'static str>> {
    api.services.extensions.may_read(&caller)?;
    let categories = Category::ALL.iter().map(|category| category.as_str()).collect();
    Ok(success("Categories retrieved successfully", categories))
}

async fn extension(api: Data<Api>, caller: Caller, path: Path<ExtensionPath>) -> Reply<ExtensionView> {
    let found = api.services.extensions.get(&caller, &path.read()?.key()?).await?;
    Ok(success("Extension retrieved successfully", found.into()))
}

async fn run_extension(
    api: Data<Api>,
    caller: Caller,
    path: Path<ExtensionPath>,
    body: Idempotent<RunExtension>,
) -> Result<Stored<Envelope<ExecutionView>>, ApiError> {
    let extensions = &api.services.extensions;
    let (RunExtension { variables }, once) = body.read(&caller, CREATE).await?;
    let extension = path.read()?.key()?;
    once.answer(
        &api,
        "Extension execution started",
        async |key| extensions.run(&caller, &extension, &variables.unwrap_or_default(), key).await,
        async |id| extensions.execution_detail(&caller, id.into()).await,
        ExecutionView::from,
    )
    .await
}

async fn fork_extension(
    api: Data<Api>,
    caller: Caller,
    path: Path<ExtensionPath>,
    body: Idempotent<ForkExtension>,
) -> Result<Stored<Envelope<ExtensionView>>, ApiError> {
    let extensions = &api.services.extensions;
    let (ForkExtension { yaml_content }, once) = body.read(&caller, CREATE).await?;
    let source = path.read()?.key()?;
    once.answer(
        &api,
        "Extension forked successfully",
        async |key| extensions.fork(&caller, &source, yaml_content, key).await,
        async |id| extensions.by_id(&caller, id.into()).await,
        ExtensionView::from,
    )
    .await
}

async fn uninstall_extension(
    api: Data<Api>,
    caller: Caller,
    path: Path<ExtensionPath>,
    body: Body<UninstallExtension>,
) -> Reply<ExtensionView> {
    let volumes = body.read().await?.volumes.unwrap_or_default();
    let found = api.services.extensions.uninstall(&caller, &path.read()?.key()?, volumes).await?;
    Ok(success("Extension uninstall started", found.into()))
}

async fn delete_extension(
    api: Data<Api>,
    caller: Caller,
    path: Path<ExtensionPath>,
    query: Query<DeleteExtension>,
) -> Reply<ExtensionView> {
    let volumes = query.read()?.volumes.is_some_and(|choice| choice.0);
    let deleted = api.services.extensions.delete(&caller, &path.read()?.key()?, volumes).await?;
    Ok(success("Extension deleted successfully", deleted.into()))
}
