//! The endpoints of `/api/v1/deploy/application`.

pub(crate) mod domains;
mod requests;
mod views;

use actix_web::{HttpResponse, web::Data};
use launchway_domain::{
    applications::ApplicationFilter,
    auth::{Action, Permission, Resource},
};

pub(crate) use self::views::{ApplicationStatusView, ApplicationView};
use self::{
    requests::{CreateApplication, UpdateApplication, WhichApplication},
    views::ApplicationsView,
};
use crate::{
    Api,
    body::Body,
    caller::Caller,
    envelope::{Envelope, Nothing, Reply, success},
    error::ApiError,
    fields::{Choice, SearchTerm},
    idempotent::Idempotent,
    pages::PageSizes,
    query::Query,
    routes::Routes,
};

const PAGES: PageSizes = PageSizes { default: 10, largest: 100 };

/// The permission of requests with an `Idempotency-Key`, also when they are repeated.
const CREATE: Permission = Permission::new(Resource::Deploy, Action::Create);

pub(crate) fn routes(routes: &mut Routes) {
    routes
        .post("/api/v1/deploy/application", create_application)
        .get("/api/v1/deploy/application", application)
        .put("/api/v1/deploy/application", update_application)
        .delete("/api/v1/deploy/application", delete_application)
        .get("/api/v1/deploy/applications", list_applications)
        .post("/api/v1/deploy/application/restart", restart_application)
        .post("/api/v1/deploy/application/stop", stop_application);
    domains::routes(routes);
}

/// Create and deploy an application
#[utoipa::path(post, path = "/api/v1/deploy/application", tag = "applications", security(("bearer" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated key returns the first response")),
    request_body = CreateApplication, responses((status = 200, body = Envelope<ApplicationView>)))]
pub(crate) async fn create_application(
    api: Data<Api>,
    caller: Caller,
    body: Idempotent<CreateApplication>,
) -> Result<HttpResponse, ApiError> {
    let applications = &api.services.applications;
    let (wish, once) = body.read(&caller, CREATE).await?;
    once.answer(
        &api,
        "Deployment created successfully",
        async |key| applications.create(&caller, wish.into(), key).await,
        async |id| applications.detail(&caller, id.into()).await,
        ApplicationView::from,
    )
    .await
}

/// Get an application with its deployments and newest log lines
#[utoipa::path(get, path = "/api/v1/deploy/application", tag = "applications", security(("bearer" = [])),
    params(("id" = String, Query, description = "Id of an application of this organization")),
    responses((status = 200, body = Envelope<ApplicationView>)))]
pub(crate) async fn application(api: Data<Api>, caller: Caller, query: Query) -> Reply<ApplicationView> {
    let mut query = query.read()?;
    let id = query.required_id("id");
    query.finish_query()?;
    let detail = api.services.applications.detail(&caller, id?).await?;
    Ok(success("Application retrieved successfully", detail.into()))
}

/// Update an application, and deploy it again unless `redeploy` is false
#[utoipa::path(put, path = "/api/v1/deploy/application", tag = "applications", security(("bearer" = [])),
    params(
        ("id" = String, Query, description = "Id of an application of this organization"),
        ("redeploy" = Option<bool>, Query, description = "Whether to redeploy; default true"),
        ("unchanged_since" = Option<String>, Query,
            description = "Expected `updated_at`: 409 if it has changed"),
    ),
    request_body = UpdateApplication, responses((status = 200, body = Envelope<ApplicationView>)))]
pub(crate) async fn update_application(
    api: Data<Api>,
    caller: Caller,
    query: Query,
    body: Body<UpdateApplication>,
) -> Reply<ApplicationView> {
    let mut query = query.read()?;
    let id = query.required_id("id");
    let redeploy = query.optional::<Choice>("redeploy");
    let unchanged_since = query.optional("unchanged_since");
    query.finish_query()?;
    let redeploy = redeploy?.is_none_or(|choice| choice.0);
    let change = body.read().await?.into();
    let applications = &api.services.applications;
    let detail = applications.update(&caller, id?, change, redeploy, unchanged_since?).await?;
    Ok(success("Application updated successfully", detail.into()))
}

/// Delete an application and all of its resources
#[utoipa::path(delete, path = "/api/v1/deploy/application", tag = "applications", security(("bearer" = [])),
    params(("id" = String, Query, description = "Id of an application of this organization")),
    responses((status = 200, body = Envelope<Nothing>)))]
pub(crate) async fn delete_application(api: Data<Api>, caller: Caller, query: Query) -> Reply<Nothing> {
    let mut query = query.read()?;
    let id = query.required_id("id");
    query.finish_query()?;
    api.services.applications.delete(&caller, id?).await?;
    Ok(success("Application deleted successfully", Nothing))
}

/// List the applications of this organization, newest first
#[utoipa::path(get, path = "/api/v1/deploy/applications", tag = "applications", security(("bearer" = [])),
    params(
        ("page" = Option<i64>, Query, description = "Page number, from 1"),
        ("page_size" = Option<i64>, Query, description = "Page size: default 10, at most 100; also `pageSize`"),
        ("search" = Option<String>, Query, description = "Text in name, repository or domain, ignoring case"),
        ("environment" = Option<String>, Query, description = "Such as `production`"),
        ("status" = Option<String>, Query, description = "Such as `running`"),
    ),
    responses((status = 200, body = Envelope<ApplicationsView>)))]
pub(crate) async fn list_applications(
    api: Data<Api>,
    caller: Caller,
    query: Query,
) -> Reply<ApplicationsView> {
    let mut query = query.read()?;
    let page = PAGES.take(&mut query);
    let search = query.optional::<SearchTerm>("search");
    let environment = query.optional("environment");
    let state = query.optional("status");
    query.finish_query()?;
    let filter =
        ApplicationFilter { search: search?.map(Into::into), environment: environment?, state: state? };
    let found = api.services.applications.list(&caller, &filter, page?).await?;
    Ok(success("Applications retrieved successfully", found.into()))
}

/// Restart an application
#[utoipa::path(post, path = "/api/v1/deploy/application/restart", tag = "applications", security(("bearer" = [])),
    request_body = WhichApplication, responses((status = 200, body = Envelope<ApplicationView>)))]
pub(crate) async fn restart_application(
    api: Data<Api>,
    caller: Caller,
    body: Body<WhichApplication>,
) -> Reply<ApplicationView> {
    let WhichApplication { id } = body.read().await?;
    let detail = api.services.applications.restart(&caller, id).await?;
    Ok(success("Application restart requested successfully", detail.into()))
}

/// Stop an application
#[utoipa::path(post, path = "/api/v1/deploy/application/stop", tag = "applications", security(("bearer" = [])),
    request_body = WhichApplication, responses((status = 200, body = Envelope<ApplicationView>)))]
pub(crate) async fn stop_application(
    api: Data<Api>,
    caller: Caller,
    body: Body<WhichApplication>,
) -> Reply<ApplicationView> {
    let WhichApplication { id } = body.read().await?;
    let detail = api.services.applications.stop(&caller, id).await?;
    Ok(success("Application stopped successfully", detail.into()))
}
