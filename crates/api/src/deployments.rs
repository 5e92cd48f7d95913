//! The endpoints of deployments.

mod requests;

use actix_web::web::Data;
use launchway_domain::{
    auth::{Action, Permission, Resource},
    deployments::BuildCache,
    ids::{ApplicationId, DeploymentId},
};

use self::requests::{RedeployApplication, WhichDeployment};
use crate::{
    Api,
    body::Body,
    caller::Caller,
    endpoint::Endpoint,
    envelope::{Envelope, Reply, success},
    error::{ApiError, Code},
    idempotent::{Idempotent, Stored},
    input::input,
    pages::Paged,
    query::{Path, Query},
    views::deployments::{DeploymentView, DeploymentsView},
};

const CREATE: Permission = Permission::new(Resource::Deploy, Action::Create);
const READ: Permission = Permission::new(Resource::Deploy, Action::Read);
const UPDATE: Permission = Permission::new(Resource::Deploy, Action::Update);

pub(crate) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::post("/api/v1/deploy/application/redeploy", "redeploy_application", redeploy_application)
            .summary("Deploy the current source of an application")
            .cli("launchway deploy <APP>")
            .requires(CREATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::post("/api/v1/deploy/application/rollback", "roll_back", roll_back)
            .summary("Roll back to an earlier deployment")
            .cli("launchway rollback <DEPLOYMENT>")
            .requires(CREATE)
            .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::post(
            "/api/v1/deploy/application/cancel-deployment",
            "cancel_deployment",
            cancel_deployment,
        )
        .summary("Cancel a deployment")
        .cli("launchway cancel <DEPLOYMENT>")
        .requires(UPDATE)
        .fails(&[Code::Conflict, Code::NotFound]),
        Endpoint::get("/api/v1/deploy/application/deployments", "list_deployments", list_deployments)
            .summary("List the deployments of an application, newest first")
            .cli("launchway deployments <APP>")
            .requires(READ)
            .fails(&[Code::NotFound]),
        Endpoint::get("/api/v1/deploy/application/deployments/{deployment_id}", "deployment", deployment)
            .summary("Get a deployment with its application and newest log lines")
            .requires(READ)
            .fails(&[Code::NotFound]),
    ]
}

/// Returns the use of the build cache that a request asks for.
pub(crate) fn build_cache(no_cache: Option<bool>) -> BuildCache {
    if no_cache == Some(true) { BuildCache::Ignore } else { BuildCache::Use }
}

input! {
    struct ListDeployments {
        /// Id of an application of this organization
        id: ApplicationId,
        page: Paged<10, 100>,
    }
}

input! {
    pub(crate) struct DeploymentPath {
        /// Id of a deployment of this organization
        pub(crate) deployment_id: DeploymentId,
    }
}

async fn redeploy_application(
    api: Data<Api>,
    caller: Caller,
    body: Idempotent<RedeployApplication>,
) -> Result<Stored<Envelope<DeploymentView>>, ApiError> {
    let deployments = &api.services.deployments;
    let (RedeployApplication { id, no_cache }, once) = body.read(&caller, CREATE).await?;
    once.answer(
        &api,
        "Deployment created successfully",
        async |key| match build_cache(no_cache) {
            BuildCache::Use => deployments.redeploy(&caller, id, key).await,
            BuildCache::Ignore => deployments.rebuild(&caller, id, key).await,
        },
        async |id| deployments.written(&caller, id.into()).await,
        DeploymentView::from,
    )
    .await
}

async fn roll_back(
    api: Data<Api>,
    caller: Caller,
    body: Idempotent<WhichDeployment>,
) -> Result<Stored<Envelope<DeploymentView>>, ApiError> {
    let deployments = &api.services.deployments;
    let (WhichDeployment { id }, once) = body.read(&caller, CREATE).await?;
    once.answer(
        &api,
        "Rollback created successfully",
        async |key| deployments.roll_back(&caller, id, key).await,
        async |id| deployments.written(&caller, id.into()).await,
        DeploymentView::from,
    )
    .await
}

async fn cancel_deployment(
    api: Data<Api>,
    caller: Caller,
    body: Body<WhichDeployment>,
) -> Reply<DeploymentView> {
    let WhichDeployment { id } = body.read().await?;
    let detail = api.services.deployments.cancel(&caller, id).await?;
    Ok(success("Deployment cancellation requested successfully", detail.into()))
}

async fn list_deployments(
    api: Data<Api>,
    caller: Caller,
    query: Query<ListDeployments>,
) -> Reply<DeploymentsView> {
    let ListDeployments { id, page } = query.read()?;
    let found = api.services.deployments.list(&caller, id, page.0).await?;
    Ok(success("Deployments retrieved successfully", found.into()))
}

async fn deployment(api: Data<Api>, caller: Caller, path: Path<DeploymentPath>) -> Reply<DeploymentView> {
    let DeploymentPath { deployment_id } = path.read()?;
    let detail = api.services.deployments.detail(&caller, deployment_id).await?;
    Ok(success("Deployment retrieved successfully", detail.into()))
}
