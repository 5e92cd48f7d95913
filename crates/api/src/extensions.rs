//! The endpoints of extensions.

pub(crate) mod executions;
mod requests;
mod views;

use actix_web::{
    HttpResponse,
    web::{Data, Path},
};
use launchway_application::Error;
use launchway_domain::{
    auth::{Action, Permission, Resource},
    extensions::{Category, ExtensionFilter, ExtensionKey},
};

pub(crate) use self::{
    executions::views::{ExecutionStepView, ExecutionView},
    views::{ExtensionVariableView, ExtensionView},
};
use self::{
    requests::{ForkExtension, RunExtension, UninstallExtension},
    views::ExtensionsView,
};
use crate::{
    Api,
    body::Body,
    caller::Caller,
    envelope::{Envelope, Reply, success},
    error::ApiError,
    fields::{Choice, SearchTerm},
    idempotent::Idempotent,
    pages::PageSizes,
    query::Query,
    routes::Routes,
};

const PAGES: PageSizes = PageSizes { default: 10, largest: 100 };

/// The permission of requests with an `Idempotency-Key`, also when they are repeated.
const CREATE: Permission = Permission::new(Resource::Extension, Action::Create);

pub(crate) fn routes(routes: &mut Routes) {
    routes
        .get("/api/v1/extensions", list_extensions)
        .get("/api/v1/extensions/categories", extension_categories)
        .get("/api/v1/extensions/by-extension-id/{extension_id}", extension)
        .post("/api/v1/extensions/{extension_id}/run", run_extension)
        .post("/api/v1/extensions/{extension_id}/fork", fork_extension)
        .post("/api/v1/extensions/{extension_id}/uninstall", uninstall_extension)
        .delete("/api/v1/extensions/{extension_id}", delete_extension);
    executions::routes(routes);
}

/// List the catalog and this organization's forks, by name
#[utoipa::path(get, path = "/api/v1/extensions", tag = "extensions", security(("bearer" = [])),
    params(
        ("page" = Option<i64>, Query, description = "Page number, from 1"),
        ("page_size" = Option<i64>, Query, description = "Page size: default 10, at most 100; also `pageSize`"),
        ("search" = Option<String>, Query, description = "Text in key, name, description or author, ignoring case"),
        ("category" = Option<String>, Query, description = "Such as `Database`"),
        ("type" = Option<String>, Query, description = "`install` or `run`"),
    ),
    responses((status = 200, body = Envelope<ExtensionsView>)))]
pub(crate) async fn list_extensions(api: Data<Api>, caller: Caller, query: Query) -> Reply<ExtensionsView> {
    let mut query = query.read()?;
    let page = PAGES.take(&mut query);
    let search = query.optional::<SearchTerm>("search");
    let category = query.optional("category");
    let kind = query.optional("type");
    query.finish_query()?;
    let filter = ExtensionFilter { search: search?.map(Into::into), category: category?, kind: kind? };
    let found = api.services.extensions.list(&caller, &filter, page?).await?;
    Ok(success("Extensions retrieved successfully", found.into()))
}

/// List extension categories
#[utoipa::path(get, path = "/api/v1/extensions/categories", tag = "extensions", security(("bearer" = [])),
    responses((status = 200, body = Envelope<Vec<String>>)))]
pub(crate) async fn extension_categories(api: Data<Api>, caller: Caller) -> Reply<Vec<&'static str>> {
    api.services.extensions.may_read(&caller)?;
    let categories = Category::ALL.iter().map(|category| category.as_str()).collect();
    Ok(success("Categories retrieved successfully", categories))
}

/// Get an extension with its variables
#[utoipa::path(get, path = "/api/v1/extensions/by-extension-id/{extension_id}", tag = "extensions",
    security(("bearer" = [])),
    params(("extension_id" = String, Path, description = "Id of a catalog extension or a fork of this organization")),
    responses((status = 200, body = Envelope<ExtensionView>)))]
pub(crate) async fn extension(api: Data<Api>, caller: Caller, path: Path<String>) -> Reply<ExtensionView> {
    let found = api.services.extensions.get(&caller, &key(&path)?).await?;
    Ok(success("Extension retrieved successfully", found.into()))
}

/// Run an extension
#[utoipa::path(post, path = "/api/v1/extensions/{extension_id}/run", tag = "extensions", security(("bearer" = [])),
    params(
        ("extension_id" = String, Path, description = "Id of a catalog extension or a fork of this organization"),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated key returns the first response"),
    ),
    request_body = RunExtension, responses((status = 200, body = Envelope<ExecutionView>)))]
pub(crate) async fn run_extension(
    api: Data<Api>,
    caller: Caller,
    path: Path<String>,
    body: Idempotent<RunExtension>,
) -> Result<HttpResponse, ApiError> {
    let extensions = &api.services.extensions;
    let (RunExtension { variables }, once) = body.read(&caller, CREATE).await?;
    let extension = key(&path)?;
    once.answer(
        &api,
        "Extension execution started",
        async |key| extensions.run(&caller, &extension, &variables, key).await,
        async |id| extensions.execution_detail(&caller, id.into()).await,
        ExecutionView::from,
    )
    .await
}

/// Fork an extension for this organization
#[utoipa::path(post, path = "/api/v1/extensions/{extension_id}/fork", tag = "extensions", security(("bearer" = [])),
    params(
        ("extension_id" = String, Path, description = "Id of a catalog extension"),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeated key returns the first response"),
    ),
    request_body = ForkExtension, responses((status = 200, body = Envelope<ExtensionView>)))]
pub(crate) async fn fork_extension(
    api: Data<Api>,
    caller: Caller,
    path: Path<String>,
    body: Idempotent<ForkExtension>,
) -> Result<HttpResponse, ApiError> {
    let extensions = &api.services.extensions;
    let (ForkExtension { yaml_content }, once) = body.read(&caller, CREATE).await?;
    let source = key(&path)?;
    once.answer(
        &api,
        "Extension forked successfully",
        async |key| extensions.fork(&caller, &source, yaml_content, key).await,
        async |id| extensions.by_id(&caller, id.into()).await,
        ExtensionView::from,
    )
    .await
}

/// Uninstall an extension from this organization
#[utoipa::path(post, path = "/api/v1/extensions/{extension_id}/uninstall", tag = "extensions",
    security(("bearer" = [])),
    params(("extension_id" = String, Path, description = "Id of a catalog extension or a fork of this organization")),
    request_body = UninstallExtension, responses((status = 200, body = Envelope<ExtensionView>)))]
pub(crate) async fn uninstall_extension(
    api: Data<Api>,
    caller: Caller,
    path: Path<String>,
    body: Body<UninstallExtension>,
) -> Reply<ExtensionView> {
    let UninstallExtension { volumes } = body.read().await?;
    let found = api.services.extensions.uninstall(&caller, &key(&path)?, volumes).await?;
    Ok(success("Extension uninstall started", found.into()))
}

/// Delete a fork of this organization and its resources
#[utoipa::path(delete, path = "/api/v1/extensions/{extension_id}", tag = "extensions", security(("bearer" = [])),
    params(
        ("extension_id" = String, Path, description = "Id of a fork of this organization"),
        ("volumes" = Option<bool>, Query, description = "Whether to remove its volumes; default false"),
    ),
    responses((status = 200, body = Envelope<ExtensionView>)))]
pub(crate) async fn delete_extension(
    api: Data<Api>,
    caller: Caller,
    path: Path<String>,
    query: Query,
) -> Reply<ExtensionView> {
    let mut query = query.read()?;
    let volumes = query.optional::<Choice>("volumes");
    query.finish_query()?;
    let volumes = volumes?.is_some_and(|choice| choice.0);
    let deleted = api.services.extensions.delete(&caller, &key(&path)?, volumes).await?;
    Ok(success("Extension deleted successfully", deleted.into()))
}

/// Parses the key of a path. An invalid key cannot exist, so it is not found.
fn key(path: &Path<String>) -> Result<ExtensionKey, ApiError> {
    path.parse().map_err(|_no_key| Error::NotFound("the extension").into())
}
