//! The JSON of deployments.

use launchway_domain::{
    deployments::{Deployment, DeploymentDetail},
    page::Page,
};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    applications::ApplicationView,
    logs::{Lines, LogView},
};
use crate::{pages::Pagination, timestamp::Moment};

/// A deployment. Its relations are omitted unless they are attached.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = ApplicationDeployment)]
pub(crate) struct DeploymentView {
    id: Uuid,
    application_id: Uuid,
    #[schema(no_recursion)]
    application: Option<Box<ApplicationView>>,
    commit_hash: String,
    /// The digest of the upload that the commit was made of: `sha256:` and 64 digits; empty if the source is no upload.
    source_digest: String,
    container_id: String,
    container_image: String,
    container_name: String,
    /// `created`, `running`, `exited` or `removed`; empty before there is a container.
    container_status: &'static str,
    #[schema(no_recursion)]
    status: Option<Box<DeploymentStatusView>>,
    #[schema(no_recursion, value_type = Vec<LogView>)]
    logs: Lines,
    created_at: Moment,
    updated_at: Moment,
}

/// The status of a deployment.
#[derive(Clone, Serialize, ToSchema)]
#[schema(as = DeploymentStatus)]
pub(crate) struct DeploymentStatusView {
    id: Uuid,
    application_deployment_id: Uuid,
    #[schema(no_recursion)]
    application_deployment: Option<Box<DeploymentView>>,
    #[schema(example = "deployed")]
    status: &'static str,
    created_at: Moment,
    updated_at: Moment,
}

impl From<&Deployment> for DeploymentView {
    fn from(deployment: &Deployment) -> Self {
        let container = deployment.container.as_ref();
        let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
        Self {
            id: deployment.id.into(),
            application_id: deployment.application_id.into(),
            application: None,
            commit_hash: text(
                deployment.commit.as_ref().map(launchway_domain::deployments::CommitHash::as_str),
            ),
            source_digest: text(
                deployment.source_digest.as_ref().map(launchway_domain::deployments::SourceDigest::as_str),
            ),
            container_id: text(container.map(|container| container.id.as_str())),
            container_image: text(
                deployment.image.as_ref().map(launchway_domain::deployments::ImageName::as_str),
            ),
            container_name: text(container.map(|container| container.name.as_str())),
            container_status: container.map_or("", |container| container.state.as_str()),
            status: None,
            logs: Lines::default(),
            created_at: deployment.created_at.into(),
            updated_at: deployment.updated_at.into(),
        }
    }
}

impl DeploymentView {
    /// Returns the deployment with its status.
    pub(crate) fn with_status(deployment: &Deployment) -> Self {
        let status = &deployment.status;
        let status = DeploymentStatusView {
            id: status.id.into(),
            application_deployment_id: deployment.id.into(),
            application_deployment: None,
            status: status.state.as_str(),
            created_at: status.created_at.into(),
            updated_at: status.updated_at.into(),
        };
        Self { status: Some(Box::new(status)), ..Self::from(deployment) }
    }
}

impl From<DeploymentDetail> for DeploymentView {
    fn from(DeploymentDetail { deployment, application, logs }: DeploymentDetail) -> Self {
        Self {
            application: Some(Box::new((&application).into())),
            logs: logs.into(),
            ..Self::with_status(&deployment)
        }
    }
}

/// A page of deployments.
#[derive(Serialize, ToSchema)]
#[schema(as = ApplicationDeployments)]
pub(crate) struct DeploymentsView {
    deployments: Vec<DeploymentView>,
    pagination: Pagination,
}

impl From<Page<Deployment>> for DeploymentsView {
    fn from(page: Page<Deployment>) -> Self {
        Self {
            pagination: Pagination::from(&page),
            deployments: page.items.iter().map(DeploymentView::with_status).collect(),
        }
    }
}
