//! The endpoints of deployments.

mod requests;
mod views;

use actix_web::{
    HttpResponse,
    web::{Data, Path},
};
use launchway_domain::auth::{Action, Permission, Resource};

pub(crate) use self::views::{DeploymentStatusView, DeploymentView};
use self::{
    requests::{RedeployApplication, WhichDeployment},
    views::DeploymentsView,
};
use crate::{
    Api,
    body::Body,
    caller::Caller,
    envelope::{Envelope, Reply, success},
    error::{ApiError, path_id},
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
        .post("/api/v1/deploy/application/redeploy", redeploy_application)
        .post("/api/v1/deploy/application/rollback", roll_back)
        .post("/api/v1/deploy/application/cancel-deployment", cancel_deployment)
        .get("/api/v1/deploy/application/deployments", list_deployments)
        .get("/api/v1/deploy/application/deployments/{deployment_id}", deployment);
}

/// Deploy the current source of an application
#[utoipa::path(post, path = "/api/v1/deploy/application/redeploy", tag = "deployments", security(("bearer" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated key returns the first response")),
    request_body = RedeployApplication, responses((status = 200, body = Envelope<DeploymentView>)))]
pub(crate) async fn redeploy_application(
    api: Data<Api>,
    caller: Caller,
    body: Idempotent<RedeployApplication>,
) -> Result<HttpResponse, ApiError> {
    let deployments = &api.services.deployments;
    let (RedeployApplication { id }, once) = body.read(&caller, CREATE).await?;
    once.answer(
        &api,
        "Deployment created successfully",
        async |key| deployments.redeploy(&caller, id, key).await,
        async |id| deployments.detail(&caller, id.into()).await,
        DeploymentView::from,
    )
    .await
}

/// Roll back to an earlier deployment
#[utoipa::path(post, path = "/api/v1/deploy/application/rollback", tag = "deployments", security(("bearer" = [])),
    params(("Idempotency-Key" = Option<String>, Header, description = "A repeated key returns the first response")),
    request_body = WhichDeployment, responses((status = 200, body = Envelope<DeploymentView>)))]
pub(crate) async fn roll_back(
    api: Data<Api>,
    caller: Caller,
    body: Idempotent<WhichDeployment>,
) -> Result<HttpResponse, ApiError> {
    let deployments = &api.services.deployments;
    let (WhichDeployment { id }, once) = body.read(&caller, CREATE).await?;
    once.answer(
        &api,
        "Rollback created successfully",
        async |key| deployments.roll_back(&caller, id, key).await,
        async |id| deployments.detail(&caller, id.into()).await,
        DeploymentView::from,
    )
    .await
}

/// Cancel a deployment
#[utoipa::path(post, path = "/api/v1/deploy/application/cancel-deployment", tag = "deployments",
    security(("bearer" = [])),
    request_body = WhichDeployment, responses((status = 200, body = Envelope<DeploymentView>)))]
pub(crate) async fn cancel_deployment(
    api: Data<Api>,
    caller: Caller,
    body: Body<WhichDeployment>,
) -> Reply<DeploymentView> {
    let WhichDeployment { id } = body.read().await?;
    let detail = api.services.deployments.cancel(&caller, id).await?;
    Ok(success("Deployment cancellation requested successfully", detail.into()))
}

/// List the deployments of an application, newest first
#[utoipa::path(get, path = "/api/v1/deploy/application/deployments", tag = "deployments", security(("bearer" = [])),
    params(
        ("id" = String, Query, description = "Id of an application of this organization"),
        ("page" = Option<i64>, Query, description = "Page number, from 1"),
        ("page_size" = Option<i64>, Query, description = "Page size: default 10, at most 100; also `pageSize`"),
    ),
    responses((status = 200, body = Envelope<DeploymentsView>)))]
pub(crate) async fn list_deployments(api: Data<Api>, caller: Caller, query: Query) -> Reply<DeploymentsView> {
    let mut query = query.read()?;
    let id = query.required_id("id");
    let page = PAGES.take(&mut query);
    query.finish_query()?;
    let found = api.services.deployments.list(&caller, id?, page?).await?;
    Ok(success("Deployments retrieved successfully", found.into()))
}

/// Get a deployment with its application and newest log lines
#[utoipa::path(get, path = "/api/v1/deploy/application/deployments/{deployment_id}", tag = "deployments",
    security(("bearer" = [])),
    params(("deployment_id" = String, Path, description = "Id of a deployment of this organization")),
    responses((status = 200, body = Envelope<DeploymentView>)))]
pub(crate) async fn deployment(api: Data<Api>, caller: Caller, path: Path<String>) -> Reply<DeploymentView> {
    let id = path_id("deployment_id", &path)?;
    let detail = api.services.deployments.detail(&caller, id).await?;
    Ok(success("Deployment retrieved successfully", detail.into()))
}
